//! `onggi import`: from an RDB file of Redis or Valkey to a data directory.

use crate::progress::Progress;
use crate::tools::{DAMAGED, failed};
use base::Clock;
use base::clock::SystemClock;
use base::random::OsEntropy;
use clap::Args;
use inspect::text::{count, size};
use migrate::{Contents, Examination, Import, MigrateError};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLE: &str = "\
Example:
  redis-cli SAVE
  onggi import /var/lib/redis/dump.rdb --dry-run
  onggi import /var/lib/redis/dump.rdb --dir /var/lib/onggi
  onggi serve --dir /var/lib/onggi";

/// Makes a data directory of an RDB file: of Redis 2.6 to 8, of Valkey 7.2 to 9. Says what is inside, and takes all of it or
/// nothing.
///
/// Exit code: 0 done, 1 the file is damaged or has something that cannot be taken, 2 could not be done. After 1 and 2 the directory
/// holds no data.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct ImportArgs {
    /// The RDB file.
    file: PathBuf,
    /// The data directory to make; empty or missing.
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    dir: Option<PathBuf>,
    /// Only says what is inside and whether it can be taken; writes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Leaves out what cannot be taken, which is named.
    #[arg(long)]
    partial: bool,
}

/// `onggi import`
pub fn run(args: &ImportArgs) -> ExitCode {
    let progress = Progress::of_file(&args.file);
    let done = match &args.dir {
        Some(dir) if !args.dry_run => import(args, dir.clone(), &progress),
        _ => examine(args, &progress),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            drop(progress);
            let code = failed("import", &error);
            match error {
                MigrateError::File { .. }
                | MigrateError::Duplicate { .. }
                | MigrateError::Database { .. }
                | MigrateError::GoesOn { .. }
                | MigrateError::Untaken { .. } => ExitCode::from(DAMAGED),
                _ => code,
            }
        }
    }
}

fn examine(args: &ImportArgs, progress: &Progress) -> Result<ExitCode, MigrateError> {
    let now = SystemClock::new().now_ms();
    let examination = Examination { fs: progress.fs(), file: &args.file, now, scratch: std::env::temp_dir() };
    let contents = migrate::examine(&examination, &OsEntropy)?;
    say(progress, &contents);
    if contents.untaken.is_nothing() {
        progress.say("all of it can be imported");
        return Ok(ExitCode::SUCCESS);
    }
    progress.say("the rest can be imported with --partial");
    Ok(ExitCode::from(DAMAGED))
}

fn import(args: &ImportArgs, dir: PathBuf, progress: &Progress) -> Result<ExitCode, MigrateError> {
    let import = Import {
        fs: progress.fs(),
        file: &args.file,
        dir: &dir,
        is_partial: args.partial,
        scratch: std::env::temp_dir(),
    };
    let imported = migrate::import(&import, &SystemClock::new(), &OsEntropy, &mut |contents| say(progress, contents))?;
    let keys = count(imported.set.entries(), "key", "keys");
    let databases = match imported.contents.databases_needed() {
        needed @ 17.. => format!(" --databases {needed}"),
        _ => String::new(),
    };
    progress.say(&format!(
        "imported {keys}, {}; start a server with: onggi serve --dir {}{databases}",
        size(imported.set.bytes()),
        dir.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn say(progress: &Progress, contents: &Contents) {
    migrate::report(contents).iter().for_each(|line| progress.say(line));
}
