//! The connections of a worker whose last command waits (BLPOP, WAIT), and when to look at them.

use base::{Lsn, UnixMs};
use command::blocking::Block;
use std::collections::BTreeSet;

/// The waiting connections. A turn costs nothing for them until a wait can be over.
#[derive(Default)]
pub(crate) struct Blocked {
    /// The ends of waits that are over at some time in any case.
    ends: BTreeSet<(UnixMs, usize)>,
    /// Those that wait for the log or for the end of a task: checked as a whole, when that can be over.
    for_progress: Vec<usize>,
    /// Whether the log may end a wait of these.
    for_log: bool,
    /// Whether the end of a task may.
    for_task: bool,
    /// How far the log was durable when they were last looked at.
    durable: Option<Lsn>,
}

impl Blocked {
    pub(crate) fn insert(&mut self, id: usize, block: &Block) {
        self.ends.extend(block.until.map(|until| (until, id)));
        if block.what.is_for_log() || block.what.is_task() {
            self.for_progress.push(id);
            self.for_log |= block.what.is_for_log();
            self.for_task |= block.what.is_task();
        }
    }

    pub(crate) fn remove(&mut self, id: usize, block: &Block) {
        if let Some(until) = block.until {
            self.ends.remove(&(until, id));
        }
        self.for_progress.retain(|other| *other != id);
    }

    /// Takes out every connection whose wait can be over by now, with the log durable up to there. The caller inserts
    /// again those that still wait.
    pub(crate) fn take_due(&mut self, now: UnixMs, durable: impl FnOnce() -> Option<Lsn>) -> Vec<usize> {
        let mut due = Vec::new();
        while let Some((_, id)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            self.ends.pop_first();
            self.for_progress.retain(|other| *other != id);
            due.push(id);
        }
        if !self.for_progress.is_empty() && self.has_progress(durable) {
            (self.for_log, self.for_task) = (false, false);
            let looked_at = std::mem::take(&mut self.for_progress);
            self.ends.retain(|(_, id)| !looked_at.contains(id));
            due.extend(looked_at);
        }
        due
    }

    fn has_progress(&mut self, durable: impl FnOnce() -> Option<Lsn>) -> bool {
        let durable = if self.for_log { durable() } else { self.durable };
        std::mem::replace(&mut self.durable, durable) != durable || self.for_task
    }

    /// Milliseconds until the next look for the time's sake.
    pub(crate) fn ms_to_next_end(&self, now: UnixMs) -> Option<u64> {
        self.ends.first().map(|(end, _)| end.saturating_sub(now).max(0) as u64)
    }

    /// Whether anybody waits for the log to be durable further than `durable` says it is now: true when a look is due.
    pub(crate) fn awaits_log(&self) -> Option<Option<Lsn>> {
        (self.for_log && !self.for_progress.is_empty()).then_some(self.durable)
    }
}
