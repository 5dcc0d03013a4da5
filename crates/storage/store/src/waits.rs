//! Commands that wait for keys, by key: a small table per shard, empty nearly always.
//!
//! Q1. A command is enlisted under the locks of all its keys, having found nothing there; a command that changes one of
//!     them later sees it, under the same lock. So no wake-up is lost.
//! Q2. A key's waiters are in the order in which they came, and are served in that order.
//! Q3. Serving a waiter takes the locks of all keys it reaches. If these are more shards than the key's own, the table
//!     says so ([`WaitTable::shards_beside`]) before anything is changed.
//! Q4. A wait is on a key of a database: it goes with the database's number when two are exchanged.

use crate::lock_set::LockSet;
use base::{KeyspaceId, UnixMs};
use engine::{Key, Type, Waiter};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The waiters of one shard, by key. Guarded by the shard's lock.
#[derive(Default)]
pub struct WaitTable {
    /// By the hash of the key, of whatever keyspace.
    queues: HashMap<u64, Vec<Queue>>,
    /// Other shards that some waiter reaches; a superset when waiters have gone since the last sweep.
    beside: LockSet,
    swept_at_ms: UnixMs,
    counts: Arc<AwaitedKeys>,
}

/// How many keys of all shards are waited for. Read without a lock.
#[derive(Default)]
pub struct AwaitedKeys {
    keys: AtomicU64,
    absent: AtomicU64,
}

impl AwaitedKeys {
    /// Keys that commands wait for.
    pub fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    /// Among them those whose absence a command waits for.
    pub fn absent(&self) -> u64 {
        self.absent.load(Ordering::Relaxed)
    }

    fn add(&self, awaits_absence: bool) {
        self.keys.fetch_add(1, Ordering::Relaxed);
        self.absent.fetch_add(u64::from(awaits_absence), Ordering::Relaxed);
    }

    fn remove(&self, awaits_absence: bool) {
        self.keys.fetch_sub(1, Ordering::Relaxed);
        self.absent.fetch_sub(u64::from(awaits_absence), Ordering::Relaxed);
    }
}

/// The waiters of one key.
struct Queue {
    space: KeyspaceId,
    key: Box<[u8]>,
    waiters: VecDeque<Entry>,
    /// It was changed, and its waiters are to be looked at when the command is done.
    is_ready: bool,
    /// Whether a command waits for the key to be gone, or did since the last sweep.
    awaits_absence: bool,
}

struct Entry {
    waiter: Arc<dyn Waiter>,
    /// The shards it reaches, if there are several.
    shards: LockSet,
    /// Whether it reaches other keys, whose waiters are served after it.
    reaches_others: bool,
}

/// Time between two sweeps by upkeep.
const SWEEP_PERIOD_MS: i64 = 1000;

impl Queue {
    fn is_of(&self, key: &Key<'_>) -> bool {
        self.space == key.space && *self.key == *key.bytes
    }

