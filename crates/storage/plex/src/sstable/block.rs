//! A block: sorted entries with prefix compression, and restart points to search by.
//!
//! ```text
//!   entry   shared | unshared | seqno and kind | value length   (integers of variable length)
//!           | key without its first `shared` bytes | value
//!   block   entry ... | restart offset (4 bytes each) ... | number of restarts (4 bytes)
//! ```
//!
//! B1. The entry at a restart offset shares nothing, so a search can begin there.
//! B2. Entries are in the order of [`crate::key`]; blocks of an index have sequence number 0 everywhere and may repeat
//!     a key.
//!
//! Format: docs/formats/sstable.md. Nothing read from a block is trusted: a wrong length is an error, never a panic.

use std::ops::Range;
use std::sync::Arc;

use base::varint;

use super::spare;
use crate::fence::common_len;
use crate::key::{self, Kind, Seqno};
use crate::prefetch::prefetch;

/// Entries from one restart point to the next. A search goes through half of them, each in a cache line of its own;
/// twice as many would save 0.3 % of a table of values of 200 bytes.
const RESTART_INTERVAL: usize = 8;

/// Restart points of a block that are fetched ahead: all of a block of 4 KiB, if values are not small.
const PREFETCH_RESTARTS_MAX: usize = 8;

/// Entries after the next one that a search prefetches.
const PREFETCH_ENTRIES: usize = 2;

/// Puts a block together.
#[derive(Default)]
pub(super) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    /// Adds an entry after all others.
    pub fn add(&mut self, key: &[u8], seqno_kind: u64, value: &[u8]) {
        let mut shared = 0;
        if self.restarts.is_empty() || self.since_restart == RESTART_INTERVAL {
            self.restarts.push(self.bytes.len() as u32);
            self.since_restart = 0;
        } else {
            shared = common_len(&self.last_key, key);
        }
        varint::put(&mut self.bytes, shared as u64);
        varint::put(&mut self.bytes, (key.len() - shared) as u64);
        varint::put(&mut self.bytes, seqno_kind);
        varint::put(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.since_restart += 1;
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
    }

    pub fn is_empty(&self) -> bool {
        self.restarts.is_empty()
    }

    /// Its length if it were finished now, in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.restarts.len() * 4 + 4
    }

    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Memory for the next block, from one that was finished.
    pub fn reuse(&mut self, mut bytes: Vec<u8>) {
        if self.bytes.is_empty() {
            bytes.clear();
            self.bytes = bytes;
        }
    }

    /// The block; the builder is empty again.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        for restart in &self.restarts {
            bytes.extend_from_slice(&restart.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.restarts.clear();
        self.since_restart = 0;
        self.last_key.clear();
        bytes
    }
}

/// A block in memory. A clone shares the bytes; the default is a block without entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    bytes: Arc<[u8]>,
    /// Where the entries end and the restart offsets begin.
    entries_end: u32,
    restart_count: u32,
}

