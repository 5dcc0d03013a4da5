//! First reads of a table, after which others are likely to follow close by.
//!
//! A file that was just opened is mostly not in the page cache. A reader of its blocks one by one, in no order, makes
//! the device do as many small reads as there are blocks. So the first read of a region fetches all of it, once: one
//! read for each region instead of one for each block. Later ones fetch what they need: they miss only where memory is
//! too small for the table.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Length of a region, in bytes: the default read-ahead of Linux, and 32 blocks of the default length. A device takes
/// little longer for it than for a block.
const REGION_BYTES: u64 = 128 << 10;

/// Which regions of a file were read.
#[derive(Debug)]
pub(super) struct FirstReads {
    /// A bit each.
    read: Box<[AtomicU64]>,
}

impl FirstReads {
    /// None, of a file of this length.
    pub fn new(file_bytes: u64) -> Self {
        let words = file_bytes.div_ceil(REGION_BYTES).div_ceil(64);
        Self { read: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    /// What should be fetched with this range of the file, if that is the first of its region.
    pub fn note(&self, range: Range<u64>) -> Option<Range<u64>> {
        let region = range.start / REGION_BYTES;
        let (word, bit) = (self.read.get((region / 64) as usize)?, 1 << (region % 64));
        if word.load(Ordering::Relaxed) & bit != 0 || word.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return None;
        }
        Some(region * REGION_BYTES..range.end.max((region + 1) * REGION_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each region is asked for once, with all of the range that is read; a file has an end.
    #[test]
    fn regions_are_asked_for_once() {
        let first_reads = FirstReads::new(100 * REGION_BYTES - 7);
        assert_eq!(first_reads.note(10..20), Some(0..REGION_BYTES));
        assert_eq!(first_reads.note(30..40), None);
        let across = 99 * REGION_BYTES - 5..99 * REGION_BYTES + 5;
        assert_eq!(first_reads.note(across.clone()), Some(98 * REGION_BYTES..across.end));
        assert_eq!(first_reads.note(across), None);
        let all =
            (0..100).filter(|region| first_reads.note(region * REGION_BYTES..region * REGION_BYTES + 1).is_some());
        assert_eq!(all.count(), 98);
        assert_eq!(first_reads.note(1000 * REGION_BYTES..1000 * REGION_BYTES + 1), None);
    }
}
