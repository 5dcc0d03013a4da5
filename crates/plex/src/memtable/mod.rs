//! The sorted part in memory that takes the writes of all key spaces, until it is flushed as a whole.
//!
//! One memtable for all key spaces means one cut through all of them at each flush: the log before it can go at once,
//! and an external log has one position to go on from.

mod skiplist;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::fence::leading;
use crate::key::{self, Kind, SEQNO_MAX, Seqno};
use crate::prefetch::{prefetch, prefetch_item};
use crate::range_tombstone::RangeTombstone;
use skiplist::{CACHE_LINE, END, NODE_OVERHEAD, PREFETCH_BYTES_MAX, SkipList, Target};

/// An entry to be added.
pub(crate) struct NewEntry<'a> {
    pub key_space: u32,
    pub key: &'a [u8],
    pub seqno: Seqno,
    pub kind: Kind,
    pub value: &'a [u8],
}

impl NewEntry<'_> {
    /// Asks memory for the key and the beginning of the value.
    fn prefetch(&self) {
        prefetch(self.key, 0);
        (0..self.value.len().min(PREFETCH_BYTES_MAX)).step_by(CACHE_LINE).for_each(|at| prefetch(self.value, at));
    }
}

/// Where an entry is among others, and what mostly decides its order.
struct Ordered {
    key_space: u32,
    at: u32,
    head: u128,
}

impl Ordered {
    fn new((at, entry): (usize, &NewEntry<'_>)) -> Self {
        let at = u32::try_from(at).expect("a memtable has fewer than 2^32 entries");
        Self { key_space: entry.key_space, at, head: leading(entry.key) }
    }

    fn of<'a, 'b>(&self, entries: &'b [NewEntry<'a>]) -> &'b NewEntry<'a> {
        &entries[self.at as usize]
    }
}

/// Entries that memory is asked for ahead.
const AHEAD: usize = 8;

/// A memtable. Readers never wait; insertions exclude each other.
pub(crate) struct Memtable {
    list: SkipList,
    /// Tombstones of ranges with their key space, in the order of their sequence numbers.
    ranges: RwLock<Vec<(u32, RangeTombstone)>>,
    has_ranges: AtomicBool,
    bytes: AtomicUsize,
    entries: AtomicUsize,
    /// The largest position of an external log among the batches in here; 0 for none.
    lsn: AtomicU64,
    /// The log file that holds what is in here; 0 without a log.
    pub wal_number: u64,
}

impl Memtable {
    pub fn new(seed: u64, wal_number: u64) -> Self {
        Self {
            list: SkipList::new(seed),
            ranges: RwLock::default(),
            has_ranges: AtomicBool::new(false),
            bytes: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            lsn: AtomicU64::new(0),
            wal_number,
        }
    }

    pub fn insert(&self, key_space: u32, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) {
        self.list.insert(Target::new(key_space, key, seqno), kind, value);
        self.bytes.fetch_add(key.len() + value.len() + NODE_OVERHEAD, Ordering::Relaxed);
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds many entries at once, at less than half the cost of one by one. Readers see them appear one by one.
    pub fn insert_all(&self, entries: &[NewEntry<'_>]) {
        let mut order: Vec<Ordered> = entries.iter().enumerate().map(Ordered::new).collect();
        order.sort_unstable_by(|a, b| {
            let by_head = (a.key_space, a.head).cmp(&(b.key_space, b.head));
            by_head.then_with(|| {
                let (a, b) = (a.of(entries), b.of(entries));
                key::compare((a.key, a.seqno), (b.key, b.seqno))
            })
        });
        let ascending = order.iter().enumerate().map(|(place, ordered)| {
            // Entries lie where they were written, each far from the one before: memory is asked for them in time.
            if let Some(later) = order.get(place + 2 * AHEAD) {
                prefetch_item(entries, later.at as usize);
            }
            if let Some(soon) = order.get(place + AHEAD) {
                soon.of(entries).prefetch();
            }
            let entry = ordered.of(entries);
            (Target::new(entry.key_space, entry.key, entry.seqno), entry.kind, entry.value)
        });
        self.list.insert_ascending(ascending);
        let bytes = entries.iter().map(|entry| entry.key.len() + entry.value.len() + NODE_OVERHEAD).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.entries.fetch_add(entries.len(), Ordering::Relaxed);
    }

    pub fn delete_range(&self, key_space: u32, tombstone: RangeTombstone) {
        let bytes = tombstone.start.len() + tombstone.end.len() + NODE_OVERHEAD;
        self.ranges.write().push((key_space, tombstone));
        self.has_ranges.store(true, Ordering::Release);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    pub fn note_lsn(&self, lsn: u64) {
        self.lsn.fetch_max(lsn, Ordering::Relaxed);
    }

    pub fn lsn(&self) -> u64 {
        self.lsn.load(Ordering::Relaxed)
    }

    /// What it takes, roughly, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.load(Ordering::Relaxed) == 0
    }

    /// The newest version of the key at or before `view`.
    pub fn get(&self, key_space: u32, key: &[u8], view: Seqno) -> Option<(Seqno, Kind, &[u8])> {
        let id = self.list.seek(Target::new(key_space, key, view));
        if id == END {
            return None;
        }
        let node = self.list.node(id);
        (node.key_space == key_space && node.key() == key).then(|| (node.seqno(), node.kind(), node.value()))
    }

    /// The newest tombstone of a range over the key at or before `view`; 0 if there is none.
    pub fn covering(&self, key_space: u32, key: &[u8], view: Seqno) -> Seqno {
        if !self.has_ranges.load(Ordering::Acquire) {
            return 0;
        }
        let ranges = self.ranges.read();
        let over = ranges.iter().filter(|(space, t)| *space == key_space && t.seqno <= view && t.covers(key));
        over.map(|(_, t)| t.seqno).max().unwrap_or(0)
    }

    /// The tombstones of ranges of one key space.
    pub fn range_tombstones(&self, key_space: u32) -> Vec<RangeTombstone> {
        if !self.has_ranges.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.ranges.read().iter().filter(|(space, _)| *space == key_space).map(|(_, t)| t.clone()).collect()
    }

    /// The key spaces that have anything in here, ascending.
    pub fn key_spaces(&self) -> Vec<u32> {
        let mut spaces: Vec<u32> = self.ranges.read().iter().map(|(space, _)| *space).collect();
        let mut id = self.list.next(END);
        while id != END {
            let space = self.list.node(id).key_space;
            spaces.push(space);
            let Some(after) = space.checked_add(1) else { break };
            id = self.list.seek(Target::new(after, b"", SEQNO_MAX));
        }
        spaces.sort_unstable();
        spaces.dedup();
        spaces
    }
}

/// A position in the entries of one key space. It sees entries that are added behind it.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    key_space: u32,
    at: u32,
}

impl MemtableCursor {
    pub fn new(memtable: Arc<Memtable>, key_space: u32) -> Self {
        Self { memtable, key_space, at: END }
    }