impl Block {
    /// `None` if the bytes cannot be a block.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        Self::of_memory(bytes.into(), bytes.len())
    }

    /// A block of the first `len` bytes of memory; the rest is spare. `None` if they cannot be a block.
    pub fn of_memory(memory: Arc<[u8]>, len: usize) -> Option<Self> {
        let bytes = memory.get(..len)?;
        let count_at = bytes.len().checked_sub(4)?;
        let restart_count = u32::from_le_bytes(bytes[count_at..].try_into().ok()?) as usize;
        let entries_end = count_at.checked_sub(restart_count.checked_mul(4)?)?;
        // In half a word each, a cell of the cache is one line.
        let (end, count) = (u32::try_from(entries_end).ok()?, u32::try_from(restart_count).ok()?);
        let block = Self { bytes: memory, entries_end: end, restart_count: count };
        let sound =
            (0..restart_count).all(|i| block.restart(i) < entries_end) && (restart_count > 0 || entries_end == 0);
        sound.then_some(block)
    }

    /// Bytes that are no block, for a cache of blocks: it has no entries.
    pub fn opaque(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), entries_end: 0, restart_count: 0 }
    }

    /// All bytes of a block made by [`opaque`](Self::opaque).
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of memory that it takes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    fn entries_end(&self) -> usize {
        self.entries_end as usize
    }

    fn restart_count(&self) -> usize {
        self.restart_count as usize
    }

    fn restart(&self, index: usize) -> usize {
        let at = self.entries_end() + index * 4;
        self.bytes
            .get(at..at + 4)
            .and_then(|b| b.try_into().ok())
            .map_or(usize::MAX, |b| u32::from_le_bytes(b) as usize)
    }

    /// The last restart point whose entry is before the place; the first one if none is.
    fn restart_before(&self, key: &[u8], seqno: Seqno) -> Result<usize, Malformed> {
        let (mut low, mut high) = (0, self.restart_count());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let head = self.head(self.restart(middle)).ok_or(Malformed)?;
            if key::compare((&self.bytes[head.key], head.seqno), (key, seqno)).is_lt() {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Whether the first entry is before the place; `false` without entries.
    pub(super) fn begins_before(&self, key: &[u8], seqno: Seqno) -> Result<bool, Malformed> {
        if self.restart_count() == 0 {
            return Ok(false);
        }
        let head = self.head(self.restart(0)).ok_or(Malformed)?;
        Ok(key::compare((&self.bytes[head.key], head.seqno), (key, seqno)).is_lt())
    }

    /// The first entry at or after the place, searched without assembling keys: where it begins, and its head. Of its
    /// key, `key` begins with the shared bytes.
    fn locate(&self, key: &[u8], seqno: Seqno) -> Result<Option<(usize, Head)>, Malformed> {
        if self.restart_count() == 0 {
            return Ok(None);
        }
        let mut at = self.restart(self.restart_before(key, seqno)?);
        // Of the entry before, which is before the place: its key's length, and how much of it `key` begins with.
        let (mut key_len, mut common) = (0, 0);
        while at < self.entries_end() {
            let head = self.head(at).ok_or(Malformed)?;
            if head.shared > key_len {
                return Err(Malformed);
            }
            // Entries are often of one length: the next ones are loaded while this one is compared.
            let len = head.value.end - at;
            for ahead in 1..=PREFETCH_ENTRIES {
                prefetch(&self.bytes, head.value.end + ahead * len);
            }
            key_len = head.shared + head.key.len();
            // An entry that shares more with the one before it than that one shares with `key` is before the place too.
            if head.shared <= common {
                let (own, rest) = (&self.bytes[head.key.clone()], &key[head.shared..]);
                if key::compare((own, head.seqno), (rest, seqno)).is_ge() {
                    return Ok(Some((at, head)));
                }
                common = head.shared + common_len(own, rest);
            }
            at = head.value.end;
        }
        Ok(None)
    }

    /// Asks memory for the restart points.
    pub(super) fn prefetch_restarts(&self) {
        prefetch(&self.bytes, self.entries_end());
    }

    /// Asks memory for the entries that a search looks at first.
    pub(super) fn prefetch_search(&self) {
        for index in 0..self.restart_count().min(PREFETCH_RESTARTS_MAX) {
            prefetch(&self.bytes, self.restart(index));
        }
    }

    /// The first entry at or after the place.
    pub(super) fn find(&self, key: &[u8], seqno: Seqno) -> Result<Option<Found<'_>>, Malformed> {
        self.prefetch_search();
        let found = self.locate(key, seqno)?.map(|(_, head)| Found {
            is_key: self.bytes[head.key] == key[head.shared..],
            seqno: head.seqno,
            kind: head.kind,
            value: &self.bytes[head.value],
        });
        Ok(found)
    }

    /// Reads the head of the entry at `at`.
    #[inline]
    fn head(&self, at: usize) -> Option<Head> {
        let entries = &self.bytes[..self.entries_end()];
        let mut rest = entries.get(at..)?;
        let shared = usize::try_from(varint::take(&mut rest)?).ok()?;
        let unshared = usize::try_from(varint::take(&mut rest)?).ok()?;
        let (seqno, kind) = key::unpack(varint::take(&mut rest)?)?;
        let value_len = usize::try_from(varint::take(&mut rest)?).ok()?;
        let key_at = entries.len() - rest.len();
        let value_at = key_at.checked_add(unshared)?;
        let end = value_at.checked_add(value_len)?;
        (end <= entries.len()).then_some(Head { shared, key: key_at..value_at, seqno, kind, value: value_at..end })
    }
}

impl Drop for Block {
    /// Lets the thread's next block reuse the memory if nothing else refers to it.
    fn drop(&mut self) {
        if Arc::strong_count(&self.bytes) == 1 {
            spare::give(std::mem::take(&mut self.bytes));
        }
    }
}

struct Head {
    shared: usize,
    key: Range<usize>,
    seqno: Seqno,
    kind: Kind,
    value: Range<usize>,
}

