//! An engine that answers [`Fetch`] although the engine inside has every row. A command that is right over it is right
//! over engines whose rows are not all in memory. Without tickets it asks at random, and rows arrive without a read.
//! With tickets it asks for every row, and a row is in memory only after a test has read it. With leaves every row is
//! there, but leaves of trees are absent: each with even chance, anew for each read and each edit.
//!
//! F1. A row that was asked for and not given is pinned: the command that runs again finds it.
//! F2. A fetch after a change under the same lock would leave half a command behind, so it is a bug of the command
//!     (E1), and this engine ends the test there.
//! F3. With tickets, nothing but what is wanted and what the running command has written is in memory.

use crate::{
    Due, Edited, Encoding, Engine, Entry, EntrySink, ExtFields, Fetch, Got, Key, Known, NewEntry, Rows, ScanStep,
    Ticket, Type, Unedited, Usage, Value, WalkProgress, Wanted,
};
use base::{KeyspaceId, Rng, UnixMs};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use value::Big;
use value::absent::aside::Aside;

/// Lockings a pinned row stays for: more than a command needs to run again, few enough that rows are asked for again.
const PINNED_LOCKINGS: u32 = 8;

/// A row, by its keyspace and hash.
type Place = (KeyspaceId, u64);

/// The wrapper.
pub struct FetchingEngine<E> {
    inner: E,
    rows: Residence,
    /// Set by a change, cleared when the lock is taken.
    changed: bool,
    lockings: u32,
}

/// Which rows are in memory, or seem to be.
enum Residence {
    /// About half of those that are not pinned; since when others are.
    Random(Rng, HashMap<Place, u32>),
    /// Those that have come for a ticket.
    Ticketed(Tickets),
    /// All, but for leaves of trees.
    Leaves(Rng, Arc<Aside>),
}

/// Rows that come for tickets.
#[derive(Default)]
struct Tickets {
    resident: HashSet<Place>,
    /// How many commands want a row.
    wanted: HashMap<Place, u32>,
    asked: HashMap<Place, Ticket>,
    last: u64,
}

/// Rows whose content the engine inside has: only the way to them takes time.
struct ColdRows;

impl Rows for ColdRows {
    fn may_have(&self, _key: &Key<'_>) -> bool {
        true
    }

    fn try_get(&self, _key: &[u8], _row: &mut Vec<u8>) -> Got {
        Got::NeedsIo
    }

    fn get(&self, _key: &[u8], _row: &mut Vec<u8>) -> io::Result<bool> {
        Ok(true)
    }

    fn scan(&self, _from: u64, _visit: &mut dyn FnMut(&[u8], &[u8])) -> Option<u64> {
        None
    }

    fn random(&self, _rng: &mut Rng, _key: &mut Vec<u8>, _row: &mut Vec<u8>) -> bool {
        false
    }
}

impl<E: Engine> FetchingEngine<E> {
    /// Asks for a fetch on about half of the reads of rows that are not pinned.
    pub fn new(inner: E, rng: Rng) -> Self {
        Self { inner, rows: Residence::Random(rng, HashMap::new()), changed: false, lockings: 0 }
    }

    /// Asks for a fetch on every read of a row that has not come for a ticket.
    pub fn with_tickets(inner: E) -> Self {
        Self { inner, rows: Residence::Ticketed(Tickets::default()), changed: false, lockings: 0 }
    }

    /// Has leaves of trees leave memory.
    pub fn with_leaves(inner: E, rng: Rng) -> Self {
        Self { inner, rows: Residence::Leaves(rng, Arc::default()), changed: false, lockings: 0 }
    }

    fn fetch(&mut self, key: &Key<'_>) -> Result<(), Fetch> {
        let place = (key.space, key.hash);
        let is_there = match &mut self.rows {
            Residence::Ticketed(tickets) => tickets.resident.contains(&place),
            Residence::Leaves(..) => true,
            Residence::Random(rng, pinned) => {
                let is_pinned = pinned.contains_key(&place);
                // Pinned from now on, whether it is given or asked for.
                pinned.entry(place).or_insert(self.lockings);
                is_pinned || rng.one_in(2)
            }
        };
        if is_there {
            return Ok(());
        }
        assert!(!self.changed, "a command asks for a row after its first change");
        Err(Fetch)
    }

