//! `onggi backup`: a copy of a running server's data.

use crate::held::{Error, Held, LoginArgs};
use crate::progress::Progress;
use crate::report::{JsonArg, Report};
use base::HistoryId;
use base::clock::SystemClock;
use base::random::{Entropy, OsEntropy};
use clap::Args;
use loadgen::client::Address;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Copies the data of a running server on this machine to a new data directory: the newest checkpoint, by hard links
/// where the file system supports them, and the log after it. The server keeps running meanwhile.
///
/// Exit code: 0 done, 2 failed; the new directory is unusable then.
#[derive(Args)]
pub struct BackupArgs {
    /// The server: host:port, or unix:PATH.
    #[arg(long, visible_alias = "addr", value_name = "ADDR", default_value = "127.0.0.1:6379")]
    from: Address,
    /// The directory to make; empty or missing.
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    #[command(flatten)]
    login: LoginArgs,
    #[command(flatten)]
    json: JsonArg,
}

/// `onggi backup`
pub fn run(args: &BackupArgs) -> ExitCode {
    let report = args.json.report("backup");
    copy(args, report).unwrap_or_else(|error| report.failed(&*error))
}

fn copy(args: &BackupArgs, report: Report) -> Result<ExitCode, Error> {
    let mut held = Held::take(&args.from, &args.login)?;
    let (clock, history) = (SystemClock::new(), HistoryId::random(&mut OsEntropy.rng()));
    let progress = Progress::over(report, &held.directory);
    let mut told = |line: &str| progress.say(line);
    let done = inspect::backup(progress.fs(), &clock, &held.directory, held.durable, &args.into, history, &mut told);
    // If this fails, the hold expires.
    let released = held.release();
    let done = done?;
    released?;
    let begun = done.set.map_or_else(|| "nothing".to_owned(), |set| format!("set {set}"));
    let line = format!(
        "backup of LSN {}: {begun} and {} records of the log after it; start a server with --dir {}",
        done.lsn,
        done.records,
        args.into.display()
    );
    let fields = json!({ "lsn": done.lsn.0, "checkpoint": done.set.map(|set| set.0), "records": done.records,
        "dir": args.into.display().to_string() });
    Ok(progress.ended().result(0, &[line], fields))
}
