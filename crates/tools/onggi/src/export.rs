//! `onggi export`: converts a data directory to an RDB file that Redis and Valkey load.

use crate::progress::Progress;
use crate::report::JsonArg;
use base::clock::SystemClock;
use base::random::OsEntropy;
use clap::{Args, ValueEnum};
use inspect::text::{count, size};
use migrate::Export;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

const EXAMPLE: &str = "\
Example:
  onggi export --dir /var/lib/onggi dump.rdb
  redis-server --dbfilename dump.rdb --appendonly no";

/// Makes an RDB file from the newest checkpoint of a data directory and the log after it. Needs as much memory as a
/// server with that data, and changes nothing in the directory.
///
/// Exit code: 0 done, 2 failed; no file is left then.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct ExportArgs {
    /// The data directory. No server may use it; to export from a running server, export a backup.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The file to make; must not exist.
    file: PathBuf,
    /// The target of the file.
    #[arg(long = "for", value_name = "SERVER", default_value = "redis-7.2")]
    target: Target,
    #[command(flatten)]
    json: JsonArg,
}

/// The oldest server that loads the file.
#[derive(Clone, Copy, ValueEnum)]
enum Target {
    /// Redis 7.0 and later, Valkey: without the times at which consumers of streams were last active.
    #[value(name = "redis-7.0")]
    Redis70,
    /// Redis 7.2 and later, Valkey.
    #[value(name = "redis-7.2")]
    Redis72,
    /// Valkey 9.0 and later: fields of hashes can expire.
    #[value(name = "valkey-9")]
    Valkey9,
}

impl Target {
    /// The servers that load the file.
    fn readers(self) -> &'static str {
        match self {
            Self::Redis70 => "Redis 7.0 and later, and Valkey, load it",
            Self::Redis72 => "Redis 7.2 and later, and Valkey, load it; for Redis 7.0 pass --for redis-7.0",
            Self::Valkey9 => "Valkey 9.0 and later load it; for Redis pass --for redis-7.2",
        }
    }
}

/// `onggi export`
pub fn run(args: &ExportArgs) -> ExitCode {
    let progress = Progress::over(args.json.report("export"), &args.dir);
    let target = match args.target {
        Target::Redis70 => rdb::Target::V10,
        Target::Redis72 => rdb::Target::V11,
        Target::Valkey9 => rdb::Target::Valkey9,
    };
    let export = Export {
        fs: progress.fs(),
        dir: &args.dir,
        file: &args.file,
        target,
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(OsEntropy),
    };
    match migrate::export(&export) {
        Ok(done) => {
            let (keys, bytes) = (count(done.keys, "key", "keys"), size(done.bytes));
            let expired = match done.expired {
                0 => String::new(),
                expired => {
                    format!("; {} left out, whose time of expiration has come", count(expired, "key was", "keys were"))
                }
            };
            let mut lines = vec![format!("exported {keys}, {bytes}, to {}{expired}", args.file.display())];
            if done.formless > 0 {
                let keys = count(done.formless, "key was", "keys were");
                lines.push(format!("{keys} left out: RDB files hold no b+trees, and no collections without elements"));
            }
            lines.push(args.target.readers().to_owned());
            let fields = json!({ "file": args.file.display().to_string(), "keys": done.keys, "bytes": done.bytes,
                "libraries": done.libraries, "left_out_expired": done.expired, "left_out_formless": done.formless });
            progress.ended().result(0, &lines, fields)
        }
        Err(error) => progress.ended().failed(&error),
    }
}