    pub fn valid(&self) -> bool {
        self.at != END
    }

    pub fn key(&self) -> &[u8] {
        self.memtable.list.node(self.at).key()
    }

    pub fn seqno(&self) -> Seqno {
        self.memtable.list.node(self.at).seqno()
    }

    pub fn kind(&self) -> Kind {
        self.memtable.list.node(self.at).kind()
    }

    pub fn value(&self) -> &[u8] {
        self.memtable.list.node(self.at).value()
    }

    pub fn seek_to_first(&mut self) {
        self.seek(b"", SEQNO_MAX);
    }

    pub fn seek_to_last(&mut self) {
        let id = match self.key_space.checked_add(1) {
            Some(after) => self.memtable.list.seek_before(Target::new(after, b"", SEQNO_MAX)),
            // No key is longer than KEY_LEN_MAX, so nothing follows this one.
            None => {
                let top = vec![u8::MAX; crate::key::KEY_LEN_MAX + 1];
                self.memtable.list.seek_before(Target::new(self.key_space, &top, 0))
            }
        };
        self.set(id);
    }

    /// To the first entry at or behind this place in the order of entries.
    pub fn seek(&mut self, key: &[u8], seqno: Seqno) {
        self.set(self.memtable.list.seek(Target::new(self.key_space, key, seqno)));
    }

    pub fn next(&mut self) {
        self.set(self.memtable.list.next(self.at));
        if self.at != END {
            self.memtable.list.prefetch_behind(self.at);
        }
    }

    pub fn prev(&mut self) {
        let node = self.memtable.list.node(self.at);
        self.set(self.memtable.list.seek_before(Target::new(self.key_space, node.key(), node.seqno())));
    }

    fn set(&mut self, id: u32) {
        let inside = id != END && self.memtable.list.node(id).key_space == self.key_space;
        self.at = if inside { id } else { END };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Views see their own versions, key spaces do not see each other, and a cursor stays in its own.
    #[test]
    fn versions_and_key_spaces() {
        let table = Arc::new(Memtable::new(1, 0));
        table.insert(0, b"b", 1, Kind::Put, b"old");
        table.insert(0, b"b", 5, Kind::Delete, b"");
        table.insert(1, b"a", 6, Kind::Put, b"other");
        table.insert(u32::MAX, b"z", 7, Kind::Put, b"last");
        assert_eq!(table.get(0, b"b", 4), Some((1, Kind::Put, &b"old"[..])));
        assert_eq!(table.get(0, b"b", 5), Some((5, Kind::Delete, &b""[..])));
        assert_eq!(table.get(0, b"a", 9), None);
        assert_eq!(table.key_spaces(), [0, 1, u32::MAX]);
        let mut cursor = MemtableCursor::new(table.clone(), 0);
        cursor.seek_to_first();
        assert_eq!((cursor.key(), cursor.seqno()), (&b"b"[..], 5));
        cursor.next();
        assert_eq!((cursor.key(), cursor.seqno()), (&b"b"[..], 1));
        cursor.next();
        assert!(!cursor.valid());
        for space in [1, u32::MAX] {
            let mut cursor = MemtableCursor::new(table.clone(), space);
            cursor.seek_to_last();
            assert!(cursor.valid());
            cursor.prev();
            assert!(!cursor.valid());
        }
    }

    /// The newest covering tombstone that the view sees counts.
    #[test]
    fn range_tombstones_cover() {
        let table = Memtable::new(1, 0);
        let range = |start: &[u8], end: &[u8], seqno| RangeTombstone { start: start.into(), end: end.into(), seqno };
        table.delete_range(0, range(b"a", b"c", 3));
        table.delete_range(0, range(b"b", b"d", 8));
        assert_eq!(table.covering(0, b"b", 9), 8);
        assert_eq!(table.covering(0, b"b", 7), 3);
        assert_eq!(table.covering(0, b"c", 7), 0);
        assert_eq!(table.covering(1, b"b", 9), 0);
    }
}
