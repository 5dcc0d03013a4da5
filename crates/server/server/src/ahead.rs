//! Prefetching what the requests of a batch will read.
//!
//! ```text
//! eight requests parsed -> prefetch their buckets -> eight more parsed -> prefetch the entries of those before, from
//!             the buckets that have arrived, or second buckets -> ... -> run eight requests, and keep prefetching
//! ```
//!
//! Measured: short loops that do nothing else keep loads of several buckets in flight at once. Prefetching each bucket
//! as its request is parsed waited for each one; prefetching all of a batch before it runs waited for the first; and
//! entries prefetched all at once filled the processor's list of outstanding loads.
//!
//! Consecutive requests for one key share one lookup.

use crate::key_route::KeyRoute;
use store::{Store, Way};

/// Requests of a step.
pub const STEP_LEN: usize = 8;

/// How far the keys of a batch are loaded.
pub struct Ahead<const LEN: usize> {
    /// How far the way to each key was gone.
    ways: [Way; LEN],
    /// The keys that are in their second buckets, if they are there: a bit each.
    in_second: u64,
    /// Keys whose buckets have been asked for, and whose entries have been.
    buckets_asked: usize,
    entries_asked: usize,
}

impl<const LEN: usize> Default for Ahead<LEN> {
    fn default() -> Self {
        const { assert!(LEN <= u64::BITS as usize) };
        Self { ways: [Way::NONE; LEN], in_second: 0, buckets_asked: 0, entries_asked: 0 }
    }
}

impl<const LEN: usize> Ahead<LEN> {
    /// A step more of the batch is parsed: asks for its buckets, and for the entries of the step before the last.
    #[inline(never)]
    pub fn parsed(&mut self, store: &Store, places: &[Option<KeyRoute>]) {
        self.load_buckets(store, places);
        if places.len() >= 3 * STEP_LEN {
            self.load_entries(store, places);
        }
    }

    /// All of the batch is parsed: asks for what is left to ask for before the first step runs.
    #[inline(never)]
    pub fn begin(&mut self, store: &Store, places: &[Option<KeyRoute>]) {
        self.load_buckets(store, places);
        while self.entries_asked < self.buckets_asked.min(2 * STEP_LEN) {
            self.load_entries(store, places);
        }
        self.load_seconds(store, places, 0);
        if store.has_mapped_tier() {
            self.load_away(store, places, 0);
        }
    }

    /// Before the requests of the step that begins here: asks for what those of the next ones will read.
    #[inline(never)]
    pub fn step(&mut self, store: &Store, places: &[Option<KeyRoute>], at: usize) {
        self.load_seconds(store, places, at + STEP_LEN);
        self.load_entries(store, places);
        if store.has_mapped_tier() {
            self.load_away(store, places, at + STEP_LEN);
        }
    }

    /// The entries of a step have come: asks for the values of those that have them on a mapped tier.
    #[cold]
    fn load_away(&self, store: &Store, places: &[Option<KeyRoute>], from: usize) {
        let end = (from + STEP_LEN).min(self.entries_asked);
        for at in from..end {
            if let Some(place) = places.get(at).and_then(Option::as_ref) {
                store.prefetch_away(&self.ways[at], place.shard);
            }
        }
    }

    /// The place of a request's key, if it has one, with the way that was gone to it.
    #[inline]
    pub fn led_to<'a>(&'a self, places: &'a [Option<KeyRoute>], at: usize) -> Option<(&'a KeyRoute, &'a Way)> {
        Some((places[at].as_ref()?, &self.ways[at]))
    }

    /// The batch has run.
    pub fn clear(&mut self) {
        (self.in_second, self.buckets_asked, self.entries_asked) = (0, 0, 0);
    }

    /// Asks for the buckets that nearly always lead to the keys in the places that are new.
    #[inline]
    fn load_buckets(&mut self, store: &Store, places: &[Option<KeyRoute>]) {
        let end = places.len().min(LEN);
        let new = self.buckets_asked..end;
        for at in new {
            self.ways[at] = match &places[at] {
                Some(_) if is_as_before(places, at) => self.ways[at - 1],
                Some(place) => store.prefetch_bucket(place.shard, place.space, place.hash),
                None => Way::NONE,
            };
        }
        self.buckets_asked = end;
    }

    /// The buckets of the next step have come: asks for the entries, or for the other buckets.
    #[inline]
    fn load_entries(&mut self, store: &Store, places: &[Option<KeyRoute>]) {
        let end = (self.entries_asked + STEP_LEN).min(self.buckets_asked);
        let step = self.entries_asked..end;
        for at in step {
            let Some(place) = &places[at] else { continue };
            if is_as_before(places, at) {
                self.ways[at] = self.ways[at - 1];
                self.in_second |= (self.in_second << 1) & 1 << at;
            } else if !store.prefetch_entry(&mut self.ways[at], place.shard, place.hash) {
                store.prefetch_second_bucket(&mut self.ways[at], place.shard, place.space, place.hash);
                self.in_second |= 1 << at;
            }
        }
        self.entries_asked = end;
    }

    /// The other buckets of a step have come: asks for the entries there.
    #[inline]
    fn load_seconds(&mut self, store: &Store, places: &[Option<KeyRoute>], from: usize) {
        let mut left = self.in_second >> from & ((1 << STEP_LEN) - 1);
        while left != 0 {
            let at = from + left.trailing_zeros() as usize;
            if let Some(Some(place)) = places.get(at) {
                store.prefetch_entry(&mut self.ways[at], place.shard, place.hash);
            }
            left &= left - 1;
        }
    }
}

/// Whether a request is for the key of the one before it: their ways are the same.
#[inline]
fn is_as_before(places: &[Option<KeyRoute>], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return false };
    // The hashes nearly always suffice to show that they are not.
    matches!((&places[at], &places[before]), (Some(place), Some(before))
        if place.hash == before.hash && place.shard == before.shard && place.space == before.space)
}
