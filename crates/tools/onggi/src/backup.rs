//! `onggi backup`: a copy of a running server's data.

use crate::held::{Error, Held, LoginArgs};
use crate::progress::Progress;
use crate::tools::failed;
use base::HistoryId;
use base::clock::SystemClock;
use base::random::{Entropy, OsEntropy};
use clap::Args;
use loadgen::client::Address;
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
}

/// `onggi backup`
pub fn run(args: &BackupArgs) -> ExitCode {
    match copy(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed("backup", &*error),
    }
}

fn copy(args: &BackupArgs) -> Result<(), Error> {
    let mut held = Held::take(&args.from, &args.login)?;
    let (clock, history) = (SystemClock::new(), HistoryId::random(&mut OsEntropy.rng()));
    let progress = Progress::new();
    let mut told = |line: &str| progress.say(line);
    let done = inspect::backup(progress.fs(), &clock, &held.directory, held.durable, &args.into, history, &mut told);
    // If this fails, the hold expires.
    let released = held.release();
    let done = done?;
    released?;
    let begun = done.set.map_or_else(|| "nothing".to_owned(), |set| format!("set {set}"));
    progress.say(&format!(
        "backup of LSN {}: {begun} and {} records of the log after it; start a server with --dir {}",
        done.lsn,
        done.records,
        args.into.display()
    ));
    Ok(())
}
