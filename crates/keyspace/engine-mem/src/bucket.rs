//! A bucket of the table: one cache line with ten cells.
//!
//! ```text
//! word  0      1      2      3      4      5            6            7
//!      |h0 h1 |h2 h3 |h4 h5 |h6 h7 |h8 h9 |t0 t1 t2 t3 |t4 t5 t6 t7 |t8 t9 | meta |
//!
//! meta: occupied (10 bits) | saved (10 bits) | mark (12 bits)
//! ```
//!
//! A cell is a handle (h, 32 bits) and a tag (t, the low 16 bits of its key's hash), so a look-up compares tags four at
//! a time and touches an entry only when its tag fits: one in some hundred look-ups touches a wrong one. Handle and tag
//! of a cell that is not occupied are undefined.
//!
//! *Saved* bits mark the entries that a running checkpoint has already taken; they count only while `mark` is the
//! checkpoint's own, so that starting one touches no bucket.
//!
//! B1. Words change under the shard's lock only. Prefetch hints read them without it and treat what they see as a hint,
//!     which is why all accesses are atomic and relaxed.

use crate::lanes::equal_lanes;
use crate::region::Line;
use std::sync::atomic::Ordering::Relaxed;

/// Cells of a bucket.
pub const CELL_COUNT: u32 = 10;

const CELLS_MASK: u32 = (1 << CELL_COUNT) - 1;
const SAVED_SHIFT: u32 = CELL_COUNT;
const MARK_SHIFT: u32 = 2 * CELL_COUNT;
const META_WORD: usize = 7;
const TAG_WORD: usize = 5;

const _: () = assert!(MARK_SHIFT + Mark::BITS == u32::BITS);

/// The number of a checkpoint's pass over a shard, in as many bits as a bucket keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(pub u16);

impl Mark {
    /// Bits of a mark.
    pub const BITS: u32 = 12;
    /// How many marks there are before they repeat.
    pub const COUNT: u32 = 1 << Self::BITS;

    /// The mark of the next checkpoint.
    pub fn next(self) -> Self {
        Self((self.0 + 1) % Self::COUNT as u16)
    }
}

/// The low 16 bits of a hash: what a cell knows of its key, and what places it inside its extent.
#[inline]
pub fn tag_of(hash: u64) -> u16 {
    hash as u16
}

/// One bucket, in place.
#[derive(Clone, Copy)]
pub struct Bucket<'a>(&'a Line);

impl<'a> Bucket<'a> {
    /// The bucket in this line.
    #[inline]
    pub fn new(line: &'a Line) -> Self {
        Self(line)
    }

    /// Cells that are occupied and carry the tag, as bits.
    #[inline]
    pub fn matches(self, tag: u16) -> u32 {
        let last = self.0[META_WORD].load(Relaxed);
        let tags = [self.0[TAG_WORD].load(Relaxed), self.0[TAG_WORD + 1].load(Relaxed), last];
        // The lanes after the tenth are not occupied cells: the mask of cells removes both.
        equal_lanes(tags, tag) & (last >> 32) as u32 & CELLS_MASK
    }

    #[inline]
    fn meta(self) -> u32 {
        (self.0[META_WORD].load(Relaxed) >> 32) as u32
    }

    #[inline]
    fn set_meta(self, meta: u32) {
        let tags = self.0[META_WORD].load(Relaxed) & u64::from(u32::MAX);
        self.0[META_WORD].store(tags | u64::from(meta) << 32, Relaxed);
    }

    /// Occupied cells, as bits.
    #[inline]
    pub fn occupied(self) -> u32 {
        self.meta() & CELLS_MASK
    }

    /// How many cells are occupied.
    #[inline]
    pub fn len(self) -> u32 {
        self.occupied().count_ones()
    }

    /// A cell that is not occupied.
    #[inline]
    pub fn vacant(self) -> Option<u32> {
        let cell = (!self.occupied()).trailing_zeros();
        (cell < CELL_COUNT).then_some(cell)
    }

    /// The handle in a cell.
    #[inline]
    pub fn handle(self, cell: u32) -> u32 {
        (self.0[cell as usize / 2].load(Relaxed) >> (cell % 2 * 32)) as u32
    }

    /// Points a cell to another place of the same entry.
    #[inline]
    pub fn set_handle(self, cell: u32, handle: u32) {
        let (word, shift) = (&self.0[cell as usize / 2], cell % 2 * 32);
        let kept = word.load(Relaxed) & !(u64::from(u32::MAX) << shift);
        word.store(kept | u64::from(handle) << shift, Relaxed);
    }

    /// The tag in a cell.
    #[inline]
    pub fn tag(self, cell: u32) -> u16 {
        (self.0[TAG_WORD + cell as usize / 4].load(Relaxed) >> (cell % 4 * 16)) as u16
    }

