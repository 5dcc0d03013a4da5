//! `onggi history`: lists what can be restored.

use crate::held::{LoginArgs, Place};
use crate::progress::Progress;
use crate::report::JsonArg;
use base::Clock;
use base::clock::SystemClock;
use clap::Args;
use inspect::History;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Lists the moments that `onggi restore` can reach: checkpoints, flushes (FLUSHALL, FLUSHDB), and the time between
/// them. Changes nothing.
///
/// Exit code: 0 listed, 2 failed.
#[derive(Args)]
pub struct HistoryArgs {
    /// A data directory that no server uses, or a running server on this machine: HOST:PORT or unix:PATH.
    #[arg(value_name = "DIR|ADDR")]
    from: Place,
    #[command(flatten)]
    login: LoginArgs,
    #[command(flatten)]
    json: JsonArg,
}

/// `onggi history`
pub fn run(args: &HistoryArgs) -> ExitCode {
    let report = args.json.report("history");
    let progress = Progress::new(report);
    match args.from.with(&args.login, |source| Ok(inspect::history(progress.fs(), source)?)) {
        Ok(history) => {
            let lines = history.lines(SystemClock::new().now_ms(), &calendar::system_zone());
            progress.ended().result(0, &lines, fields(&history))
        }
        Err(error) => report.failed(&*error),
    }
}

/// All of it, oldest first. Times are milliseconds since 1970.
fn fields(history: &History) -> Value {
    let sets = history.sets.iter().map(|set| {
        let is_beginning = set.files.is_empty();
        json!({ "checkpoint": (!is_beginning).then_some(set.set.0), "lsn": set.cut.0, "created_ms": set.created_ms,
            "keys": set.entries(), "bytes": set.bytes() })
    });
    let flushes = history
        .flushes
        .iter()
        .map(|flush| json!({ "lsn_before": flush.before.0, "at_ms": flush.at_ms, "databases": flush.databases }));
    let restorable =
        history.stretches.iter().map(|stretch| json!({ "from_ms": stretch.from_ms, "to_ms": stretch.to_ms }));
    json!({
        "checkpoints": sets.collect::<Vec<_>>(),
        "flushes": flushes.collect::<Vec<_>>(),
        "restorable": restorable.collect::<Vec<_>>(),
        "notes": history.notes,
    })
}
