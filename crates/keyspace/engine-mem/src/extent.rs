//! An extent: the buckets of a contiguous range of hashes, grown in units of eight buckets.
//!
//! ```text
//! header line:  | info, unit 1 | unit 2, unit 3 | ... | unit 14, unit 15 |   (32-bit halves of eight words)
//! unit:         8 buckets = 512 bytes
//!
//! info: units (4 bits) | depth (6 bits) | entries (22 bits)
//! ```
//!
//! The two buckets a key may be in follow from its tag and the bucket count alone, so an extent grows or shrinks by a
//! unit without reading a key: gather the cells, change the count, place them again. Only a split reads keys, for the
//! hash bit that decides. Since all units are equal and reached through the header, growing copies no memory to a
//! bigger place and leaves no hole: table memory is what the fullest extents need, at every size.
//!
//! X1. A cell lies in one of the two buckets of its tag, for the present bucket count.
//! X2. Units listed in the header belong to this extent alone; lanes after the count are undefined.

use crate::bucket::{Bucket, CELL_COUNT, Mark, cells};
use crate::memory::{MemoryKind, MemoryUse};
use crate::pages::{Backing, Pages};
use crate::region::{Line, Lines};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Buckets of a unit.
pub const UNIT_BUCKETS: u32 = 8;

/// Units of the largest extent.
pub const UNIT_COUNT_MAX: u32 = 15;

/// Cells of the largest extent.
pub const CELL_COUNT_MAX: usize = (UNIT_COUNT_MAX * UNIT_BUCKETS * CELL_COUNT) as usize;

const UNITS_BITS: u32 = 4;
const DEPTH_BITS: u32 = 6;
const _: () = assert!(UNIT_COUNT_MAX < 1 << UNITS_BITS && UNIT_COUNT_MAX < 16);

/// Slot classes of table memory, in lines.
pub static TABLE_SLOTS: [u16; 2] = [1, UNIT_BUCKETS as u16];
/// The class of a single line: headers, small directories.
pub const LINE_CLASS: u8 = 0;
/// The class of units.
pub const UNIT_CLASS: u8 = 1;

/// A free piece of table memory has this in the low half of its first word. Neither a handle (no entry starts at the
/// last granule), nor the number of a line (the region is smaller), nor an info half (its depth is at most 32) equals
/// it.
const FREE: u64 = u32::MAX as u64;

/// Table memory of a shard.
pub type Heap = Pages<Lines>;

/// Table memory on a region.
pub fn heap(region: Lines, memory: Arc<MemoryUse>) -> Heap {
    Pages::new(region, &TABLE_SLOTS, memory, MemoryKind::Table)
}

impl Backing for Lines {
    const GRANULE_BYTES: usize = size_of::<Line>();

    fn commit(&mut self, bytes: usize) {
        Lines::commit(self, bytes);
    }

    fn discard(&mut self, start: usize, length: usize) {
        Lines::discard(self, start, length);
    }

    fn filled(&mut self, page: u32) {
        self.pages().filled(page as usize);
    }

    fn opened(&mut self, page: u32) {
        self.pages().opened(page as usize);
    }

    fn mark_free(&mut self, handle: u32, link: u16) {
        self.line(handle)[0].store(FREE | u64::from(link) << 32, Relaxed);
    }

    fn free_link(&self, handle: u32) -> Option<u16> {
        let word = self.line(handle)[0].load(Relaxed);
        (word & FREE == FREE).then_some((word >> 32) as u16)
    }
}

/// The two buckets of a tag among `count`, always different.
#[inline]
pub fn buckets_of(tag: u16, count: u32) -> (u32, u32) {
    (first_bucket_of(tag, count), second_bucket_of(tag, count))
}

/// The bucket where a key is looked for first. Nothing overflows: there are at most [`UNIT_COUNT_MAX`] units.
#[inline]
pub fn first_bucket_of(tag: u16, count: u32) -> u32 {
    u32::from(tag).wrapping_mul(count) >> 16
}

/// The bucket for keys that find no room in the first.
#[inline]
pub fn second_bucket_of(tag: u16, count: u32) -> u32 {
    // Fibonacci hashing: neighbouring tags, which share their first bucket, spread evenly over the others.
    let mixed = u32::from(tag).wrapping_mul(0x9E37_79B1) >> 16;
    let second = mixed.wrapping_mul(count.wrapping_sub(1)) >> 16;
    second.wrapping_add(u32::from(second >= first_bucket_of(tag, count)))
}

/// The half of a header line that holds unit `unit` (from 0): half 0 is the info.
#[inline]
fn lane(header: &Line, lane: u32) -> u32 {
    (header[lane as usize / 2].load(Relaxed) >> (lane % 2 * 32)) as u32
}

