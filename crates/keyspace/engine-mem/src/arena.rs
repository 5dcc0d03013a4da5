//! Address space for one region of every shard, interleaved page by page: reserved once, made accessible in steps,
//! never unmapped while anyone can look at it.
//!
//! ```text
//!        |---------------- 2 MiB: one huge page ----------------|
//! row 0: | page 0 of shard 0 | page 0 of shard 1 | ... | page 0 of the last shard |
//! row 1: | page 1 of shard 0 | page 1 of shard 1 | ...
//! ```
//!
//! Shards grow at about the same pace, so the neighbours in a huge page are filled at about the same time, though a
//! single shard may be much smaller than one. Memory is first taken in small pages, so that only what is used is
//! resident; when all of a huge page has been filled, [`Arena::merge_one`] asks the system to put it into one
//! (`MADV_COLLAPSE`, Linux 6.1). In a trial with everything in huge pages, the server's user time per GET of a million
//! keys fell by a fifth.
//!
//! A1. Rows below `rows` are readable and writable, and `rows` never shrinks. Memory given back stays mapped: it reads
//!     as zero and costs nothing until it is written.
//! A2. The mapping lives as long as its last region or view, since all hold it.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The unit in which regions are handed to allocators.
pub const PAGE_BYTES: usize = 64 * 1024;

/// The unit in which the operating system gives and takes memory.
pub const LINE_OF_SYSTEM_BYTES: usize = 4096;

/// What the processor can translate at once.
const HUGE_BYTES: usize = 2 << 20;
const HUGE_PAGES: u8 = (HUGE_BYTES / PAGE_BYTES) as u8;

/// Steps in which rows are made accessible, as a share of those that are: few system calls, few surprises.
const COMMIT_SHARE: usize = 8;

/// Address space of one region for each shard.
pub struct Arena {
    /// What the system gave, and how much.
    whole: (NonNull<u8>, usize),
    /// Where row 0 begins: at a multiple of [`HUGE_BYTES`].
    base: NonNull<u8>,
    region_count: usize,
    /// Bytes of each region.
    region_bytes: usize,
    state: Mutex<State>,
    /// Huge pages in `State::ready`.
    ready_count: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// Accessible rows.
    rows: usize,
    /// By huge page: how many of its pages have been filled.
    filled: Vec<u8>,
    /// Huge pages that were filled and are not merged yet.
    ready: Vec<usize>,
    /// The system cannot merge.
    cannot_merge: bool,
}

