//! Short reads without a system call: files mapped to memory, and what a fault of the medium does to these. Reads are
//! mapped while the file is mostly in memory ([`Residency`]).
//!
//! ```text
//!   read --> [M2: name the mapping] --> copy --> is it broken? --no--> bytes
//!                                         |          \--yes--> the file is read by system calls, which fail as they should
//!                                  page that cannot be had: SIGBUS
//!                                         |
//!                   handler: break the mapping, put a page of zeroes there, let the copy go on
//! ```
//!
//! A page that the medium cannot give, or that lies after the end of a truncated file, is no error that a copy could
//! return: the system sends the thread SIGBUS, which by default ends the process. So the first mapping installs a
//! handler of this signal for the process; signals of another origin go on to the handler that was there before.
//! systemd's journal reader and EFL's `Eina_File` also put a page of zeroes in place of the missing one.
//!
//! M1. `start` is the beginning of `len` bytes of address space that a mapping has, until it is dropped. No reference
//!     to these bytes is made, since other processes may change them: they are copied.
//! M2. While a thread copies out of a mapping, and only then, its `COPYING` names the mapping, which the thread
//!     borrows.
//! M3. A mapping is marked as broken before its first page is replaced. So a thread that has copied such a page finds
//!     the mark after the copy, and does not use it.
#![allow(unsafe_code, reason = "memory that the operating system fills, and its signal when it cannot")]

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, compiler_fence, fence};

use rustix::mm::{MapFlags, ProtFlags};

use crate::residency::Residency;

/// Longer reads go through a system call: it copies a page for less than the first mapping of one costs, reads ahead by
/// the length of the request, and long reads are rarely repeated. In bytes.
const READ_BYTES_MAX: usize = 32 << 10;

/// Files mapped at a time. A process of Linux has 65,530 mappings by default (`vm.max_map_count`), which memory
/// allocators and stacks of threads need, too.
const MAPPINGS_MAX: usize = 16 << 10;

/// Pages of the longest read, if they are as small as pages are.
const PAGES_MAX: usize = READ_BYTES_MAX / 4096 + 1;

static MAPPINGS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static COPYING: AtomicPtr<Mapping> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<c_void>,
    len: usize,
    is_broken: AtomicBool,
    residency: Residency,
    page_bytes: usize,
}

// SAFETY: by M1 the range belongs to the value, and its bytes are only copied, even if another process changes them.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first `len` bytes of a file that can be read. `None` where the system declines, or enough files are mapped.
    pub fn new(file: &File, len: u64) -> Option<Self> {
        let len = usize::try_from(len).ok().filter(|len| *len > 0)?;
        if !bus_errors_are_caught() {
            return None;
        }
        if MAPPINGS.fetch_add(1, Ordering::Relaxed) >= MAPPINGS_MAX {
            MAPPINGS.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        // SAFETY: at an address of the system's choice, so nothing that is in use becomes another thing.
        let mapped = unsafe { rustix::mm::mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, 0) };
        let start = mapped.ok().and_then(NonNull::new);
        if start.is_none() {
            MAPPINGS.fetch_sub(1, Ordering::Relaxed);
        }
        let start = start?;
        // SAFETY: the range was just mapped, and the advice changes no contents. Refused, faults read more than they
        // need.
        let _ = unsafe { rustix::mm::madvise(start.as_ptr(), len, rustix::mm::Advice::Random) };
        let (is_broken, residency) = Default::default();
        Some(Self { start, len, is_broken, residency, page_bytes: rustix::param::page_size() })
    }

    /// Fills the buffer from `offset`, or answers `false`: then the file must be read otherwise, and the buffer is
    /// unspecified.
    pub fn read(&self, buf: &mut [u8], offset: u64) -> bool {
        let is_inside = |from: usize| from <= self.len && buf.len() <= self.len - from;
        let Some(from) = usize::try_from(offset).ok().filter(|from| is_inside(*from)) else { return false };
        if buf.len() > READ_BYTES_MAX
            || self.is_broken.load(Ordering::Relaxed)
            || !self.residency.expect(|| self.is_in_memory(from, buf.len()))
        {
            return false;
        }
        COPYING.with(|copying| {
            copying.store(ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
            // The handler runs in this thread: it is the compiler alone that must not move the copy out from between.
            compiler_fence(Ordering::SeqCst);
            // SAFETY: by M1 the range, which was found to be inside, can be read, with the handler's help (M2); the
            // buffer is the caller's own.
            unsafe {
                ptr::copy_nonoverlapping(self.start.as_ptr().cast::<u8>().add(from), buf.as_mut_ptr(), buf.len())
            };
            compiler_fence(Ordering::SeqCst);
            copying.store(ptr::null_mut(), Ordering::Relaxed);
        });
        // Behind the copy (M3).
        fence(Ordering::Acquire);
        !self.is_broken.load(Ordering::Relaxed)
    }

    /// Whether the pages of this range, which is inside, are in the page cache just now.
    fn is_in_memory(&self, from: usize, len: usize) -> bool {
        let first = from / self.page_bytes * self.page_bytes;
        let len = from + len - first;
        let mut pages = [0; PAGES_MAX];
        let pages = &mut pages[..len.div_ceil(self.page_bytes)];
        // SAFETY: by M1 from the beginning of a page on; there is a byte for each page.
        let asked = unsafe { libc::mincore(self.start.as_ptr().byte_add(first), len, pages.as_mut_ptr()) };
        asked == 0 && pages.iter().all(|page| page & 1 == 1)
    }

    /// Puts a page of zeroes at this address, if it is in the mapping; returns whether it is. For the handler: it takes
    /// no lock and no memory of the process.
    fn replace_page(&self, address: usize) -> bool {
        let start = self.start.as_ptr().addr();
        if !(start..start + self.len).contains(&address) {
            return false;
        }
        // Before the page can be seen (M3): the call is a barrier.
        self.is_broken.store(true, Ordering::SeqCst);
        let page = self.start.as_ptr().with_addr(address / self.page_bytes * self.page_bytes);
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the page is one of the mapping's own, to which no reference exists (M1).
        unsafe { rustix::mm::mmap_anonymous(page, self.page_bytes, ProtFlags::READ, flags) }.is_ok()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: by M1 the range is this mapping's, and by M2 no thread copies out of it, since that would borrow it.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.len) };
        debug_assert!(unmapped.is_ok(), "a range that was mapped can be unmapped");
        MAPPINGS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What was done about the signal before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once; whether it could be.
fn bus_errors_are_caught() -> bool {
    static IS_CAUGHT: OnceLock<bool> = OnceLock::new();
    *IS_CAUGHT.get_or_init(|| {
        // SAFETY: a `sigaction` of zeroes is a valid one; the calls read and write those that they are given, and the
        // handler has the signature that goes with `SA_SIGINFO`.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), &mut before) != 0 {
                return false;
            }
            // Before the first signal can ask for it.
            BEFORE.get_or_init(|| before);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) == 0
        }
    })
}

