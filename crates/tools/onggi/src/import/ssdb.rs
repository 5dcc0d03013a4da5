//! `onggi import ssdb://...`: the data of a running SSDB, into a running server.

use super::pace::Pace;
use super::{ImportArgs, code_of};
use crate::progress::Progress;
use crate::report::Report;
use crate::tools::DAMAGED;
use inspect::text::{count, size};
use migrate::{Ssdb, SsdbCopied, SsdbCopy, SsdbEvent, SsdbFound, SsdbProgress, SsdbRows, Target};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Time between two lines that say how far it is.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// `onggi import` of a running SSDB.
pub fn run(args: &ImportArgs, ssdb: &Ssdb, report: Report) -> ExitCode {
    let refused = |text: &str| report.failed(&*Box::<dyn std::error::Error>::from(text));
    if args.dry_run {
        return examine(args, ssdb, report);
    }
    let Some(target) = args.to.as_ref().filter(|_| args.dir.is_none()) else {
        return refused("an SSDB is copied into a running server: give --to redis://HOST:PORT/DATABASE, and no --dir");
    };
    let target = match target.parse::<Target>() {
        Ok(target) => target,
        Err(error) => return refused(&format!("--to: {error}")),
    };
    let tls = match target.server.is_tls.then(|| args.tls.config()).transpose() {
        Ok(tls) => tls,
        Err(error) => return report.failed(&error),
    };
    let stop = match stop_flag() {
        Ok(stop) => stop,
        Err(error) => return report.failed(&error),
    };
    let progress = Progress::new(report);
    let is_separate = args.ssdb_namespaces == "separate";
    let copy = SsdbCopy { ssdb, target: &target, tls, is_followed: args.follow, is_partial: args.partial, is_separate };
    let now = Instant::now();
    let mut teller =
        Teller { progress: &progress, ssdb, said_at: now, pace: Pace::new(now, 0), last: SsdbProgress::default() };
    match migrate::copy_ssdb(&copy, &stop, &mut |event| teller.tell(event)) {
        Ok(copied) => done(&copied, &target, progress.ended()),
        Err(error) => code_of(&error, progress.ended()),
    }
}

/// Is set by the signals that ask for the end.
fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Reads everything, and says what cannot be taken.
fn examine(args: &ImportArgs, ssdb: &Ssdb, report: Report) -> ExitCode {
    let stop = match stop_flag() {
        Ok(stop) => stop,
        Err(error) => return report.failed(&error),
    };
    let progress = Progress::new(report);
    let now = Instant::now();
    let mut teller =
        Teller { progress: &progress, ssdb, said_at: now, pace: Pace::new(now, 0), last: SsdbProgress::default() };
    let found = match migrate::examine_ssdb(ssdb, &stop, &mut |rows| teller.read(rows)) {
        Ok(found) => found,
        Err(error) => return code_of(&error, progress.ended()),
    };
    let untaken = untaken(&found, args.ssdb_namespaces == "separate");
    let SsdbRows { keys, fields, members, items, expiring, .. } = found.rows;
    progress.say(&format!(
        "{ssdb}: {}, {expiring} of which expire; {} of hashes, {} of zsets, {} of queues",
        count(keys, "key", "keys"),
        count(fields, "field", "fields"),
        count(members, "member", "members"),
        count(items, "item", "items")
    ));
    untaken.iter().for_each(|sentence| progress.say(sentence));
    let (exit, line) = match untaken.is_empty() {
        true => (0, "all of it can be imported"),
        false => (DAMAGED, "the rest can be imported with --partial"),
    };
    let fields = json!({ "is_imported": false, "rows": of(&found.rows), "cannot_be_imported": untaken });
    progress.ended().result(exit, &[line.to_owned()], fields)
}

/// What cannot be taken, in sentences.
fn untaken(found: &SsdbFound, is_separate: bool) -> Vec<String> {
    let mut untaken = Vec::new();
    if found.shared_names > 0 && !is_separate {
        untaken.push(format!(
            "{} of several types, which --ssdb-namespaces separate takes: {}",
            count(found.shared_names, "name is", "names are"),
            found.first_names.join(", ")
        ));
    }
    if found.scores > 0 {
        untaken.push(format!(
            "{} beyond 2^53, and so not exact: of {}",
            count(found.scores, "score is", "scores are"),
            found.first_scores.join(", ")
        ));
    }
    untaken
}

