//! Memory for the trees of a server: allocated and freed in constant time, populated before use, given back in steps.
//!
//! ```text
//!  a thread that has entered: small allocations --> its own Arena --> Blocks
//!  all others, all else:                       --> the C library
//!  every free:                                 --> back to its origin, known by the address
//! ```
//!
//! After many frees, the C library's `malloc` can stall a latency-critical thread for milliseconds: it sorts up to ten
//! thousand freed chunks in a call, and `malloc_trim` walks a heap with its lock held. With any allocator, the first
//! touch of a page may take milliseconds in a virtual machine. Here every wait of a thread with clients is bounded:
//! [`blocks`] says how, and [`arena`] what another thread does for it.
//!
//! A thread [enters](enter) while it allocates long-lived memory: workers for ever, others for a piece of work. The
//! keeper tidies an arena without an owner; the next thread that enters takes it.
#![allow(unsafe_code, reason = "this is what allocates")]

mod arena;
mod blocks;
mod c_library;
mod system;

pub use c_library::trim;

use arena::Arena;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Allocations above this are the C library's: it maps long ones one by one.
const BYTES_MAX: usize = 64 << 10;

/// Threads that can have an arena at a time.
const ARENAS: usize = 128;

/// An arena's span, at least: it is as much as the machine has memory, so that one alone can use all of it.
const SPAN_BYTES_MIN: usize = 4 << 30;

/// Arenas of a process whose address space is limited. They have a quarter of it: stacks and the C library take the
/// rest.
const ARENAS_LIMITED: usize = 16;

/// The span of an arena of theirs, at least.
const SPAN_BYTES_LIMITED_MIN: usize = 4 << 20;

/// Time between two searches for memory to spare.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// All arenas of the process.
static HEAP: Heap = Heap {
    base: AtomicPtr::new(std::ptr::null_mut()),
    span_log: AtomicU32::new(0),
    arena_count: AtomicUsize::new(0),
    second: AtomicUsize::new(0),
    keeper: OnceLock::new(),
    arenas: [const { Arena::new() }; ARENAS],
};

thread_local! {
    /// The arena that this thread owns.
    static OWN: Cell<Option<&'static Arena>> = const { Cell::new(None) };
}

struct Heap {
    /// Where the first arena's span begins; null while there are none.
    base: AtomicPtr<u8>,
    /// Bytes of a span, as a power of two.
    span_log: AtomicU32,
    arena_count: AtomicUsize,
    /// Counts seconds.
    second: AtomicUsize,
    keeper: OnceLock<Thread>,
    arenas: [Arena; ARENAS],
}

impl Heap {
    /// The arena that has these bytes.
    #[inline]
    fn arena_of(&self, bytes: *mut u8) -> Option<&Arena> {
        let offset = bytes.addr().wrapping_sub(self.base.load(Relaxed).addr());
        // Without a heap the figures are 0, and there is none at all.
        let number = offset >> self.span_log.load(Relaxed);
        self.arenas[..self.arena_count.load(Relaxed).min(ARENAS)].get(number)
    }

    /// Becomes the owner of an arena.
    fn claim(&self, number: usize) -> Option<&'static Arena> {
        let arena = HEAP.arenas.get(number)?;
        let log = self.span_log.load(Relaxed);
        let base = NonNull::new(self.base.load(Acquire))?;
        // SAFETY: each number has a part of the reservation of its own, which lives for ever and begins at whole pages.
        unsafe { arena.claim(base.add(number << log), 1 << log) }.then_some(arena)
    }

    fn wake_keeper(&self) {
        if let Some(keeper) = self.keeper.get() {
            keeper.unpark();
        }
    }

    /// What the keeper does, for as long as the process lives.
    fn keep(&self) -> ! {
        let mut looked_at = Instant::now();
        loop {
            let arenas = &self.arenas[..self.arena_count.load(Relaxed)];
            arenas.iter().for_each(Arena::serve);
            if looked_at.elapsed() >= LOOKS_EVERY {
                looked_at = Instant::now();
                self.second.fetch_add(1, Relaxed);
                (0..arenas.len()).for_each(|number| self.tidy_orphan(number));
            }
            std::thread::park_timeout(LOOKS_EVERY.saturating_sub(looked_at.elapsed()));
        }
    }

    /// Does for an arena without an owner what an owner does.
    fn tidy_orphan(&self, number: usize) {
        if self.arenas[number].orphaned_bytes().is_none() {
            return;
        }
        let Some(arena) = self.claim(number) else { return };
        // SAFETY: this thread owns it until it is released.
        unsafe {
            while arena.tidy(self.second.load(Relaxed), || ()) {
                arena.serve();
            }
            arena.release();
        }
        arena.serve();
    }
}