/// An entry that was looked for.
pub(super) struct Found<'a> {
    /// Whether it has the very key that was asked for, and not a larger one.
    pub is_key: bool,
    pub seqno: Seqno,
    pub kind: Kind,
    pub value: &'a [u8],
}

/// The block is not well formed; the caller knows which one it is.
#[derive(Debug)]
pub(super) struct Malformed;

/// A position in a block. Its methods that look at an entry must only be called while it is [`valid`](Self::valid).
#[derive(Default)]
pub(super) struct BlockCursor {
    block: Block,
    /// Where the current entry begins; `entries_end` when there is none.
    at: usize,
    key: Vec<u8>,
    seqno: Seqno,
    kind: Kind,
    value: Range<usize>,
}

impl BlockCursor {
    /// Not yet on an entry.
    pub fn new(block: Block) -> Self {
        Self { at: block.entries_end(), block, ..Self::default() }
    }

    /// To another block, on no entry of it yet.
    pub fn enter(&mut self, block: Block) {
        self.at = block.entries_end();
        self.block = block;
    }

    /// On no entry any more.
    pub fn leave(&mut self) {
        self.at = self.block.entries_end();
    }

    pub fn valid(&self) -> bool {
        self.at < self.block.entries_end()
    }

    /// Asks memory for the restart points.
    pub fn prefetch_restarts(&self) {
        self.block.prefetch_restarts();
    }

