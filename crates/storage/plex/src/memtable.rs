//! The sorted part in memory that takes the writes of all key spaces, until it is flushed as a whole.
//!
//! One memtable for all key spaces means one cut through all of them at each flush: the log before it can go at once,
//! and an external log has one position to continue from.

mod arena;
mod gaps;
mod grow;
mod ranges;
mod tree;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::key::{Kind, SEQNO_MAX, Seqno};
use crate::range_tombstone::{Cover, RangeTombstone};
use gaps::Gaps;
use ranges::Ranges;
use tree::{Entry, Position, Target, Tree};

pub(crate) use gaps::Claim;

/// What an entry costs beyond key and value, on average, in bytes.
const ENTRY_OVERHEAD: usize = 72;

/// A memtable. Readers never wait; insertions exclude each other.
pub(crate) struct Memtable {
    tree: Tree,
    ranges: Ranges,
    bytes: AtomicUsize,
    entries: AtomicUsize,
    has_deletes: AtomicBool,
    gaps: Gaps,
    /// The largest position of an external log among the batches in here; 0 for none.
    lsn: AtomicU64,
    /// The log file that holds what is in here; 0 without a log.
    pub wal_number: u64,
}

impl Memtable {
    pub fn new(wal_number: u64) -> Self {
        Self {
            tree: Tree::new(),
            ranges: Ranges::default(),
            bytes: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            has_deletes: AtomicBool::new(false),
            gaps: Gaps::default(),
            lsn: AtomicU64::new(0),
            wal_number,
        }
    }

    /// The same after another one, of which no writer writes any more.
    pub fn after(before: &Memtable, wal_number: u64) -> Self {
        let memtable = Self::new(wal_number);
        memtable.gaps.take_over(&before.gaps);
        memtable
    }

    /// The same in place of one that nothing was written to, where tables have values that no memtable ever had.
    pub fn in_place_of(empty: &Memtable) -> Self {
        let memtable = Self::new(empty.wal_number);
        memtable.note_lsn(empty.lsn());
        memtable
    }

    /// Where a stretch of keys ends that the key is in, and in which the view sees no value; `Some(None)` if none
    /// follows at all. It says so of everything but later memtables.
    pub fn gap_end(&self, key_space: u32, key: &[u8], view: Seqno) -> Option<Option<Vec<u8>>> {
        self.gaps.end(key_space, key, view)
    }

    pub fn insert(&self, key_space: u32, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) {
        self.tree.insert(Target::new(key_space, key, seqno), kind, value);
        self.bytes.fetch_add(key.len() + value.len() + ENTRY_OVERHEAD, Ordering::Relaxed);
        self.entries.fetch_add(1, Ordering::Relaxed);
        if kind == Kind::Delete {
            self.has_deletes.store(true, Ordering::Relaxed);
        } else {
            self.gaps.note_put(key_space, key);
        }
    }

    pub fn delete_range(&self, key_space: u32, tombstone: RangeTombstone) {
        let bytes = tombstone.start.len() + tombstone.end.len() + ENTRY_OVERHEAD;
        self.ranges.add(key_space, tombstone);
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

    /// Whether any key or range was deleted in here.
    pub fn has_tombstones(&self) -> bool {
        self.has_deletes.load(Ordering::Relaxed) || self.ranges.is_used()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.load(Ordering::Relaxed) == 0
    }

    /// The newest version of the key at or before `view`.
    pub fn get(&self, key_space: u32, key: &[u8], view: Seqno) -> Option<(Seqno, Kind, &[u8])> {
        let entry = self.tree.get(Target::new(key_space, key, view))?;
        Some((entry.seqno(), entry.kind(), entry.value))
    }

    /// The newest tombstone of a range over the key at or before `view`; 0 if there is none.
    #[inline]
    pub fn covering(&self, key_space: u32, key: &[u8], view: Seqno) -> Seqno {
        if self.ranges.is_used() { self.ranges.covering(key_space, key, view) } else { 0 }
    }

    /// The tombstones of ranges of one key space that the view sees; `None` if there are none.
    pub fn cover(&self, key_space: u32, view: Seqno) -> Option<Arc<Cover>> {
        if self.ranges.is_used() { self.ranges.cover(key_space, view) } else { None }
    }

    /// The tombstones of ranges of one key space, in the order of their sequence numbers.
    pub fn range_tombstones(&self, key_space: u32) -> Vec<RangeTombstone> {
        if self.ranges.is_used() { self.ranges.list(key_space) } else { Vec::new() }
    }

    /// The key spaces that have anything in here, ascending.
    pub fn key_spaces(&self) -> Vec<u32> {
        let mut spaces: Vec<u32> = self.ranges.key_spaces();
        let (mut position, mut from) = (Position::new(), Some(0));
        while let Some(space) = from {
            self.tree.seek(&mut position, Target::new(space, b"", SEQNO_MAX));
            let found = position.place().map(|place| self.tree.entry(place).key_space);
            spaces.extend(found);
            from = found.and_then(|space| space.checked_add(1));
        }
        spaces.sort_unstable();
        spaces.dedup();
        spaces
    }
}

/// A position in the entries of one key space. It may or may not see entries that are added after it.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    key_space: u32,
    position: Position,
    is_valid: bool,
}

