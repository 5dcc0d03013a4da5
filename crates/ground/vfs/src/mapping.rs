//! Short reads without a system call, from files mapped into memory, and the handling of medium errors in them. Reads
//! use the mapping while the file is mostly in memory ([`Residency`]).
//!
//! ```text
//!   read --> [M2: name the mapping] --> copy --> is it broken? --no--> bytes
//!                                         |          \--yes--> read the file by system calls, which report the error
//!                                  page cannot be read: SIGBUS
//!                                         |
//!                   handler: mark the mapping broken, map a zero page there, let the copy continue
//! ```
//!
//! A copy cannot return an error for a page that the medium cannot read, or that lies after the end of a truncated
//! file: the system sends the thread SIGBUS, which ends the process by default. So the first mapping installs a
//! process-wide handler; signals of another origin go to the previous handler. systemd's journal reader and EFL's
//! `Eina_File` also replace the missing page with a zero page.
//!
//! M1. `start` is the beginning of `len` bytes of address space that belong to the mapping until it is dropped. No
//!     reference to these bytes is created, because other processes may change them: they are copied.
//! M2. While a thread copies from a mapping, and only then, its `COPYING` names the mapping, which the thread borrows.
//! M3. A mapping is marked as broken before its first page is replaced. So a thread that copied such a page sees the
//!     mark after the copy, and discards the copy.
#![allow(unsafe_code, reason = "memory that the operating system fills, and its signal when it cannot")]

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, compiler_fence, fence};

use rustix::mm::{MapFlags, ProtFlags};

use crate::residency::Residency;

/// Longer reads use a system call: it copies a page for less than the first mapping of one costs, and reads ahead by
/// the length of the request. Long reads are rarely repeated. In bytes.
const READ_BYTES_MAX: usize = 32 << 10;

/// Files mapped at a time. A Linux process has 65,530 mappings by default (`vm.max_map_count`), which memory allocators
/// and thread stacks also need.
const MAPPINGS_MAX: usize = 16 << 10;

/// Pages of the longest read, with the smallest page size.
const PAGES_MAX: usize = READ_BYTES_MAX / 4096 + 1;

static MAPPINGS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static COPYING: AtomicPtr<Mapping> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// A mapped file; see the module.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<c_void>,
    len: usize,
    is_broken: AtomicBool,
    residency: Residency,
    page_bytes: usize,
}