    /// Asks memory for the entries that a search looks at first.
    pub fn prefetch_search(&self) {
        self.block.prefetch_search();
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub fn seqno(&self) -> Seqno {
        self.seqno
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn value(&self) -> &[u8] {
        &self.block.bytes[self.value.clone()]
    }

    pub fn seek_to_first(&mut self) -> Result<(), Malformed> {
        self.key.clear();
        self.load(0)
    }

    pub fn seek_to_last(&mut self) -> Result<(), Malformed> {
        self.restart_at(self.block.restart_count().saturating_sub(1))?;
        while self.valid() && self.value.end < self.block.entries_end() {
            self.next()?;
        }
        Ok(())
    }

    /// To the first entry at or after this place; not valid if there is none.
    pub fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<(), Malformed> {
        self.at = self.block.entries_end();
        if let Some((at, head)) = self.block.locate(key, seqno)? {
            self.key.clear();
            self.key.extend_from_slice(&key[..head.shared]);
            self.stand(at, head);
        }
        Ok(())
    }

    pub fn next(&mut self) -> Result<(), Malformed> {
        self.load(self.value.end)
    }

    pub fn prev(&mut self) -> Result<(), Malformed> {
        let target = self.at;
        // The last restart point before this entry.
        let (mut low, mut high) = (0, self.block.restart_count());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.block.restart(middle) < target {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == 0 {
            self.at = self.block.entries_end();
            return Ok(());
        }
        self.restart_at(low - 1)?;
        while self.valid() && self.value.end < target {
            self.next()?;
        }
        Ok(())
    }

    fn restart_at(&mut self, index: usize) -> Result<(), Malformed> {
        self.key.clear();
        let at = if self.block.restart_count() == 0 { self.block.entries_end() } else { self.block.restart(index) };
        self.load(at)
    }

    /// Goes to the entry at `at`, whose predecessor's key is in the buffer.
    fn load(&mut self, at: usize) -> Result<(), Malformed> {
        if at >= self.block.entries_end() {
            self.at = self.block.entries_end();
            return Ok(());
        }
        let head = self.block.head(at).ok_or(Malformed)?;
        if head.shared > self.key.len() {
            return Err(Malformed);
        }
        self.key.truncate(head.shared);
        self.stand(at, head);
        Ok(())
    }

    /// On this entry, whose shared bytes are in the buffer.
    fn stand(&mut self, at: usize, head: Head) {
        self.key.extend_from_slice(&self.block.bytes[head.key]);
        // A merge comes back after steps of its other sources. Entries are often of one length.
        prefetch(&self.block.bytes, head.value.end);
        prefetch(&self.block.bytes, 2 * head.value.end - at);
        (self.at, self.seqno, self.kind, self.value) = (at, head.seqno, head.kind, head.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use std::cmp::Ordering;

    type Entry = (Vec<u8>, Seqno, Vec<u8>);

    fn random_entries(rng: &mut Rng, count: u64) -> Vec<Entry> {
        let mut entries: Vec<Entry> = (0..count)
            .map(|seqno| {
                let key = format!("{:0w$}", rng.below(count), w = 1 + rng.below(6) as usize).into_bytes();
                (key, seqno, vec![7; rng.below(20) as usize])
            })
            .collect();
        entries.sort_by(|a, b| key::compare((&a.0, a.1), (&b.0, b.1)));
        entries
    }

    fn build(entries: &[Entry]) -> Block {
        let mut builder = BlockBuilder::default();
        entries.iter().for_each(|(k, s, v)| builder.add(k, key::pack(*s, Kind::Put), v));
        let len = builder.len();
        let bytes = builder.finish();
        assert_eq!(bytes.len(), len);
        Block::new(&bytes).expect("what was built is a block")
    }

    fn here(cursor: &BlockCursor) -> Option<Entry> {
        cursor.valid().then(|| (cursor.key().to_vec(), cursor.seqno(), cursor.value().to_vec()))
    }

    /// A block's buffer is reused when its last reference is dropped; its spare bytes are never visible.
    #[test]
    fn memory_to_spare() {
        let mut rng = Rng::new(9);
        let entries = random_entries(&mut rng, 40);
        let mut builder = BlockBuilder::default();
        entries.iter().for_each(|(k, s, v)| builder.add(k, key::pack(*s, Kind::Put), v));
        let bytes = builder.finish();
        let mut memory = vec![0xff; 4096];
        memory[..bytes.len()].copy_from_slice(&bytes);
        let block = Block::of_memory(memory.into(), bytes.len()).expect("it is a block");
        assert!(Block::of_memory(bytes.clone().into(), bytes.len() + 1).is_none());
        let at = block.bytes.as_ptr();
        let mut cursor = BlockCursor::new(block.clone());
        cursor.seek_to_first().unwrap();
        for entry in &entries {
            assert_eq!(here(&cursor).as_ref(), Some(entry));
            cursor.next().unwrap();
        }
        assert!(!cursor.valid());
        drop(cursor);
        assert_ne!(spare::take(4000).as_ptr(), at);
        drop(block);
        assert_eq!(spare::take(4000).as_ptr(), at);
    }

    /// Walks and seeks agree with the sorted entries, in both directions.
    #[test]
    fn agrees_with_a_sorted_list() {
        let mut rng = Rng::new(5);
        for count in [0, 1, 2, 16, 17, 33, 200] {
            let entries = random_entries(&mut rng, count);
            let block = build(&entries);
            let mut cursor = BlockCursor::new(block.clone());
            cursor.seek_to_first().unwrap();
            for entry in &entries {
                assert_eq!(here(&cursor).as_ref(), Some(entry));
                cursor.next().unwrap();
            }
            assert!(!cursor.valid());
            cursor.seek_to_last().unwrap();
            for entry in entries.iter().rev() {
                assert_eq!(here(&cursor).as_ref(), Some(entry));
                cursor.prev().unwrap();
            }
            assert!(!cursor.valid());
            for _ in 0..200 {
                let target = (format!("{:03}", rng.below(250)).into_bytes(), rng.below(220));
                cursor.seek(&target.0, target.1).unwrap();
                let expected =
                    entries.iter().find(|e| key::compare((&e.0, e.1), (&target.0, target.1)) != Ordering::Less);
                assert_eq!(here(&cursor).as_ref(), expected);
                let found = block.find(&target.0, target.1).unwrap();
                let expected = expected.map(|e| (e.0 == target.0, e.1, &e.2[..]));
                assert_eq!(found.map(|f| (f.is_key, f.seqno, f.value)), expected);
            }
        }
    }

    /// Any bytes at all: errors, never a panic and never an endless walk.
    #[test]
    fn damaged_blocks_do_not_panic() {
        let mut rng = Rng::new(6);
        let mut builder = BlockBuilder::default();
        for (k, s, v) in random_entries(&mut rng, 60) {
            builder.add(&k, key::pack(s, Kind::Put), &v);
        }
        let sound = builder.finish();
        for _ in 0..3000 {
            let mut bytes = sound.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            bytes.truncate(bytes.len() - (rng.below(2) * rng.below(8)) as usize);
            let Some(block) = Block::new(&bytes) else { continue };
            let _ = block.find(b"050", 3);
            let mut cursor = BlockCursor::new(block);
            let mut steps = 0;
            let mut outcome = cursor.seek_to_first();
            while outcome.is_ok() && cursor.valid() {
                outcome = cursor.next();
                steps += 1;
            }
            assert!(steps <= sound.len());
            let _ = cursor.seek(b"050", 3);
            let mut outcome = cursor.seek_to_last();
            while outcome.is_ok() && cursor.valid() && steps < 2 * sound.len() {
                outcome = cursor.prev();
                steps += 1;
            }
        }
    }
}