impl MemtableCursor {
    pub fn new(memtable: Arc<Memtable>, key_space: u32) -> Self {
        Self { memtable, key_space, position: Position::new(), is_valid: false }
    }

    pub fn valid(&self) -> bool {
        self.is_valid
    }

    fn entry(&self) -> Entry<'_> {
        self.memtable.tree.entry(self.position.place().expect("the cursor is on an entry"))
    }

    pub fn key(&self) -> &[u8] {
        self.entry().key
    }

    pub fn seqno(&self) -> Seqno {
        self.entry().seqno()
    }

    pub fn kind(&self) -> Kind {
        self.entry().kind()
    }

    pub fn value(&self) -> &[u8] {
        self.entry().value
    }

    /// The last of the keys from here on of which none shows a value to the view, as far as that is known of many at
    /// once. Not much beyond `end` is looked at.
    pub fn deleted_until(&self, view: Seqno, end: Option<&[u8]>) -> Option<&[u8]> {
        self.memtable.tree.deleted_until(self.position.place()?, view, end)
    }

    pub fn seek_to_first(&mut self) {
        self.seek(b"", SEQNO_MAX);
    }

    pub fn seek_to_last(&mut self) {
        let tree = &self.memtable.tree;
        match self.key_space.checked_add(1) {
            Some(after) => tree.seek_before(&mut self.position, Target::new(after, b"", SEQNO_MAX)),
            // No key is longer than KEY_LEN_MAX, so nothing follows this one.
            None => {
                let top = vec![u8::MAX; crate::key::KEY_LEN_MAX + 1];
                tree.seek_before(&mut self.position, Target::new(self.key_space, &top, 0));
            }
        }
        self.stay_inside();
    }

    /// To the first entry at or after this place in the order of entries.
    pub fn seek(&mut self, key: &[u8], seqno: Seqno) {
        self.memtable.tree.seek(&mut self.position, Target::new(self.key_space, key, seqno));
        self.stay_inside();
    }

    pub fn next(&mut self) {
        self.memtable.tree.next(&mut self.position);
        self.stay_inside();
    }

    pub fn prev(&mut self) {
        self.memtable.tree.prev(&mut self.position);
        self.stay_inside();
    }

    fn stay_inside(&mut self) {
        let place = self.position.place();
        self.is_valid = place.is_some_and(|place| self.memtable.tree.entry(place).key_space == self.key_space);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Views see their own versions, key spaces do not see each other, and a cursor stays in its own.
    #[test]
    fn versions_and_key_spaces() {
        let table = Arc::new(Memtable::new(0));
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
        let table = Memtable::new(0);
        let range = |start: &[u8], end: &[u8], seqno| RangeTombstone { start: start.into(), end: end.into(), seqno };
        table.delete_range(0, range(b"a", b"c", 3));
        table.delete_range(0, range(b"b", b"d", 8));
        assert_eq!(table.covering(0, b"b", 9), 8);
        assert_eq!(table.covering(0, b"b", 7), 3);
        assert_eq!(table.covering(0, b"c", 7), 0);
        assert_eq!(table.covering(1, b"b", 9), 0);
    }
}
