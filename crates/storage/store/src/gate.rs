//! What stops commands before they run: data that is still being loaded, and writes that are refused.
//!
//! A command checks one word, and asks for the rest only when a bit is set there.

use base::UnixMs;
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU64, Ordering};

const LOADING: u16 = 1 << 0;
const WRITES_REFUSED: u16 = 1 << 1;
/// Not a reason to stop a command: only the loader checks it.
const CANCELLED: u16 = 1 << 2;
const BUSY: u16 = 1 << 3;
/// Writes of clients are refused: this is a replica.
const READ_ONLY: u16 = 1 << 4;
/// Commands on data are refused: a replica has no link to its primary.
const STALE: u16 = 1 << 5;
/// Nothing expires: the primary sends deletions.
const REPLICA: u16 = 1 << 6;
/// Nothing is evicted: the primary evicts.
const KEEPS_ALL: u16 = 1 << 7;
/// A copy is loaded next to the data that commands see.
const ASIDE: u16 = 1 << 8;

/// The gate of a store. Open at first.
#[derive(Default)]
pub struct Gate {
    bits: AtomicU16,
    since: AtomicI64,
    loaded_bytes: AtomicU64,
    total_bytes: AtomicU64,
}

/// How far loading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// When it began.
    pub since: UnixMs,
    /// Bytes of files read so far.
    pub loaded_bytes: u64,
    /// Bytes to be read; 0 while that is not known.
    pub total_bytes: u64,
}

