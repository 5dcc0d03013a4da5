//! Strings that are too long for a slice of a worker's time: a thread of its own brings them into the form that is configured.
//!
//! ```text
//! pass: a long string that may have to change --its key--> queue --> a reference to its value, under the shard's lock
//!       --> compress it without the lock --> the same value still? --> Engine::recode, by reference
//! ```
//!
//! L1. Under a lock nothing is copied that is longer than what a worker compresses itself: the engine keeps long values by reference.
//!     Who edits one meanwhile copies it first, as if a checkpoint had it.

use super::pass::{self, Candidate, LEN_MAX, Wanted};
use super::{Coder, add};
use crate::store::Store;
use engine::{Engine, Entry, SharedBytes, Type, Value};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use types::Decoder;

/// Longer strings are compressed by writes alone: while one is compressed, its bytes are there up to three times.
pub(super) const LONG_LEN_MAX: usize = 64 << 20;

/// Keys that wait; those beyond are left to the next pass that looks at all strings.
const WAITING_MAX: usize = 16 << 10;

/// Long strings that may have to change.
#[derive(Default)]
pub(super) struct Queue {
    keys: Mutex<VecDeque<Candidate>>,
}

impl Queue {
    pub(super) fn push(&self, candidate: Candidate) {
        let mut keys = self.lock();
        if keys.len() < WAITING_MAX {
            keys.push_back(candidate);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Candidate>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the thread works with.
#[derive(Default)]
pub struct LongStrings {
    coder: Coder,
    decoder: Decoder,
}

impl LongStrings {
    /// Brings one of the strings that wait into the form that is configured; the time that took, or nothing when none waits. For a
    /// thread that serves no clients: a string takes up to a second.
    pub fn step(&mut self, store: &Store) -> Option<u64> {
        let candidate = store.compression.long.lock().pop_front()?;
        let begun_ns = store.clock.monotonic_ns();
        self.handle(store, &candidate);
        let spent_ns = store.clock.monotonic_ns().saturating_sub(begun_ns);
        add(&store.compression.figures.passing_ns, spent_ns);
        Some(spent_ns)
    }

    fn handle(&mut self, store: &Store, candidate: &Candidate) {
        let compression = &store.compression;
        let wanted = Wanted::now(compression);
        let key = store.key(candidate.space, &candidate.key);
        let shard = store.shard_of(&key);
        let mut held = store.lock_patiently(shard);
        let entry = held.engine.read(&key, false).ok().flatten();
        let is_due = |entry: &Entry<'_>| {
            entry.kind == Type::String && wanted.may_change(entry) && pass::may_leave(store, &key, entry)
        };
        let found = entry.filter(is_due).map(|entry| {
            let value = match entry.value {
                Value::Shared(shared) => SharedBytes::clone(shared),
                // A stored form that is short, of a long string.
                Value::Bytes(bytes) => SharedBytes::new(bytes.to_vec()),
                Value::Big(_) => SharedBytes::default(),
            };
            let lease = pass::lease(store, &entry).expect("a value in memory has a dictionary that is known");
            (entry.encoding, value, lease)
        });
        store.unlock_one(held);
        let Some((before, value, _lease)) = found else { return };
        let was_compressed = before.is_compressed();
        let shown =
            self.decoder.show(store.source(), pass::shown_alone(&key, Type::String, before, Value::Bytes(&value)));
        let stored = compression.encode(&mut self.coder, &*store.clock, &key, Type::String, shown.value.bytes());
        let (encoding, form) = match stored {
            Some(ref encoded) => (shown.encoding.compressed(), encoded.bytes),
            None if was_compressed => (shown.encoding, shown.value.bytes()),
            None => return,
        };
        let form = SharedBytes::new(form.to_vec());
        let mut held = store.lock_patiently(shard);
        let is_still = held.engine.read(&key, false).ok().flatten().is_some_and(|entry| {
            entry.kind == Type::String
                && entry.encoding == before
                && match entry.value {
                    Value::Shared(shared) => SharedBytes::ptr_eq(shared, &value),
                    Value::Bytes(bytes) => bytes == value.as_slice(),
                    Value::Big(_) => false,
                }
        });
        if is_still {
            let value = if form.len() <= LEN_MAX { Value::Bytes(&form) } else { Value::Shared(&form) };
            held.engine.recode(&key, encoding, value);
            compression.figures.count_pass(encoding);
        }
        store.unlock_one(held);
    }
}