/// Reserves the address space, and starts the keeper thread. Call it once, before other threads start. Without it, and
/// where the system refuses, all memory comes from the C library, which is then set to give memory back.
///
/// # Errors
/// When the system grants no address space or no thread.
pub fn begin() -> io::Result<()> {
    c_library::give_memory_back();
    let (span_bytes, mut count) = plan(system::memory_bytes(), system::address_space_limit());
    let base = loop {
        match system::reserve(span_bytes * count) {
            Ok(base) => break base,
            Err(error) if count == 1 => return Err(error),
            Err(_) => count /= 2,
        }
    };
    let thread = std::thread::Builder::new().name("heap".to_owned()).spawn(|| HEAP.keep())?;
    let _ = HEAP.keeper.set(thread.thread().clone());
    HEAP.span_log.store(span_bytes.ilog2(), Relaxed);
    HEAP.arena_count.store(count, Relaxed);
    HEAP.base.store(base.as_ptr(), Release);
    Ok(())
}

/// Bytes of a span, and how many to reserve, on a machine with this memory, in a process with this limit of addresses
/// (`ulimit -v`).
fn plan(memory_bytes: usize, limit_bytes: Option<usize>) -> (usize, usize) {
    let span_bytes = memory_bytes.max(SPAN_BYTES_MIN).next_power_of_two();
    match limit_bytes.map(|bytes| bytes / 4) {
        Some(bytes) if bytes / ARENAS < span_bytes => {
            let part = (bytes / ARENAS_LIMITED).max(SPAN_BYTES_LIMITED_MIN);
            (span_bytes.min(1 << part.ilog2()), ARENAS_LIMITED)
        }
        _ => (span_bytes, ARENAS),
    }
}

/// The time in which a thread has an arena; it ends with its drop.
pub struct Entered {
    is_first: bool,
    /// Of this thread.
    _not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if !self.is_first {
            return;
        }
        if let Some(arena) = OWN.take() {
            // SAFETY: this thread has been its owner, and has just forgotten it.
            unsafe { arena.release() };
        }
    }
}

/// Makes the thread allocate in an arena of its own until the returned guard is dropped. Without effect while the
/// thread has one, and where there is no heap.
pub fn enter() -> Entered {
    let is_first = OWN.get().is_none();
    if is_first {
        OWN.set((0..HEAP.arena_count.load(Relaxed)).find_map(|number| HEAP.claim(number)));
    }
    Entered { is_first, _not_send: PhantomData }
}

/// Does a part of the waiting work of the thread's arena, in some tens of microseconds. A thread that stays entered
/// calls it regularly. True while there is more.
#[inline]
pub fn tidy() -> bool {
    let Some(arena) = OWN.get() else { return false };
    // SAFETY: this thread owns it.
    unsafe { arena.tidy(HEAP.second.load(Relaxed), || HEAP.wake_keeper()) }
}

/// Exchanges the thread's arena, if little is in it, for the fullest arena without an owner. So data that was loaded at
/// the start is freed, and grows, where it is.
pub fn take_over() {
    let Some(own) = OWN.get() else { return };
    let largest = HEAP.arenas[..HEAP.arena_count.load(Relaxed)]
        .iter()
        .enumerate()
        .filter_map(|(number, arena)| Some((arena.orphaned_bytes()?, number)))
        .max();
    if let Some((bytes, number)) = largest
        && bytes / 2 > own.used_bytes()
        && let Some(arena) = HEAP.claim(number)
    {
        OWN.set(Some(arena));
        // SAFETY: this thread has been its owner, and has just forgotten it.
        unsafe { own.release() };
    }
}

