//! The table of one database in one shard: from a key's hash to its entry.
//!
//! ```text
//! hash:  | top bits: directory cell |            ...            | low 16 bits: tag, the two buckets |
//!
//! directory cell -> extent header -> two buckets -> cell with the tag -> entry
//! ```
//!
//! Extents fill up to a mean of nine tenths, grow by an eighth at a time or less, and split into two at twice the size;
//! they shrink and merge the same way. The worst insertion splits one extent: about 1,100 keys are read. There is no
//! rehash.
//!
//! T1. An extent of depth `d` covers exactly the hashes with its `d`-bit prefix, and all directory cells of that prefix
//!     name it.
//! T2. Each live entry of the database is in exactly one cell of its extent (X1), and nothing else keeps its handle.

use crate::bucket::{Bucket, CELL_COUNT, Mark, cells, tag_of};
use crate::directory::{Directory, bound_of, cell_of};
use crate::entries::Entries;
use crate::extent::{
    self, CELL_COUNT_MAX, Cell, Cells, Extent, Heap, UNIT_COUNT_MAX, first_bucket_of, second_bucket_of,
};
use crate::region::Lines;
use crate::wheel::Item;
use base::Rng;
use base::hash::KeyHasher;
use std::num::NonZeroU8;

/// An extent above this fill grows before it takes another entry: displacing cells in a fuller one costs more than it
/// saves.
const FILL_PERCENT_MAX: u32 = 95;

/// An extent below this fill shrinks, to [`FILL_PERCENT_SHRUNK`]. Far enough below the fill after growing a unit (seven
/// eighths of the above) that a key coming and going does not rebuild it each time.
const FILL_PERCENT_MIN: u32 = 70;
const FILL_PERCENT_SHRUNK: u32 = 85;
const _: () = assert!(FILL_PERCENT_MIN < FILL_PERCENT_SHRUNK && FILL_PERCENT_SHRUNK < FILL_PERCENT_MAX);

/// Two neighbouring extents merge when both together need at most this many units: half of what splits one.
const MERGE_UNITS_MAX: u32 = UNIT_COUNT_MAX / 2;

/// How many entries ahead a split asks for.
const SPLIT_PREFETCH_COUNT: usize = 12;

/// A cell of the table, found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The bucket's line.
    bucket: u32,
    /// The entry.
    pub handle: u32,
    cell: CellNumber,
}

// Handed from function to function in two registers.
const _: () = assert!(size_of::<Option<Found>>() <= 16);

impl Found {
    /// The first cell of the bucket in this line with the tag, without a look at its entry.
    #[inline(always)]
    pub fn first(bucket: Bucket<'_>, line: u32, tag: u16) -> Option<Self> {
        let matches = bucket.matches(tag);
        let cell = matches.trailing_zeros();
        (matches != 0).then(|| Self { bucket: line, handle: bucket.handle(cell), cell: CellNumber::new(cell) })
    }
}

/// The first cell of a bucket under the tag whose entry is wanted.
#[inline(always)]
fn find_in(lines: &Lines, line: u32, tag: u16, wanted: &mut impl FnMut(u32) -> bool) -> Option<Found> {
    let bucket = Bucket::new(lines.line(line));
    let mut matches = bucket.matches(tag);
    while matches != 0 {
        let cell = matches.trailing_zeros();
        let handle = bucket.handle(cell);
        if wanted(handle) {
            return Some(Found { bucket: line, handle, cell: CellNumber::new(cell) });
        }
        matches &= matches - 1;
    }
    None
}

/// The same in the second bucket of the tag, where few keys are.
#[inline(never)]
fn find_in_second(lines: &Lines, header: u32, tag: u16, wanted: &mut impl FnMut(u32) -> bool) -> Option<Found> {
    let extent = Extent::at(lines, header);
    let line = extent.bucket_line(second_bucket_of(tag, extent.bucket_count()));
    find_in(lines, line, tag, wanted)
}

/// A cell of a bucket, counted from 1.
#[derive(Clone, Copy, Debug)]
struct CellNumber(NonZeroU8);

