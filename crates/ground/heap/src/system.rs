//! What the heap asks of the operating system. Elsewhere than on Linux, and under Miri, there is no heap of our own.
#![allow(unsafe_code, reason = "calls of the system on memory")]

#[cfg(all(target_os = "linux", not(miri)))]
mod calls {
    use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect};
    use std::io;
    use std::ptr::NonNull;

    /// Bytes of memory of this machine.
    pub fn memory_bytes() -> usize {
        // SAFETY: asks for figures only.
        let [pages, page_bytes] = [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
        usize::try_from(pages).unwrap_or(0).saturating_mul(usize::try_from(page_bytes).unwrap_or(0))
    }

    /// The limit of addresses that this process may map; `None` without one.
    pub fn address_space_limit() -> Option<usize> {
        let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
        usize::try_from(limit).ok()
    }

    /// Address space without memory, that cannot be touched yet.
    pub fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: a fresh anonymous mapping at an address of the system's choice touches no existing memory.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        }?;
        // Huge pages take milliseconds to clear, and would make unused memory resident. A kernel without them refuses.
        // SAFETY: the range is the mapping just made; the advice changes no contents.
        let _ = unsafe { madvise(base, bytes, Advice::LinuxNoHugepage) };
        NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Makes a part of the reservation usable.
    ///
    /// # Safety
    /// It is a part of one, in whole pages.
    pub unsafe fn commit(start: *mut u8, bytes: usize) -> io::Result<()> {
        // SAFETY: the caller passes whole pages of a reservation.
        unsafe { mprotect(start.cast(), bytes, MprotectFlags::READ | MprotectFlags::WRITE) }?;
        Ok(())
    }

    /// Populates a usable part; its contents stay. Where the system cannot (Linux before 5.14, or no memory), the first
    /// write populates it.
    ///
    /// # Safety
    /// As of `commit`.
    pub unsafe fn populate(start: *mut u8, bytes: usize) {
        // SAFETY: the caller passes usable pages; no contents change.
        let _ = unsafe { madvise(start.cast(), bytes, Advice::LinuxPopulateWrite) };
    }

    /// Gives the memory of a part back to the system.
    ///
    /// # Safety
    /// As of `commit`, and the contents are not needed.
    pub unsafe fn discard(start: *mut u8, bytes: usize) {
        // SAFETY: the caller passes usable pages and needs no contents. Memory that is locked stays.
        let _ = unsafe { madvise(start.cast(), bytes, Advice::LinuxDontNeed) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod calls {
    use std::io;
    use std::ptr::NonNull;

    pub fn memory_bytes() -> usize {
        0
    }

    pub fn address_space_limit() -> Option<usize> {
        None
    }

    pub fn reserve(_bytes: usize) -> io::Result<NonNull<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub unsafe fn commit(_start: *mut u8, _bytes: usize) -> io::Result<()> {
        Ok(())
    }

    pub unsafe fn populate(_start: *mut u8, _bytes: usize) {}

    pub unsafe fn discard(_start: *mut u8, _bytes: usize) {}
}

pub use calls::*;

/// What the system gives and takes memory in: 4 KiB, or more where this is a multiple of it.
pub const PAGE_BYTES: usize = if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 };
