//! Blocks of one span of memory, allocated and freed in constant time.
//!
//! ```text
//! | header | 24 bytes or more ... | header | next | previous | ... | size | header | ...
//! '- a used block ---------------' '- a free one -----------------------' '- its header knows that a free one precedes
//! ```
//!
//! Two-level segregated fit: one list of free blocks per class of sizes, with 32 classes between two powers of two (all
//! multiples of 16 up to 1 KiB), and two levels of bits that say which lists are not empty. Two bit searches find the
//! smallest class that surely fits, and a freed block is joined with its free neighbours at once: nothing is sorted or
//! walked. Before that, the first few blocks of the size's own class are tried. A class that surely fits is the next
//! larger one, so without this step a freed block would not serve a request of the same size: memory grew by a half
//! where values of 10 KiB were overwritten at random.
//! Masmano, Ripoll, Crespo, Real: "TLSF: a New Dynamic Memory Allocator for Real-Time Systems", ECRTS 2004. A block
//! costs 8 bytes and has 32 at least, as in the C library's `malloc`.
//!
//! *Raw* blocks are neither free nor used: their inside has no memory, or is just being populated or given back.
//!
//! L1. Blocks follow each other from the first to the last. The last is raw and is never given away as a whole, so
//!     every other block has a successor.
//! L2. No two free blocks are neighbours. `AFTER_FREE` in a header says that the block before it is free; then the last
//!     8 bytes of that block are its size.
//! L3. Only the owner of the span calls anything here, and only it writes headers; others read the size of a block they
//!     hold.
#![allow(unsafe_code, reason = "this is what allocates")]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Sizes are multiples of this, and allocations are aligned to it.
pub const GRAIN_BYTES: usize = 16;

/// What stands before the bytes of a block.
pub const HEADER_BYTES: usize = 8;

/// A block's least size: it must have room for two links and its size when it is free.
const BLOCK_BYTES_MIN: usize = 32;

/// Free blocks of at least this size count as large.
pub const LARGE_BYTES_MIN: usize = 16 << 10;

const FREE: u64 = 1;
const AFTER_FREE: u64 = 2;
const RAW: u64 = 4;
const FLAGS: u64 = GRAIN_BYTES as u64 - 1;

/// Classes between a power of two and the next, as a power of two.
const STEPS_LOG: u32 = 5;
const STEPS: usize = 1 << STEPS_LOG;

/// Blocks of a size's own class that are looked at for one that fits.
const LOOKS: usize = 8;

/// Blocks below this are in the first row of lists, one for each multiple of [`GRAIN_BYTES`].
const SMALL_BYTES: usize = GRAIN_BYTES << STEPS_LOG;

/// Rows of lists: blocks of up to 2^44 bytes.
const ROWS: usize = 36;

/// Where a block begins: bytes from the beginning of the span. 0 is none, since a span begins with something else.
pub type Place = usize;

const NONE: Place = 0;

/// The words of a span of memory, reached by place.
#[derive(Clone, Copy)]
pub struct Span(NonNull<u8>);

/// The blocks of a span.
pub struct Blocks {
    span: Span,
    /// Where the last block ends.
    end: usize,
    /// A bit for each row with a free block.
    rows: u64,
    /// A bit for each of its lists with one.
    lists: [u32; ROWS],
    heads: [[Place; STEPS]; ROWS],
    /// Bytes of free blocks that are large.
    large_bytes: usize,
    /// The least of that since [`Blocks::take_spare`].
    spare_bytes: usize,
    /// Bytes of used blocks.
    used_bytes: usize,
}

/// Where the list of a size is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Class {
    row: usize,
    step: usize,
}

impl Class {
    /// The list in which a free block of this size is.
    #[inline]
    fn of(size: usize) -> Self {
        if size < SMALL_BYTES {
            return Self { row: 0, step: size / GRAIN_BYTES };
        }
        let log = size.ilog2();
        let row = (log - SMALL_BYTES.ilog2() + 1) as usize;
        Self { row, step: (size >> (log - STEPS_LOG)) & (STEPS - 1) }
    }

    /// The first list whose blocks all have this size at least.
    #[inline]
    fn that_fits(size: usize) -> Self {
        if size < SMALL_BYTES {
            return Self::of(size);
        }
        Self::of(size + (1 << (size.ilog2() - STEPS_LOG)) - 1)
    }
}