impl Gate {
    /// Whether anything is to be asked of the other methods.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.bits.load(Ordering::Acquire) & (LOADING | WRITES_REFUSED | BUSY | READ_ONLY | STALE | ASIDE) == 0
    }

    /// Whether data is being loaded: no entry may be read or changed by commands, nothing expires and nothing is
    /// evicted.
    #[inline]
    pub fn is_loading(&self) -> bool {
        self.bits.load(Ordering::Acquire) & LOADING != 0
    }

    /// Closes the gate for loading; before the workers begin, or while all they do is answer that they are loading.
    pub fn begin_loading(&self, now: UnixMs) {
        self.begin(LOADING, now);
    }

    /// A copy is to be loaded into keyspaces that no database has: commands run and see the old data, and nothing is
    /// evicted.
    pub fn begin_loading_aside(&self, now: UnixMs) {
        self.begin(ASIDE, now);
    }

    /// It is loaded, and in place of the old data, or given up.
    pub fn end_loading_aside(&self) {
        self.put(ASIDE, false);
    }

    /// Whether a copy is being loaded next to the data that commands see.
    pub fn loads_aside(&self) -> bool {
        self.has(ASIDE)
    }

    fn begin(&self, bit: u16, now: UnixMs) {
        self.since.store(now, Ordering::Relaxed);
        self.loaded_bytes.store(0, Ordering::Relaxed);
        self.total_bytes.store(0, Ordering::Relaxed);
        self.put(bit, true);
    }

    /// Sets how many bytes are to be loaded altogether.
    pub fn set_total_bytes(&self, bytes: u64) {
        self.total_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Adds to the bytes loaded.
    pub fn add_loaded_bytes(&self, bytes: u64) {
        self.loaded_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// All is loaded: commands may run.
    pub fn end_loading(&self) {
        // Release: a worker that sees it sees what was loaded, whose locks it takes besides.
        self.bits.fetch_and(!LOADING, Ordering::Release);
    }

    /// The server is to end: the loader gives up soon.
    pub fn cancel_loading(&self) {
        self.bits.fetch_or(CANCELLED, Ordering::Release);
    }

    /// Whether the loader is to give up.
    pub fn is_cancelled(&self) -> bool {
        self.bits.load(Ordering::Acquire) & CANCELLED != 0
    }

    /// How far loading has come, in place or aside; `None` when nothing is being loaded.
    pub fn progress(&self) -> Option<LoadProgress> {
        self.has(LOADING | ASIDE).then(|| LoadProgress {
            since: self.since.load(Ordering::Relaxed),
            loaded_bytes: self.loaded_bytes.load(Ordering::Relaxed),
            total_bytes: self.total_bytes.load(Ordering::Relaxed),
        })
    }

    /// Refuses commands that may change entries, since the last checkpoint failed.
    pub fn refuse_writes(&self) {
        self.bits.fetch_or(WRITES_REFUSED, Ordering::Release);
    }

    /// Says whether a script runs past its time, so that requests of others are refused.
    pub fn set_busy(&self, is_busy: bool) {
        match is_busy {
            true => self.bits.fetch_or(BUSY, Ordering::Release),
            false => self.bits.fetch_and(!BUSY, Ordering::Release),
        };
    }

    /// Whether a script keeps others waiting.
    pub fn is_busy(&self) -> bool {
        self.bits.load(Ordering::Acquire) & BUSY != 0
    }

    /// Says whether this is a replica, whether it refuses writes of clients, and whether it evicts nothing.
    pub fn set_replica(&self, is_replica: bool, is_read_only: bool, keeps_all: bool) {
        self.put(REPLICA, is_replica);
        self.put(READ_ONLY, is_replica && is_read_only);
        self.put(KEEPS_ALL, is_replica && keeps_all);
    }

    /// Says whether commands on data are refused for want of a link to the primary.
    pub fn set_stale(&self, is_stale: bool) {
        self.put(STALE, is_stale);
    }

    fn put(&self, bit: u16, is_set: bool) {
        match is_set {
            true => self.bits.fetch_or(bit, Ordering::Release),
            false => self.bits.fetch_and(!bit, Ordering::Release),
        };
    }

    fn has(&self, bit: u16) -> bool {
        self.bits.load(Ordering::Acquire) & bit != 0
    }

    /// Whether this is a replica: nothing expires by the clock here.
    pub fn is_replica(&self) -> bool {
        self.has(REPLICA)
    }

    /// Whether writes of clients are refused, since this is a replica.
    pub fn is_read_only(&self) -> bool {
        self.has(READ_ONLY)
    }

    /// Whether commands on data are refused, since the link to the primary is down.
    pub fn is_stale(&self) -> bool {
        self.has(STALE)
    }

    /// Whether nothing is evicted here.
    pub fn keeps_all(&self) -> bool {
        self.has(KEEPS_ALL | ASIDE)
    }

    /// Lets them run again.
    pub fn allow_writes(&self) {
        self.bits.fetch_and(!WRITES_REFUSED, Ordering::Release);
    }

    /// Whether commands that may change entries are refused, since the last checkpoint failed.
    pub fn refuses_writes(&self) -> bool {
        self.has(WRITES_REFUSED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_refuses_writes_unless_it_may_write() {
        let gate = Gate::default();
        gate.set_replica(true, true, true);
        assert!(!gate.is_open() && gate.is_replica() && gate.is_read_only() && gate.keeps_all() && !gate.is_stale());
        gate.set_replica(true, false, false);
        assert!(gate.is_open() && gate.is_replica() && !gate.is_read_only() && !gate.keeps_all());
        gate.set_stale(true);
        assert!(!gate.is_open() && gate.is_stale());
        gate.set_stale(false);
        gate.set_replica(false, true, true);
        assert!(gate.is_open() && !gate.is_replica() && !gate.is_read_only() && !gate.keeps_all());
    }

    /// Commands run meanwhile, all but the few that ask.
    #[test]
    fn a_copy_is_loaded_aside() {
        let gate = Gate::default();
        gate.begin_loading_aside(7);
        gate.set_total_bytes(9);
        assert!(gate.loads_aside() && gate.keeps_all() && !gate.is_open() && !gate.is_loading());
        assert_eq!(gate.progress(), Some(LoadProgress { since: 7, loaded_bytes: 0, total_bytes: 9 }));
        gate.end_loading_aside();
        assert!(gate.is_open() && !gate.loads_aside() && !gate.keeps_all() && gate.progress().is_none());
    }

    #[test]
    fn loading_and_refusals_come_and_go_by_themselves() {
        let gate = Gate::default();
        assert!(gate.is_open() && gate.progress().is_none() && !gate.refuses_writes());
        gate.begin_loading(5);
        gate.set_total_bytes(100);
        gate.add_loaded_bytes(30);
        gate.add_loaded_bytes(10);
        assert_eq!(gate.progress(), Some(LoadProgress { since: 5, loaded_bytes: 40, total_bytes: 100 }));
        gate.refuse_writes();
        gate.end_loading();
        assert!(!gate.is_open() && !gate.is_loading());
        assert!(gate.refuses_writes());
        gate.allow_writes();
        gate.set_busy(true);
        assert!(gate.is_busy() && !gate.is_open() && !gate.is_loading());
        gate.set_busy(false);
        gate.cancel_loading();
        assert!(gate.is_cancelled());
        assert!(gate.is_open() && !gate.refuses_writes());
    }
}