    /// What a command has written is in memory, and a read that began before is void.
    fn written(&mut self, key: &Key<'_>) {
        let place = (key.space, key.hash);
        self.changed = true;
        match &mut self.rows {
            Residence::Random(_, pinned) => {
                pinned.insert(place, self.lockings);
            }
            Residence::Ticketed(tickets) => {
                tickets.asked.remove(&place);
                tickets.resident.insert(place);
            }
            Residence::Leaves(..) => {}
        }
    }

    /// Has leaves of a tree leave memory, but for those that are held.
    fn take_leaves(&mut self, key: &Key<'_>) {
        let Residence::Leaves(rng, aside) = &mut self.rows else { return };
        if let Ok(Some(Entry { value: Value::Big(_), .. })) = self.inner.read(key, false) {
            self.inner.reform(key, &mut |tree| aside.take(tree, &mut || rng.one_in(2)));
        }
    }
}

impl<E: Engine> Engine for FetchingEngine<E> {
    fn set_time(&mut self, now: UnixMs) {
        self.changed = false;
        self.lockings += 1;
        let lockings = self.lockings;
        match &mut self.rows {
            Residence::Random(_, pinned) => pinned.retain(|_, since| lockings - *since < PINNED_LOCKINGS),
            Residence::Ticketed(Tickets { resident, wanted, .. }) => {
                resident.retain(|place| wanted.contains_key(place))
            }
            Residence::Leaves(..) => {}
        }
        self.inner.set_time(now);
    }