/// What a header line says; for readers without the lock it may be stale or rubbish.
#[inline]
pub fn bucket_count(header: &Line) -> u32 {
    (lane(header, 0) & ((1 << UNITS_BITS) - 1)) * UNIT_BUCKETS
}

/// The line of a bucket, by what the header line says.
#[inline]
pub fn bucket_line(header: &Line, bucket: u32) -> u32 {
    lane(header, 1 + bucket / UNIT_BUCKETS).wrapping_add(bucket % UNIT_BUCKETS)
}

/// One extent, in place.
#[derive(Clone, Copy)]
pub struct Extent<'a> {
    lines: &'a Lines,
    header: &'a Line,
}

impl<'a> Extent<'a> {
    /// The extent whose header is this line.
    #[inline]
    pub fn at(lines: &'a Lines, header: u32) -> Self {
        Self { lines, header: lines.line(header) }
    }

    #[inline]
    fn info(self) -> u32 {
        lane(self.header, 0)
    }

    fn set_lane(self, lane: u32, value: u32) {
        let (word, shift) = (&self.header[lane as usize / 2], lane % 2 * 32);
        let kept = word.load(Relaxed) & !(u64::from(u32::MAX) << shift);
        word.store(kept | u64::from(value) << shift, Relaxed);
    }

    fn set_info(self, units: u32, depth: u32, len: u32) {
        self.set_lane(0, units | depth << UNITS_BITS | len << (UNITS_BITS + DEPTH_BITS));
    }

    /// Units in use.
    #[inline]
    pub fn unit_count(self) -> u32 {
        self.info() & ((1 << UNITS_BITS) - 1)
    }

    /// Hash bits that all its keys have in common.
    pub fn depth(self) -> u32 {
        self.info() >> UNITS_BITS & ((1 << DEPTH_BITS) - 1)
    }

    /// Entries in it.
    #[inline]
    pub fn len(self) -> u32 {
        self.info() >> (UNITS_BITS + DEPTH_BITS)
    }

    /// Changes the number of entries.
    #[inline]
    pub fn set_len(self, len: u32) {
        self.set_info(self.unit_count(), self.depth(), len);
    }

    /// Cells, occupied or not.
    #[inline]
    pub fn capacity(self) -> u32 {
        self.unit_count() * UNIT_BUCKETS * CELL_COUNT
    }

    /// Buckets.
    #[inline]
    pub fn bucket_count(self) -> u32 {
        self.unit_count() * UNIT_BUCKETS
    }

    /// The line of a bucket.
    #[inline]
    pub fn bucket_line(self, bucket: u32) -> u32 {
        bucket_line(self.header, bucket)
    }

    /// A bucket.
    #[inline]
    pub fn bucket(self, bucket: u32) -> Bucket<'a> {
        Bucket::new(self.lines.line(self.bucket_line(bucket)))
    }

    /// All buckets.
    pub fn buckets(self) -> impl Iterator<Item = Bucket<'a>> {
        (0..self.bucket_count()).map(move |bucket| self.bucket(bucket))
    }

    /// The place of a unit in table memory.
    pub fn unit(self, unit: u32) -> u32 {
        lane(self.header, 1 + unit)
    }

    fn set_unit(self, unit: u32, line: u32) {
        self.set_lane(1 + unit, line);
    }

    /// Copies a unit to another place and uses that from now on.
    pub fn move_unit(self, unit: u32, to: u32) {
        let from = self.unit(unit);
        for line in 0..UNIT_BUCKETS {
            for (word, copy) in self.lines.line(from + line).iter().zip(self.lines.line(to + line)) {
                copy.store(word.load(Relaxed), Relaxed);
            }
        }
        self.set_unit(unit, to);
    }

    /// Puts a new cell into the first of its buckets, or the second, moving another cell aside if both are full. False
    /// when there is no room.
    ///
    /// The first bucket is preferred as long as it has a vacant cell: 89 % of the keys are then found with one bucket,
    /// where choosing the emptier one gives 57 %, at the same fill (0.902 against 0.906).
    #[inline]
    pub fn place(self, tag: u16, handle: u32, saved: bool, mark: Mark) -> bool {
        let first = self.bucket(first_bucket_of(tag, self.bucket_count()));
        if let Some(cell) = first.vacant() {
            first.fill(cell, tag, handle, saved, mark);
            return true;
        }
        self.place_beside(first, tag, handle, saved, mark)
    }

    /// The same when the first bucket is full.
    #[inline(never)]
    fn place_beside(self, first: Bucket<'a>, tag: u16, handle: u32, saved: bool, mark: Mark) -> bool {
        let second = self.bucket(second_bucket_of(tag, self.bucket_count()));
        let vacant = second.vacant().map(|cell| (second, cell));
        let displaced = || [first, second].into_iter().find_map(|bucket| Some((bucket, self.displace(bucket, mark)?)));
        let Some((bucket, cell)) = vacant.or_else(displaced) else { return false };
        bucket.fill(cell, tag, handle, saved, mark);
        true
    }

    /// Makes room in a full bucket by moving one of its cells to that cell's other bucket.
    fn displace(self, bucket: Bucket<'a>, mark: Mark) -> Option<u32> {
        (0..CELL_COUNT).find(|&cell| {
            let tag = bucket.tag(cell);
            let (first, second) = buckets_of(tag, self.bucket_count());
            let other = self.bucket(first);
            // Of its two buckets, the one that is not this one has the vacant cell, if any has: this one is full.
            let target = if other.vacant().is_some() { other } else { self.bucket(second) };
            let Some(vacant) = target.vacant() else { return false };
            target.fill(vacant, tag, bucket.handle(cell), bucket.is_saved(cell, mark), mark);
            bucket.vacate(cell);
            true
        })
    }

    /// Takes all cells out as plain values; the buckets keep theirs until [`refill`].
    pub fn gather(self, mark: Mark, cells_out: &mut Cells) {
        for bucket in self.buckets() {
            for cell in cells(bucket.occupied()) {
                cells_out.push(Cell {
                    handle: bucket.handle(cell),
                    tag: bucket.tag(cell),
                    saved: bucket.is_saved(cell, mark),
                });
            }
        }
    }
}