/// The size of a block that holds that many bytes.
#[inline]
pub const fn block_bytes(bytes: usize) -> usize {
    let size = (bytes + HEADER_BYTES).next_multiple_of(GRAIN_BYTES);
    if size < BLOCK_BYTES_MIN { BLOCK_BYTES_MIN } else { size }
}

impl Span {
    /// The span that begins here.
    ///
    /// # Safety
    /// Until the last use of it, or of a copy, there is memory where its blocks lie, aligned to [`GRAIN_BYTES`]. Their
    /// headers, and the words of unused blocks, are accessed only as L3 allows.
    pub const unsafe fn new(base: NonNull<u8>) -> Self {
        Self(base)
    }

    /// The size of a block, its header included. Any holder of the block may ask.
    #[inline]
    pub fn size(self, place: Place) -> usize {
        (self.read(place) & !FLAGS) as usize
    }

    /// A word after the header: 0 to 4 of a raw block, 0 to 2 of one that is being freed.
    #[inline]
    pub fn word<'s>(self, place: Place, number: usize) -> &'s AtomicU64 {
        self.at(place + HEADER_BYTES + number * size_of::<u64>())
    }

    #[inline]
    fn read(self, at: usize) -> u64 {
        self.at(at).load(Relaxed)
    }

    #[inline]
    fn write(self, at: usize, word: u64) {
        self.at(at).store(word, Relaxed);
    }

    #[inline]
    fn at<'s>(self, at: usize) -> &'s AtomicU64 {
        // SAFETY: by the contract of `new`. All places come from blocks of the span (L1).
        unsafe { AtomicU64::from_ptr(self.0.as_ptr().add(at).cast()) }
    }
}

impl Blocks {
    /// No blocks yet.
    pub fn new(span: Span) -> Self {
        Self {
            span,
            end: 0,
            rows: 0,
            lists: [0; ROWS],
            heads: [[NONE; STEPS]; ROWS],
            large_bytes: 0,
            spare_bytes: 0,
            used_bytes: 0,
        }
    }

    /// Makes one raw block of the first `bytes` of the span, and gives it. Called once. Writes its header.
    pub fn begin(&mut self, bytes: usize) -> Place {
        let first = GRAIN_BYTES + HEADER_BYTES;
        let size = (bytes - first) / GRAIN_BYTES * GRAIN_BYTES;
        self.write(first, size as u64 | RAW);
        self.end = first + size;
        first
    }

    /// Whether this is the last block, which has to stay.
    #[inline]
    pub fn is_last(&self, place: Place) -> bool {
        place + self.size(place) == self.end
    }

    /// The span.
    #[inline]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Bytes of free blocks that are large.
    #[inline]
    pub fn large_bytes(&self) -> usize {
        self.large_bytes
    }

    /// Bytes of used blocks, their headers included.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// How many bytes of large free blocks have not been needed since the last call.
    pub fn take_spare(&mut self) -> usize {
        std::mem::replace(&mut self.spare_bytes, self.large_bytes)
    }

    /// Allocates a block of [`block_bytes`]; `None` when no free one fits.
    #[inline]
    pub fn allocate(&mut self, size: usize) -> Option<Place> {
        let wanted = Class::that_fits(size);
        if wanted.row >= ROWS {
            return None;
        }
        let own = Class::of(size);
        if own != wanted
            && let Some(place) = self.look_in(own, size)
        {
            let whole = self.size(place);
            self.unlink(place, whole, own);
            self.use_part(place, whole, size);
            return Some(place);
        }
        let lists = self.lists[wanted.row] & (u32::MAX << wanted.step);
        let class = if lists != 0 {
            Class { row: wanted.row, step: lists.trailing_zeros() as usize }
        } else {
            let rows = self.rows & (u64::MAX << wanted.row << 1);
            if rows == 0 {
                return None;
            }
            let row = rows.trailing_zeros() as usize;
            Class { row, step: self.lists[row].trailing_zeros() as usize }
        };
        let place = self.heads[class.row][class.step];
        let whole = self.size(place);
        self.unlink(place, whole, class);
        self.use_part(place, whole, size);
        Some(place)
    }

    /// The first block that fits of some that are in this list.
    #[inline]
    fn look_in(&self, Class { row, step }: Class, size: usize) -> Option<Place> {
        let mut place = self.heads[row][step];
        for _ in 0..LOOKS {
            if place == NONE {
                return None;
            }
            if self.size(place) >= size {
                return Some(place);
            }
            place = self.word(place, 0).load(Relaxed) as Place;
        }
        None
    }

