//! Accesses to mapped files, and the handling of medium errors in them.
//!
//! ```text
//!   access --> [M2: name the span] --> copy --> is it broken? --no--> done
//!                                        |          \--yes--> the caller uses system calls, which report the error
//!                                 page cannot be accessed: SIGBUS
//!                                        |
//!                  handler: mark the span broken, map a zero page there, let the copy continue
//! ```
//!
//! A copy cannot return an error for a page that the medium cannot read or has no room for, or that lies after the end
//! of a truncated file: the system sends the thread SIGBUS, which ends the process by default. So the first span
//! installs a process-wide handler; signals of another origin go to the previous handler. systemd's journal reader and
//! EFL's `Eina_File` also replace the missing page with a zero page.
//!
//! M1. `start` is the beginning of `len` bytes of address space that belong to the span until it is dropped. No
//!     reference to these bytes is created, because other processes may change them: they are copied.
//! M2. While a thread copies from or to a span, and only then, its `COPYING` names the span, which the thread borrows.
//! M3. A span is marked as broken before its first page is replaced. So a thread that copied such a page sees the mark
//!     after the copy, and discards the copy.
#![allow(unsafe_code, reason = "memory that the operating system fills, and its signal when it cannot")]

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering, compiler_fence, fence};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

thread_local! {
    static COPYING: AtomicPtr<Span> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// The mapped beginning of a file; see the module.
#[derive(Debug)]
pub(crate) struct Span {
    start: NonNull<c_void>,
    len: usize,
    protection: ProtFlags,
    page_bytes: usize,
    is_broken: AtomicBool,
}

// SAFETY: by M1 the range belongs to the value, and its bytes are only copied, even while another process changes them.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

impl Span {
    /// Maps the first `len` bytes of a file that is open for this access.
    pub fn new(file: &File, len: usize, protection: ProtFlags, flags: MapFlags) -> rustix::io::Result<Self> {
        if !bus_errors_are_caught() {
            return Err(Errno::NOSYS);
        }
        // SAFETY: the system chooses the address, so no memory in use is replaced.
        let mapped = unsafe { rustix::mm::mmap(ptr::null_mut(), len, protection, flags, file, 0) }?;
        let start = NonNull::new(mapped).ok_or(Errno::NOMEM)?;
        let (page_bytes, is_broken) = (rustix::param::page_size(), AtomicBool::new(false));
        Ok(Self { start, len, protection, page_bytes, is_broken })
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether a page was replaced. Copies are then useless.
    pub fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Whether the range lies inside.
    pub fn has(&self, from: usize, len: usize) -> bool {
        from <= self.len && len <= self.len - from
    }

    /// Advises the system about the whole range. Advice that is refused costs time and nothing else.
    pub fn advise(&self, advice: rustix::mm::Advice) {
        // SAFETY: by M1, and the advices of `rustix` that this crate uses change no contents.
        let _ = unsafe { rustix::mm::madvise(self.start.as_ptr(), self.len, advice) };
    }

    /// Runs `access` with the address of a range inside, and returns whether all of it was real. It may copy from the
    /// range, and to it if the span is writable. It must not unwind.
    pub fn access(&self, from: usize, len: usize, access: impl FnOnce(NonNull<u8>)) -> bool {
        assert!(self.has(from, len), "the range is inside");
        // SAFETY: inside by the line above.
        let address = unsafe { self.start.cast::<u8>().add(from) };
        COPYING.with(|copying| {
            copying.store(ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
            // The handler runs in this thread: only the compiler could move the copy out from between the two.
            compiler_fence(Ordering::SeqCst);
            access(address);
            compiler_fence(Ordering::SeqCst);
            copying.store(ptr::null_mut(), Ordering::Relaxed);
        });
        // After the copy (M3).
        fence(Ordering::Acquire);
        !self.is_broken()
    }

    /// Copies a range that is inside.
    pub fn read(&self, buf: &mut [u8], from: usize) -> bool {
        self.access(from, buf.len(), |address| {
            // SAFETY: by M1 the range can be read, with the handler's help (M2); the buffer belongs to the caller.
            unsafe { ptr::copy_nonoverlapping(address.as_ptr(), buf.as_mut_ptr(), buf.len()) };
        })
    }

    /// Appends a copy of a range that is inside to a vector. When not all of it was real, the vector is as before.
    pub fn append_to(&self, buf: &mut Vec<u8>, from: usize, len: usize) -> bool {
        buf.reserve(len);
        let room = buf.spare_capacity_mut();
        assert!(room.len() >= len, "room was reserved");
        // SAFETY: by M1 the range can be read, with the handler's help (M2); the room belongs to the caller.
        let is_real = self.access(from, len, |address| unsafe {
            ptr::copy_nonoverlapping(address.as_ptr(), room.as_mut_ptr().cast(), len);
        });
        if is_real {
            // SAFETY: the copy has filled `len` bytes of the room.
            unsafe { buf.set_len(buf.len() + len) };
        }
        is_real
    }

    /// Begins to load a range that is inside. No page is touched that is not in memory.
    pub fn prefetch(&self, from: usize, len: usize) {
        assert!(self.has(from, len), "the range is inside");
        crate::stores::prefetch(self.start.as_ptr().addr() + from, len);
    }

    /// Whether the pages of a range, which is inside, are in the page cache now. `pages` has room for a byte a page.
    pub fn is_in_memory(&self, from: usize, len: usize, pages: &mut [u8]) -> bool {
        assert!(self.has(from, len), "the range is inside");
        let first = from / self.page_bytes * self.page_bytes;
        let len = from + len - first;
        let pages = &mut pages[..len.div_ceil(self.page_bytes)];
        // SAFETY: by M1, from the beginning of a page; the buffer has one byte per page.
        let asked = unsafe { libc::mincore(self.start.as_ptr().byte_add(first), len, pages.as_mut_ptr()) };
        asked == 0 && pages.iter().all(|page| page & 1 == 1)
    }

    /// Maps a zero page at this address, if it belongs to the span; returns whether it does. For the signal handler:
    /// takes no lock and allocates nothing.
    fn replace_page(&self, address: usize) -> bool {
        let start = self.start.as_ptr().addr();
        if !(start..start + self.len.next_multiple_of(self.page_bytes)).contains(&address) {
            return false;
        }
        // Before the page becomes visible (M3): the call is a barrier.
        self.is_broken.store(true, Ordering::SeqCst);
        let page = self.start.as_ptr().with_addr(address / self.page_bytes * self.page_bytes);
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the page belongs to the span, and no reference to it exists (M1).
        unsafe { rustix::mm::mmap_anonymous(page, self.page_bytes, self.protection, flags) }.is_ok()
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        // SAFETY: by M1 the range belongs to this span, and by M2 no thread copies from it, since that would borrow it.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.len) };
        debug_assert!(unmapped.is_ok(), "a range that was mapped can be unmapped");
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
    let span = COPYING.try_with(|copying| copying.load(Ordering::Relaxed)).unwrap_or(ptr::null_mut());
    // SAFETY: by M2 the code that this handler interrupted borrows the span.
    let span = unsafe { span.as_ref() }.filter(|_| is_raised);
    if !span.is_some_and(|span| span.replace_page(address)) {
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
