//! `onggi import memcached://...`: the items of a running memcached.

use super::pace::Pace;
use super::{Done, ImportArgs, code_of, done, entropy};
use crate::progress::Progress;
use crate::report::Report;
use base::clock::SystemClock;
use inspect::text::{count, size};
use migrate::{Cache, Items};
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time between two lines that say how many items were read.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// `onggi import` of a running memcached.
pub fn run(args: &ImportArgs, cache: &Cache, report: Report) -> ExitCode {
    if args.follow {
        let text = "--follow needs a running Redis or Valkey: memcached does not send what its clients change";
        return report.failed(&*Box::<dyn std::error::Error>::from(text));
    }
    let progress = Progress::new(report);
    let dir = args.dir.as_deref().filter(|_| !args.dry_run);
    let mut teller = Teller { progress: &progress, said_at: Instant::now(), pace: Pace::new(Instant::now(), 0) };
    let read = &mut |items: &Items| teller.tell(items);
    let found = migrate::import_cache((cache, dir), progress.fs(), &SystemClock::new(), &entropy(), read);
    match found {
        Ok((items, set)) => {
            say(&progress, cache, &items);
            let Done { exit, line, fields } = match (set, dir) {
                (Some(set), Some(dir)) => done(set.entries(), set.bytes(), 1, dir),
                _ => Done {
                    exit: 0,
                    line: "nothing was written".to_owned(),
                    fields: json!({ "is_imported": false, "cannot_be_imported": [] }),
                },
            };
            progress.ended().result(exit, &[line], fields)
        }
        Err(error) => code_of(&error, progress.ended()),
    }
}

/// What was found, and what is not taken.
fn say(progress: &Progress, cache: &Cache, items: &Items) {
    if progress.is_json() {
        let fields = json!({ "form": "memcached", "keys": items.taken, "bytes": items.bytes, "expiring": items.expiring,
            "flagged": items.flagged, "dropped_expired": items.gone, "left_out_unnamed": items.unnamed });
        return progress.event("contents", fields);
    }
    progress.say(&format!(
        "{cache}: {}, {} of values; {} expire, {} have flags",
        count(items.taken, "item", "items"),
        size(items.bytes),
        items.expiring,
        items.flagged
    ));
    if items.gone > 0 {
        progress.say(&format!("{} expired or evicted before they were read", count(items.gone, "item", "items")));
    }
    if items.unnamed > 0 {
        let names = count(items.unnamed, "item is", "items are");
        progress.say(&format!(
            "{names} left out: the name has spaces or control characters, which only the binary protocol can ask for"
        ));
    }
}

/// Says every few seconds how many items were read.
struct Teller<'a> {
    progress: &'a Progress,
    said_at: Instant,
    pace: Pace,
}

impl Teller<'_> {
    fn tell(&mut self, items: &Items) {
        let now = Instant::now();
        if now.duration_since(self.said_at) < SAY_EVERY {
            return;
        }
        let rate = self.pace.rate(now, items.taken);
        (self.said_at, self.pace) = (now, Pace::new(now, items.taken));
        if self.progress.is_json() {
            let fields = json!({ "keys": items.taken, "bytes": items.bytes, "keys_per_second": rate });
            return self.progress.event("progress", fields);
        }
        let (items, bytes) = (count(items.taken, "item", "items"), size(items.bytes));
        self.progress.say(&format!("read {items}, {bytes}, {rate} items/s"));
    }
}