    /// Frees a used or a raw block, and joins it with free neighbours.
    #[inline]
    pub fn free(&mut self, place: Place) {
        let header = self.read(place);
        debug_assert_eq!(header & FREE, 0, "freed twice");
        let (mut place, mut size) = (place, (header & !FLAGS) as usize);
        if header & RAW == 0 {
            self.used_bytes -= size;
        }
        let next = place + size;
        let behind = self.read(next);
        if behind & FREE != 0 {
            let more = (behind & !FLAGS) as usize;
            self.unlink(next, more, Class::of(more));
            size += more;
        }
        if header & AFTER_FREE != 0 {
            let less = self.read(place - HEADER_BYTES) as usize;
            place -= less;
            self.unlink(place, less, Class::of(less));
            size += less;
        }
        self.link(place, size);
        let next = place + size;
        self.write(next, self.read(next) | AFTER_FREE);
    }

    /// Changes a used block's size where it lies; false when what follows leaves no room.
    pub fn resize(&mut self, place: Place, size: usize) -> bool {
        let header = self.read(place);
        let mut whole = (header & !FLAGS) as usize;
        if size > whole {
            let next = place + whole;
            let behind = self.read(next);
            let more = (behind & !FLAGS) as usize;
            if behind & FREE == 0 || whole + more < size {
                return false;
            }
            self.unlink(next, more, Class::of(more));
            self.used_bytes -= whole;
            whole += more;
            self.write(place, whole as u64 | header & AFTER_FREE);
            self.use_part(place, whole, size);
        } else if whole - size >= BLOCK_BYTES_MIN {
            self.write(place, size as u64 | header & AFTER_FREE);
            let rest = place + size;
            self.write(rest, (whole - size) as u64);
            self.free(rest);
        }
        true
    }

    /// Makes a raw block of the end of the largest large free block; `None` without one. It has at most `bytes_max`,
    /// which must be at least the size of a large block.
    pub fn take_raw(&mut self, bytes_max: usize) -> Option<Place> {
        debug_assert!(bytes_max >= LARGE_BYTES_MIN);
        let row = (u64::BITS - 1).checked_sub(self.rows.leading_zeros())? as usize;
        let step = (u32::BITS - 1 - self.lists[row].leading_zeros()) as usize;
        let first = self.heads[row][step];
        let whole = self.size(first);
        if whole < LARGE_BYTES_MIN {
            return None;
        }
        self.unlink(first, whole, Class { row, step });
        let bytes_max = bytes_max / GRAIN_BYTES * GRAIN_BYTES;
        let rest = if whole >= bytes_max + BLOCK_BYTES_MIN { whole - bytes_max } else { 0 };
        let place = first + rest;
        self.write(place, (whole - rest) as u64 | RAW);
        if rest > 0 {
            self.link(first, rest);
            self.write(place, (whole - rest) as u64 | RAW | AFTER_FREE);
        }
        let next = first + whole;
        self.write(next, self.read(next) & !AFTER_FREE);
        self.spare_bytes = self.spare_bytes.min(self.large_bytes);
        Some(place)
    }

    /// The block after this one, which is not the last.
    #[inline]
    pub fn behind(&self, place: Place) -> Place {
        debug_assert!(!self.is_last(place));
        place + self.size(place)
    }

    /// Whether a block is free.
    #[inline]
    pub fn is_free(&self, place: Place) -> bool {
        self.read(place) & FREE != 0
    }

    /// Extends a raw block over the next one, which is free or raw.
    pub fn absorb(&mut self, place: Place) {
        let (header, next) = (self.read(place), self.behind(place));
        let behind = self.read(next);
        debug_assert!(header & RAW != 0 && behind & (FREE | RAW) != 0);
        let more = (behind & !FLAGS) as usize;
        if behind & FREE != 0 {
            self.unlink(next, more, Class::of(more));
            self.spare_bytes = self.spare_bytes.min(self.large_bytes);
            let after = next + more;
            self.write(after, self.read(after) & !AFTER_FREE);
        }
        self.write(place, header + more as u64);
    }

    /// Parts a raw block in two, of which the first has `size` bytes, and gives the second.
    ///
    /// # Panics
    /// If `size` is no multiple of [`GRAIN_BYTES`], or one of the two would be below the least size.
    pub fn part(&mut self, place: Place, size: usize) -> Place {
        let header = self.read(place);
        let whole = (header & !FLAGS) as usize;
        assert!(size.is_multiple_of(GRAIN_BYTES) && size >= BLOCK_BYTES_MIN && whole - size >= BLOCK_BYTES_MIN);
        self.write(place + size, (whole - size) as u64 | RAW);
        self.write(place, size as u64 | header & FLAGS);
        place + size
    }