fn done(copied: &SsdbCopied, target: &Target, report: Report) -> ExitCode {
    let left_out = match copied.left_out {
        0 => String::new(),
        requests => format!("; {} left out", count(requests, "request was", "requests were")),
    };
    let line = format!(
        "ended at entry {} of the binlog; {target} has {}{left_out}",
        copied.sequence,
        count(copied.keys, "key", "keys")
    );
    let fields = json!({ "is_imported": true, "keys": copied.keys, "entry": copied.sequence,
        "left_out_requests": copied.left_out, "rows": of(&copied.rows), "to": target.to_string() });
    report.result(0, &[line], fields)
}

fn of(rows: &SsdbRows) -> serde_json::Value {
    json!({ "keys": rows.keys, "fields": rows.fields, "members": rows.members, "items": rows.items,
        "expiring": rows.expiring, "bytes": rows.bytes })
}

/// Says what happens, and every few seconds how far it is.
struct Teller<'a> {
    progress: &'a Progress,
    ssdb: &'a Ssdb,
    said_at: Instant,
    pace: Pace,
    last: SsdbProgress,
}

impl Teller<'_> {
    fn tell(&mut self, event: &SsdbEvent<'_>) {
        let (progress, ssdb) = (self.progress, self.ssdb);
        match event {
            SsdbEvent::Copying { is_continued: false } => progress.say(&format!("{ssdb}: copies all rows")),
            SsdbEvent::Copying { is_continued: true } => {
                progress.say(&format!("{ssdb}: copies the rows that are missing"))
            }
            SsdbEvent::Read(rows) => self.read(rows),
            SsdbEvent::Following(sequence) => {
                self.last = SsdbProgress { sequence: *sequence, behind: u64::MAX, queues: 0 };
                progress.say(&format!("{ssdb}: follows from entry {sequence} of the binlog on"));
            }
            SsdbEvent::Applied(now) => self.applied(*now),
            SsdbEvent::Lost(error) => progress.say(&format!("{error}; connecting again")),
            SsdbEvent::Said(text) => progress.say(&format!("{ssdb}: {text}")),
            SsdbEvent::LeftOut { request, why } => progress.say(&format!("left out: {request}: {why}")),
        }
    }

    fn read(&mut self, rows: &SsdbRows) {
        let now = Instant::now();
        if now.duration_since(self.said_at) < SAY_EVERY {
            return;
        }
        let rate = self.pace.rate(now, rows.all());
        (self.said_at, self.pace) = (now, Pace::new(now, rows.all()));
        if self.progress.is_json() {
            let mut fields = of(rows);
            fields["rows_per_second"] = json!(rate);
            return self.progress.event("progress", fields);
        }
        let (all, bytes) = (count(rows.all(), "row", "rows"), size(rows.bytes));
        self.progress.say(&format!("read {all}, {bytes}, {rate} rows/s"));
    }

    /// A line is due every few seconds while there are changes, and when nothing is behind any more.
    fn applied(&mut self, now: SsdbProgress) {
        let is_level = |progress: SsdbProgress| progress.behind == 0 && progress.queues == 0;
        let is_due = now.sequence != self.last.sequence && self.said_at.elapsed() >= SAY_EVERY;
        let has_caught_up = is_level(now) && !is_level(self.last);
        if !is_due && !has_caught_up {
            return;
        }
        (self.said_at, self.last) = (Instant::now(), now);
        if self.progress.is_json() {
            let fields = json!({ "entry": now.sequence, "behind_entries": now.behind, "queues_to_read": now.queues });
            return self.progress.event("progress", fields);
        }
        let queues = match now.queues {
            0 => String::new(),
            queues => format!(", {} to be read again", count(queues, "queue is", "queues are")),
        };
        let behind = count(now.behind, "entry", "entries");
        self.progress.say(&format!("entry {}: {behind} behind{queues}", now.sequence));
    }
}
