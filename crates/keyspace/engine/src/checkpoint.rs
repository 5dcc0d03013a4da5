//! What an engine hands to a running checkpoint, and how much of it is still in memory.

use crate::Entry;
use base::KeyspaceId;
use std::sync::atomic::{AtomicU64, Ordering};

/// Takes the entries of a checkpoint, each exactly once, as they were at the cut.
pub trait EntrySink: Send {
    /// Copies or shares the entry. Called under the shard's lock: no I/O, no waiting.
    fn save(&mut self, space: KeyspaceId, entry: &Entry<'_>);

    /// What is saved until this is called with false comes from the walk: its entries stay stored.
    fn set_walking(&mut self, _walking: bool) {}

    /// All entries of the cut have been saved. A sink dropped without this leaves its checkpoint incomplete.
    fn finish(&mut self) {}
}

/// How far a checkpoint's walk over a shard has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkProgress {
    /// There is more to walk.
    More,
    /// Every entry of the cut has been given to the sink.
    Done,
}

/// Memory of entries that a checkpoint has received and not yet written, in bytes, with a limit that delays others.
///
/// B1. At half of the limit the walk stops: the entries that it reads can come later. At the limit writes wait before
///     they take a lock: the old value of an overwritten entry must be captured at once. Values that the walk shares
///     with the store count only for the walk, so a huge one stops no write. If all of them are overwritten before they
///     are written, memory exceeds the limit by half of it and one value.
/// B2. A waiting worker is woken when usage falls to three quarters of the limit. The worker enlists before it checks
///     again, and the thread that gives memory back reads the list after that, so one of them sees the other.
#[repr(align(128))]
pub struct Backlog {
    now: AtomicU64,
    /// Bytes among them of values that the walk shares with the store.
    shared: AtomicU64,
    peak: AtomicU64,
    /// Memory of the checkpoint's own buffers: it neither stops the walk nor delays writes.
    buffers: AtomicU64,
    buffers_peak: AtomicU64,
    /// `u64::MAX` while no checkpoint runs.
    limit: AtomicU64,
    /// Workers that wait, a bit each.
    waiting: AtomicU64,
    wake: Box<dyn Fn(u64) + Send + Sync>,
}

/// What a [`Backlog`] holds, in bytes, with the buffers of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BacklogMemory {
    /// Now.
    pub now: u64,
    /// The most since the last checkpoint began.
    pub peak: u64,
    /// Where writes begin to wait; `u64::MAX` while no checkpoint runs.
    pub limit: u64,
}

impl Backlog {
    /// Nothing in it. `wake` is called with the bits of the workers that waited.
    pub fn new(wake: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self {
            now: AtomicU64::new(0),
            shared: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            buffers: AtomicU64::new(0),
            buffers_peak: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            waiting: AtomicU64::new(0),
            wake: Box::new(wake),
        }
    }

    /// A checkpoint begins, with this limit.
    pub fn begin(&self, limit: u64) {
        self.peak.store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
        self.buffers_peak.store(0, Ordering::Relaxed);
        self.set_limit(limit);
    }

