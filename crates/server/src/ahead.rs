//! Loading what the requests of a batch will read, ahead of them.
//!
//! ```text
//! batch -> ask for all buckets -> each step of eight requests: ask for the entries of the step after the next,
//!                                                              and of the next those that are in their second buckets;
//!                                                              run the requests
//! ```
//!
//! Measured: short loops that do nothing else have several ways to a bucket under way at once, where asking for a bucket as its
//! request is parsed waited for each one; and entries asked for all at once waited for the processor's list of loads under way.

use crate::turn::Place;
use store::Store;

/// Requests of a step.
pub const STEP_LEN: usize = 8;

/// How far the keys of a batch are loaded.
pub struct Ahead<const LEN: usize> {
    /// The bucket asked for, of each key: a line of its shard's table; of no key it may be any.
    buckets: [u32; LEN],
    /// The keys that are in their second buckets, if they are there: a bit each.
    in_second: u64,
}

impl<const LEN: usize> Ahead<LEN> {
    /// Asks for the buckets that nearly always lead to the keys in these places, and for the first entries.
    #[inline]
    pub fn new(store: &Store, places: &[Option<Place>]) -> Self {
        const { assert!(LEN <= u64::BITS as usize) };
        let mut ahead = Self { buckets: [0; LEN], in_second: 0 };
        for (bucket, place) in ahead.buckets.iter_mut().zip(places) {
            if let Some(place) = place {
                *bucket = store.prefetch_bucket(place.shard, place.space, place.hash).unwrap_or_default();
            }
        }
        ahead.load_entries(store, places, 0);
        ahead.load_entries(store, places, STEP_LEN);
        ahead.load_seconds(store, places, 0);
        ahead
    }

    /// Before the requests of the step that begins here: asks for what those of the next ones will read.
    #[inline]
    pub fn step(&mut self, store: &Store, places: &[Option<Place>], at: usize) {
        self.load_seconds(store, places, at + STEP_LEN);
        self.load_entries(store, places, at + 2 * STEP_LEN);
    }

    /// The buckets of a step have come: asks for the entries, or for the other buckets.
    #[inline]
    fn load_entries(&mut self, store: &Store, places: &[Option<Place>], from: usize) {
        for (at, (bucket, place)) in self.buckets.iter_mut().zip(places).enumerate().skip(from).take(STEP_LEN) {
            if let Some(place) = place
                && !store.prefetch_entry(place.shard, place.hash, *bucket)
            {
                *bucket = store.prefetch_second_bucket(place.shard, place.space, place.hash).unwrap_or_default();
                self.in_second |= 1 << at;
            }
        }
    }

    /// The other buckets of a step have come: asks for the entries there.
    #[inline]
    fn load_seconds(&mut self, store: &Store, places: &[Option<Place>], from: usize) {
        let mut left = self.in_second >> from & ((1 << STEP_LEN) - 1);
        while left != 0 {
            let at = from + left.trailing_zeros() as usize;
            if let Some(Some(place)) = places.get(at) {
                store.prefetch_entry(place.shard, place.hash, self.buckets[at]);
            }
            left &= left - 1;
        }
    }
}