impl CellNumber {
    #[inline]
    fn new(cell: u32) -> Self {
        Self(NonZeroU8::MIN.saturating_add(cell as u8))
    }

    #[inline]
    fn get(self) -> u32 {
        u32::from(self.0.get()) - 1
    }
}

/// A stretch of hashes that one extent covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    header: u32,
    /// The least hash in it.
    pub first: u64,
    /// Where the next stretch begins; `None` after the last.
    pub next: Option<u64>,
}

/// The table of a database.
pub struct Table {
    directory: Directory,
    len: u64,
    /// Extents by depth, up to the directory's.
    at_depth: Vec<u32>,
}

impl Table {
    /// An empty table.
    pub fn new(heap: &mut Heap) -> Self {
        let header = extent::create(heap, 0);
        assert!(extent::refill(heap, header, 0, 1, &[], Mark::default()));
        Self { directory: Directory::new(heap, header), len: 0, at_depth: vec![1] }
    }

    /// Entries in it.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Where it begins, for hints.
    pub fn directory(&self) -> Directory {
        self.directory
    }

    #[inline]
    fn header_of(&self, lines: &Lines, hash: u64) -> u32 {
        self.directory.get(lines, cell_of(hash, self.directory.depth()))
    }

    /// The cell of a key.
    #[inline]
    pub fn find(&self, heap: &Heap, entries: &Entries, hash: u64, key: &[u8]) -> Option<Found> {
        self.find_where(heap, hash, |handle| entries.key_is(handle, key))
    }

    /// The cell of an entry known by its handle.
    pub fn find_handle(&self, heap: &Heap, hash: u64, handle: u32) -> Option<Found> {
        self.find_where(heap, hash, |candidate| candidate == handle)
    }

    /// The first cell under the tag of `hash` whose entry is wanted.
    #[inline]
    pub fn find_where(&self, heap: &Heap, hash: u64, mut wanted: impl FnMut(u32) -> bool) -> Option<Found> {
        let lines = heap.backing();
        let header = self.header_of(lines, hash);
        let extent = Extent::at(lines, header);
        let (tag, count) = (tag_of(hash), extent.bucket_count());
        let first = extent.bucket_line(first_bucket_of(tag, count));
        match find_in(lines, first, tag, &mut wanted) {
            None => find_in_second(lines, header, tag, &mut wanted),
            found => found,
        }
    }

    /// All entries that an item of the expiration index may stand for: those under its tag, in the extents that may
    /// hold a key with the hash bits it knows. The caller compares the hash.
    pub fn find_item(&self, heap: &Heap, item: Item, mut visit: impl FnMut(u32)) {
        let unknown = self.directory.depth().saturating_sub(Item::PREFIX_BITS);
        for extent in 0..1u64 << unknown {
            let hash = item.hash() | extent << (u64::BITS - Item::PREFIX_BITS - unknown);
            self.find_where(heap, hash, |handle| {
                visit(handle);
                false
            });
        }
    }

    /// Points the cell to another place of its entry.
    #[inline]
    pub fn set_handle(&self, heap: &Heap, found: Found, handle: u32) {
        bucket_at(heap, found).set_handle(found.cell.get(), handle);
    }

    /// Whether the checkpoint with this mark has taken the entry.
    pub fn is_saved(&self, heap: &Heap, found: Found, mark: Mark) -> bool {
        bucket_at(heap, found).is_saved(found.cell.get(), mark)
    }

    /// Notes that it has.
    pub fn set_saved(&self, heap: &Heap, found: Found, mark: Mark) {
        bucket_at(heap, found).set_saved(found.cell.get(), mark);
    }

    /// Adds the entry of a key that is not there yet.
    pub fn insert(&mut self, memory: &mut TableMemory<'_>, hash: u64, handle: u32, saved: bool, mark: Mark) {
        let tag = tag_of(hash);
        loop {
            let header = self.header_of(memory.heap.backing(), hash);
            let extent = Extent::at(memory.heap.backing(), header);
            let len = extent.len();
            if len * 100 < extent.capacity() * FILL_PERCENT_MAX && extent.place(tag, handle, saved, mark) {
                extent.set_len(len + 1);
                self.len += 1;
                return;
            }
            self.grow(memory, hash, header, mark);
        }
    }