/// Whether a signal was raised by an access of the thread that has it, and not sent.
fn is_raised_by_access(info: &libc::siginfo_t) -> bool {
    info.si_code > 0
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with `SA_SIGINFO` the system gives the description of the signal, which has an address if it is SIGBUS.
    let (is_raised, address) = unsafe { (is_raised_by_access(&*info), (*info).si_addr().addr()) };
    let mapping = COPYING.try_with(|copying| copying.load(Ordering::Relaxed)).unwrap_or(ptr::null_mut());
    // SAFETY: by M2 the mapping is borrowed by what this handler has interrupted.
    let mapping = unsafe { mapping.as_ref() }.filter(|_| is_raised);
    if !mapping.is_some_and(|mapping| mapping.replace_page(address)) {
        pass_on(signal, info, context);
    }
}

/// Has a signal that is not ours meet what it would have met before.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(before) = BEFORE.get() else { return };
    // SAFETY: the description is the system's; the earlier handler is called as the system would, by its flags.
    unsafe {
        match before.sa_sigaction {
            libc::SIG_IGN if !is_raised_by_access(&*info) => {}
            libc::SIG_DFL | libc::SIG_IGN => {
                libc::sigaction(signal, before, ptr::null_mut());
                // The access is made again when the handler returns; a signal that was sent is sent again, and waits
                // until then.
                if !is_raised_by_access(&*info) {
                    libc::raise(signal);
                }
            }
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = std::mem::transmute(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LEN: usize = 100_000;

    fn file() -> File {
        let mut file = tempfile::tempfile().expect("a file for the test");
        let bytes: Vec<u8> = (0..LEN).map(|at| (at % 251) as u8).collect();
        file.write_all(&bytes).expect("writes");
        file
    }

    /// Reads until the mapping answers, as it does once a few reads have found their pages in memory.
    fn warm(mapping: &Mapping) {
        assert!((0..1000).any(|_| mapping.read(&mut [0; 10], 0)));
    }

    /// Bytes come from their places; what reaches beyond the end, or is long, is left to others.
    #[test]
    fn short_reads_inside_are_answered() {
        let mapping = Mapping::new(&file(), LEN as u64).expect("it can be mapped");
        warm(&mapping);
        for (from, len) in [(0, 1), (4000, 200), (4097, 8192), (LEN - 5, 5), (LEN, 0)] {
            let mut buf = vec![9; len];
            assert!(mapping.read(&mut buf, from as u64));
            assert!(buf.iter().enumerate().all(|(at, byte)| *byte == ((from + at) % 251) as u8));
        }
        for (from, len) in [(LEN - 5, 6), (LEN + 1, 0), (usize::MAX, 1), (0, READ_BYTES_MAX + 1)] {
            assert!(!mapping.read(&mut vec![0; len], from as u64));
        }
        assert!(Mapping::new(&file(), 0).is_none());
    }

    /// A page that is gone, as one that the medium cannot give, breaks the mapping and nothing else; other mappings go
    /// on.
    #[test]
    fn a_page_that_is_gone_is_no_end_of_the_process() {
        let (cut, other) = (file(), file());
        let mappings = [&cut, &other].map(|file| Mapping::new(file, LEN as u64).expect("it can be mapped"));
        mappings.iter().for_each(warm);
        cut.set_len(10).expect("it can be cut");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for at in 0..200 {
                        // A read that looks first does not touch the page; the others do, until the mapping is broken.
                        assert!(!mappings[0].read(&mut [0; 100], 4096 * (1 + at % 20)));
                        assert!(mappings[1].read(&mut [0; 100], 4096 * (1 + at % 20)));
                    }
                });
            }
        });
        assert!(mappings[0].is_broken.load(Ordering::Relaxed));
        assert!(!mappings[1].is_broken.load(Ordering::Relaxed));
    }
}
