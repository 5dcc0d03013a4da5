//! How the command log changes while commands run, and what is done while all shards are locked.
//!
//! ```text
//! worker's scratch: LogView (generation, sink) <--refreshed on a new generation-- LogSlot (under all shard locks)
//! ```
//!
//! G1. The sink changes only while all shard locks are held ([`AllLocked::set_log`]), so a command that holds a lock
//!     has the one it will append to, and no record falls between two sinks.
//! G2. A worker reads the slot through its own copy, and detects a change by comparing a number: a command locks and
//!     counts nothing.

use crate::hold::HoldTable;
use crate::locking::HeldShards;
use crate::record_sink::RecordSink;
use crate::store::Store;
use crate::sync::Patience;
use crate::txn::Scratch;
use std::sync::Arc;

/// All shards, locked: nothing changes meanwhile. Opened when dropped.
pub struct AllLocked<'s> {
    pub(crate) store: &'s Store,
    pub(crate) held: HeldShards<'s>,
}

impl AllLocked<'_> {
    /// Installs a log, replaces it, or removes it. Records of earlier commands are in the old log; all later ones go to
    /// the new log.
    ///
    /// Replies that the old log holds go out when the new one is durable beyond their positions, or at once when there
    /// is none: a caller that needs more syncs the old one first.
    pub fn set_log(&mut self, log: Option<Arc<dyn RecordSink>>) {
        // What was written before, perhaps under another mode, counts as written now: it may not be durable.
        let floor = log.as_ref().filter(|log| log.holds_replies()).map(|log| log.end());
        for shard in self.held.iter_mut() {
            shard.holds = floor.map(|floor| Box::new(HoldTable::new(floor)));
        }
        self.store.log.set(log);
    }

    /// The log in force.
    pub fn log(&self) -> Option<Arc<dyn RecordSink>> {
        self.store.log.get()
    }
}

impl Drop for AllLocked<'_> {
    fn drop(&mut self) {
        self.store.unlock(std::mem::take(&mut self.held));
    }
}

impl Store {
    /// All shards at once, unless they cannot be had within a millisecond: then nothing is held, and the caller tries
    /// again later. Not while holding another lock.
    pub fn try_lock_all(&self) -> Option<AllLocked<'_>> {
        let held = self.lock_all_within(Patience::for_all_locks())?;
        Some(AllLocked { store: self, held })
    }

    /// The log in force; `None` while it is off, or does not count yet.
    pub fn log(&self) -> Option<Arc<dyn RecordSink>> {
        self.log.get().filter(|log| log.counts())
    }

    /// The log in force as this worker knows it: at the cost of one load while it stays the same.
    #[inline]
    pub fn log_of<'s>(&self, scratch: &'s mut Scratch) -> Option<&'s dyn RecordSink> {
        self.log.refresh(&mut scratch.log);
        scratch.log.sink.as_deref()
    }
}