    /// Takes the cell out of the table.
    pub fn remove(&mut self, heap: &mut Heap, hash: u64, found: Found, mark: Mark) {
        bucket_at(heap, found).vacate(found.cell.get());
        let header = self.header_of(heap.backing(), hash);
        let extent = Extent::at(heap.backing(), header);
        let len = extent.len() - 1;
        extent.set_len(len);
        self.len -= 1;
        if len * 100 < extent.capacity() * FILL_PERCENT_MIN && (extent.unit_count() > 1 || extent.depth() > 0) {
            self.shrink(heap, hash, header, mark);
        }
    }

    /// Gives the extent a unit more, or splits it.
    fn grow(&mut self, memory: &mut TableMemory<'_>, hash: u64, header: u32, mark: Mark) {
        let extent = Extent::at(memory.heap.backing(), header);
        let (units, depth) = (extent.unit_count(), extent.depth());
        let mut gathered = Cells::new();
        extent.gather(mark, &mut gathered);
        if units < UNIT_COUNT_MAX && extent::refill(memory.heap, header, depth, units + 1, gathered.as_slice(), mark) {
            return;
        }
        self.split(memory, hash, header, depth, gathered.as_slice(), mark);
    }

    /// Splits an extent by the next bit of its keys' hashes. `gathered` are its cells; what its buckets hold is not
    /// used.
    fn split(
        &mut self,
        memory: &mut TableMemory<'_>,
        hash: u64,
        header: u32,
        depth: u32,
        gathered: &[Cell],
        mark: Mark,
    ) {
        let (mut low, mut high) = (Cells::new(), Cells::new());
        for (index, &cell) in gathered.iter().enumerate() {
            if let Some(ahead) = gathered.get(index + SPLIT_PREFETCH_COUNT) {
                memory.entries.prefetch(ahead.handle);
            }
            let hash = memory.hasher.hash(memory.entries.key(cell.handle));
            if hash >> (63 - depth) & 1 == 0 { low.push(cell) } else { high.push(cell) }
        }
        if depth == self.directory.depth() {
            self.directory = self.directory.doubled(memory.heap);
            self.at_depth.push(0);
        }
        let sibling = extent::create(memory.heap, depth + 1);
        for (at, cells) in [(header, &low), (sibling, &high)] {
            let units = units_for(cells.as_slice().len() as u32, FILL_PERCENT_MAX);
            let fits = extent::refill(memory.heap, at, depth + 1, units, cells.as_slice(), mark);
            assert!(fits, "half an extent fits an extent");
        }
        self.at_depth[depth as usize] -= 1;
        self.at_depth[depth as usize + 1] += 2;
        let prefix = cell_of(hash, depth);
        self.directory.set_range(memory.heap.backing(), prefix * 2 + 1, depth + 1, sibling);
    }

    /// Takes units from the extent, or merges it with its neighbour.
    fn shrink(&mut self, heap: &mut Heap, hash: u64, header: u32, mark: Mark) {
        let extent = Extent::at(heap.backing(), header);
        let (depth, units_before) = (extent.depth(), extent.unit_count());
        let units = units_for(extent.len(), FILL_PERCENT_SHRUNK);
        if units <= MERGE_UNITS_MAX && depth > 0 && self.merge(heap, hash, depth, mark) {
            return;
        }
        if units < units_before {
            let mut gathered = Cells::new();
            Extent::at(heap.backing(), header).gather(mark, &mut gathered);
            let fits = extent::refill(heap, header, depth, units, gathered.as_slice(), mark);
            assert!(fits, "what fitted before fits at the same count");
        }
    }

