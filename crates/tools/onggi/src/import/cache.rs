//! `onggi import memcached://...`: the items of a running memcached.

use super::pace::Pace;
use super::{ImportArgs, code_of, entropy, say_done};
use crate::progress::Progress;
use crate::tools::failed;
use base::clock::SystemClock;
use inspect::text::{count, size};
use migrate::{Cache, Items};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time between two lines that say how many items were read.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// `onggi import` of a running memcached.
pub fn run(args: &ImportArgs, cache: &Cache) -> ExitCode {
    if args.follow {
        let text = "--follow needs a running Redis or Valkey: memcached does not send what its clients change";
        return failed("import", &*Box::<dyn std::error::Error>::from(text));
    }
    let progress = Progress::new();
    let dir = args.dir.as_deref().filter(|_| !args.dry_run);
    let mut teller = Teller { progress: &progress, said_at: Instant::now(), pace: Pace::new(Instant::now(), 0) };
    let read = &mut |items: &Items| teller.tell(items);
    let done = migrate::import_cache((cache, dir), progress.fs(), &SystemClock::new(), &entropy(), read);
    match done {
        Ok((items, set)) => {
            say(&progress, cache, &items);
            match (set, dir) {
                (Some(set), Some(dir)) => say_done(&progress, set.entries(), set.bytes(), 1, dir),
                _ => progress.say("nothing was written"),
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            drop(progress);
            code_of(&error)
        }
    }
}

/// What was found, and what is not taken.
fn say(progress: &Progress, cache: &Cache, items: &Items) {
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
        let (items, bytes) = (count(items.taken, "item", "items"), size(items.bytes));
        self.progress.say(&format!("read {items}, {bytes}, {rate} items/s"));
    }
}
