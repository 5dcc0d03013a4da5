//! Address space of one shard: reserved once, committed as it is needed, never unmapped while anyone can look at it.
//!
//! ```text
//! base                     committed                                  reserved
//!  |-- readable, writable --|------------- no access, no memory ---------|
//! ```
//!
//! Two kinds of region stand on a reservation: [`Bytes`], whose memory its single owner reads and writes as bytes, and
//! [`Lines`], which consists of atomic words only, so that prefetch hints may read it without the shard's lock.
//!
//! R1. `base..base + committed` is readable and writable, and `committed` never shrinks. Memory given back by
//!     [`Bytes::discard`] and [`Lines::discard`] stays mapped: it reads as zero and costs nothing until it is written.
//! R2. The mapping lives as long as its last owner or hint, since both hold it.
//! R3. Memory of [`Bytes`] is reached through its one owner only (`&self` to read, `&mut self` to write).
//! R4. Memory of [`Lines`] is only ever accessed as 64-bit atomics, whatever it serves as at the moment.
//!
//! R5. Regions begin at different places modulo [`STAGGER_BYTES`]: were they all aligned alike, the first pages of all shards
//!     would fall into the same sets of the translation buffer and evict each other (a look-up in 64 small shards took
//!     535 ns instead of 70).
//!
//! Zero is a valid value for both kinds, so fresh memory needs no initialisation.

use base::Rng;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The unit in which regions are handed to allocators.
pub const PAGE_BYTES: usize = 64 * 1024;

/// The unit in which the operating system gives and takes memory.
pub const LINE_OF_SYSTEM_BYTES: usize = 4096;

/// Beginnings of regions are spread over so many bytes, by system lines: the span of a translation buffer of thousands of
/// entries.
const STAGGER_BYTES: usize = 8 << 20;

/// Steps in which address space is committed, as a share of what is committed: few system calls, few surprises.
const COMMIT_SHARE: usize = 8;
const COMMIT_BYTES_MIN: usize = 16 * PAGE_BYTES;

/// Eight atomic words: one cache line of a [`Lines`] region.
pub type Line = [AtomicU64; 8];

const _: () = assert!(size_of::<Line>() == 64);

/// A reservation of address space.
struct Mapping {
    /// Where the reservation begins, and its length.
    whole: (NonNull<u8>, usize),
    base: NonNull<u8>,
    reserved: usize,
    /// Written by the owner under the shard's lock; read by hints.
    committed: AtomicUsize,
}