    /// Merges the extent of `hash` with its sibling if both together are small. False when they are not.
    fn merge(&mut self, heap: &mut Heap, hash: u64, depth: u32, mark: Mark) -> bool {
        let prefix = cell_of(hash, depth) & !1;
        let headers = [prefix, prefix + 1].map(|prefix| self.header_of(heap.backing(), bound_of(prefix, depth)));
        let [low, high] = headers.map(|header| Extent::at(heap.backing(), header));
        let len = low.len() + high.len();
        let units = units_for(len, FILL_PERCENT_SHRUNK);
        if low.depth() != high.depth() || units > MERGE_UNITS_MAX {
            return false;
        }
        let mut gathered = Cells::new();
        low.gather(mark, &mut gathered);
        high.gather(mark, &mut gathered);
        extent::destroy(heap, headers[1]);
        let fits = extent::refill(heap, headers[0], depth - 1, units, gathered.as_slice(), mark);
        assert!(fits, "at most half an extent fits an extent");
        self.directory.set_range(heap.backing(), prefix / 2, depth - 1, headers[0]);
        self.at_depth[depth as usize] -= 2;
        self.at_depth[depth as usize - 1] += 1;
        if self.at_depth[self.directory.depth() as usize] == 0 && self.directory.depth() > 0 {
            self.directory = self.directory.halved(heap);
            self.at_depth.pop();
        }
        true
    }

    /// The stretch of hashes around `from`, covered by one extent.
    pub fn stretch(&self, heap: &Heap, from: u64) -> Stretch {
        let header = self.header_of(heap.backing(), from);
        let depth = Extent::at(heap.backing(), header).depth();
        let cell = cell_of(from, depth);
        let next = cell + 1;
        Stretch { header, first: bound_of(cell, depth), next: (next < 1 << depth).then(|| bound_of(next, depth)) }
    }

    /// All entries of a stretch, with the cell each is in.
    pub fn entries_of<'a>(&self, heap: &'a Heap, stretch: Stretch) -> impl Iterator<Item = Found> + use<'a> {
        let lines = heap.backing();
        let extent = Extent::at(lines, stretch.header);
        (0..extent.bucket_count()).flat_map(move |number| {
            let line = extent.bucket_line(number);
            let bucket = Bucket::new(lines.line(line));
            cells(bucket.occupied()).map(move |cell| Found {
                bucket: line,
                cell: CellNumber::new(cell),
                handle: bucket.handle(cell),
            })
        })
    }

    /// The extent of a stretch.
    pub fn extent_of<'a>(&self, heap: &'a Heap, stretch: Stretch) -> Extent<'a> {
        Extent::at(heap.backing(), stretch.header)
    }

    /// All buckets of a stretch.
    pub fn buckets_of<'a>(&self, heap: &'a Heap, stretch: Stretch) -> impl Iterator<Item = Bucket<'a>> + use<'a> {
        Extent::at(heap.backing(), stretch.header).buckets()
    }

    /// A random bucket that is not empty, in a table that is not: a random hash chooses the extent, so each bucket is
    /// about equally likely.
    pub fn random_bucket<'a>(&self, heap: &'a Heap, rng: &mut Rng) -> Bucket<'a> {
        assert!(self.len > 0, "an empty table has no such bucket");
        loop {
            let hash = rng.next_u64();
            let extent = Extent::at(heap.backing(), self.header_of(heap.backing(), hash));
            let bucket = extent.bucket(rng.below(u64::from(extent.bucket_count())) as u32);
            if bucket.len() > 0 {
                return bucket;
            }
        }
    }

    /// A random entry, each about equally likely.
    pub fn random(&self, heap: &Heap, rng: &mut Rng) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        loop {
            let bucket = self.random_bucket(heap, rng);
            let cell = rng.below(u64::from(CELL_COUNT)) as u32;
            // Retrying after an empty cell makes all entries equally likely, however full their buckets are.
            if bucket.occupied() >> cell & 1 != 0 {
                return Some(bucket.handle(cell));
            }
        }
    }

    /// Gives the memory of the first extent back, after `entry` has been called with each of its entries. The table is
    /// being dismantled: hashes below `from` are gone already. Returns where to continue.
    pub fn dismantle(&mut self, heap: &mut Heap, from: u64, mut entry: impl FnMut(u32)) -> Option<u64> {
        let stretch = self.stretch(heap, from);
        self.entries_of(heap, stretch).for_each(|found| entry(found.handle));
        self.len -= u64::from(Extent::at(heap.backing(), stretch.header).len());
        extent::destroy(heap, stretch.header);
        stretch.next
    }

    /// Gives the directory back, after all extents.
    pub fn dismantle_directory(self, heap: &mut Heap) {
        assert_eq!(self.len, 0, "entries would be lost");
        self.directory.destroy(heap);
    }
}

