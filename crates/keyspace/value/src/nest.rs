//! Shared values that lie next to each other, some hundreds in one allocation, which is freed with the last of them.
//!
//! ```text
//! Nest | owners, value | owners, value | gone | ...          <-- Nests, while it has places never given away
//!        ^      ^
//!   Counted   Counted                                        a pointer each, as that of an `Arc`
//! ```
//!
//! A small value that stays alone in the heap keeps a page from going back to the system when everything around it
//! is freed: 2,000 values of 80 bytes kept 6 MB of 10. A place is given away once, so nests need no list of free
//! places; owners of values in [sparse](Counted::is_sparse) nests move them.
//!
//! N1. A `Counted` points at a place that was written once, before the `Counted` existed. The last owner drops the
//!     value.
//! N2. Each live value holds one count of its nest's `Arc`, which is returned after it was dropped.
#![allow(unsafe_code, reason = "the standard library's counted pointers have an allocation each")]

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

/// Values in a nest.
const PLACES: usize = 256;

/// Where new values get their places.
pub struct Nests<T>(Mutex<Option<Arc<Nest<T>>>>);

/// A value that lies in a nest. A clone shares it.
pub struct Counted<T>(NonNull<Held<T>>);

struct Nest<T> {
    places: Box<[UnsafeCell<MaybeUninit<Held<T>>>]>,
    /// Places given away. Changed under the lock of [`Nests`].
    given: AtomicUsize,
    /// Values that are there.
    live: AtomicU32,
}

struct Held<T> {
    owners: AtomicUsize,
    /// Of [`Arc::into_raw`] (N2).
    nest: *const Nest<T>,
    value: T,
}

// SAFETY: one thread writes a place before any other knows of it (N1), and its contents are reached only as in an
// `Arc`.
unsafe impl<T: Send + Sync> Sync for Nest<T> {}
// SAFETY: a nest goes to another thread with its values, as an `Arc` does.
unsafe impl<T: Send + Sync> Send for Nest<T> {}
// SAFETY: as of an `Arc`: many threads may read the value, and the last one drops it.
unsafe impl<T: Send + Sync> Sync for Counted<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for Counted<T> {}

impl<T> Nests<T> {
    /// Gives a value a place.
    pub fn put(&self, value: T) -> Counted<T> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nest = open.get_or_insert_with(Nest::empty);
        let at = nest.given.load(Ordering::Relaxed);
        nest.live.fetch_add(1, Ordering::Relaxed);
        let place = nest.places[at].get();
        let held = Held { owners: AtomicUsize::new(1), nest: Arc::into_raw(nest.clone()), value };
        // SAFETY: the place was never given away, and is not again, since `given` grows under the lock: no other thread
        // reads or writes it.
        let held = unsafe { NonNull::from((*place).write(held)) };
        nest.given.store(at + 1, Ordering::Relaxed);
        if at + 1 == PLACES {
            *open = None;
        }
        Counted(held)
    }
}

impl<T> Nest<T> {
    fn empty() -> Arc<Self> {
        let places = (0..PLACES).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
        Arc::new(Self { places, given: AtomicUsize::new(0), live: AtomicU32::new(0) })
    }
}

impl<T> Counted<T> {
    /// Bytes of a value with its counter.
    pub const BYTES: usize = size_of::<Held<T>>();

    fn held(&self) -> &Held<T> {
        // SAFETY: the place was written, and its value lives as long as it has an owner (N1).
        unsafe { self.0.as_ref() }
    }

    /// How many share the value.
    pub fn owners(&self) -> usize {
        self.held().owners.load(Ordering::Relaxed)
    }

    /// Whether both are the same value, not only equal.
    pub fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Whether more than a quarter of its nest, all of whose places were given away, holds nothing any more.
    pub fn is_sparse(&self) -> bool {
        // SAFETY: the value holds a count of its nest (N2).
        let nest = unsafe { &*self.held().nest };
        nest.given.load(Ordering::Relaxed) == PLACES && (nest.live.load(Ordering::Relaxed) as usize) < PLACES / 4 * 3
    }

    /// The value, if it is not shared.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if self.held().owners.load(Ordering::Acquire) != 1 {
            return None;
        }
        // SAFETY: this is the only owner, and borrowed mutably; so no other can reach the value, or come to share it.
        Some(unsafe { &mut self.0.as_mut().value })
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.held().value
    }
}

impl<T> Clone for Counted<T> {
    fn clone(&self) -> Self {
        self.held().owners.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        if self.held().owners.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        let nest = self.held().nest;
        // SAFETY: this was the last owner, so no thread reads the value any more, and none drops it again (N1).
        unsafe { self.0.drop_in_place() };
        // SAFETY: the count of the nest that the value held, which it has held until now (N2).
        let nest = unsafe { Arc::from_raw(nest) };
        nest.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Default for Nests<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> fmt::Debug for Nests<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nests").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// A value that reports its drop.
    struct Told<'a> {
        number: Box<u64>,
        drops: &'a AtomicUsize,
    }

    impl Drop for Told<'_> {
        fn drop(&mut self) {
            self.drops.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Values stay as they are, are dropped once, by their last owner, and can be changed only by a sole owner; a nest
    /// outlives its [`Nests`].
    #[test]
    fn values_live_as_long_as_they_are_held() {
        let (dropped, mut rng) = (AtomicUsize::new(0), Rng::new(1));
        let nests = Nests::default();
        let rounds = if cfg!(miri) { 600 } else { 20_000 };
        let mut held: Vec<(u64, Counted<Told<'_>>)> = Vec::new();
        for number in 0..rounds {
            held.push((number, nests.put(Told { number: Box::new(number), drops: &dropped })));
            let at = rng.below(held.len() as u64) as usize;
            match rng.below(4) {
                0 => drop(held.swap_remove(at)),
                1 => held.push(held[at].clone()),
                2 if held[at].1.owners() == 1 => {
                    let (was, counted) = &mut held[at];
                    *counted.get_mut().expect("it is the only one").number += 1;
                    *was += 1;
                }
                _ => assert_eq!(held[at].1.clone().get_mut().map(|_| ()), None, "two own it"),
            }
        }
        assert!(held.iter().all(|(number, counted)| *number == *counted.number));
        assert!(held.iter().any(|(_, counted)| counted.is_sparse()));
        drop(nests);
        held.truncate(10);
        assert!(held.iter().all(|(number, counted)| *number == *counted.number));
        held.clear();
        assert_eq!(dropped.load(Ordering::Relaxed) as u64, rounds);
    }

    /// Several threads own values of the same nests.
    #[test]
    fn threads_share_values() {
        let (dropped, nests) = (AtomicUsize::new(0), Nests::default());
        let each = if cfg!(miri) { 100 } else { 5_000 };
        let shared = nests.put(Told { number: Box::new(7), drops: &dropped });
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (nests, dropped, shared) = (&nests, &dropped, shared.clone());
                scope.spawn(move || {
                    for number in 0..each {
                        let mine = nests.put(Told { number: Box::new(number * 3 + thread), drops: dropped });
                        let others = (mine.clone(), shared.clone());
                        drop(mine);
                        assert_eq!((*others.0.number, *others.1.number), (number * 3 + thread, 7));
                    }
                });
            }
        });
        drop(shared);
        assert_eq!(dropped.load(Ordering::Relaxed) as u64, 3 * each + 1);
    }
}