    /// Whether a block is raw.
    #[inline]
    pub fn is_raw(&self, place: Place) -> bool {
        self.read(place) & RAW != 0
    }

    /// Uses the first `size` bytes of a block that is in no list, and frees the rest if it is enough for a block.
    #[inline]
    fn use_part(&mut self, place: Place, whole: usize, size: usize) {
        let after_free = self.read(place) & AFTER_FREE;
        if whole - size >= BLOCK_BYTES_MIN {
            self.used_bytes += size;
            self.write(place, size as u64 | after_free);
            // What follows the whole is not free (L2), and its header already says whether a free block precedes it.
            self.link(place + size, whole - size);
            let next = place + whole;
            self.write(next, self.read(next) | AFTER_FREE);
        } else {
            self.used_bytes += whole;
            self.write(place, whole as u64 | after_free);
            let next = place + whole;
            self.write(next, self.read(next) & !AFTER_FREE);
        }
        self.spare_bytes = self.spare_bytes.min(self.large_bytes);
    }

    /// Writes the words of a free block, whose neighbours are not free, and lists it.
    #[inline]
    fn link(&mut self, place: Place, size: usize) {
        self.write(place, size as u64 | FREE);
        self.write(place + size - HEADER_BYTES, size as u64);
        let Class { row, step } = Class::of(size);
        let head = std::mem::replace(&mut self.heads[row][step], place);
        self.word(place, 0).store(head as u64, Relaxed);
        self.word(place, 1).store(NONE as u64, Relaxed);
        if head != NONE {
            self.word(head, 1).store(place as u64, Relaxed);
        }
        self.rows |= 1 << row;
        self.lists[row] |= 1 << step;
        if size >= LARGE_BYTES_MIN {
            self.large_bytes += size;
        }
    }

    /// Takes a free block out of its list.
    #[inline]
    fn unlink(&mut self, place: Place, size: usize, Class { row, step }: Class) {
        let next = self.word(place, 0).load(Relaxed) as Place;
        let previous = self.word(place, 1).load(Relaxed) as Place;
        if next != NONE {
            self.word(next, 1).store(previous as u64, Relaxed);
        }
        if previous != NONE {
            self.word(previous, 0).store(next as u64, Relaxed);
        } else {
            self.heads[row][step] = next;
            if next == NONE {
                self.lists[row] &= !(1 << step);
                if self.lists[row] == 0 {
                    self.rows &= !(1 << row);
                }
            }
        }
        if size >= LARGE_BYTES_MIN {
            self.large_bytes -= size;
        }
    }

    #[inline]
    fn read(&self, at: usize) -> u64 {
        self.span.read(at)
    }

    #[inline]
    fn write(&mut self, at: usize, word: u64) {
        self.span.write(at, word);
    }

    /// A block's size, its header included.
    #[inline]
    pub fn size(&self, place: Place) -> usize {
        self.span.size(place)
    }

    #[inline]
    fn word(&self, place: Place, number: usize) -> &AtomicU64 {
        self.span.word(place, number)
    }
}