// SAFETY: the mapping is plain memory; its regions decide which owner may touch which part of it.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Address space for `region_count` regions of the first size that the system grants for all of them.
    ///
    /// # Errors
    /// When the system refuses all sizes (a limit on address space).
    pub fn reserve(region_count: usize, sizes: &[usize]) -> io::Result<Arc<Self>> {
        let mut refusal = io::Error::from(io::ErrorKind::OutOfMemory);
        for &region_bytes in sizes {
            let bytes = region_bytes.saturating_mul(region_count);
            match system::reserve(bytes.saturating_add(HUGE_BYTES)) {
                Ok(whole) => {
                    let offset = whole.addr().get().next_multiple_of(HUGE_BYTES) - whole.addr().get();
                    // SAFETY: the offset is less than what was reserved beyond the bytes asked for.
                    let base = unsafe { whole.add(offset) };
                    return Ok(Arc::new(Self {
                        whole: (whole, bytes + HUGE_BYTES),
                        base,
                        region_count,
                        region_bytes,
                        state: Mutex::default(),
                        ready_count: AtomicUsize::new(0),
                    }));
                }
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    /// Address space of region `index`.
    pub fn region(self: &Arc<Self>, index: usize) -> Pages {
        assert!(index < self.region_count, "region {index} of {}", self.region_count);
        // SAFETY: page `index` of row 0 lies in the mapping.
        let first = unsafe { self.base.add(index * PAGE_BYTES) };
        Pages { first, skip: (self.region_count - 1) * PAGE_BYTES, index, arena: Arc::clone(self) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit_rows(&self, rows: usize) -> io::Result<()> {
        let mut state = self.state();
        if rows <= state.rows {
            return Ok(());
        }
        let rows_max = self.region_bytes / PAGE_BYTES;
        let target = rows.max(state.rows + state.rows / COMMIT_SHARE).min(rows_max);
        let row_bytes = self.region_count * PAGE_BYTES;
        // SAFETY: the range lies inside the reservation, and nothing has accessed it yet (A1).
        unsafe { system::commit(self.base, state.rows * row_bytes, (target - state.rows) * row_bytes) }?;
        state.rows = target;
        let huge_count = (target * row_bytes).div_ceil(HUGE_BYTES);
        state.filled.resize(huge_count, 0);
        Ok(())
    }

    fn huge_page_of(&self, region: usize, page: usize) -> usize {
        (page * self.region_count + region) * PAGE_BYTES / HUGE_BYTES
    }

    /// Whether [`Arena::merge_one`] has something to do.
    #[inline]
    pub fn has_ready(&self) -> bool {
        self.ready_count.load(Ordering::Relaxed) > 0
    }

    /// Merges one filled huge page into one piece of memory, copying 2 MiB; false when there is none. Meanwhile a
    /// thread that touches it, or needs new memory, waits for some tenths of a millisecond.
    pub fn merge_one(&self) -> bool {
        let number = {
            let mut state = self.state();
            let Some(number) = state.ready.pop() else { return false };
            self.ready_count.store(state.ready.len(), Ordering::Relaxed);
            if state.filled[number] < HUGE_PAGES {
                return true;
            }
            number
        };
        // SAFETY: the range was filled, so it is accessible (A1); merging changes no contents.
        if !unsafe { system::merge(self.base, number * HUGE_BYTES, HUGE_BYTES) } {
            let mut state = self.state();
            state.cannot_merge = true;
            state.ready = Vec::new();
            self.ready_count.store(0, Ordering::Relaxed);
        }
        true
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `system::reserve` with this size, and this is its last owner (A2).
        unsafe { system::release(self.whole.0, self.whole.1) };
    }
}

/// The pages of one region: where they are, and which are in use.
#[derive(Clone)]
#[repr(C)]
pub struct Pages {
    first: NonNull<u8>,
    /// From the end of one page to the beginning of the next.
    skip: usize,
    index: usize,
    arena: Arc<Arena>,
}

// SAFETY: `first` points into the arena, which is `Send` and `Sync` itself.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Where the byte at this offset of the region is. The address may be used up to the end of its page, if the page
    /// was committed.
    #[inline]
    pub fn at(&self, offset: usize) -> *mut u8 {
        let skipped = (offset / PAGE_BYTES).wrapping_mul(self.skip);
        self.first.as_ptr().wrapping_add(offset.wrapping_add(skipped))
    }

    /// Makes the first `bytes` of the region accessible. Gives how many are from now on.
    ///
    /// # Panics
    /// When the reservation is used up or the system refuses: the caller has already promised to store the data.
    pub fn commit(&self, bytes: usize) -> usize {
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        assert!(
            bytes <= self.arena.region_bytes,
            "the shard's address space of {} bytes is used up",
            self.arena.region_bytes
        );
        self.arena.commit_rows(bytes / PAGE_BYTES).unwrap_or_else(|error| panic!("{bytes} bytes for a shard: {error}"));
        bytes
    }

    /// Gives the memory of whole system lines back; they read as zero afterwards. They are among those committed, and
    /// the caller has given up what was in them.
    pub fn discard(&self, start: usize, length: usize) {
        let end = start + length;
        let mut at = start;
        while at < end {
            let piece = (PAGE_BYTES - at % PAGE_BYTES).min(end - at);
            // SAFETY: the piece lies in a page that the caller has committed (A1) and given up.
            unsafe { system::discard(self.at(at), piece) };
            at += piece;
        }
    }

    /// Notes that a page has been filled from end to end.
    pub fn filled(&self, page: usize) {
        let mut state = self.arena.state();
        let number = self.arena.huge_page_of(self.index, page);
        state.filled[number] += 1;
        if state.filled[number] == HUGE_PAGES && !state.cannot_merge {
            state.ready.push(number);
            self.arena.ready_count.store(state.ready.len(), Ordering::Relaxed);
        }
    }

    /// Notes that a filled page gives memory back.
    pub fn opened(&self, page: usize) {
        let mut state = self.arena.state();
        let number = self.arena.huge_page_of(self.index, page);
        state.filled[number] -= 1;
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
        // If the system chose huge pages itself, it would make unused memory resident, and do so again after it was
        // given back. A kernel without huge pages refuses. SAFETY: the range is the mapping just made; the advice
        // changes no contents.
        let _ = unsafe { madvise(base, bytes, Advice::LinuxNoHugepage) };
        NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    pub unsafe fn commit(base: NonNull<u8>, start: usize, length: usize) -> io::Result<()> {
        // SAFETY: the caller names a part of the reservation.
        unsafe { mprotect(base.as_ptr().add(start).cast(), length, MprotectFlags::READ | MprotectFlags::WRITE) }?;
        Ok(())
    }

    /// False when the system will never merge anything.
    pub unsafe fn merge(base: NonNull<u8>, start: usize, length: usize) -> bool {
        // SAFETY: the caller names an accessible part of the reservation; none of the advice changes contents.
        unsafe {
            let start = base.as_ptr().add(start);
            // Advice against huge pages would forbid this one too. It returns afterwards, so that what is given back
            // stays given back: the system's own merging fills holes.
            if madvise(start.cast(), length, Advice::LinuxHugepage).is_err() {
                return false;
            }
            let result = libc::madvise(start.cast(), length, libc::MADV_COLLAPSE);
            let error = io::Error::last_os_error();
            let _ = madvise(start.cast(), length, Advice::LinuxNoHugepage);
            result == 0 || error.raw_os_error() != Some(libc::EINVAL)
        }
    }

    pub unsafe fn discard(start: *mut u8, length: usize) {
        // SAFETY: the caller names a committed part of the reservation and has given up its contents.
        unsafe { madvise(start.cast(), length, Advice::LinuxDontNeed) }
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
    use std::sync::atomic::{AtomicU64, Ordering};

    const PLAIN_BYTES_MAX: usize = if cfg!(miri) { 8 << 20 } else { 256 << 20 };

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

    pub unsafe fn merge(_base: NonNull<u8>, _start: usize, _length: usize) -> bool {
        false
    }

    pub unsafe fn discard(start: *mut u8, length: usize) {
        let words = start.cast::<AtomicU64>();
        for word in 0..length / size_of::<AtomicU64>() {
            // SAFETY: the caller names a committed part of the allocation, whole lines of the system and so aligned,
            // and has given up its contents. Hints may read it at the same time, as atomic words, which is what they
            // are written as.
            unsafe { (*words.add(word)).store(0, Ordering::Relaxed) };
        }
    }

    pub unsafe fn release(base: NonNull<u8>, bytes: usize) {
        // SAFETY: allocated by `reserve` with the same layout.
        unsafe { dealloc(base.as_ptr(), layout(bytes)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regions do not overlap, whatever their number; what is given back reads as zero and can be used again.
    #[test]
    fn regions_are_apart() {
        for count in [1, 3, 32] {
            let arena = Arena::reserve(count, &[1 << 30, 2 * PAGE_BYTES]).unwrap();
            let regions: Vec<Pages> = (0..count).map(|index| arena.region(index)).collect();
            for (number, region) in regions.iter().enumerate() {
                assert_eq!(region.commit(PAGE_BYTES + 1), 2 * PAGE_BYTES);
                for offset in [0, PAGE_BYTES - 1, PAGE_BYTES, 2 * PAGE_BYTES - 1] {
                    // SAFETY: the byte is committed, and no other thread accesses it.
                    unsafe { region.at(offset).write(number as u8 + 1) };
                }
            }
            for (number, region) in regions.iter().enumerate() {
                region.discard(PAGE_BYTES - LINE_OF_SYSTEM_BYTES, 2 * LINE_OF_SYSTEM_BYTES);
                let read = |offset: usize| {
                    // SAFETY: as above.
                    unsafe { region.at(offset).read() }
                };
                let byte = number as u8 + 1;
                let bytes = [0, PAGE_BYTES - 1, PAGE_BYTES, 2 * PAGE_BYTES - 1].map(read);
                assert_eq!(bytes, [byte, 0, 0, byte], "region {number} of {count}");
            }
        }
    }

    /// Filling all pages of a huge page makes it ready, once; opening one in between takes that back.
    #[test]
    fn filled_neighbours_are_merged() {
        let arena = Arena::reserve(16, &[1 << 30, 2 * PAGE_BYTES]).unwrap();
        let regions: Vec<Pages> = (0..16).map(|index| arena.region(index)).collect();
        for page in 0..2 {
            for region in &regions {
                assert!(!arena.has_ready());
                region.commit((page + 1) * PAGE_BYTES);
                for line in 0..PAGE_BYTES / LINE_OF_SYSTEM_BYTES {
                    // SAFETY: the byte is committed, and no other thread accesses it.
                    unsafe { region.at(page * PAGE_BYTES + line * LINE_OF_SYSTEM_BYTES).write(7) };
                }
                region.filled(page);
            }
        }
        assert!(arena.has_ready() && arena.merge_one() && !arena.merge_one() && !arena.has_ready());
        // SAFETY: as above; merging changes nothing.
        assert_eq!(unsafe { regions[3].at(PAGE_BYTES).read() }, 7);
        regions[3].opened(1);
        regions[3].filled(1);
        regions[3].opened(1);
        if arena.has_ready() {
            assert!(arena.merge_one() && !arena.has_ready());
        }
    }

    #[test]
    #[should_panic(expected = "is used up")]
    fn no_more_than_was_reserved() {
        Arena::reserve(2, &[2 * PAGE_BYTES]).unwrap().region(1).commit(2 * PAGE_BYTES + 1);
    }
}
