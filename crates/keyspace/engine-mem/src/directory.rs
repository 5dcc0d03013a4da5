//! The directory of a table: for each value of the hash's top bits, the header line of the extent that covers it.
//!
//! Cells are 32-bit line numbers, two in an atomic word, in lines of the table region. A directory doubles when an
//! extent as deep as itself splits and halves when none is left; the old lines go back to the allocator at once. A hint
//! that still reads them finds rubbish at worst (region invariants R1, R4), which it checks like everything else.

use crate::arena::PAGE_BYTES;
use crate::extent::{Heap, LINE_CLASS, UNIT_BUCKETS, UNIT_CLASS};
use crate::region::{Line, Lines};
use std::sync::atomic::Ordering::Relaxed;

/// The deepest directory: 2^28 extents, more than the region has room for. So the low half of an extent's border is
/// zero.
pub const DEPTH_MAX: u32 = 28;

/// Cells of a line.
const LINE_CELLS: u32 = 16;
const LINE_CELLS_LOG2: u32 = LINE_CELLS.trailing_zeros();
const PAGE_LINES: u32 = (PAGE_BYTES / size_of::<Line>()) as u32;

/// Where a table's directory is and how many bits it looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    at: u32,
    depth: u32,
}

/// The cell that a hash belongs to.
#[inline]
pub fn cell_of(hash: u64, depth: u32) -> u32 {
    // Two shifts, since shifting by 64 (depth 0) is no shift.
    (hash >> 1 >> (63 - depth)) as u32
}

/// Where the range of a cell begins.
#[inline]
pub fn bound_of(cell: u32, depth: u32) -> u64 {
    u64::from(cell) << 1 << (63 - depth)
}

/// The line of a cell, and its place there.
#[inline]
pub fn place_of(at: u32, cell: u32) -> (u32, u32) {
    (at.wrapping_add(cell / LINE_CELLS), cell % LINE_CELLS)
}

/// Reads a cell of a line.
#[inline]
pub fn read(line: &Line, place: u32) -> u32 {
    (line[place as usize / 2].load(Relaxed) >> (place % 2 * 32)) as u32
}

impl Directory {
    /// A directory of one cell.
    pub fn new(heap: &mut Heap, header: u32) -> Self {
        let directory = Self { at: allocate(heap, 0), depth: 0 };
        directory.set(heap.backing(), 0, header);
        directory
    }

    /// Gives its memory back.
    pub fn destroy(self, heap: &mut Heap) {
        free(heap, self.at, self.depth);
    }

    /// How many bits of the hash it looks at.
    #[inline]
    pub fn depth(self) -> u32 {
        self.depth
    }

    /// Its first line.
    pub fn at(self) -> u32 {
        self.at
    }

    /// How many cells it has.
    pub fn len(self) -> u32 {
        1 << self.depth
    }

    /// The header line in a cell.
    #[inline]
    pub fn get(self, lines: &Lines, cell: u32) -> u32 {
        let (line, place) = place_of(self.at, cell);
        read(lines.line(line), place)
    }

    /// Changes a cell.
    pub fn set(self, lines: &Lines, cell: u32, header: u32) {
        let (line, place) = place_of(self.at, cell);
        let (word, shift) = (&lines.line(line)[place as usize / 2], place % 2 * 32);
        let kept = word.load(Relaxed) & !(u64::from(u32::MAX) << shift);
        word.store(kept | u64::from(header) << shift, Relaxed);
    }

    /// Points all cells below a prefix of `depth` bits to one extent.
    pub fn set_range(self, lines: &Lines, prefix: u32, depth: u32, header: u32) {
        let count = 1 << (self.depth - depth);
        for cell in prefix * count..(prefix + 1) * count {
            self.set(lines, cell, header);
        }
    }

    /// The same extents under one bit more.
    pub fn doubled(self, heap: &mut Heap) -> Self {
        self.copied(heap, self.depth + 1, |cell| cell / 2)
    }

    /// The same extents under one bit less; none of them is as deep as this directory.
    pub fn halved(self, heap: &mut Heap) -> Self {
        self.copied(heap, self.depth - 1, |cell| cell * 2)
    }

    fn copied(self, heap: &mut Heap, depth: u32, source: impl Fn(u32) -> u32) -> Self {
        assert!(depth <= DEPTH_MAX, "more keys with equal hashes than an extent holds");
        let copy = Self { at: allocate(heap, depth), depth };
        for cell in 0..copy.len() {
            copy.set(heap.backing(), cell, self.get(heap.backing(), source(cell)));
        }
        self.destroy(heap);
        copy
    }
}

/// Small directories are slots, bigger ones whole pages.
fn allocate(heap: &mut Heap, depth: u32) -> u32 {
    match line_count(depth) {
        1 => heap.allocate(LINE_CLASS),
        2..=UNIT_BUCKETS => heap.allocate(UNIT_CLASS),
        lines => heap.allocate_run(lines.div_ceil(PAGE_LINES), lines as usize * size_of::<Line>()),
    }
}

fn free(heap: &mut Heap, at: u32, depth: u32) {
    match line_count(depth) {
        1..=UNIT_BUCKETS => heap.free(at),
        lines => heap.free_run(at, lines.div_ceil(PAGE_LINES), lines as usize * size_of::<Line>()),
    }
}

fn line_count(depth: u32) -> u32 {
    1 << depth.saturating_sub(LINE_CELLS_LOG2)
}