/// Bytes in use in the arena of this thread when it was last tidied.
pub fn own_bytes() -> usize {
    OWN.get().map_or(0, Arena::used_bytes)
}

/// Whether an allocation lies in an arena, and not in the C library's heap.
pub fn is_in_heap(bytes: *const u8) -> bool {
    HEAP.arena_of(bytes.cast_mut()).is_some()
}

/// The allocator of a program that has a heap: `#[global_allocator] static ALLOCATOR: heap::Allocator =
/// heap::Allocator;`
pub struct Allocator;

#[inline]
fn is_ours(bytes: usize, align: usize) -> bool {
    bytes <= BYTES_MAX && align <= blocks::GRAIN_BYTES
}

// SAFETY: an allocation lies in a used block of the arena, which no other allocation gets until it is freed, or comes
// from the C library; each address goes back to its origin. Blocks are aligned to `GRAIN_BYTES` and hold the bytes
// asked for.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_ours(layout.size(), layout.align())
            && let Some(arena) = OWN.get()
        {
            // SAFETY: this thread owns it.
            let bytes = unsafe { arena.allocate(layout.size(), || HEAP.wake_keeper()) };
            if !bytes.is_null() {
                return bytes;
            }
        }
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_ours(layout.size(), layout.align()) {
            // What is mapped anew is zeroed already.
            // SAFETY: as in `alloc`.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: as in `alloc`; what was allocated has `size` bytes.
        unsafe {
            let bytes = self.alloc(layout);
            if !bytes.is_null() {
                bytes.write_bytes(0, layout.size());
            }
            bytes
        }
    }

    #[inline]
    unsafe fn dealloc(&self, bytes: *mut u8, layout: Layout) {
        match HEAP.arena_of(bytes) {
            // SAFETY: the caller passes what was allocated there; this thread owns the arena.
            Some(arena) if OWN.get().is_some_and(|own| std::ptr::eq(own, arena)) => unsafe { arena.free(bytes) },
            // SAFETY: the caller passes what was allocated there.
            Some(arena) => unsafe { arena.free_elsewhere(bytes) },
            // SAFETY: the caller passes what `System` has allocated, since no arena has.
            None => unsafe { System.dealloc(bytes, layout) },
        }
    }

    unsafe fn realloc(&self, bytes: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(arena) = HEAP.arena_of(bytes) else {
            // SAFETY: as in `alloc`.
            return unsafe { System.realloc(bytes, layout, new_size) };
        };
        let is_own = OWN.get().is_some_and(|own| std::ptr::eq(own, arena));
        // SAFETY: the caller passes what was allocated there; this thread owns the arena if it changes the block.
        let fits = unsafe {
            match is_own {
                true => arena.resize(bytes, new_size),
                false => (arena.capacity(bytes) / 2..=arena.capacity(bytes)).contains(&new_size),
            }
        };
        if fits {
            return bytes;
        }
        // SAFETY: as in `alloc`; both have the bytes that are copied, and are not the same.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(bytes, layout.size().min(new_size));
                self.dealloc(bytes, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a limit, each arena can hold what the machine can. With one, all take at most a quarter of it.
    #[test]
    fn a_limit_of_addresses_leaves_room_for_others() {
        const GB: usize = 1 << 30;
        assert_eq!(plan(24 * GB, None), (32 * GB, ARENAS));
        assert_eq!(plan(0, None), (SPAN_BYTES_MIN, ARENAS));
        assert_eq!(plan(24 * GB, Some(1 << 50)), (32 * GB, ARENAS));
        for limit in [GB / 2, 4 * GB, 6 * GB, 1 << 40] {
            let (span_bytes, count) = plan(24 * GB, Some(limit));
            assert!(span_bytes.is_power_of_two() && count == ARENAS_LIMITED, "{limit}");
            assert!(span_bytes * count <= limit / 4 && span_bytes * count > limit / 16, "{limit}");
        }
        assert_eq!(plan(24 * GB, Some(0)), (SPAN_BYTES_LIMITED_MIN, ARENAS_LIMITED));
    }
}
