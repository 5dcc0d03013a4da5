//! `onggi restore`: the state of an earlier moment, in a new directory.

use crate::held::{LoginArgs, Place};
use crate::progress::Progress;
use crate::report::JsonArg;
use base::clock::SystemClock;
use base::random::{Entropy, OsEntropy};
use base::{Clock, HistoryId, Lsn};
use clap::Args;
use inspect::{Point, When};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Makes a new data directory with the state of an earlier moment, for example before a FLUSHALL. The old directory
/// stays unchanged, and a server that uses it keeps running.
///
/// Exit code: 0 done, 2 failed; the new directory is unusable then.
#[derive(Args)]
pub struct RestoreArgs {
    /// A data directory that no server uses, or a running server on this machine: HOST:PORT or unix:PATH.
    #[arg(long, value_name = "DIR|ADDR")]
    from: Place,
    /// The moment: before-last-flush; -10m (also s, h, d); 13:21:57, the last one; "2026-11-22 13:21:57" in local time,
    /// with Z or +09:00 in another zone; or a position of the log in digits. `onggi history` lists moments.
    #[arg(long, alias = "to", value_name = "WHEN", value_parser = when, allow_hyphen_values = true)]
    time: When,
    /// The directory to make; empty or missing.
    #[arg(long, value_name = "NEWDIR")]
    into: PathBuf,
    #[command(flatten)]
    login: LoginArgs,
    #[command(flatten)]
    json: JsonArg,
}

fn when(text: &str) -> Result<When, String> {
    if text.eq_ignore_ascii_case("before-last-flush") {
        return Ok(When::BeforeLastFlush);
    }
    if let Ok(lsn) = text.parse() {
        return Ok(When::At(Point::Lsn(Lsn(lsn))));
    }
    let now = SystemClock::new().now_ms();
    let at = calendar::parse(text, now, &calendar::system_zone())
        .map_err(|error| format!("{error}; or before-last-flush; or a position of the log in digits"))?;
    if at > now {
        return Err(format!("{} is in the future", calendar::local(at, &calendar::system_zone())));
    }
    Ok(When::At(Point::Time(at)))
}

/// `onggi restore`
pub fn run(args: &RestoreArgs) -> ExitCode {
    let history = HistoryId::random(&mut OsEntropy.rng());
    let report = args.json.report("restore");
    let clock = SystemClock::new();
    let restored = args.from.with(&args.login, |source| {
        let progress = Progress::over(report, source.path());
        let mut say = |line: &str| progress.say(line);
        Ok(inspect::restore(progress.fs(), &clock, source, args.time, &args.into, history, &mut say)?)
    });
    match restored {
        Ok(restored) => {
            let begun = restored.set.map_or_else(|| "nothing".to_owned(), |set| format!("checkpoint {set}"));
            let time = restored.at_ms.map_or_else(String::new, |at| {
                let ago = calendar::ago(at, clock.now_ms());
                format!(", {}, {ago}", calendar::local(at, &calendar::system_zone()))
            });
            let line = format!(
                "restored the state of LSN {}{time}: {begun} and {} records of the log after it; start a server with \
                 --dir {}",
                restored.lsn,
                restored.records,
                args.into.display()
            );
            let fields = json!({ "lsn": restored.lsn.0, "at_ms": restored.at_ms, "records": restored.records,
                "checkpoint": restored.set.map(|set| set.0), "dir": args.into.display().to_string() });
            report.result(0, &[line], fields)
        }
        Err(error) => report.failed(&*error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_that_people_write() {
        assert_eq!(when("before-last-flush"), Ok(When::BeforeLastFlush));
        assert_eq!(when("348990"), Ok(When::At(Point::Lsn(Lsn(348_990)))));
        assert_eq!(when("1970-01-01 00:00:01Z"), Ok(When::At(Point::Time(1_000))));
        assert!(matches!(when("-10m"), Ok(When::At(Point::Time(_)))));
        let error = when("before").expect_err("no moment");
        assert!(error.ends_with("; or before-last-flush; or a position of the log in digits"), "{error}");
        assert_eq!(when("9999-01-01 00:00Z").map_err(|error| error.ends_with("is in the future")), Err(true));
    }
}
