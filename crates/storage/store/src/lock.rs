//! The lock of a shard: never sleeps, remembers which workers wait.
//!
//! A worker that finds the lock taken spins briefly, then enlists itself and parks the connection. The unlock wakes the
//! enlisted workers, which try again. The lock bit and the waiters share one word, so that unlocking is one atomic
//! exchange and no wake-up can be lost: a worker enlists by an exchange that fails when the lock is free.
//!
//! L1. Only the thread that set `LOCKED` touches the value, and only until it clears the bit.
//! L2. A waiter bit set while the lock is taken is handed to exactly one unlock.

use crate::sync::{AtomicU64, spin_loop};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;

/// Set while the lock is held; the lower bits name waiting workers.
const LOCKED: u64 = 1 << 63;

/// Tries before a worker enlists. A holder keeps the lock for well under a microsecond unless it is descheduled, and
/// then spinning on would not help.
const SPIN_COUNT: u32 = if cfg!(shuttle) { 1 } else { 64 };

/// A set of workers, by number modulo [`WorkerSet::CAPACITY`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerSet(u64);

impl WorkerSet {
    /// Workers beyond this number share a bit with an earlier one; both are woken then.
    pub const CAPACITY: usize = 63;

    /// The set of one worker.
    pub fn one(worker: usize) -> Self {
        Self(1 << (worker % Self::CAPACITY))
    }

    /// The set as a word, for lists kept elsewhere.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Back from [`WorkerSet::bits`].
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Whether the set has no worker.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this worker, or one that shares its bit, is in it.
    pub fn contains(self, worker: usize) -> bool {
        self.0 & Self::one(worker).0 != 0
    }
}

/// A value guarded by the lock.
#[repr(C)]
pub struct ShardLock<T> {
    word: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: by L1 only one thread at a time reaches the value, so sharing the lock moves the value between threads.
unsafe impl<T: Send> Sync for ShardLock<T> {}

impl<T> ShardLock<T> {
    /// An open lock.
    pub fn new(value: T) -> Self {
        Self { word: AtomicU64::new(0), value: UnsafeCell::new(value) }
    }

    /// Whether the lock is free. Then all that earlier holders did is visible.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.word.load(Ordering::Acquire) & LOCKED == 0
    }

    /// Takes the lock if it is free now.
    #[inline]
    pub fn try_lock(&self) -> Option<Held<'_, T>> {
        // Acquire pairs with the release in `unlock`: what the last holder wrote is visible.
        (self.word.fetch_or(LOCKED, Ordering::Acquire) & LOCKED == 0).then(|| Held { lock: self })
    }

    /// Takes the lock, spinning briefly.
    #[inline]
    pub fn spin_lock(&self) -> Option<Held<'_, T>> {
        self.try_lock().or_else(|| self.spin_more())
    }

    #[cold]
    fn spin_more(&self) -> Option<Held<'_, T>> {
        (0..SPIN_COUNT).find_map(|_| {
            spin_loop();
            (self.word.load(Ordering::Relaxed) & LOCKED == 0).then(|| self.try_lock()).flatten()
        })
    }

    /// Takes the lock or, when it is taken, enlists the worker to be woken at the next unlock.
    pub fn lock_or_enlist(&self, worker: usize) -> Option<Held<'_, T>> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let wanted = if word & LOCKED == 0 { word | LOCKED } else { word | WorkerSet::one(worker).0 };
            match self.word.compare_exchange_weak(word, wanted, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return (word & LOCKED == 0).then(|| Held { lock: self }),
                Err(now) => word = now,
            }
        }
    }
}

/// The lock, held. Give it back with [`Held::unlock`]; dropping it would lose the waiters, so that is a bug.
pub struct Held<'l, T> {
    lock: &'l ShardLock<T>,
}

impl<T> Held<'_, T> {
    /// Opens the lock and says whom to wake.
    #[inline]
    #[must_use = "the workers in the set wait to be woken"]
    pub fn unlock(self) -> WorkerSet {
        let waiters = self.lock.word.swap(0, Ordering::Release) & !LOCKED;
        std::mem::forget(self);
        WorkerSet(waiters)
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        // Reached only when a panic unwinds through a holder: the lock stays shut, since what it guards may be half
        // done.
        debug_assert!(std::thread::panicking(), "a shard lock was dropped, not unlocked");
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: a `Held` exists only between lock and unlock (L1).
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: a `Held` exists only between lock and unlock (L1), and it is borrowed exclusively here.
        unsafe { &mut *self.lock.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Two threads count under the lock; each enlists when it finds it taken, and no waiter is forgotten (L2).
    #[test]
    fn counts_and_hands_over_waiters() {
        let lock = Arc::new(ShardLock::new(0u64));
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        let woken: Vec<Arc<AtomicU64>> = (0..2).map(|_| Arc::new(AtomicU64::new(0))).collect();
        std::thread::scope(|scope| {
            for worker in 0..2 {
                let (lock, woken) = (lock.clone(), woken.clone());
                scope.spawn(move || {
                    for _ in 0..rounds {
                        let mut held = loop {
                            if let Some(held) = lock.spin_lock() {
                                break held;
                            }
                            let before = woken[worker].load(Ordering::Acquire);
                            if let Some(held) = lock.lock_or_enlist(worker) {
                                break held;
                            }
                            // Parked: the other thread's unlock has to wake this one.
                            while woken[worker].load(Ordering::Acquire) == before {
                                std::thread::yield_now();
                            }
                        };
                        *held += 1;
                        let waiters = held.unlock();
                        (0..2).filter(|&other| waiters.contains(other)).for_each(|other| {
                            woken[other].fetch_add(1, Ordering::Release);
                        });
                    }
                });
            }
        });
        let held = lock.try_lock().expect("the lock is open when nobody holds it");
        assert_eq!(*held, 2 * rounds);
        assert!(held.unlock().is_empty());
    }
}
