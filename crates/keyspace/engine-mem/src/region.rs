//! The memory of one shard in an [`Arena`](crate::arena::Arena), in two kinds: [`Bytes`], which its single owner reads
//! and writes as bytes, and [`Lines`], which consists of atomic words only, so that prefetch hints may read it without
//! the shard's lock.
//!
//! R1. The first `committed` bytes are readable and writable, and `committed` never shrinks.
//! R2. The mapping lives as long as its last owner or hint, since both hold it.
//! R3. Memory of [`Bytes`] is reached through its one owner only (`&self` to read, `&mut self` to write).
//! R4. Memory of [`Lines`] is only ever accessed as 64-bit atomics, whatever it serves as at the moment.
//!
//! Zero is a valid value for both kinds, so fresh memory needs no initialisation.

use crate::arena::{PAGE_BYTES, Pages};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Eight atomic words: one cache line of a [`Lines`] region.
pub type Line = [AtomicU64; 8];

const _: () = assert!(size_of::<Line>() == 64);

/// A region of bytes with one owner.
#[repr(C)]
pub struct Bytes {
    committed: usize,
    pages: Pages,
}

impl Bytes {
    /// A region in these pages, which nothing else uses.
    pub fn new(pages: Pages) -> Self {
        Self { pages, committed: 0 }
    }

    /// Makes the first `bytes` accessible.
    pub fn commit(&mut self, bytes: usize) {
        self.committed = self.committed.max(self.pages.commit(bytes));
    }

    /// Gives the memory of whole system lines back; they read as zero afterwards.
    pub fn discard(&mut self, start: usize, length: usize) {
        assert!(start + length <= self.committed, "only committed memory can be given back");
        self.pages.discard(start, length);
    }

    /// The pages it lies in.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// The bytes from `start` to the end of its page.
    #[inline]
    pub fn tail(&self, start: usize) -> &[u8] {
        assert!(start < self.committed, "a handle outside the region");
        // SAFETY: a page is committed as a whole, so the range is readable (R1); it is initialised (zero or written),
        // and no thread writes while `self` is shared (R3).
        unsafe { std::slice::from_raw_parts(self.pages.at(start), PAGE_BYTES - start % PAGE_BYTES) }
    }

    /// The bytes from `start` to the end of its page, for writing.
    #[inline]
    pub fn tail_mut(&mut self, start: usize) -> &mut [u8] {
        assert!(start < self.committed, "a handle outside the region");
        // SAFETY: as for `tail`; `self` is borrowed exclusively (R3).
        unsafe { std::slice::from_raw_parts_mut(self.pages.at(start), PAGE_BYTES - start % PAGE_BYTES) }
    }

    /// Moves bytes between two places that do not overlap, each inside a page.
    pub fn copy(&mut self, from: usize, to: usize, length: usize) {
        assert!(from + length <= self.committed && to + length <= self.committed, "a handle outside the region");
        assert!(from + length <= to || to + length <= from, "the two places overlap");
        let in_one_page = |start: usize| start % PAGE_BYTES + length <= PAGE_BYTES;
        assert!(in_one_page(from) && in_one_page(to), "a slot lies in one page");
        // SAFETY: both ranges are committed (R1), each in one page, apart from each other, and `self` is borrowed
        // exclusively (R3).
        unsafe { std::ptr::copy_nonoverlapping(self.pages.at(from), self.pages.at(to), length) };
    }
}

/// A region of atomic cache lines: written by its one owner, read also by holders of a [`LinesView`].
pub struct Lines {
    shared: Arc<LinesView>,
    pages: Pages,
    /// Bytes committed, as a plain number: the owner reads it on every access.
    committed: usize,
}

impl Lines {
    /// A region in these pages, which nothing else uses.
    pub fn new(pages: Pages) -> Self {
        let shared = Arc::new(LinesView { pages: pages.clone(), committed: AtomicUsize::new(0) });
        Self { shared, pages, committed: 0 }
    }

    /// Makes the first `bytes` accessible.
    pub fn commit(&mut self, bytes: usize) {
        self.committed = self.committed.max(self.pages.commit(bytes));
        // Relaxed suffices: the value is a bound, and a hint that sees an older one only does less.
        self.shared.committed.store(self.committed, Ordering::Relaxed);
    }

    /// Gives the memory of whole system lines back; they read as zero afterwards. To a hint that reads there at the
    /// same time that is one more value it must be ready for.
    pub fn discard(&mut self, start: usize, length: usize) {
        assert!(start + length <= self.committed, "only committed memory can be given back");
        self.pages.discard(start, length);
    }

    /// The pages it lies in.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// The line with this number.
    ///
    /// # Panics
    /// When it is not committed: the owner's handles are always good.
    #[inline]
    pub fn line(&self, index: u32) -> &Line {
        line_at(&self.pages, self.committed, index).expect("a line inside the region")
    }

    /// A view for readers without the lock.
    pub fn view(&self) -> Arc<LinesView> {
        Arc::clone(&self.shared)
    }
}

/// Reads the lines of a region without the shard's lock; what it sees may be stale at once.
pub struct LinesView {
    pages: Pages,
    committed: AtomicUsize,
}

impl LinesView {
    /// The line with this number; `None` when it is not committed, as a stale handle may have it.
    #[inline]
    pub fn line(&self, index: u32) -> Option<&Line> {
        line_at(&self.pages, self.committed.load(Ordering::Relaxed), index)
    }
}

/// The line with this number, when it is among the first `committed` bytes.
#[inline]
fn line_at(pages: &Pages, committed: usize, index: u32) -> Option<&Line> {
    let offset = index as usize * size_of::<Line>();
    if offset < committed {
        // SAFETY: the line is committed (R1), aligned since pages are, lives as long as the mapping, which `pages`
        // holds (R2), and is only ever accessed through atomics (R4).
        Some(unsafe { &*pages.at(offset).cast::<Line>() })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;

    fn pages() -> Pages {
        Arena::reserve(3, &[1 << 30, 1 << 20]).unwrap().region(1)
    }

    /// Bytes written are read back, also after a copy to another page; what was given back can be used again.
    #[test]
    fn bytes_hold_what_is_written() {
        let mut bytes = Bytes::new(pages());
        bytes.commit(2 * PAGE_BYTES);
        bytes.tail_mut(100)[..5].copy_from_slice(b"hello");
        bytes.copy(100, PAGE_BYTES + 7, 5);
        assert_eq!(&bytes.tail(PAGE_BYTES + 7)[..5], b"hello");
        assert_eq!(bytes.tail(PAGE_BYTES - 8).len(), 8);
        bytes.discard(0, PAGE_BYTES);
        bytes.tail_mut(100)[..5].copy_from_slice(b"again");
        assert_eq!(&bytes.tail(100)[..5], b"again");
    }

    #[test]
    #[should_panic(expected = "outside the region")]
    fn handles_outside_are_refused() {
        let bytes = Bytes::new(pages());
        bytes.tail(0);
    }

    /// A hint on another thread reads lines while the owner writes them, and outlives the owner.
    #[test]
    fn lines_are_shared() {
        let mut lines = Lines::new(pages());
        let hint = lines.view();
        assert!(hint.line(0).is_none());
        lines.commit(PAGE_BYTES);
        let reader = std::thread::spawn(move || {
            while hint.line(3).unwrap()[0].load(Ordering::Relaxed) != 7 {
                std::hint::spin_loop();
            }
        });
        lines.line(3)[0].store(7, Ordering::Relaxed);
        drop(lines);
        reader.join().unwrap();
    }
}
