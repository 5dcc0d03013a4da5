//! An engine that answers [`Fetch`] at random, around any other: what holds over it holds over engines whose rows are not
//! all in memory.
//!
//! F1. A row that was asked for and not given is pinned: the command that runs again finds it.
//! F2. A fetch after a change under the same lock would leave half a command behind, so it is a bug of the command (E1),
//!     and this engine ends the test there.

use crate::{
    Due, Encoding, Engine, Entry, EntrySink, Fetch, Key, Left, NewEntry, ScanStep, Type, Usage, Value, WalkProgress,
};
use base::{KeyspaceId, Rng, UnixMs};
use std::collections::HashMap;
use value::Big;

/// Lockings a pinned row stays for: more than a command needs to run again, few enough that rows are asked for again.
const PINNED_LOCKINGS: u32 = 8;

/// The wrapper.
pub struct FetchingEngine<E> {
    inner: E,
    rng: Rng,
    pinned: HashMap<(KeyspaceId, u64), u32>,
    /// Set by a change, cleared when the lock is taken.
    changed: bool,
    lockings: u32,
}

impl<E: Engine> FetchingEngine<E> {
    /// Asks for a fetch on about half of the reads of rows that are not pinned.
    pub fn new(inner: E, rng: Rng) -> Self {
        Self { inner, rng, pinned: HashMap::new(), changed: false, lockings: 0 }
    }

    fn fetch(&mut self, key: &Key<'_>) -> Result<(), Fetch> {
        let place = (key.space, key.hash);
        if self.pinned.contains_key(&place) {
            return Ok(());
        }
        if self.rng.one_in(2) {
            self.pinned.insert(place, self.lockings);
            return Ok(());
        }
        assert!(!self.changed, "a command asks for a row after its first change");
        self.pinned.insert(place, self.lockings);
        Err(Fetch)
    }
}

impl<E: Engine> Engine for FetchingEngine<E> {
    fn set_time(&mut self, now: UnixMs) {
        self.changed = false;
        self.lockings += 1;
        let lockings = self.lockings;
        self.pinned.retain(|_, since| lockings - *since < PINNED_LOCKINGS);
        self.inner.set_time(now);
    }

    fn read(&mut self, key: &Key<'_>, touch: bool) -> Result<Option<Entry<'_>>, Fetch> {
        self.fetch(key)?;
        self.inner.read(key, touch)
    }

    fn may_hold(&mut self, key: &Key<'_>) -> bool {
        self.inner.may_hold(key)
    }

    fn write(&mut self, key: &Key<'_>, entry: &NewEntry<'_>) {
        self.changed = true;
        // What a command has written is in memory.
        self.pinned.insert((key.space, key.hash), self.lockings);
        self.inner.write(key, entry);
    }

    fn splice(&mut self, key: &Key<'_>, offset: u64, bytes: &[u8]) -> bool {
        self.changed = true;
        self.inner.splice(key, offset, bytes)
    }

    fn recode(&mut self, key: &Key<'_>, encoding: Encoding, value: Value<'_>) {
        // No change, and so no reason not to read another row after it.
        self.inner.recode(key, encoding, value);
    }

    fn reform(&mut self, key: &Key<'_>, change: &mut dyn FnMut(&mut Big)) {
        self.inner.reform(key, change);
    }

    fn edit(&mut self, key: &Key<'_>, kind: Type, changes: &[u8]) -> Option<Left> {
        self.changed = true;
        self.pinned.insert((key.space, key.hash), self.lockings);
        self.inner.edit(key, kind, changes)
    }

    fn set_expiration(&mut self, key: &Key<'_>, at: Option<UnixMs>) -> bool {
        self.changed = true;
        self.inner.set_expiration(key, at)
    }

    fn remove(&mut self, key: &Key<'_>) -> bool {
        self.changed = true;
        self.pinned.insert((key.space, key.hash), self.lockings);
        self.inner.remove(key)
    }

    fn clear(&mut self, space: KeyspaceId) {
        self.changed = true;
        self.inner.clear(space);
    }

    fn len(&self, space: KeyspaceId) -> u64 {
        self.inner.len(space)
    }

    fn expiring_len(&self, space: KeyspaceId) -> u64 {
        self.inner.expiring_len(space)
    }

    fn timed_len(&self, space: KeyspaceId) -> u64 {
        self.inner.timed_len(space)
    }

    fn scan(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>)) -> ScanStep {
        self.inner.scan(space, from, visit)
    }

    fn survey(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>, u64)) -> ScanStep {
        self.inner.survey(space, from, visit)
    }

    fn random_entry(&mut self, space: KeyspaceId) -> Option<Entry<'_>> {
        self.inner.random_entry(space)
    }

    fn random_expiration(&mut self, space: KeyspaceId) -> Option<UnixMs> {
        self.inner.random_expiration(space)
    }

    fn due(&mut self, limit: usize, visit: &mut dyn FnMut(Key<'_>, Due)) -> usize {
        self.inner.due(limit, visit)
    }

    fn clean(&mut self, budget: usize) -> bool {
        self.inner.clean(budget)
    }

    fn idle_seconds(&self, stamp: u32) -> u64 {
        self.inner.idle_seconds(stamp)
    }

    fn frequency(&self, stamp: u32) -> u8 {
        self.inner.frequency(stamp)
    }

    fn set_usage(&mut self, key: &Key<'_>, usage: Usage) {
        self.inner.set_usage(key, usage);
    }

    fn cost_bytes(&mut self, key: &Key<'_>) -> Option<u64> {
        self.inner.cost_bytes(key)
    }

    fn begin_checkpoint(&mut self, sink: Box<dyn EntrySink>) {
        self.inner.begin_checkpoint(sink);
    }

    fn walk_checkpoint(&mut self, budget: usize) -> WalkProgress {
        self.inner.walk_checkpoint(budget)
    }

    fn end_checkpoint(&mut self) -> Option<Box<dyn EntrySink>> {
        self.inner.end_checkpoint()
    }
}