    /// Sets the bytes of buffers, which only [`Backlog::memory`] reports.
    pub fn set_buffers(&self, bytes: u64) {
        self.buffers.store(bytes, Ordering::Relaxed);
        self.buffers_peak.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Another limit, or `u64::MAX` after a checkpoint.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::SeqCst);
        self.wake_if_room();
    }

    /// Adds `bytes`, of which `shared` belong to values that the walk shares with the store.
    pub fn charge(&self, bytes: u64, shared: u64) {
        // Add to `shared` first, and subtract from it last below: in between they count twice as shared, which admits a
        // write.
        self.shared.fetch_add(shared, Ordering::Relaxed);
        let now = self.now.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.peak.fetch_max(now, Ordering::Relaxed);
    }

    /// Subtracts `bytes`, of which `shared` were charged as shared.
    pub fn discharge(&self, bytes: u64, shared: u64) {
        // SeqCst, as in `enlist`: either this sees the waiting worker, or that sees the room (B2).
        self.now.fetch_sub(bytes, Ordering::SeqCst);
        self.shared.fetch_sub(shared, Ordering::SeqCst);
        self.wake_if_room();
    }

    fn wake_if_room(&self) {
        let limit = self.limit.load(Ordering::SeqCst);
        if self.pressing() <= limit - limit / 4 && self.waiting.load(Ordering::SeqCst) != 0 {
            (self.wake)(self.waiting.swap(0, Ordering::SeqCst));
        }
    }

    /// Bytes that count for writes.
    #[inline]
    fn pressing(&self) -> u64 {
        self.now.load(Ordering::SeqCst).saturating_sub(self.shared.load(Ordering::SeqCst))
    }

    /// Whether the walk may continue (B1).
    #[inline]
    pub fn has_room_for_walk(&self) -> bool {
        self.now.load(Ordering::Relaxed) < self.limit.load(Ordering::Relaxed) / 2
    }

    /// Whether writes are to wait (B1).
    #[inline]
    pub fn is_full(&self) -> bool {
        self.pressing() >= self.limit.load(Ordering::Relaxed)
    }

    /// [`Backlog::is_full`] asked by a worker that will wait then: its bit is woken when there is room.
    #[inline]
    pub fn must_wait(&self, worker_bit: u64) -> bool {
        self.is_full() && self.enlist(worker_bit)
    }

    #[cold]
    fn enlist(&self, worker_bit: u64) -> bool {
        self.waiting.fetch_or(worker_bit, Ordering::SeqCst);
        self.pressing() >= self.limit.load(Ordering::SeqCst)
    }

    /// What it holds.
    pub fn memory(&self) -> BacklogMemory {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let (buffers, buffers_peak) = (read(&self.buffers), read(&self.buffers_peak));
        BacklogMemory {
            now: read(&self.now) + buffers,
            peak: read(&self.peak) + buffers_peak,
            limit: read(&self.limit),
        }
    }
}

impl Default for Backlog {
    /// Wakes no worker.
    fn default() -> Self {
        Self::new(|_| {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// The walk stops at half, writes at the whole; a waiter is woken once, at three quarters.
    #[test]
    fn bounds_and_wakings() {
        let woken = Arc::new(AtomicU64::new(0));
        let told = woken.clone();
        let backlog = Backlog::new(move |bits| {
            told.fetch_add(bits, Ordering::Relaxed);
        });
        backlog.charge(1000, 0);
        assert!(backlog.has_room_for_walk() && !backlog.must_wait(1), "no checkpoint, no bound");
        backlog.discharge(1000, 0);
        backlog.begin(100);
        backlog.charge(49, 0);
        assert!(backlog.has_room_for_walk());
        backlog.charge(50, 0);
        assert!(!backlog.has_room_for_walk() && !backlog.must_wait(1));
        backlog.charge(1, 0);
        assert!(backlog.must_wait(2) && backlog.must_wait(4));
        backlog.discharge(24, 0);
        assert_eq!(woken.load(Ordering::Relaxed), 0);
        assert!(!backlog.must_wait(8), "who comes now need not wait");
        backlog.discharge(1, 0);
        backlog.discharge(1, 0);
        assert_eq!(woken.load(Ordering::Relaxed), 6);
        assert_eq!(backlog.memory(), BacklogMemory { now: 74, peak: 100, limit: 100 });
        backlog.discharge(74, 0);
        backlog.charge(1000, 990);
        assert!(!backlog.has_room_for_walk() && !backlog.must_wait(1), "a huge value of the walk stops no write");
        backlog.discharge(1000, 990);
        backlog.charge(100, 0);
        assert!(backlog.must_wait(1));
        backlog.set_limit(u64::MAX);
        assert_eq!(woken.load(Ordering::Relaxed), 7, "the end of the checkpoint lets all go on");
    }
}