/// A cell outside of any bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The entry.
    pub handle: u32,
    /// The tag of its key.
    pub tag: u16,
    /// Whether the running checkpoint has taken it.
    pub saved: bool,
}

/// The cells of an extent while it is rebuilt.
pub struct Cells {
    cells: [Cell; CELL_COUNT_MAX],
    len: usize,
}

impl Cells {
    /// None yet.
    pub fn new() -> Self {
        Self { cells: [Cell::default(); CELL_COUNT_MAX], len: 0 }
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, cell: Cell) {
        self.cells[self.len] = cell;
        self.len += 1;
    }

    /// Those added.
    pub fn as_slice(&self) -> &[Cell] {
        &self.cells[..self.len]
    }
}

/// Makes a header for an extent without units or entries.
pub fn create(heap: &mut Heap, depth: u32) -> u32 {
    let at = heap.allocate(LINE_CLASS);
    let extent = Extent::at(heap.backing(), at);
    extent.set_info(0, depth, 0);
    at
}

/// Gives all memory of an extent back; its entries must have been dealt with.
pub fn destroy(heap: &mut Heap, at: u32) {
    resize(heap, at, 0);
    heap.free(at);
}

/// Gives the extent exactly these cells, with at least `units` units. False, with the extent in no usable state, when
/// they do not fit the largest extent.
#[must_use]
pub fn refill(heap: &mut Heap, at: u32, depth: u32, units: u32, cells: &[Cell], mark: Mark) -> bool {
    let least = (cells.len() as u32).div_ceil(UNIT_BUCKETS * CELL_COUNT);
    for units in units.max(least).max(1)..=UNIT_COUNT_MAX {
        resize(heap, at, units);
        let extent = Extent::at(heap.backing(), at);
        extent.set_info(units, depth, cells.len() as u32);
        extent.buckets().for_each(Bucket::reset);
        if cells.iter().all(|cell| extent.place(cell.tag, cell.handle, cell.saved, mark)) {
            return true;
        }
    }
    false
}

/// Takes a unit. The first ones of a shard lie in the memory that its headers have begun, so that a small table is one
/// line of the system's memory and not two.
fn allocate_unit(heap: &mut Heap) -> u32 {
    let beside_headers = match heap.is_unused(UNIT_CLASS) {
        true => heap.allocate_resident(LINE_CLASS, UNIT_BUCKETS as u16),
        false => None,
    };
    beside_headers.unwrap_or_else(|| heap.allocate(UNIT_CLASS))
}

/// Frees a unit; one that is next to headers becomes space for headers.
fn free_unit(heap: &mut Heap, unit: u32) {
    match heap.class(unit) {
        LINE_CLASS => (unit..unit + UNIT_BUCKETS).for_each(|line| heap.free(line)),
        _ => heap.free(unit),
    }
}

/// Takes or gives back units at the end. Contents of new ones are undefined.
fn resize(heap: &mut Heap, at: u32, units: u32) {
    let mut count = Extent::at(heap.backing(), at).unit_count();
    while count < units {
        let unit = allocate_unit(heap);
        Extent::at(heap.backing(), at).set_unit(count, unit);
        count += 1;
    }
    while count > units {
        count -= 1;
        let unit = Extent::at(heap.backing(), at).unit(count);
        free_unit(heap, unit);
    }
    let extent = Extent::at(heap.backing(), at);
    extent.set_info(units, extent.depth(), extent.len());
}
