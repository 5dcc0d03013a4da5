//! Strings, and leaves of collections, that are too long for a slice of a worker's time: a separate thread brings them
//! into the configured form.
//!
//! ```text
//! pass: a long string that may have to change --its key--> queue --> a reference to its value, under the shard's lock
//!       --> compress it without the lock --> the same value still? --> Engine::recode, by reference
//! ```
//!
//! A leaf is too long when it is one long element. It is queued by its place, and shared, too (`leaves`).
//!
//! L1. Under a lock nothing is copied that is longer than what a worker compresses itself: the engine keeps long values
//!     by reference. A command that edits one meanwhile copies it first, as if a checkpoint had it.

use super::leaves::{self, Search};
use super::queue::LongLeaf;
use super::wanted::{self, LEN_MAX, Wanted};
use super::{Coder, add};
use crate::store::Store;
use engine::{Engine, Entry, Key, SharedBytes, Type, Value};
use types::Decoder;

/// What the thread works with.
#[derive(Default)]
pub struct LongValues {
    coder: Coder,
    decoder: Decoder,
    /// What a leaf holds.
    bytes: Vec<u8>,
}

impl LongValues {
    /// Brings one of the values that wait into the form that is configured; the time that took, or nothing when none
    /// waits. For a thread that serves no clients: a string takes up to a second.
    pub fn step(&mut self, store: &Store) -> Option<u64> {
        let long = store.compression.long.lock().pop_front()?;
        let begun_ns = store.clock.monotonic_ns();
        let key = store.key(long.space, &long.key);
        match &long.leaf {
            None => self.handle_string(store, &key),
            Some(leaf) => self.handle_leaf(store, &key, leaf),
        }
        let spent_ns = store.clock.monotonic_ns().saturating_sub(begun_ns);
        add(&store.compression.figures.passing_ns, spent_ns);
        Some(spent_ns)
    }

    fn handle_leaf(&mut self, store: &Store, key: &Key<'_>, leaf: &LongLeaf) {
        let (wanted, shard) = (Wanted::now(&store.compression), store.shard_of(key));
        let search = Search { wanted: &wanted, is_full: leaf.is_full, only_sheds: false };
        let mut held = store.lock_patiently(shard);
        let (found, _) = search.look(store, &mut held, key, leaf.at, 1);
        store.unlock_one(held);
        if let Some((run, _)) = found {
            let lock = || Some(store.lock_patiently(shard));
            leaves::store_run(store, &mut self.coder, &mut self.bytes, key, &run, lock);
        }
    }

    fn handle_string(&mut self, store: &Store, key: &Key<'_>) {
        let compression = &store.compression;
        let wanted = Wanted::now(compression);
        let shard = store.shard_of(key);
        let mut held = store.lock_patiently(shard);
        let entry = held.engine.read(key, false).ok().flatten();
        let is_due = |entry: &Entry<'_>| {
            entry.kind == Type::String && wanted.may_change(entry) && wanted::may_leave(store, key, entry)
        };
        let found = entry.filter(is_due).map(|entry| {
            let value = match entry.value {
                Value::Shared(shared) => SharedBytes::clone(shared),
                // A stored form that is short, of a long string.
                Value::Bytes(bytes) => SharedBytes::new(bytes.to_vec()),
                Value::Big(_) => SharedBytes::default(),
            };
            let lease = wanted::lease(store, &entry).expect("a value in memory has a dictionary that is known");
            (entry.encoding, value, lease)
        });
        store.unlock_one(held);
        let Some((before, value, _lease)) = found else { return };
        let was_compressed = before.is_compressed();
        let shown =
            self.decoder.show(store.source(), wanted::shown_alone(key, Type::String, before, Value::Bytes(&value)));
        let stored = compression.encode(&mut self.coder, &*store.clock, key, Type::String, shown.value.bytes());
        let (encoding, form) = match stored {
            Some(ref encoded) => (shown.encoding.compressed(), encoded.bytes),
            None if was_compressed => (shown.encoding, shown.value.bytes()),
            None => return,
        };
        let form = SharedBytes::new(form.to_vec());
        let mut held = store.lock_patiently(shard);
        let is_still = held.engine.read(key, false).ok().flatten().is_some_and(|entry| {
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
            held.engine.recode(key, encoding, value);
            compression.figures.count_pass(encoding);
        }
        store.unlock_one(held);
    }
}