    fn read(&mut self, key: &Key<'_>, touch: bool) -> Result<Option<Entry<'_>>, Fetch> {
        self.fetch(key)?;
        self.take_leaves(key);
        self.inner.read(key, touch)
    }

    fn want(&mut self, key: &Key<'_>) -> Wanted {
        let Residence::Ticketed(tickets) = &mut self.rows else { return Wanted { ticket: Ticket(0), rows: None } };
        let place = (key.space, key.hash);
        *tickets.wanted.entry(place).or_default() += 1;
        let ticket = *tickets.asked.entry(place).or_insert_with(|| {
            tickets.last += 1;
            Ticket(tickets.last)
        });
        Wanted { ticket, rows: Some(Arc::new(ColdRows)) }
    }

    fn install(&mut self, key: &Key<'_>, ticket: Ticket, _row: Option<&[u8]>) -> bool {
        let Residence::Ticketed(tickets) = &mut self.rows else { return false };
        let place = (key.space, key.hash);
        let is_valid = tickets.asked.get(&place) == Some(&ticket);
        if is_valid {
            tickets.asked.remove(&place);
            tickets.resident.insert(place);
        }
        is_valid
    }

    fn withdraw(&mut self, key: &Key<'_>, ticket: Ticket) {
        if let Residence::Ticketed(tickets) = &mut self.rows
            && tickets.asked.get(&(key.space, key.hash)) == Some(&ticket)
        {
            tickets.asked.remove(&(key.space, key.hash));
        }
    }

    fn release(&mut self, key: &Key<'_>) {
        let Residence::Ticketed(Tickets { wanted, .. }) = &mut self.rows else { return };
        if let Some(count) = wanted.get_mut(&(key.space, key.hash)) {
            *count -= 1;
            if *count == 0 {
                wanted.remove(&(key.space, key.hash));
            }
        }
    }

    fn may_hold(&mut self, key: &Key<'_>) -> bool {
        self.inner.may_hold(key)
    }

    fn write(&mut self, key: &Key<'_>, entry: &NewEntry<'_>) {
        self.written(key);
        self.inner.write(key, entry);
    }

    fn splice(&mut self, key: &Key<'_>, offset: u64, bytes: &[u8]) -> bool {
        self.written(key);
        self.inner.splice(key, offset, bytes)
    }

    fn recode(&mut self, key: &Key<'_>, encoding: Encoding, value: Value<'_>) {
        // No change, and so no reason not to read another row after it.
        self.inner.recode(key, encoding, value);
    }

    fn reform(&mut self, key: &Key<'_>, change: &mut dyn FnMut(&mut Big)) {
        self.inner.reform(key, change);
    }

    fn edit(
        &mut self,
        key: &Key<'_>,
        kind: Type,
        changes: &[u8],
        known: Known,
        touch: bool,
    ) -> Result<Edited, Unedited> {
        if known != Known::Read {
            return Err(Unedited::Unread);
        }
        self.take_leaves(key);
        self.written(key);
        self.inner.edit(key, kind, changes, known, touch)
    }

    fn set_expiration(&mut self, key: &Key<'_>, at: Option<UnixMs>) -> bool {
        self.written(key);
        self.inner.set_expiration(key, at)
    }

    fn set_fields(&mut self, key: &Key<'_>, fields: ExtFields<'_>) -> bool {
        self.written(key);
        self.inner.set_fields(key, fields)
    }

    fn sticky_stored(&mut self, key: &Key<'_>) {
        self.inner.sticky_stored(key);
    }

    fn settle_sticky(&mut self) {
        self.inner.settle_sticky();
    }

    fn cas_id(&mut self, key: &Key<'_>) -> Result<Option<u64>, Fetch> {
        self.fetch(key)?;
        self.inner.cas_id(key)
    }

    fn remove(&mut self, key: &Key<'_>) -> bool {
        self.written(key);
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
        let Self { inner, rows, .. } = self;
        inner.due(limit, &mut |key, due| {
            // Only rows in memory are known to be due.
            if let Residence::Ticketed(tickets) = rows {
                tickets.resident.insert((key.space, key.hash));
            }
            visit(key, due);
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encoding;
    use crate::model::ModelEngine;
    use base::hash::KeyHasher;

    fn engine() -> (FetchingEngine<ModelEngine>, KeyHasher) {
        let hasher = KeyHasher::new(&mut Rng::new(1));
        let mut engine = FetchingEngine::with_tickets(ModelEngine::with_hasher(Rng::new(1), hasher.clone()));
        engine.set_time(1_000);
        (engine, hasher)
    }

    fn write(engine: &mut impl Engine, key: &Key<'_>, value: &[u8]) {
        let (kind, encoding, value, fields) = (Type::String, Encoding::PLAIN, Value::Bytes(value), ExtFields::NONE);
        engine.write(key, &NewEntry { kind, encoding, value, expire_at: None, fields });
    }

    #[test]
    fn a_row_comes_for_its_ticket_and_stays_until_all_who_wanted_it_have_released_it() {
        let (mut engine, hasher) = engine();
        let key = Key::new(&hasher, KeyspaceId(0), b"key");
        write(&mut engine, &key, b"value");
        engine.set_time(1_001);
        assert_eq!(engine.read(&key, false).err(), Some(Fetch));
        let (first, second) = (engine.want(&key).ticket, engine.want(&key).ticket);
        assert_eq!(first, second, "one read serves all");
        engine.set_time(1_002);
        assert!(engine.read(&key, false).is_err(), "nothing has been read yet");
        assert!(engine.install(&key, first, Some(b"")));
        assert!(!engine.install(&key, second, Some(b"")), "the row is there");
        engine.release(&key);
        engine.set_time(1_003);
        assert!(engine.read(&key, false).is_ok_and(|entry| entry.is_some()), "one still wants it");
        engine.release(&key);
        engine.set_time(1_004);
        assert!(engine.read(&key, false).is_err(), "nobody wants it");
    }

    #[test]
    fn a_write_voids_the_ticket() {
        let (mut engine, hasher) = engine();
        let key = Key::new(&hasher, KeyspaceId(0), b"key");
        assert!(engine.read(&key, false).is_err());
        let ticket = engine.want(&key).ticket;
        engine.set_time(1_001);
        write(&mut engine, &key, b"newer");
        assert!(!engine.install(&key, ticket, None), "what was read is older");
        engine.release(&key);
        engine.set_time(1_002);
        assert!(engine.read(&key, false).is_err());
        assert_ne!(engine.want(&key).ticket, ticket, "another read is another ticket");
    }

    #[test]
    fn a_read_that_failed_is_asked_for_again() {
        let (mut engine, hasher) = engine();
        let key = Key::new(&hasher, KeyspaceId(0), b"key");
        let ticket = engine.want(&key).ticket;
        engine.withdraw(&key, ticket);
        assert_ne!(engine.want(&key).ticket, ticket);
    }
}