// SAFETY: the mapping is plain memory; who may touch which part of it is ruled by R3 and R4.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves the first size that the system grants.
    fn reserve(sizes: &[usize], rng: &mut Rng) -> io::Result<Self> {
        let mut refusal = io::Error::from(io::ErrorKind::OutOfMemory);
        for &reserved in sizes {
            let stagger = STAGGER_BYTES.min(reserved / 2);
            match system::reserve(reserved + stagger) {
                Ok(whole) => {
                    let offset = rng.below((stagger / LINE_OF_SYSTEM_BYTES) as u64) as usize * LINE_OF_SYSTEM_BYTES;
                    // SAFETY: the offset is less than what was reserved beyond the size asked for (R5).
                    let base = unsafe { whole.add(offset) };
                    let committed = AtomicUsize::new(0);
                    return Ok(Self { whole: (whole, reserved + stagger), base, reserved, committed });
                }
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    fn committed(&self) -> usize {
        // Relaxed suffices: the value is a bound, and a hint that sees an older one only does less.
        self.committed.load(Ordering::Relaxed)
    }

    /// Makes at least `bytes` accessible.
    ///
    /// # Panics
    /// When the reservation is used up or the system refuses: the caller has already promised to store the data.
    fn commit(&self, bytes: usize) {
        let committed = self.committed();
        if bytes <= committed {
            return;
        }
        assert!(bytes <= self.reserved, "the shard's address space of {} bytes is used up", self.reserved);
        let step = (committed / COMMIT_SHARE).max(COMMIT_BYTES_MIN).next_multiple_of(PAGE_BYTES);
        let target = bytes.next_multiple_of(PAGE_BYTES).max(committed + step).min(self.reserved);
        // SAFETY: the range lies inside the reservation, and nothing has accessed it yet (R1).
        unsafe { system::commit(self.base, committed, target - committed) }
            .unwrap_or_else(|error| panic!("committing {} bytes of memory: {error}", target - committed));
        self.committed.store(target, Ordering::Relaxed);
    }

    fn discard(&self, start: usize, length: usize) {
        assert!(start + length <= self.committed(), "only committed memory can be given back");
        // SAFETY: the range is committed (R1), and the caller has given up what was in it.
        unsafe { system::discard(self.base, start, length) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `system::reserve` with this size, and this is its last owner (R2).
        unsafe { system::release(self.whole.0, self.whole.1) };
    }
}

/// A region of bytes with one owner.
pub struct Bytes {
    mapping: Mapping,
    /// What is committed, as a plain number: the owner reads it on every access.
    committed: usize,
}

impl Bytes {
    /// Reserves the first of the sizes that the system grants.
    ///
    /// # Errors
    /// When the system refuses them all (a limit on address space).
    pub fn reserve(sizes: &[usize], rng: &mut Rng) -> io::Result<Self> {
        Ok(Self { mapping: Mapping::reserve(sizes, rng)?, committed: 0 })
    }

    /// Makes the first `bytes` accessible.
    pub fn commit(&mut self, bytes: usize) {
        self.mapping.commit(bytes);
        self.committed = self.mapping.committed();
    }

    /// Gives the memory of whole system lines back; they read as zero afterwards.
    pub fn discard(&mut self, start: usize, length: usize) {
        self.mapping.discard(start, length);
    }

    /// The bytes from `start` to the end of its page.
    #[inline]
    pub fn tail(&self, start: usize) -> &[u8] {
        assert!(start < self.committed, "a handle outside the region");
        // SAFETY: a page is committed as a whole, so the range is readable (R1); it is initialised (zero or written), and
        // nobody writes while `self` is shared (R3).
        unsafe { std::slice::from_raw_parts(self.mapping.base.as_ptr().add(start), PAGE_BYTES - start % PAGE_BYTES) }
    }

    /// The bytes from `start` to the end of its page, for writing.
    #[inline]
    pub fn tail_mut(&mut self, start: usize) -> &mut [u8] {
        assert!(start < self.committed, "a handle outside the region");
        let length = PAGE_BYTES - start % PAGE_BYTES;
        // SAFETY: as for `tail`; `self` is borrowed exclusively (R3).
        unsafe { std::slice::from_raw_parts_mut(self.mapping.base.as_ptr().add(start), length) }
    }

    /// Moves bytes between two places that do not overlap, in any pages.
    pub fn copy(&mut self, from: usize, to: usize, length: usize) {
        assert!(from + length <= self.committed && to + length <= self.committed, "a handle outside the region");
        assert!(from + length <= to || to + length <= from, "the two places overlap");
        let base = self.mapping.base.as_ptr();
        // SAFETY: both ranges are committed (R1), apart from each other, and `self` is borrowed exclusively (R3).
        unsafe { std::ptr::copy_nonoverlapping(base.add(from), base.add(to), length) };
    }

    /// The address of the first byte, for prefetching by address only.
    pub fn base_address(&self) -> usize {
        self.mapping.base.as_ptr().addr()
    }
}

/// A region of atomic cache lines: written by its one owner, read by whoever holds a [`LinesView`] too.
pub struct Lines {
    mapping: Arc<Mapping>,
    base: NonNull<Line>,
    /// Bytes committed, as a plain number: the owner reads it on every access.
    committed: usize,
}

// SAFETY: `base` points to atomic words of the mapping, which is `Send` and `Sync` itself.
unsafe impl Send for Lines {}
// SAFETY: as above.
unsafe impl Sync for Lines {}

impl Lines {
    /// Reserves the first of the sizes that the system grants.
    ///
    /// # Errors
    /// When the system refuses them all (a limit on address space).
    pub fn reserve(sizes: &[usize], rng: &mut Rng) -> io::Result<Self> {
        let mapping = Arc::new(Mapping::reserve(sizes, rng)?);
        Ok(Self { base: mapping.base.cast(), mapping, committed: 0 })
    }

    /// Makes the first `bytes` accessible.
    pub fn commit(&mut self, bytes: usize) {
        self.mapping.commit(bytes);
        self.committed = self.mapping.committed();
    }

    /// Gives the memory of whole system lines back; they read as zero afterwards. To a hint that reads there at the
    /// same time that is one more value it must be ready for.
    pub fn discard(&mut self, start: usize, length: usize) {
        self.mapping.discard(start, length);
    }

    /// The line with this number.
    ///
    /// # Panics
    /// When it is not committed: the owner's handles are always good.
    #[inline]
    pub fn line(&self, index: u32) -> &Line {
        line_at(self.base, self.committed, index).expect("a line inside the region")
    }

    /// A view for readers without the lock.
    pub fn view(&self) -> LinesView {
        LinesView { mapping: Arc::clone(&self.mapping) }
    }
}

/// Reads the lines of a region without the shard's lock; what it sees may be stale at once.
pub struct LinesView {
    mapping: Arc<Mapping>,
}

impl LinesView {
    /// The line with this number; `None` when it is not committed, as a stale handle may have it.
    #[inline]
    pub fn line(&self, index: u32) -> Option<&Line> {
        line_at(self.mapping.base.cast(), self.mapping.committed(), index)
    }
}

/// The line with this number, when it is among the `committed` bytes from `base` on, which belong to a live mapping.
#[inline]
fn line_at<'a>(base: NonNull<Line>, committed: usize, index: u32) -> Option<&'a Line> {
    if (index as usize) < committed / size_of::<Line>() {
        // SAFETY: the line is committed (R1), aligned since the base is aligned to a system line, lives as long as the
        // mapping, which both callers hold (R2), and is only ever accessed through atomics (R4).
        Some(unsafe { &*base.as_ptr().add(index as usize) })
    } else {
        None
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};
    use std::io;
    use std::ptr::NonNull;

    pub fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: a fresh anonymous mapping at an address of the system's choice touches no existing memory.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        }?;
        // Huge pages would keep memory resident that was given back in small pieces. A kernel without them refuses.
        // SAFETY: the range is the mapping just made; the advice changes no contents.
        let _ = unsafe { madvise(base, bytes, Advice::LinuxNoHugepage) };
        NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    pub unsafe fn commit(base: NonNull<u8>, start: usize, length: usize) -> io::Result<()> {
        // SAFETY: the caller names a part of the reservation.
        unsafe { mprotect(base.as_ptr().add(start).cast(), length, MprotectFlags::READ | MprotectFlags::WRITE) }?;
        Ok(())
    }

    pub unsafe fn discard(base: NonNull<u8>, start: usize, length: usize) {
        // SAFETY: the caller names a committed part of the reservation and has given up its contents.
        unsafe { madvise(base.as_ptr().add(start).cast(), length, Advice::LinuxDontNeed) }
            .expect("the system takes back memory of a mapping of ours");
    }

    pub unsafe fn release(base: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller is the last owner of this mapping. Failure would only leak address space.
        let _ = unsafe { munmap(base.as_ptr().cast(), bytes) };
    }
}

/// Where address space cannot be reserved without memory: a plain zeroed allocation, small enough to be affordable.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use super::PAGE_BYTES;
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::io;
    use std::ptr::NonNull;

    const PLAIN_BYTES_MAX: usize = if cfg!(miri) { 6 << 20 } else { 256 << 20 };

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, PAGE_BYTES).expect("a size far below the address space")
    }

    pub fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
        if bytes > PLAIN_BYTES_MAX {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { alloc_zeroed(layout(bytes)) }).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    pub unsafe fn commit(_base: NonNull<u8>, _start: usize, _length: usize) -> io::Result<()> {
        Ok(())
    }

    pub unsafe fn discard(_base: NonNull<u8>, _start: usize, _length: usize) {}

    pub unsafe fn release(base: NonNull<u8>, bytes: usize) {
        // SAFETY: allocated by `reserve` with the same layout.
        unsafe { dealloc(base.as_ptr(), layout(bytes)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: &[usize] = &[1 << 30, 1 << 20];

    /// Bytes written are read back, also after a copy to another page; what was given back can be used again.
    #[test]
    fn bytes_hold_what_is_written() {
        let mut bytes = Bytes::reserve(SIZES, &mut Rng::new(1)).unwrap();
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
        let bytes = Bytes::reserve(SIZES, &mut Rng::new(1)).unwrap();
        bytes.tail(0);
    }

    /// A hint on another thread reads lines while the owner writes them, and outlives the owner.
    #[test]
    fn lines_are_shared() {
        let mut lines = Lines::reserve(SIZES, &mut Rng::new(1)).unwrap();
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
