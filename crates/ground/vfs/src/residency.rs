//! Estimates, from a sample of reads, whether a file is mostly in the page cache.
//!
//! A cached page costs less to read from a mapping than by a system call. An uncached one costs more: a fault fetches
//! that page alone, a call fetches all pages of its read at once. A check costs nearly as much as the call, so only a
//! sample of the reads is checked.

use std::sync::atomic::{AtomicU32, Ordering};

/// One read in this many is checked: after hits, and after a miss.
const LOOK_ONE_IN_HITS: u32 = 64;
const LOOK_ONE_IN_MISSES: u32 = 8;

/// Consecutive checks that found all pages, from which on a file counts as in memory.
const HITS_MIN: u32 = 4;

/// The state for one file. With many threads some reads and checks may go uncounted.
#[derive(Debug, Default)]
pub(crate) struct Residency {
    reads: AtomicU32,
    /// Consecutive checks that found all pages, up to `HITS_MIN`.
    hits: AtomicU32,
}

impl Residency {
    /// Counts a read; returns whether its pages are likely in memory. `look` checks whether they are.
    pub fn expect(&self, look: impl FnOnce() -> bool) -> bool {
        let (reads, mut hits) = (self.reads.load(Ordering::Relaxed), self.hits.load(Ordering::Relaxed));
        self.reads.store(reads.wrapping_add(1), Ordering::Relaxed);
        let one_in = if hits == HITS_MIN { LOOK_ONE_IN_HITS } else { LOOK_ONE_IN_MISSES };
        if reads.is_multiple_of(one_in) {
            hits = if look() { (hits + 1).min(HITS_MIN) } else { 0 };
            self.hits.store(hits, Ordering::Relaxed);
        }
        hits == HITS_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few checks establish that a file is in memory, fewer confirm it, and the first miss ends it.
    #[test]
    fn few_reads_look() {
        let (residency, mut looks) = (Residency::default(), 0);
        let mut read = |is_there: bool| {
            let mut has_looked = false;
            let expected = residency.expect(|| {
                has_looked = true;
                is_there
            });
            looks += u32::from(has_looked);
            (expected, has_looked, looks)
        };
        assert!((0..800).all(|_| !read(false).0));
        assert_eq!(read(false).2, 101);
        let before = (0..).take_while(|_| !read(true).0).count();
        assert!(before < 40, "{before}");
        let looks_before = read(true).2;
        assert!((0..640).all(|_| read(true).0));
        assert_eq!(read(true).2 - looks_before, 10);
        let misses = (0..).find(|_| read(false).1).expect("a read looks");
        assert!(misses < 64 && !read(true).0, "{misses}");
    }
}