    /// Takes note that a waiter has gone: it may have been the last one for which the key must stay.
    fn recount(&mut self, counts: &AwaitedKeys) {
        let is_left = self.waiters.iter().any(|entry| entry.waiter.wants(None));
        if std::mem::replace(&mut self.awaits_absence, is_left) && !is_left {
            counts.absent.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl WaitTable {
    /// The table of one shard of many, which count together.
    pub fn new(counts: Arc<AwaitedKeys>) -> Self {
        Self { counts, ..Self::default() }
    }

    /// Whether there is no waiter: the test on every change.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Adds a waiter for the key after those that are there. `shards` are those of all keys it reaches.
    pub fn enlist(&mut self, key: &Key<'_>, waiter: &Arc<dyn Waiter>, shards: &LockSet) {
        let mut reaches_others = false;
        waiter.visit_keys(&mut |other, _| reaches_others |= other != key.bytes);
        let (queues, counts) = (self.queues.entry(key.hash).or_default(), &self.counts);
        let at = queues.iter().position(|queue| queue.is_of(key)).unwrap_or_else(|| {
            counts.add(false);
            let waiters = VecDeque::new();
            let (space, key) = (key.space, key.bytes.into());
            queues.push(Queue { space, key, waiters, is_ready: false, awaits_absence: false });
            queues.len() - 1
        });
        let shards = if matches!(shards, LockSet::One(_)) { LockSet::None } else { shards.clone() };
        self.beside.extend(&shards);
        if waiter.wants(None) && !std::mem::replace(&mut queues[at].awaits_absence, true) {
            counts.absent.fetch_add(1, Ordering::Relaxed);
        }
        queues[at].waiters.push_back(Entry { waiter: waiter.clone(), shards, reaches_others });
    }

    /// Takes a waiter out again.
    pub fn remove(&mut self, key: &Key<'_>, waiter: &dyn Waiter) {
        let same = |entry: &Entry| std::ptr::addr_eq(Arc::as_ptr(&entry.waiter), waiter);
        let counts = self.counts.clone();
        let Some(queue) = self.queue(key) else { return };
        if let Some(at) = queue.waiters.iter().position(same) {
            queue.waiters.remove(at);
            queue.recount(&counts);
        }
        if queue.waiters.is_empty() {
            self.forget(key);
        }
    }

    /// The shards, this one perhaps among them, that have to be locked as well when keys of this shard are changed: the
    /// one with this hash, or any. None nearly always.
    pub fn shards_beside(&self, hash: Option<u64>) -> &LockSet {
        let is_concerned = match hash {
            _ if self.beside == LockSet::None => false,
            None => true,
            Some(hash) => {
                let waiters = self.queues.get(&hash).into_iter().flatten().flat_map(|queue| &queue.waiters);
                waiters.into_iter().any(|entry| entry.reaches_others)
            }
        };
        // All of them, since what is served may be waited for in its turn.
        if is_concerned { &self.beside } else { &LockSet::None }
    }

    /// The key was changed: true when a command waits for it and it was not known to be changed before.
    pub fn make_ready(&mut self, key: &Key<'_>) -> bool {
        self.queue(key).is_some_and(|queue| !std::mem::replace(&mut queue.is_ready, true))
    }

    /// A keyspace was changed as a whole: visits the keys of it that [`WaitTable::make_ready`] would be true for.
    pub fn make_all_ready(&mut self, space: KeyspaceId, mut visit: impl FnMut(&[u8])) {
        for queue in self.queues.values_mut().flatten().filter(|queue| queue.space == space) {
            if !std::mem::replace(&mut queue.is_ready, true) {
                visit(&queue.key);
            }
        }
    }

    /// Begins to serve a key that was made ready: how many wait for it.
    pub fn begin(&mut self, key: &Key<'_>) -> usize {
        let Some(queue) = self.queue(key) else { return 0 };
        queue.is_ready = false;
        queue.waiters.len()
    }

    /// The first waiter from `at` on that wants what the key holds, and its place. Forgets those that have ended.
    pub fn next(&mut self, key: &Key<'_>, mut at: usize, found: Option<Type>) -> Option<(usize, Arc<dyn Waiter>)> {
        let queue = self.queue(key)?;
        if found.is_none() && !queue.awaits_absence {
            return None;
        }
        while let Some(entry) = queue.waiters.get(at) {
            match () {
                () if !entry.waiter.is_open() => drop(queue.waiters.remove(at)),
                () if entry.waiter.wants(found) => return Some((at, entry.waiter.clone())),
                () => at += 1,
            }
        }
        if queue.waiters.is_empty() {
            self.forget(key);
        }
        None
    }

    /// Every waiter of the shard.
    pub fn waiters(&self) -> impl Iterator<Item = &Arc<dyn Waiter>> {
        self.queues.values().flatten().flat_map(|queue| queue.waiters.iter().map(|entry| &entry.waiter))
    }

    /// Two keyspaces exchange their databases. Keys that were ready are to be made ready again.
    pub fn swap(&mut self, a: KeyspaceId, b: KeyspaceId) {
        for queue in self.queues.values_mut().flatten() {
            queue.space = match queue.space {
                space if space == a => b,
                space if space == b => a,
                space => space,
            };
            // What it was noted as has another name now; it is going to be noted anew.
            queue.is_ready = false;
        }
    }

    /// Forgets waiters that have ended without being taken out, now and then.
    pub fn upkeep(&mut self, now: UnixMs) {
        if !self.is_empty() && now.abs_diff(self.swept_at_ms) >= SWEEP_PERIOD_MS.unsigned_abs() {
            self.swept_at_ms = now;
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        let (mut beside, counts) = (LockSet::None, &self.counts);
        self.queues.retain(|_, queues| {
            queues.retain_mut(|queue| {
                queue.waiters.retain(|entry| entry.waiter.is_open());
                queue.waiters.iter().for_each(|entry| beside.extend(&entry.shards));
                counts.remove(queue.awaits_absence);
                queue.awaits_absence = queue.waiters.iter().any(|entry| entry.waiter.wants(None));
                let is_left = !queue.waiters.is_empty();
                if is_left {
                    counts.add(queue.awaits_absence);
                }
                is_left
            });
            !queues.is_empty()
        });
        self.queues.shrink_to(self.queues.len() * 2);
        self.beside = beside;
    }

    fn queue(&mut self, key: &Key<'_>) -> Option<&mut Queue> {
        self.queues.get_mut(&key.hash)?.iter_mut().find(|queue| queue.is_of(key))
    }

    fn forget(&mut self, key: &Key<'_>) {
        if let Some(queues) = self.queues.get_mut(&key.hash) {
            let counts = &self.counts;
            queues.retain(|queue| {
                let is_left = !queue.is_of(key);
                if !is_left {
                    counts.remove(queue.awaits_absence);
                }
                is_left
            });
            if queues.is_empty() {
                self.queues.remove(&key.hash);
            }
        }
        if self.queues.is_empty() {
            self.beside = LockSet::None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{DbIndex, Lsn, ShardId, SlotId};
    use std::sync::atomic::AtomicBool;

    struct Reader {
        wanted: Option<Type>,
        keys: &'static [&'static [u8]],
        is_open: AtomicBool,
    }

    impl Waiter for Reader {
        fn db(&self) -> DbIndex {
            DbIndex(0)
        }

        fn visit_keys(&self, visit: &mut dyn FnMut(&[u8], bool)) {
            self.keys.iter().for_each(|key| visit(key, true));
        }

        fn is_open(&self) -> bool {
            self.is_open.load(Ordering::Relaxed)
        }

        fn wants(&self, found: Option<Type>) -> bool {
            found == self.wanted
        }

        fn settle(&self, _wrote: Option<Lsn>, _hold: Option<Lsn>) {}

        fn wake(&self) {}
    }

    fn reader(wanted: Option<Type>) -> Arc<Reader> {
        Arc::new(Reader { wanted, keys: &[b"a"], is_open: AtomicBool::new(true) })
    }

    fn key(space: u32, bytes: &[u8]) -> Key<'_> {
        Key { bytes, hash: 7, slot: SlotId(0), space: KeyspaceId(space) }
    }

    fn enlist(table: &mut WaitTable, key: &Key<'_>, reader: &Arc<Reader>, shards: &[u16]) {
        let mut set = LockSet::None;
        shards.iter().for_each(|shard| set.insert(ShardId(*shard)));
        table.enlist(key, &(reader.clone() as Arc<dyn Waiter>), &set);
    }

    const STRING: Option<Type> = Some(Type::String);

    /// A blocked XREADGROUP waits for the key to go, too. INFO counted it until the next sweep while an XREAD was left.
    #[test]
    fn a_reader_of_a_group_that_leaves_is_not_counted() {
        let mut table = WaitTable::default();
        let (plain, group) = (reader(STRING), reader(None));
        enlist(&mut table, &key(0, b"a"), &plain, &[]);
        enlist(&mut table, &key(0, b"a"), &group, &[]);
        assert_eq!((table.counts.keys(), table.counts.absent()), (1, 1));
        table.remove(&key(0, b"a"), &*group);
        assert_eq!((table.counts.keys(), table.counts.absent()), (1, 0));
        table.remove(&key(0, b"a"), &*plain);
        assert_eq!((table.counts.keys(), table.counts.absent()), (0, 0));
    }

    /// Keys with the same hash, and keys of other keyspaces, are distinct; the first waiter is served first.
    #[test]
    fn waiters_are_found_in_order() {
        let mut table = WaitTable::default();
        let (first, second, other) = (reader(STRING), reader(STRING), reader(STRING));
        enlist(&mut table, &key(0, b"a"), &first, &[1]);
        enlist(&mut table, &key(0, b"b"), &other, &[1]);
        enlist(&mut table, &key(0, b"a"), &second, &[1]);
        assert_eq!((table.counts.keys(), table.counts.absent()), (2, 0));
        assert!(!table.make_ready(&key(1, b"a")) && !table.make_ready(&key(0, b"c")));
        assert!(table.make_ready(&key(0, b"a")) && !table.make_ready(&key(0, b"a")), "once until it is served");
        assert_eq!(table.begin(&key(0, b"a")), 2);
        assert!(table.make_ready(&key(0, b"a")));
        let found = |table: &mut WaitTable, at| table.next(&key(0, b"a"), at, STRING);
        let is = |found: Option<(usize, Arc<dyn Waiter>)>, at, reader: &Arc<Reader>| {
            found.is_some_and(|(place, waiter)| {
                place == at && std::ptr::addr_eq(Arc::as_ptr(&waiter), Arc::as_ptr(reader))
            })
        };
        assert!(is(found(&mut table, 0), 0, &first) && is(found(&mut table, 1), 1, &second));
        assert!(table.next(&key(0, b"a"), 0, None).is_none());
        first.is_open.store(false, Ordering::Relaxed);
        assert!(is(found(&mut table, 0), 0, &second), "who has ended is passed over");
        table.remove(&key(0, b"a"), &*second);
        table.remove(&key(0, b"b"), &*other);
        assert!(table.is_empty() && table.counts.keys() == 0);
    }

    #[test]
    fn shards_beside_are_told_while_somebody_reaches_them() {
        let mut table = WaitTable::default();
        let reads = |keys| Arc::new(Reader { wanted: STRING, keys, is_open: AtomicBool::new(true) });
        let (here, there) = (reads(&[b"a"]), reads(&[b"b", b"x"]));
        enlist(&mut table, &key(0, b"a"), &here, &[1]);
        assert_eq!(table.shards_beside(None), &LockSet::None);
        enlist(&mut table, &Key { hash: 8, ..key(0, b"b") }, &there, &[1, 5]);
        assert_eq!(table.shards_beside(Some(7)), &LockSet::None, "a change of a reaches nobody but here");
        let mut both = LockSet::One(ShardId(1));
        both.insert(ShardId(5));
        assert_eq!((table.shards_beside(Some(8)), table.shards_beside(None)), (&both, &both));
        // Another key of the same shard, whose waiters may reach further.
        enlist(&mut table, &key(0, b"a"), &reads(&[b"a", b"b"]), &[1]);
        assert_eq!(table.shards_beside(Some(7)), &both);
        there.is_open.store(false, Ordering::Relaxed);
        table.upkeep(1_000_000);
        assert_eq!(table.shards_beside(None), &LockSet::None);
    }

    #[test]
    fn a_wait_goes_with_its_database() {
        let (mut table, reader) = (WaitTable::default(), reader(None));
        enlist(&mut table, &key(0, b"a"), &reader, &[1]);
        table.swap(KeyspaceId(0), KeyspaceId(1));
        let mut ready = Vec::new();
        table.make_all_ready(KeyspaceId(0), |key| ready.push(key.to_vec()));
        assert!(ready.is_empty());
        table.make_all_ready(KeyspaceId(1), |key| ready.push(key.to_vec()));
        assert_eq!((ready, table.counts.keys(), table.counts.absent()), (vec![b"a".to_vec()], 1, 1));
        assert!(table.next(&key(1, b"a"), 0, None).is_some());
    }

    /// A million waits that timed out do not pile up.
    #[test]
    fn ended_waits_are_swept() {
        let mut table = WaitTable::default();
        for hash in 0..1000 {
            let late = reader(STRING);
            enlist(&mut table, &Key { hash, ..key(0, b"a") }, &late, &[1]);
            late.is_open.store(false, Ordering::Relaxed);
        }
        table.upkeep(1_000_000);
        assert!(table.is_empty() && table.counts.keys() == 0);
    }
}
