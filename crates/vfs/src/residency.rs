//! Whether a file is mostly in the page cache, estimated by some of its reads.
//!
//! A cached page costs less to read from a mapping than by a system call. An uncached one costs more: a fault fetches
//! that page alone, and a call all pages of its read at once. A check costs nearly as much as the call, so one read in
//! a few does it.

use std::sync::atomic::{AtomicU32, Ordering};

/// One read in this many checks: where the last ones found their pages, and where not.
const LOOK_ONE_IN_HITS: u32 = 64;
const LOOK_ONE_IN_MISSES: u32 = 8;

/// Looks in a row that found all pages, from which on a file is taken to be in memory.
const HITS_MIN: u32 = 4;

/// A file's state of it. With many threads some reads and looks may go uncounted.
#[derive(Debug, Default)]
pub(crate) struct Residency {
    reads: AtomicU32,
    /// Looks in a row that found all pages, up to `HITS_MIN`.
    hits: AtomicU32,
}

impl Residency {
    /// Counts a read; whether it is likely to find its pages in memory. `look` says whether it does.
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

    /// Few looks find out that a file is in memory, fewer go on, and the first that misses ends it.
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