// SAFETY: by M1 the range belongs to the value, and its bytes are only copied, even while another process changes them.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a readable file. `None` if the system declines, or enough files are mapped.
    pub fn new(file: &File, len: u64) -> Option<Self> {
        let len = usize::try_from(len).ok().filter(|len| *len > 0)?;
        if !bus_errors_are_caught() {
            return None;
        }
        if MAPPINGS.fetch_add(1, Ordering::Relaxed) >= MAPPINGS_MAX {
            MAPPINGS.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        // SAFETY: the system chooses the address, so no memory in use is replaced.
        let mapped = unsafe { rustix::mm::mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, 0) };
        let start = mapped.ok().and_then(NonNull::new);
        if start.is_none() {
            MAPPINGS.fetch_sub(1, Ordering::Relaxed);
        }
        let start = start?;
        // SAFETY: the range was just mapped, and the advice changes no contents. If it is refused, faults read more
        // than they need.
        let _ = unsafe { rustix::mm::madvise(start.as_ptr(), len, rustix::mm::Advice::Random) };
        let (is_broken, residency) = Default::default();
        Some(Self { start, len, is_broken, residency, page_bytes: rustix::param::page_size() })
    }

    /// Fills the buffer from `offset`. Returns `false` if the file must be read by system calls; the buffer is then
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
            // The handler runs in this thread: only the compiler could move the copy out from between the two.
            compiler_fence(Ordering::SeqCst);
            // SAFETY: by M1 the range, which is inside the mapping, can be read, with the handler's help (M2); the
            // buffer belongs to the caller.
            unsafe {
                ptr::copy_nonoverlapping(self.start.as_ptr().cast::<u8>().add(from), buf.as_mut_ptr(), buf.len())
            };
            compiler_fence(Ordering::SeqCst);
            copying.store(ptr::null_mut(), Ordering::Relaxed);
        });
        // After the copy (M3).
        fence(Ordering::Acquire);
        !self.is_broken.load(Ordering::Relaxed)
    }

    /// Whether the pages of this range, which is inside the mapping, are in the page cache now.
    fn is_in_memory(&self, from: usize, len: usize) -> bool {
        let first = from / self.page_bytes * self.page_bytes;
        let len = from + len - first;
        let mut pages = [0; PAGES_MAX];
        let pages = &mut pages[..len.div_ceil(self.page_bytes)];
        // SAFETY: by M1, from the beginning of a page; the buffer has one byte per page.
        let asked = unsafe { libc::mincore(self.start.as_ptr().byte_add(first), len, pages.as_mut_ptr()) };
        asked == 0 && pages.iter().all(|page| page & 1 == 1)
    }

    /// Maps a zero page at this address, if it belongs to the mapping; returns whether it does. For the signal handler:
    /// takes no lock and allocates nothing.
    fn replace_page(&self, address: usize) -> bool {
        let start = self.start.as_ptr().addr();
        if !(start..start + self.len).contains(&address) {
            return false;
        }
        // Before the page becomes visible (M3): the call is a barrier.
        self.is_broken.store(true, Ordering::SeqCst);
        let page = self.start.as_ptr().with_addr(address / self.page_bytes * self.page_bytes);
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the page belongs to the mapping, and no reference to it exists (M1).
        unsafe { rustix::mm::mmap_anonymous(page, self.page_bytes, ProtFlags::READ, flags) }.is_ok()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: by M1 the range belongs to this mapping, and by M2 no thread copies from it, since that would borrow
        // it.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.len) };
        debug_assert!(unmapped.is_ok(), "a range that was mapped can be unmapped");
        MAPPINGS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The previous action of the signal.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once; returns whether it is installed.
fn bus_errors_are_caught() -> bool {
    static IS_CAUGHT: OnceLock<bool> = OnceLock::new();
    *IS_CAUGHT.get_or_init(|| {
        // SAFETY: a zeroed `sigaction` is valid; the calls read and write their arguments only, and the handler has the
        // signature that `SA_SIGINFO` requires.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), &mut before) != 0 {
                return false;
            }
            // Before the first signal can need it.
            BEFORE.get_or_init(|| before);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) == 0
        }
    })
}

/// Whether the thread's own access raised the signal, rather than `kill` or the like.
fn is_raised_by_access(info: &libc::siginfo_t) -> bool {
    info.si_code > 0
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with `SA_SIGINFO` the system passes the signal's description, which has an address for SIGBUS.
    let (is_raised, address) = unsafe { (is_raised_by_access(&*info), (*info).si_addr().addr()) };
    let mapping = COPYING.try_with(|copying| copying.load(Ordering::Relaxed)).unwrap_or(ptr::null_mut());
    // SAFETY: by M2 the code that this handler interrupted borrows the mapping.
    let mapping = unsafe { mapping.as_ref() }.filter(|_| is_raised);
    if !mapping.is_some_and(|mapping| mapping.replace_page(address)) {
        pass_on(signal, info, context);
    }
}

/// Passes a signal of another origin to the previous handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(before) = BEFORE.get() else { return };
    // SAFETY: the description comes from the system; the previous handler is called as its flags require.
    unsafe {
        match before.sa_sigaction {
            libc::SIG_IGN if !is_raised_by_access(&*info) => {}
            libc::SIG_DFL | libc::SIG_IGN => {
                libc::sigaction(signal, before, ptr::null_mut());
                // The access is repeated when the handler returns; a signal that was sent is sent again, and stays
                // pending until then.
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

    /// Reads until the mapping answers, which it does once a few reads have found their pages in memory.
    fn warm(mapping: &Mapping) {
        assert!((0..1000).any(|_| mapping.read(&mut [0; 10], 0)));
    }

    /// Bytes come from their places; reads beyond the end, and long reads, are declined.
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

    /// A lost page, like one that the medium cannot read, breaks its mapping and nothing else; other mappings continue.
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
                        // A read that checks first does not touch the page; the others do, until the mapping is broken.
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
