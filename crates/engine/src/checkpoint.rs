//! What an engine hands to a running checkpoint, and how much of it is still in memory.

use crate::Entry;
use base::KeyspaceId;
use std::sync::atomic::{AtomicU64, Ordering};

/// Takes the entries of a checkpoint, each exactly once, as they were at the cut.
pub trait EntrySink: Send {
    /// Copies or shares the entry. Called under the shard's lock: no I/O, no waiting.
    fn save(&mut self, space: KeyspaceId, entry: &Entry<'_>);

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

/// Memory of entries that a checkpoint was given and has not yet written, in bytes, with a bound at which others wait.
///
/// B1. At half of the limit the walk stops: what it gives could as well come later. At the limit writes wait, before they take
///     a lock: what they overwrite has to be given at once.
/// B2. A worker that waits is woken when three quarters are reached from above. It enlists before it looks again, and
///     whoever gives memory back looks at the list after that, so one of them sees the other.
pub struct Backlog {
    now: AtomicU64,
    peak: AtomicU64,
    /// `u64::MAX` while no checkpoint runs.
    limit: AtomicU64,
    /// Workers that wait, a bit each.
    waiting: AtomicU64,
    wake: Box<dyn Fn(u64) + Send + Sync>,
}

/// What a [`Backlog`] holds, in bytes.
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
            peak: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            waiting: AtomicU64::new(0),
            wake: Box::new(wake),
        }
    }

    /// A checkpoint begins, with this limit.
    pub fn begin(&self, limit: u64) {
        self.peak.store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
        self.set_limit(limit);
    }

    /// Another limit, or `u64::MAX` after a checkpoint.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::SeqCst);
        self.wake_if_room(self.now.load(Ordering::SeqCst));
    }

    /// So many bytes more.
    pub fn charge(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.peak.fetch_max(now, Ordering::Relaxed);
    }

    /// So many bytes less.
    pub fn discharge(&self, bytes: u64) {
        // SeqCst, as in `must_wait`: either this sees the waiting worker, or that sees the room (B2).
        let now = self.now.fetch_sub(bytes, Ordering::SeqCst).saturating_sub(bytes);
        self.wake_if_room(now);
    }

    fn wake_if_room(&self, now: u64) {
        let limit = self.limit.load(Ordering::Relaxed);
        if now <= limit - limit / 4 && self.waiting.load(Ordering::SeqCst) != 0 {
            (self.wake)(self.waiting.swap(0, Ordering::SeqCst));
        }
    }

    /// Whether the walk may go on (B1).
    #[inline]
    pub fn has_room_for_walk(&self) -> bool {
        self.now.load(Ordering::Relaxed) < self.limit.load(Ordering::Relaxed) / 2
    }

    /// Whether writes are to wait (B1).
    #[inline]
    pub fn is_full(&self) -> bool {
        self.now.load(Ordering::Relaxed) >= self.limit.load(Ordering::Relaxed)
    }

    /// [`Backlog::is_full`] asked by a worker that will wait then: its bit is woken when there is room.
    #[inline]
    pub fn must_wait(&self, worker_bit: u64) -> bool {
        self.is_full() && self.enlist(worker_bit)
    }

    #[cold]
    fn enlist(&self, worker_bit: u64) -> bool {
        self.waiting.fetch_or(worker_bit, Ordering::SeqCst);
        self.now.load(Ordering::SeqCst) >= self.limit.load(Ordering::SeqCst)
    }

    /// What it holds.
    pub fn memory(&self) -> BacklogMemory {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        BacklogMemory { now: read(&self.now), peak: read(&self.peak), limit: read(&self.limit) }
    }
}

impl Default for Backlog {
    /// Nobody to wake.
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
        let backlog = Backlog::new({
            let woken = woken.clone();
            move |bits| drop(woken.fetch_add(bits, Ordering::Relaxed))
        });
        backlog.charge(1000);
        assert!(backlog.has_room_for_walk() && !backlog.must_wait(1), "no checkpoint, no bound");
        backlog.discharge(1000);
        backlog.begin(100);
        backlog.charge(49);
        assert!(backlog.has_room_for_walk());
        backlog.charge(50);
        assert!(!backlog.has_room_for_walk() && !backlog.must_wait(1));
        backlog.charge(1);
        assert!(backlog.must_wait(2) && backlog.must_wait(4));
        backlog.discharge(24);
        assert_eq!(woken.load(Ordering::Relaxed), 0);
        assert!(!backlog.must_wait(8), "who comes now need not wait");
        backlog.discharge(1);
        backlog.discharge(1);
        assert_eq!(woken.load(Ordering::Relaxed), 6);
        assert_eq!(backlog.memory(), BacklogMemory { now: 74, peak: 100, limit: 100 });
        backlog.charge(100);
        assert!(backlog.must_wait(1));
        backlog.set_limit(u64::MAX);
        assert_eq!(woken.load(Ordering::Relaxed), 7, "the end of the checkpoint lets all go on");
    }
}