#[cfg(test)]
impl Blocks {
    /// Checks L1, L2, the lists and the figures; gives the sizes of used blocks by place.
    pub fn check(&self, first: Place) -> std::collections::BTreeMap<Place, usize> {
        let (mut place, mut was_free, mut used, mut free) = (first, false, std::collections::BTreeMap::new(), 0);
        let mut large = 0;
        while place < self.end {
            let (header, size) = (self.read(place), self.size(place));
            assert_eq!(header & AFTER_FREE != 0, was_free, "at {place}");
            was_free = header & FREE != 0;
            if was_free {
                assert_eq!(self.read(place + size - HEADER_BYTES) as usize, size);
                assert_eq!(header & AFTER_FREE, 0, "two free ones at {place}");
                free += 1;
                large += if size >= LARGE_BYTES_MIN { size } else { 0 };
            } else if header & RAW == 0 {
                used.insert(place, size);
            }
            place += size;
        }
        assert!(!was_free, "the last block is raw");
        let mut listed = 0;
        for row in 0..ROWS {
            assert_eq!(self.rows >> row & 1 != 0, self.lists[row] != 0);
            for step in 0..STEPS {
                assert_eq!(self.lists[row] >> step & 1 != 0, self.heads[row][step] != NONE);
                let (mut place, mut previous) = (self.heads[row][step], NONE);
                while place != NONE {
                    assert_eq!(Class::of(self.size(place)), Class { row, step });
                    assert_eq!(self.word(place, 1).load(Relaxed) as Place, previous);
                    (previous, place) = (place, self.word(place, 0).load(Relaxed) as Place);
                    listed += 1;
                }
            }
        }
        assert_eq!((listed, large), (free, self.large_bytes));
        assert_eq!(used.values().sum::<usize>(), self.used_bytes);
        assert!(self.spare_bytes <= self.large_bytes);
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: usize = if cfg!(miri) { 64 << 10 } else { 1 << 20 };

    /// Memory for a span, aligned.
    fn memory() -> Vec<u128> {
        vec![0; BYTES / size_of::<u128>()]
    }

    /// Blocks in it, of which all but the last page is free.
    fn begun(memory: &mut [u128]) -> (Blocks, Place) {
        let base = NonNull::new(memory.as_mut_ptr().cast()).unwrap();
        // SAFETY: the memory outlives the blocks in all tests below, and is used by them alone.
        let mut blocks = Blocks::new(unsafe { Span::new(base) });
        let first = blocks.begin(BYTES);
        blocks.part(first, BYTES - 4096);
        blocks.free(first);
        (blocks, first)
    }

    #[test]
    fn classes_fit() {
        for size in (BLOCK_BYTES_MIN..200_000).step_by(GRAIN_BYTES) {
            let class = Class::that_fits(size);
            // The least size of that class.
            let least = match class.row {
                0 => class.step * GRAIN_BYTES,
                row => (STEPS + class.step) << (row + 3),
            };
            assert!(least >= size && Class::of(least) == class, "{size}: {least}");
            assert!(least - size <= size / 32, "{size}: {least}");
        }
    }

    #[test]
    fn a_block_costs_its_header() {
        assert_eq!([0, 24, 25, 40, 41].map(block_bytes), [32, 32, 48, 48, 64]);
    }

    /// All that was freed is one block again, whatever the order.
    #[test]
    fn neighbours_are_joined() {
        let mut memory = memory();
        let (mut blocks, first) = begun(&mut memory);
        let whole = blocks.large_bytes();
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let places = [64, 128, 4096].map(|bytes| blocks.allocate(bytes).unwrap());
            assert_eq!(blocks.check(first).len(), 3);
            order.iter().for_each(|at| blocks.free(places[*at]));
            assert!(blocks.check(first).is_empty());
            assert_eq!(blocks.large_bytes(), whole);
        }
    }

    /// What is given back is the end of the largest block, no more than asked for, and joins it again.
    #[test]
    fn the_largest_becomes_raw() {
        let mut memory = memory();
        let (mut blocks, first) = begun(&mut memory);
        let whole = blocks.large_bytes();
        assert_eq!(blocks.take_spare(), 0);
        let used = blocks.allocate(64).unwrap();
        let raw = blocks.take_raw(LARGE_BYTES_MIN).unwrap();
        assert!(blocks.is_raw(raw) && !blocks.is_last(raw) && !blocks.is_raw(used));
        assert_eq!(blocks.size(raw), LARGE_BYTES_MIN);
        assert_eq!(blocks.take_spare(), whole - 64 - LARGE_BYTES_MIN);
        blocks.check(first);
        let all = blocks.take_raw(usize::MAX / 2).unwrap();
        assert_eq!(blocks.take_raw(usize::MAX / 2), None);
        blocks.check(first);
        [all, raw, used].into_iter().for_each(|place| blocks.free(place));
        assert_eq!(blocks.large_bytes(), whole);
        blocks.check(first);
    }

