//! `onggi import`: converts an RDB file, append-only files, or the data of a running Redis or Valkey to a data
//! directory, and copies a running SSDB into a running server.

mod cache;
mod figures;
mod follow;
mod pace;
mod ssdb;

use crate::progress::Progress;
use crate::report::{JsonArg, Report};
use crate::tls::TlsArgs;
use crate::tools::DAMAGED;
use base::Clock;
use base::clock::SystemClock;
use base::random::{Entropy, OsEntropy};
use clap::Args;
use inspect::text::{count, size};
use migrate::{Cache, Contents, Examination, Import, Log, MigrateError, Ssdb, Untaken};
use replication::Primary;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

const EXAMPLE: &str = "\
Example:
  redis-cli SAVE
  onggi import /var/lib/redis/dump.rdb --dry-run
  onggi import /var/lib/redis/dump.rdb --dir /var/lib/onggi
  onggi import /var/lib/redis/appendonlydir --dir /var/lib/onggi
  onggi import redis://10.0.0.7:6379 --dir /var/lib/onggi --follow
  onggi import memcached://10.0.0.7:11211 --dir /var/lib/onggi
  onggi import ssdb://10.0.0.7:8888 --to redis://127.0.0.1:6379/0 --follow
  onggi --dir /var/lib/onggi";

/// Makes a data directory from an RDB file, from append-only files, or from a running server: of Redis 2.6 to 8, of
/// Valkey 7.2 to 9. Lists the contents, and imports all of them or nothing.
///
/// With --follow it also applies what the clients of the running server change, and shows how far behind it is. To
/// move: stop the clients, wait until nothing is behind, end this command with Ctrl-C or SIGTERM, start Onggi on the
/// directory. If this command is killed, the same command continues where it stopped.
///
/// Exit code: 0 done, 1 the file is damaged or has something that cannot be imported, 2 failed. After 1 and 2 the
/// directory holds no data; with --follow, the same command can continue.
#[derive(Args, Clone)]
#[command(after_help = EXAMPLE)]
pub struct ImportArgs {
    /// The RDB file; of append-only files, the single file, the manifest, or their directory; or a running server:
    /// `redis://[[USER]:PASSWORD@]HOST[:PORT]`, or `rediss://...` with TLS; or a running memcached 1.6 or later,
    /// `memcached://HOST[:PORT]`; or a running SSDB, `ssdb://[:PASSWORD@]HOST[:PORT]`.
    #[arg(value_name = "SOURCE")]
    file: PathBuf,
    /// The data directory to make; empty or missing.
    #[arg(long, visible_alias = "into", value_name = "DIR", required_unless_present_any = ["dry_run", "to"])]
    dir: Option<PathBuf>,
    /// Of a running SSDB: the database that receives it, empty: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, or
    /// `rediss://...` with TLS.
    #[arg(long, value_name = "ADDRESS")]
    to: Option<String>,
    /// Lists the contents and what cannot be imported; writes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Leaves out what cannot be imported, and names it.
    #[arg(long)]
    partial: bool,
    /// Of a running server: applies its changes, too, until Ctrl-C or SIGTERM.
    #[arg(long, conflicts_with = "dry_run")]
    follow: bool,
    /// With --follow: how many databases the running server has.
    #[arg(long, requires = "follow", value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_535))]
    databases: u32,
    /// Of a running SSDB: where hashes, zsets and queues go, as with the directive of this name: `shared` is the
    /// database of keys, `separate` the three after it.
    #[arg(long, value_name = "WORD", value_parser = ["shared", "separate"], default_value = "shared")]
    ssdb_namespaces: String,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    json: JsonArg,
}

/// `onggi import`
pub fn run(args: &ImportArgs) -> ExitCode {
    let report = args.json.report("import");
    if let Some(text) = args.file.to_str().filter(|text| Ssdb::is_meant_by(text)) {
        return match text.parse() {
            Ok(ssdb) => ssdb::run(args, &ssdb, report),
            Err(error) => report.failed(&error),
        };
    }
    if args.to.is_some() || args.dir.is_none() && !args.dry_run {
        let text = "--to is for an SSDB, ssdb://HOST:PORT; other sources become a directory, --dir DIR";
        return report.failed(&*Box::<dyn std::error::Error>::from(text));
    }
    if let Some(text) = args.file.to_str().filter(|text| Primary::is_meant_by(text)) {
        return match text.parse() {
            Ok(primary) => follow::run(args, &primary, report),
            Err(error) => report.failed(&error),
        };
    }
    if let Some(text) = args.file.to_str().filter(|text| Cache::is_meant_by(text)) {
        return match text.parse() {
            Ok(cache) => cache::run(args, &cache, report),
            Err(error) => report.failed(&error),
        };
    }
    if args.follow {
        let text = format!(
            "--follow needs a running server, redis://HOST:PORT or ssdb://HOST:PORT; {} is a path",
            args.file.display()
        );
        return report.failed(&*Box::<dyn std::error::Error>::from(text));
    }
    import_file(args, report)
}

