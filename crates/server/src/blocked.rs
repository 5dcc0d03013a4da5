//! The connections of a worker whose last command waits (WAIT, WAITAOF), and when to look at them.

use base::{Lsn, UnixMs};
use command::blocking::Block;

/// Who waits. Looked at as a whole, but only when a wait can be over: a turn costs nothing for them otherwise.
#[derive(Default)]
pub(crate) struct Blocked {
    ids: Vec<usize>,
    /// The earliest end of a wait, or one that is over already.
    next_end: Option<UnixMs>,
    /// Whether the log may end one.
    for_log: bool,
    /// Whether the end of somebody's work may end one.
    for_task: bool,
    /// How far the log was durable when they were last looked at.
    durable: Option<Lsn>,
}

impl Blocked {
    pub(crate) fn insert(&mut self, id: usize, block: &Block) {
        self.ids.push(id);
        self.count(block);
    }

    fn count(&mut self, block: &Block) {
        self.next_end = self.next_end.into_iter().chain(block.until).min();
        self.for_log |= block.what.is_for_log();
        self.for_task |= block.what.is_task();
    }

    pub(crate) fn remove(&mut self, id: usize) {
        self.ids.retain(|other| *other != id);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether a wait can be over by now.
    pub(crate) fn is_due(&self, now: UnixMs, durable: impl FnOnce() -> Option<Lsn>) -> bool {
        self.for_task || self.next_end.is_some_and(|end| end <= now) || self.for_log && durable() != self.durable
    }

    /// Takes everybody out, to be looked at with the log durable up to here; who goes on waiting is inserted again.
    pub(crate) fn take(&mut self, durable: Option<Lsn>) -> Vec<usize> {
        std::mem::replace(self, Self { durable, ..Self::default() }).ids
    }

    /// Milliseconds until the next look for the time's sake.
    pub(crate) fn ms_to_next_end(&self, now: UnixMs) -> Option<u64> {
        self.next_end.map(|end| end.saturating_sub(now).max(0) as u64)
    }

    /// Whether anybody waits for the log to be durable further than `durable` says it is now: true when a look is due.
    pub(crate) fn awaits_log(&self) -> Option<Option<Lsn>> {
        (self.for_log && !self.ids.is_empty()).then_some(self.durable)
    }
}