/// What a table needs to change: its memory, and the entries' keys when it splits.
pub struct TableMemory<'a> {
    /// Where tables live.
    pub heap: &'a mut Heap,
    /// Where entries live.
    pub entries: &'a Entries,
    /// The hash of keys.
    pub hasher: &'a KeyHasher,
}

#[inline]
fn bucket_at(heap: &Heap, found: Found) -> Bucket<'_> {
    Bucket::new(heap.backing().line(found.bucket))
}

/// Units that hold this many cells at the fill given.
fn units_for(cells: u32, fill_percent: u32) -> u32 {
    let unit_cells = extent::UNIT_BUCKETS * CELL_COUNT;
    (cells * 100).div_ceil(unit_cells * fill_percent).max(1)
}

const _: () = assert!(CELL_COUNT_MAX < 1 << 22, "the count of an extent's entries has its bits");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::extent::heap;
    use crate::memory::MemoryUse;
    use crate::region::{Bytes, Lines};
    use engine::{Encoding, ExtFields, NewEntry, Type, Value};
    use std::sync::Arc;

    /// While a table grows, its mean fill stays near nine tenths, and most keys are found in their first bucket.
    #[test]
    fn tables_are_full_and_keys_near() {
        let mut rng = Rng::new(1);
        let memory = Arc::new(MemoryUse::default());
        let arena = Arena::reserve(2, &[1 << 30, 2 << 20]).unwrap();
        let mut heap = heap(Lines::new(arena.region(0)), Arc::clone(&memory));
        let mut entries = Entries::new(Bytes::new(arena.region(1)), memory);
        let hasher = KeyHasher::new(&mut rng);
        let mut table = Table::new(&mut heap);
        let (mut fills, mut firsts) = (Vec::new(), Vec::new());
        let count = if cfg!(miri) { 100 } else { 160_000u32 };
        for number in 1..=count {
            let key = number.to_le_bytes();
            let value = Value::Bytes(b"");
            let new = NewEntry {
                kind: Type::String,
                encoding: Encoding::PLAIN,
                value,
                expire_at: None,
                fields: ExtFields::NONE,
            };
            let handle = entries.create(&key, &new, 0);
            let mut memory = TableMemory { heap: &mut heap, entries: &entries, hasher: &hasher };
            table.insert(&mut memory, hasher.hash(&key), handle, false, Mark::default());
            if number >= count / 2 && number.is_multiple_of(count / 20) {
                let (mut capacity, mut first, mut from) = (0, 0, Some(0));
                while let Some(bound) = from {
                    let stretch = table.stretch(&heap, bound);
                    let extent = table.extent_of(&heap, stretch);
                    capacity += extent.capacity();
                    for found in table.entries_of(&heap, stretch) {
                        let hash = hasher.hash(entries.key(found.handle));
                        let (bucket, _) = crate::extent::buckets_of(tag_of(hash), extent.bucket_count());
                        first += u32::from(extent.bucket_line(bucket) == found.bucket);
                    }
                    from = stretch.next;
                }
                fills.push(f64::from(number) / f64::from(capacity));
                firsts.push(f64::from(first) / f64::from(number));
            }
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (fill, first) = (mean(&fills), mean(&firsts));
        assert!(cfg!(miri) || fill > 0.88 && first > 0.85, "fill {fill:.3}, in the first bucket {first:.3}");
    }
}
