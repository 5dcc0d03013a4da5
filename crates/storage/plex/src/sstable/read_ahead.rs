//! What a cursor reads before it is needed.
//!
//! Merges read tables whole: they take many blocks from the file at a time. Scans read through the cache, block by
//! block; one that finds several blocks missing in a row announces the next ones to the file, which loads them in the
//! meantime.

use std::ops::Range;

/// Bytes that a merge reads at once. With one such buffer per run, twenty runs take little more than a megabyte.
pub(super) const CHUNK_BYTES: u64 = 64 << 10;

/// The same past the page cache, where each read waits for the device.
pub(super) const DIRECT_CHUNK_BYTES: u64 = 256 << 10;

/// Blocks missing in a row after which a scan is expected to continue. A scan of a hundred pairs of 200 bytes ends
/// before: a stretch that is announced too early costs a call without use.
const MISSES_MIN: u32 = 4;

/// First and longest stretch that is asked for, in bytes; each is twice as long as the one before.
const STRETCH_BYTES: Range<u64> = 32 << 10..512 << 10;

/// A cursor's state of it, for one table.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    /// Part of the file, for merges, and where it begins.
    pub chunk: Vec<u8>,
    pub chunk_at: u64,
    /// For scans: the block that would continue it, and how many were missing so far.
    next: usize,
    misses: u32,
    /// What was asked for reaches to here, and how long it was.
    asked_to: u64,
    stretch: u64,
}

impl ReadAhead {
    /// A scan did not find this block, which ends at `end`, in the cache: what should be asked for. Data ends at
    /// `data_end`.
    pub fn missed(&mut self, block: usize, end: u64, data_end: u64) -> Option<Range<u64>> {
        if block != self.next {
            *self = Self { chunk: std::mem::take(&mut self.chunk), chunk_at: self.chunk_at, ..Self::default() };
        }
        self.next = block + 1;
        self.misses += 1;
        // Asked for again when half of it was read.
        if self.misses <= MISSES_MIN || end + self.stretch / 2 < self.asked_to {
            return None;
        }
        self.stretch = (2 * self.stretch).clamp(STRETCH_BYTES.start, STRETCH_BYTES.end);
        let from = self.asked_to.max(end);
        self.asked_to = (from + self.stretch).min(data_end);
        (from < self.asked_to).then_some(from..self.asked_to)
    }

    /// Whether enough blocks were missing in a row that a scan is expected to continue.
    pub fn is_walk(&self) -> bool {
        self.misses > MISSES_MIN
    }

    /// A scan found this block in the cache.
    pub fn found(&mut self, block: usize) {
        if block == self.next {
            self.next = block + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A walk through missing blocks announces all after the fifth, once, well before it reaches them; jumps announce
    /// nothing.
    #[test]
    fn walks_ask_ahead_and_jumps_do_not() {
        let (block, count) = (4096, 1000);
        let mut ahead = ReadAhead::default();
        let mut asked_to = 0;
        for at in 0..count {
            let end = (at + 1) * block;
            if let Some(stretch) = ahead.missed(at as usize, end, count * block) {
                assert!(
                    at >= u64::from(MISSES_MIN)
                        && stretch.start == end.max(asked_to)
                        && stretch.end - stretch.start <= 512 << 10
                );
                asked_to = stretch.end;
            }
            assert!(at < u64::from(MISSES_MIN) || end == count * block || asked_to > end, "{at}: {asked_to}");
        }
        assert_eq!(asked_to, count * block);
        let mut ahead = ReadAhead::default();
        for at in (0..count).rev().chain((0..count).step_by(7)) {
            assert_eq!(ahead.missed(at as usize, (at + 1) * block, count * block), None);
        }
    }
}