    /// Values of similar length, overwritten at random (the new one allocated before the old one is freed) with a small
    /// block each, take little more than their bytes: an eighth or two of the span stay free, and no allocation fails.
    #[test]
    fn what_is_overwritten_is_used_again() {
        // The span that Miri has time for is too small for the others.
        let all = [(1_500, 1, 7), (10_240, 1, 7), (10_240, 200, 6), (20_480, 1, 7), (3_000, 500, 6)];
        for &(bytes, spread, eighths) in if cfg!(miri) { &all[..1] } else { &all } {
            let mut memory = memory();
            let (mut blocks, first) = begun(&mut memory);
            // Xorshift, for this crate depends on no other.
            let mut chance = bytes;
            let mut random = move || {
                chance ^= chance << 13;
                chance ^= chance >> 7;
                chance ^= chance << 17;
                chance
            };
            let mut new = |blocks: &mut Blocks| {
                let value = blocks.allocate(block_bytes(bytes + random() % spread))?;
                Some((value, blocks.allocate(block_bytes(40))?, random()))
            };
            // One less, since the new one is there before the old one goes.
            let count = (BYTES - 4096) * eighths / 8 / (bytes + spread + 72) - 1;
            let mut held: Vec<_> = (0..count).map(|_| new(&mut blocks).expect("there is room")).collect();
            for round in 0..count * if cfg!(miri) { 5 } else { 100 } {
                let (value, small, chance) = new(&mut blocks)
                    .unwrap_or_else(|| panic!("no room for {bytes} to {spread} more bytes in round {round}"));
                let at = chance % count;
                let (old, old_small, _) = std::mem::replace(&mut held[at], (value, small, chance));
                blocks.free(old);
                blocks.free(old_small);
            }
            blocks.check(first);
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Allocate(usize),
        Free(usize),
        Resize(usize, usize),
        Give(usize),
        TakeBack,
    }

    fn step() -> impl Strategy<Value = Step> {
        let bytes = || prop_oneof![4 => 0..200_usize, 2 => 0..3000_usize, 1 => 0..40_000_usize];
        prop_oneof![
            5 => bytes().prop_map(Step::Allocate),
            4 => any::<usize>().prop_map(Step::Free),
            3 => (any::<usize>(), bytes()).prop_map(|(which, bytes)| Step::Resize(which, bytes)),
            1 => (LARGE_BYTES_MIN..100_000_usize).prop_map(Step::Give),
            1 => Just(Step::TakeBack),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 2 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Whatever is done, what one holds keeps its bytes, and all rules of the blocks hold.
        #[test]
        fn blocks_keep_what_is_in_them(
            steps in proptest::collection::vec(step(), 1..if cfg!(miri) { 40 } else { 400 })
        ) {
            let mut memory = memory();
            let (mut blocks, first) = begun(&mut memory);
            let whole = blocks.large_bytes();
            let mut held: Vec<(Place, usize, u64)> = Vec::new();
            let mut raws = Vec::new();
            let fill = |blocks: &Blocks, place, bytes: usize, stamp| {
                (0..bytes / 8).for_each(|n| blocks.word(place, n).store(stamp, Relaxed))
            };
            for (stamp, step) in (1..).zip(&steps) {
                match step.clone() {
                    Step::Allocate(bytes) => if let Some(place) = blocks.allocate(block_bytes(bytes)) {
                        prop_assert!(blocks.size(place) >= bytes + HEADER_BYTES);
                        fill(&blocks, place, bytes, stamp);
                        held.push((place, bytes, stamp));
                    },
                    Step::Free(which) if !held.is_empty() => {
                        let (place, ..) = held.swap_remove(which % held.len());
                        blocks.free(place);
                    }
                    Step::Resize(which, bytes) if !held.is_empty() => {
                        let index = which % held.len();
                        let (place, before, was) = held[index];
                        if blocks.resize(place, block_bytes(bytes)) {
                            let kept = before.min(bytes) / 8;
                            prop_assert!((0..kept).all(|n| blocks.word(place, n).load(Relaxed) == was));
                            fill(&blocks, place, bytes, stamp);
                            held[index] = (place, bytes, stamp);
                        }
                    }
                    Step::Give(bytes) => raws.extend(blocks.take_raw(bytes)),
                    Step::TakeBack => raws.drain(..).for_each(|raw| blocks.free(raw)),
                    Step::Free(_) | Step::Resize(..) => {}
                }
                let used = blocks.check(first);
                prop_assert_eq!(used.len(), held.len());
                for (place, bytes, stamp) in &held {
                    prop_assert!(used[place] >= bytes + HEADER_BYTES);
                    prop_assert!((0..bytes / 8).all(|n| blocks.word(*place, n).load(Relaxed) == *stamp));
                }
            }
            held.into_iter().map(|(place, ..)| place).chain(raws).for_each(|place| blocks.free(place));
            blocks.check(first);
            prop_assert_eq!((blocks.large_bytes(), blocks.used_bytes()), (whole, 0));
        }
    }
}