/// Examines or imports a file.
fn import_file(args: &ImportArgs, report: Report) -> ExitCode {
    // A manifest names files next to it.
    let is_manifest = args.file.extension().is_some_and(|extension| extension == "manifest");
    let around = args.file.parent().filter(|parent| is_manifest && !parent.as_os_str().is_empty());
    let progress = Progress::over(report, around.unwrap_or(&args.file));
    let done = match &args.dir {
        Some(dir) if !args.dry_run => import(args, dir.clone(), &progress),
        _ => examine(args, &progress),
    };
    match done {
        Ok(done) => {
            let Done { exit, line, fields } = done;
            progress.ended().result(exit, &[line], fields)
        }
        Err(error) => code_of(&error, progress.ended()),
    }
}

/// The result of an import.
struct Done {
    exit: u8,
    line: String,
    fields: serde_json::Value,
}

/// Says an error, and gives its exit code.
fn code_of(error: &MigrateError, report: Report) -> ExitCode {
    match error {
        MigrateError::File { .. }
        | MigrateError::Duplicate { .. }
        | MigrateError::Database { .. }
        | MigrateError::GoesOn { .. }
        | MigrateError::AppendOnly { .. }
        | MigrateError::AppendOnlyCut { .. }
        | MigrateError::AppendOnlyManifest { .. }
        | MigrateError::Command { .. }
        | MigrateError::SsdbUntaken { .. }
        | MigrateError::Untaken { .. } => report.failed_with(DAMAGED, error),
        _ => report.failed(error),
    }
}

fn examine(args: &ImportArgs, progress: &Progress) -> Result<Done, MigrateError> {
    let now = SystemClock::new().now_ms();
    let examination = Examination { fs: progress.fs(), file: &args.file, now, scratch: std::env::temp_dir() };
    let untaken: Untaken = if migrate::is_append_only(&**progress.fs(), &args.file)? {
        let log = migrate::examine_log(&examination, &entropy())?;
        say_log(progress, &log);
        log.untaken
    } else {
        let contents = migrate::examine(&examination, &OsEntropy)?;
        say(progress, &contents);
        contents.untaken
    };
    let (exit, line) = match untaken.is_nothing() {
        true => (0, "all of it can be imported"),
        false => (DAMAGED, "the rest can be imported with --partial"),
    };
    let fields = json!({ "is_imported": false, "cannot_be_imported": untaken.sentences() });
    Ok(Done { exit, line: line.to_owned(), fields })
}

fn import(args: &ImportArgs, dir: PathBuf, progress: &Progress) -> Result<Done, MigrateError> {
    let import = Import {
        fs: progress.fs(),
        file: &args.file,
        dir: &dir,
        is_partial: args.partial,
        scratch: std::env::temp_dir(),
    };
    let clock = SystemClock::new();
    if migrate::is_append_only(&**progress.fs(), &args.file)? {
        let imported = migrate::import_log(&import, &clock, &entropy(), &mut |log| say_log(progress, log))?;
        Ok(done(imported.set.entries(), imported.set.bytes(), imported.log.databases_needed(), &dir))
    } else {
        let imported = migrate::import(&import, &clock, &OsEntropy, &mut |contents| say(progress, contents))?;
        Ok(done(imported.set.entries(), imported.set.bytes(), imported.contents.databases_needed(), &dir))
    }
}

fn entropy() -> Arc<dyn Entropy> {
    Arc::new(OsEntropy)
}

/// What was imported.
fn done(keys: u64, bytes: u64, databases_needed: u32, dir: &Path) -> Done {
    let fields = json!({ "is_imported": true, "keys": keys, "bytes": bytes, "databases": databases_needed,
        "dir": dir.display().to_string() });
    let keys = count(keys, "key", "keys");
    let databases = match databases_needed {
        needed @ 17.. => format!(" --databases {needed}"),
        _ => String::new(),
    };
    let line = format!(
        "imported {keys}, {}; start a server with: onggi serve --dir {}{databases}",
        size(bytes),
        dir.display()
    );
    Done { exit: 0, line, fields }
}

fn say_log(progress: &Progress, log: &Log) {
    match progress.is_json() {
        true => progress.event("contents", figures::of_log(log)),
        false => migrate::report_log(log).iter().for_each(|line| progress.say(line)),
    }
}

fn say(progress: &Progress, contents: &Contents) {
    match progress.is_json() {
        true => progress.event("contents", figures::of(contents)),
        false => migrate::report(contents).iter().for_each(|line| progress.say(line)),
    }
}
