//! `onggi backup`: a copy of a running server's data.

use crate::progress::Progress;
use crate::tools::failed;
use base::clock::SystemClock;
use base::random::{Entropy, OsEntropy};
use base::{HistoryId, Lsn};
use clap::Args;
use loadgen::client::{Address, Client, Login};
use proto::reply::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Copies the data of a running server of this machine into a new data directory: the newest checkpoint, by hard links where
/// the file system can, and the log after it. The server goes on meanwhile.
///
/// Exit code: 0 done, 2 could not be done; the new directory is of no use then.
#[derive(Args)]
pub struct BackupArgs {
    /// The server: host:port, or unix:PATH.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6379")]
    from: Address,
    /// The directory to make; empty or missing.
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// User name; the default user if missing.
    #[arg(long)]
    user: Option<String>,
    /// Password.
    #[arg(long, env = "ONGGI_PASSWORD", hide_env_values = true)]
    password: Option<String>,
}

/// For how long the server is asked to keep its files: what linking a few of them and copying the log can take.
const HOLD_SECONDS: &str = "3600";

/// For how long a server that is removing files is asked again.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the files are, and up to where the log is durable.
struct Held {
    directory: PathBuf,
    durable: Option<Lsn>,
}

/// `onggi backup`
pub fn run(args: &BackupArgs) -> ExitCode {
    match copy(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed("backup", &*error),
    }
}

type Error = Box<dyn std::error::Error>;

fn copy(args: &BackupArgs) -> Result<(), Error> {
    let login = Login { user: args.user.clone(), password: args.password.clone(), ..Login::default() };
    let mut client = Client::connect(&args.from, &login)?;
    let held = hold(&mut client)?;
    let (clock, history) = (SystemClock::new(), HistoryId::random(&mut OsEntropy.rng()));
    let progress = Progress::new();
    let mut told = |line: &str| progress.say(line);
    let done = inspect::backup(progress.fs(), &clock, &held.directory, held.durable, &args.into, history, &mut told);
    // The hold would end by itself.
    let released = ask(&mut client, &["BACKUP", "RELEASE"]);
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

fn hold(client: &mut Client) -> Result<Held, Error> {
    let reply = ask(client, &["BACKUP", "HOLD", HOLD_SECONDS])?;
    let unknown = || format!("the server's answer to BACKUP HOLD is not understood: {reply:?}");
    let Value::Array(fields) = &reply else { return Err(unknown().into()) };
    let [_, Value::Bulk(directory), _, durable] = &fields[..] else { return Err(unknown().into()) };
    let durable = match durable {
        Value::NullBulk => None,
        Value::Bulk(lsn) => Some(Lsn(String::from_utf8_lossy(lsn).parse().map_err(|_| unknown())?)),
        _ => return Err(unknown().into()),
    };
    Ok(Held { directory: String::from_utf8_lossy(directory).into_owned().into(), durable })
}

/// The server's answer; an error answer is an error, except that a busy server is asked again.
fn ask(client: &mut Client, command: &[&str]) -> Result<Value, Error> {
    let began = Instant::now();
    loop {
        match client.ask(command)? {
            Value::Error(text) if text.starts_with(b"BUSY") && began.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Value::Error(text) => return Err(String::from_utf8_lossy(&text).into_owned().into()),
            reply => return Ok(reply),
        }
    }
}