    /// Fills a vacant cell.
    #[inline]
    pub fn fill(self, cell: u32, tag: u16, handle: u32, saved: bool, mark: Mark) {
        self.set_handle(cell, handle);
        let (word, shift) = (&self.0[TAG_WORD + cell as usize / 4], cell % 4 * 16);
        let kept = word.load(Relaxed) & !(u64::from(u16::MAX) << shift);
        word.store(kept | u64::from(tag) << shift, Relaxed);
        let meta = self.meta_of(mark) & !(1 << (cell + SAVED_SHIFT));
        self.set_meta(meta | 1 << cell | u32::from(saved) << (cell + SAVED_SHIFT));
    }

    /// Empties a cell.
    #[inline]
    pub fn vacate(self, cell: u32) {
        self.set_meta(self.meta() & !(1 << cell));
    }

    /// Empties the bucket.
    #[inline]
    pub fn reset(self) {
        // The first word too: the allocator's mark of a free piece of table must not survive in a used one.
        self.0[0].store(0, Relaxed);
        self.0[META_WORD].store(0, Relaxed);
    }

    /// Whether the checkpoint with this mark has taken the entry of the cell.
    #[inline]
    pub fn is_saved(self, cell: u32, mark: Mark) -> bool {
        self.meta_of(mark) >> (cell + SAVED_SHIFT) & 1 != 0
    }

    /// Notes that the checkpoint with this mark has taken the entry of the cell.
    pub fn set_saved(self, cell: u32, mark: Mark) {
        self.set_meta(self.meta_of(mark) | 1 << (cell + SAVED_SHIFT));
    }

    /// Forgets all saved bits, whatever their mark.
    pub fn forget_saved(self) {
        self.set_meta(self.occupied());
    }

    /// The meta word as it counts under this mark: saved bits of another one are none.
    #[inline]
    fn meta_of(self, mark: Mark) -> u32 {
        let meta = self.meta();
        let mark = u32::from(mark.0) << MARK_SHIFT;
        if meta >> MARK_SHIFT << MARK_SHIFT == mark { meta } else { meta & CELLS_MASK | mark }
    }
}

/// The cells whose bits are set.
#[inline]
pub fn cells(mut bits: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (bits != 0).then(|| {
            let cell = bits.trailing_zeros();
            bits &= bits - 1;
            cell
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use std::sync::atomic::AtomicU64;

    /// Tag comparison by lanes agrees with comparing one by one, on tags chosen to provoke carries.
    #[test]
    fn matches_agree_with_the_plain_way() {
        let mut rng = Rng::new(3);
        let tags = [0u16, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0xFFFE];
        for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
            let line: Line = std::array::from_fn(|_| AtomicU64::new(0));
            let bucket = Bucket::new(&line);
            let mut model = [None; CELL_COUNT as usize];
            for cell in 0..CELL_COUNT {
                let tag = tags[rng.below(tags.len() as u64) as usize];
                bucket.fill(cell, tag, 1000 + cell, false, Mark(1));
                model[cell as usize] = Some(tag);
                if rng.one_in(4) {
                    bucket.vacate(cell);
                    model[cell as usize] = None;
                }
            }
            for tag in tags {
                let expected =
                    (0..CELL_COUNT).filter(|&c| model[c as usize] == Some(tag)).fold(0, |bits, cell| bits | 1 << cell);
                assert_eq!(bucket.matches(tag), expected);
            }
            for cell in cells(bucket.occupied()) {
                assert_eq!((Some(bucket.tag(cell)), bucket.handle(cell)), (model[cell as usize], 1000 + cell));
            }
        }
    }

    /// Saved bits belong to one mark: under the next they are gone, and filling a cell again starts afresh.
    #[test]
    fn saved_bits_belong_to_a_mark() {
        let line: Line = std::array::from_fn(|_| AtomicU64::new(0));
        let bucket = Bucket::new(&line);
        let (first, second) = (Mark(Mark::COUNT as u16 - 1), Mark(Mark::COUNT as u16 - 1).next());
        bucket.fill(4, 9, 1, false, first);
        assert!(!bucket.is_saved(4, first));
        bucket.set_saved(4, first);
        assert!(bucket.is_saved(4, first) && !bucket.is_saved(4, second));
        bucket.fill(5, 9, 2, true, second);
        assert!(bucket.is_saved(5, second) && !bucket.is_saved(4, second));
        bucket.vacate(5);
        bucket.fill(5, 9, 3, false, second);
        assert!(!bucket.is_saved(5, second));
        bucket.set_saved(4, second);
        bucket.forget_saved();
        assert!(!bucket.is_saved(4, second) && bucket.len() == 2);
    }
}
