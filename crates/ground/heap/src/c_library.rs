//! Settings of the C library's allocator, which serves long values and buffers, so that it gives memory back.
//!
//! By default it raises its thresholds with each large allocation that is freed, up to 32 MiB. After a burst of long
//! replies, buffers then come from its heap, where one small allocation keeps tens of megabytes from the system.
#![allow(unsafe_code, reason = "functions of the C library")]

/// From this size on an allocation is a mapping of its own, which goes back to the system when it is freed.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES_MIN: libc::c_int = 256 << 10;

/// Free memory at the top of the heap that is kept.
#[cfg(target_env = "gnu")]
const TOP_BYTES_MAX: libc::c_int = 1 << 20;

/// Heaps for all threads that have no arena of this crate. By default there are eight for each core. Then each of the
/// sixteen threads that read rows of databases on disk has its own, and its free memory is of no use to others: reading
/// 1.6 GB with `maxmemory 256mb` took 372 MB of resident memory, and takes 304.
#[cfg(target_env = "gnu")]
const HEAPS_MAX: libc::c_int = 4;

/// Fixes the thresholds and the number of heaps. Called once, before other threads start.
#[cfg(target_env = "gnu")]
pub fn give_memory_back() {
    let set = |option, value| {
        // SAFETY: mallopt takes no pointers, and no other thread allocates yet.
        unsafe { libc::mallopt(option, value) }
    };
    set(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
    set(libc::M_TRIM_THRESHOLD, TOP_BYTES_MAX);
    set(libc::M_ARENA_MAX, HEAPS_MAX);
}

/// Gives free memory inside the heaps back. Takes milliseconds when there is much of it, and keeps other threads from
/// allocating for a part of that: for after a burst, not for every day.
#[cfg(target_env = "gnu")]
pub fn trim() {
    // SAFETY: malloc_trim takes no pointers and locks each heap while it looks at it.
    unsafe { libc::malloc_trim(0) };
}

/// Other C libraries have no such heaps.
#[cfg(not(target_env = "gnu"))]
pub fn trim() {}

/// Other C libraries have no such thresholds.
#[cfg(not(target_env = "gnu"))]
pub fn give_memory_back() {}
