//! A span of memory with one owner at a time. The owner allocates and frees in it; other threads return blocks to it.
//!
//! ```text
//!  owner:  allocate, free ------------------------------> blocks <-- take back, a few at a time
//!  others: free --> returned (a lock-free stack) ---------------------^
//!  keeper:             ^                                              |
//!           populate --+-- discard <------------- jobs <-- raw blocks: few large free ones left, or many to spare
//! ```
//!
//! The first touch of a page enters the kernel, and in a virtual machine its host, which may take milliseconds. So the
//! owner keeps some memory populated ahead of need, and the *keeper* thread has the system populate more. When that
//! comes too late, allocations go to the C library until it has come. Memory that was not needed for a second goes back
//! to the system, also on the keeper.
//!
//! Where values are freed bit by bit, the first holes to go back have used blocks between them. What those blocks leave
//! later may be too small to go back alone. So once a second each raw block is extended over the raw blocks after
//! it, and over what has been free there for a second. Without that, 450 MB of 3.5 GB stayed resident after 400,000
//! values of 5 to 15 KB were compressed one by one.
//!
//! A1. Only the owner touches `owned`; ownership is passed on through `is_owned`.
//! A2. A block is in at most one place: used, in `returned`, in `pending`, in `jobs`, with the keeper, or with `owned`.
#![allow(unsafe_code, reason = "this is what allocates")]

use crate::blocks::{Blocks, GRAIN_BYTES, HEADER_BYTES, LARGE_BYTES_MIN, Place, Span, block_bytes};
use crate::system::{self, PAGE_BYTES};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// Memory that is kept ready: at least, and where it was needed faster than it came.
const AHEAD_BYTES_MIN: usize = 256 << 10;
const AHEAD_BYTES_MAX: usize = 8 << 20;

/// Populated in one call. A thread that changes the process's mappings waits no longer than that.
const STEP_BYTES: usize = 64 << 10;

/// Given back at once.
const GIVEN_BYTES_MAX: usize = 1 << 20;

/// Address space made usable at once.
const COMMITTED_BYTES: usize = 64 << 20;

/// Taken back by one allocation, and by one that found no memory.
const BACK_BY_THE_WAY: usize = 2;
const BACK_IN_NEED: usize = 64;

/// Taken back, and given back, by one call of [`Arena::tidy`]: some tens of microseconds.
const BACK_IN_TIDYING: usize = 256;
const GIVEN_IN_TIDYING: usize = 8;

/// Raw blocks that one call tries to extend.
const JOINED_IN_TIDYING: usize = 32;

/// The header of a raw block and its five words, and one more word to align what may follow them.
const RAW_WORDS_BYTES: usize = HEADER_BYTES + 6 * size_of::<u64>();
const _: () =
    assert!((RAW_WORDS_BYTES + HEADER_BYTES).is_multiple_of(GRAIN_BYTES), "or the header would be at no place for one");

const NONE: Place = 0;

/// The words of a raw block: its neighbours among [`Owned::raws`], or the next returned block; the next job; the job to
/// do, or done; and what [`Owned::join`] keeps there, or the place from which pages are to be discarded.
const NEXT: usize = 0;
const NEXT_JOB: usize = 1;
const JOB: usize = 2;
const PREVIOUS: usize = 3;
const SEEN: usize = 4;
const FROM: usize = 4;

/// Jobs: discard the pages inside a block, or populate that many bytes.
const DISCARD: u64 = 0;
/// What the keeper answers when the system has no memory.
const FAILED: u64 = u64::MAX;
/// It is among [`Owned::raws`].
const KEPT: u64 = u64::MAX - 1;

/// One span and its state.
pub struct Arena {
    span: OnceLock<(Base, usize)>,
    is_owned: AtomicBool,
    /// Blocks that others have freed, and raw ones that the keeper has done with, linked by their first words.
    returned: AtomicUsize,
    /// Raw blocks for the keeper, linked by [`NEXT_JOB`].
    jobs: AtomicUsize,
    /// How far the span is usable. Written by the keeper, and where the arena begins.
    committed: AtomicUsize,
    /// Bytes of used blocks when it was last tidied.
    used_bytes: AtomicUsize,
    owned: UnsafeCell<Option<Owned>>,
}

#[derive(Clone, Copy)]
struct Base(NonNull<u8>);

// SAFETY: it is an address; this module guards the memory there.
unsafe impl Send for Base {}
// SAFETY: it is an address; this module guards the memory there.
unsafe impl Sync for Base {}
// SAFETY: only the owner touches what is not atomic (A1).
unsafe impl Sync for Arena {}

/// What belongs to the owner.
struct Owned {
    blocks: Blocks,
    /// Taken from `returned` all at once; not yet freed.
    pending: Place,
    /// The last block, while it is in the arena: all that was never used.
    top: Place,
    /// Blocks that were given back, linked both ways.
    raws: Place,
    /// The next raw block to extend in this second.
    to_join: Place,
    /// How many bytes are to be ready.
    ahead_bytes: usize,
    /// How many the keeper populates.
    asked_bytes: usize,
    /// How many are still to be given back of what was to spare.
    to_give_bytes: usize,
    /// The second for which that was looked at.
    second: usize,
    /// In it, memory came too late.
    was_late: bool,
    /// In it, there was none.
    has_failed: bool,
}

impl Arena {
    /// One without a span.
    pub const fn new() -> Self {
        Self {
            span: OnceLock::new(),
            is_owned: AtomicBool::new(false),
            returned: AtomicUsize::new(NONE),
            jobs: AtomicUsize::new(NONE),
            committed: AtomicUsize::new(0),
            used_bytes: AtomicUsize::new(0),
            owned: UnsafeCell::new(None),
        }
    }

    /// Makes the caller the owner, if there is none. The first owner gives the arena its span: `bytes` at `base`.
    /// Returns false when the arena has an owner, or the system has no memory.
    ///
    /// # Safety
    /// The span is reserved for this arena for ever, and starts at a multiple of [`PAGE_BYTES`].
    pub unsafe fn claim(&self, base: NonNull<u8>, bytes: usize) -> bool {
        if self.is_owned.swap(true, Acquire) {
            return false;
        }
        if self.span.get().is_none() {
            // SAFETY: the caller has reserved the span for this arena, and it begins at a whole page.
            if unsafe { system::commit(base.as_ptr(), PAGE_BYTES) }.is_err() {
                self.is_owned.store(false, Release);
                return false;
            }
            self.committed.store(PAGE_BYTES, Relaxed);
            // SAFETY: the keeper makes the rest usable before it hands it out.
            let mut blocks = Blocks::new(unsafe { Span::new(base) });
            let top = blocks.begin(bytes);
            let owned = Owned {
                blocks,
                pending: NONE,
                top,
                raws: NONE,
                to_join: NONE,
                ahead_bytes: AHEAD_BYTES_MIN,
                asked_bytes: 0,
                to_give_bytes: 0,
                second: 0,
                was_late: false,
                has_failed: false,
            };
            // SAFETY: only the owner touches it (A1), and this thread has just become the owner.
            unsafe { *self.owned.get() = Some(owned) };
            let _ = self.span.set((Base(base), bytes));
        }
        true
    }

    /// Gives up ownership.
    ///
    /// # Safety
    /// Only the owner may call.
    pub unsafe fn release(&self) {
        self.is_owned.store(false, Release);
    }

    /// Bytes used when it was last tidied, if it has no owner.
    pub fn orphaned_bytes(&self) -> Option<usize> {
        (!self.is_owned.load(Relaxed) && self.span.get().is_some()).then(|| self.used_bytes.load(Relaxed))
    }

    /// Bytes used when it was last tidied.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Relaxed)
    }

    /// Allocates; null when there is no memory ready. `wake` wakes the keeper.
    ///
    /// # Safety
    /// Only the owner may call.
    #[inline]
    pub unsafe fn allocate(&self, bytes: usize, wake: impl Fn()) -> *mut u8 {
        // SAFETY: the caller is the owner.
        let Some((base, owned)) = (unsafe { self.owned() }) else { return std::ptr::null_mut() };
        if owned.pending != NONE || self.returned.load(Relaxed) != NONE {
            self.take_back(owned, BACK_BY_THE_WAY);
        }
        let size = block_bytes(bytes);
        let place = owned.blocks.allocate(size).or_else(|| self.allocate_late(owned, size));
        if owned.blocks.large_bytes() < owned.ahead_bytes / 2 {
            self.ask(owned, wake);
        }
        match place {
            // SAFETY: the block lies in the span.
            Some(place) => unsafe { base.as_ptr().add(place + HEADER_BYTES) },
            None => std::ptr::null_mut(),
        }
    }

    /// Frees what the owner allocated here.
    ///
    /// # Safety
    /// Only the owner may call; `bytes` were allocated here, and are used no more.
    #[inline]
    pub unsafe fn free(&self, bytes: *mut u8) {
        // SAFETY: the caller is the owner.
        if let Some((base, owned)) = unsafe { self.owned() } {
            owned.blocks.free(place_of(base, bytes));
        }
    }

    /// Frees bytes that were allocated here; any thread may call.
    ///
    /// # Safety
    /// `bytes` were allocated here, and are used no more.
    pub unsafe fn free_elsewhere(&self, bytes: *mut u8) {
        let Some((Base(base), _)) = self.span.get() else { return };
        self.give(place_of(*base, bytes));
    }

    /// How many bytes an allocation has room for.
    ///
    /// # Safety
    /// `bytes` were allocated here.
    pub unsafe fn capacity(&self, bytes: *mut u8) -> usize {
        let Some((Base(base), _)) = self.span.get() else { return 0 };
        // SAFETY: the caller holds the block.
        unsafe { Span::new(*base) }.size(place_of(*base, bytes)) - HEADER_BYTES
    }

    /// Changes the size of an allocation where it is; false when there is no room.
    ///
    /// # Safety
    /// Only the owner may call; `bytes` were allocated here.
    pub unsafe fn resize(&self, bytes: *mut u8, bytes_new: usize) -> bool {
        // SAFETY: the caller is the owner.
        match unsafe { self.owned() } {
            Some((base, owned)) => owned.blocks.resize(place_of(base, bytes), block_bytes(bytes_new)),
            None => false,
        }
    }

    /// Does a part of the waiting work: frees returned blocks, and once a second looks for memory to spare. True while
    /// there is more.
    ///
    /// # Safety
    /// Only the owner may call.
    pub unsafe fn tidy(&self, second: usize, wake: impl Fn()) -> bool {
        // SAFETY: the caller is the owner.
        let Some((_, owned)) = (unsafe { self.owned() }) else { return false };
        self.take_back(owned, BACK_IN_TIDYING);
        if owned.second != second {
            owned.second = second;
            self.used_bytes.store(owned.blocks.used_bytes(), Relaxed);
            owned.has_failed = false;
            if !std::mem::take(&mut owned.was_late) {
                owned.ahead_bytes = (owned.ahead_bytes / 2).max(AHEAD_BYTES_MIN);
            }
            let kept = owned.ahead_bytes + owned.blocks.used_bytes() / 64;
            owned.to_give_bytes = owned.blocks.take_spare().saturating_sub(kept);
            owned.to_join = owned.raws;
        }
        for _ in 0..JOINED_IN_TIDYING {
            if owned.to_join == NONE {
                break;
            }
            if let Some((raw, from)) = owned.join() {
                owned.blocks.span().word(raw, FROM).store(from as u64, Relaxed);
                self.order(owned, raw, DISCARD, &wake);
            }
        }
        for _ in 0..GIVEN_IN_TIDYING {
            if owned.to_give_bytes < LARGE_BYTES_MIN {
                owned.to_give_bytes = 0;
                break;
            }
            let Some(raw) = owned.blocks.take_raw(owned.to_give_bytes.min(GIVEN_BYTES_MAX)) else { break };
            owned.to_give_bytes -= owned.blocks.size(raw).min(owned.to_give_bytes);
            owned.blocks.span().word(raw, FROM).store(raw as u64, Relaxed);
            self.order(owned, raw, DISCARD, &wake);
        }
        owned.to_join != NONE || owned.to_give_bytes > 0 || owned.pending != NONE || self.returned.load(Relaxed) != NONE
    }

    /// Does what was ordered. Called by the keeper alone.
    pub fn serve(&self) {
        let Some((Base(base), _)) = self.span.get() else { return };
        let mut place = self.jobs.swap(NONE, Acquire);
        while place != NONE {
            // SAFETY: the span lives for ever, and the keeper holds the block.
            let span = unsafe { Span::new(*base) };
            let (next, job) = (span.word(place, NEXT_JOB).load(Relaxed) as Place, span.word(place, JOB).load(Relaxed));
            match job {
                DISCARD => discard(*base, place, span.word(place, FROM).load(Relaxed) as Place, span.size(place)),
                bytes if !self.populate(*base, place, place + bytes as usize) => {
                    span.word(place, JOB).store(FAILED, Relaxed);
                }
                _ => {}
            }
            self.give(place);
            place = next;
        }
    }

    /// What belongs to the owner, and where the span is.
    ///
    /// # Safety
    /// Only the owner may call, and lets go of what it got before it calls again.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the owner is alone (A1)")]
    unsafe fn owned(&self) -> Option<(NonNull<u8>, &mut Owned)> {
        // SAFETY: the caller is the owner.
        let owned = unsafe { (*self.owned.get()).as_mut() }?;
        let (Base(base), _) = self.span.get()?;
        Some((*base, owned))
    }

    /// Takes back more of what others have freed, and tries again.
    #[cold]
    fn allocate_late(&self, owned: &mut Owned, size: usize) -> Option<Place> {
        self.take_back(owned, BACK_IN_NEED);
        let place = owned.blocks.allocate(size);
        if place.is_none() && !owned.was_late {
            owned.was_late = true;
            owned.ahead_bytes = (owned.ahead_bytes * 4).min(AHEAD_BYTES_MAX);
        }
        place
    }

    /// Has more memory populated, unless that is under way.
    #[cold]
    fn ask(&self, owned: &mut Owned, wake: impl Fn()) {
        if owned.asked_bytes > 0 || owned.has_failed {
            return;
        }
        let lacking = |owned: &Owned| owned.ahead_bytes.saturating_sub(owned.blocks.large_bytes() + owned.asked_bytes);
        for _ in 0..BACK_IN_NEED {
            let lacking = lacking(owned);
            if lacking == 0 {
                return;
            }
            let raw = match owned.raws {
                NONE => std::mem::replace(&mut owned.top, NONE),
                raw => {
                    owned.take_kept(raw);
                    raw
                }
            };
            if raw == NONE {
                return;
            }
            let (size, is_last) = (owned.blocks.size(raw), owned.blocks.is_last(raw));
            // The header of the rest, and its words, lie at the end of a populated page.
            let end = (raw + lacking.max(STEP_BYTES)).next_multiple_of(PAGE_BYTES) - RAW_WORDS_BYTES;
            let bytes = match end - raw {
                bytes if bytes + STEP_BYTES <= size => bytes,
                _ if is_last => {
                    // The span is used up.
                    owned.top = raw;
                    owned.has_failed = true;
                    return;
                }
                _ => size,
            };
            owned.asked_bytes += bytes;
            self.order(owned, raw, bytes as u64, &wake);
        }
    }

    /// Orders something of the keeper.
    fn order(&self, owned: &mut Owned, raw: Place, job: u64, wake: &impl Fn()) {
        let span = owned.blocks.span();
        span.word(raw, JOB).store(job, Relaxed);
        push(span, &self.jobs, raw, NEXT_JOB);
        wake();
    }

    /// Pushes a block onto the stack of returned ones, for the owner.
    fn give(&self, place: Place) {
        let Some((Base(base), _)) = self.span.get() else { return };
        // SAFETY: the span lives for ever, and the caller holds the block.
        push(unsafe { Span::new(*base) }, &self.returned, place, NEXT);
    }

    /// Takes back some of what other threads have returned.
    fn take_back(&self, owned: &mut Owned, count: usize) {
        for _ in 0..count {
            if owned.pending == NONE {
                owned.pending = self.returned.swap(NONE, Acquire);
                if owned.pending == NONE {
                    return;
                }
            }
            let (span, place) = (owned.blocks.span(), owned.pending);
            owned.pending = span.word(place, NEXT).load(Relaxed) as Place;
            if !owned.blocks.is_raw(place) {
                owned.blocks.free(place);
                continue;
            }
            match span.word(place, JOB).load(Relaxed) {
                DISCARD => owned.keep_raw(place),
                FAILED => {
                    (owned.asked_bytes, owned.has_failed) = (0, true);
                    owned.keep_raw(place);
                }
                bytes => {
                    let bytes = bytes as usize;
                    owned.asked_bytes = owned.asked_bytes.saturating_sub(bytes);
                    if bytes < owned.blocks.size(place) {
                        let rest = owned.blocks.part(place, bytes);
                        owned.keep_raw(rest);
                    }
                    owned.blocks.free(place);
                }
            }
        }
    }

    /// Populates a part of the span; false when the system has no memory.
    fn populate(&self, base: NonNull<u8>, from: usize, to: usize) -> bool {
        let Some((_, bytes)) = self.span.get() else { return false };
        let committed = self.committed.load(Relaxed);
        let end = to.next_multiple_of(PAGE_BYTES);
        if end > committed {
            let more = (end - committed).next_multiple_of(COMMITTED_BYTES).min(bytes - committed);
            // SAFETY: whole pages of the span, after the usable ones.
            if unsafe { system::commit(base.as_ptr().add(committed), more) }.is_err() {
                return false;
            }
            self.committed.store(committed + more, Relaxed);
        }
        let mut start = from / PAGE_BYTES * PAGE_BYTES;
        while start < end {
            let step = STEP_BYTES.min(end - start);
            // SAFETY: whole pages that are usable.
            unsafe { system::populate(base.as_ptr().add(start), step) };
            start += step;
        }
        true
    }
}

impl Owned {
    /// Keeps a block without memory.
    fn keep_raw(&mut self, raw: Place) {
        if self.blocks.is_last(raw) {
            self.top = raw;
            return;
        }
        let span = self.blocks.span();
        let next = std::mem::replace(&mut self.raws, raw);
        for (word, value) in [(NEXT, next as u64), (JOB, KEPT), (PREVIOUS, NONE as u64), (SEEN, 0)] {
            span.word(raw, word).store(value, Relaxed);
        }
        if next != NONE {
            span.word(next, PREVIOUS).store(raw as u64, Relaxed);
        }
    }

    /// Takes a block out of those that are kept.
    fn take_kept(&mut self, raw: Place) {
        let span = self.blocks.span();
        let neighbour = |word| span.word(raw, word).load(Relaxed) as Place;
        let (next, previous) = (neighbour(NEXT), neighbour(PREVIOUS));
        if next != NONE {
            span.word(next, PREVIOUS).store(previous as u64, Relaxed);
        }
        match previous {
            NONE => self.raws = next,
            previous => span.word(previous, NEXT).store(next as u64, Relaxed),
        }
        if self.to_join == raw {
            self.to_join = next;
        }
    }

    /// Extends the next raw block that is due. If it grew, it is no longer kept, and its pages from the given place on
    /// are to be discarded.
    fn join(&mut self) -> Option<(Place, Place)> {
        let (span, raw) = (self.blocks.span(), self.to_join);
        let from = self.blocks.behind(raw);
        loop {
            let next = self.blocks.behind(raw);
            if self.blocks.is_last(next) {
                break;
            }
            let seen = span.word(raw, SEEN);
            if self.blocks.is_free(next) {
                // It is memory kept ready, or there was no hole of this size a second ago.
                let size = self.blocks.size(next);
                let is_needed = size >= LARGE_BYTES_MIN && self.blocks.large_bytes() < self.ahead_bytes + size;
                if is_needed || seen.swap(size as u64, Relaxed) != size as u64 {
                    break;
                }
            } else if self.blocks.is_raw(next) && span.word(next, JOB).load(Relaxed) == KEPT {
                self.take_kept(next);
            } else {
                seen.store(0, Relaxed);
                break;
            }
            self.blocks.absorb(raw);
            seen.store(0, Relaxed);
        }
        if self.blocks.behind(raw) == from {
            self.to_join = span.word(raw, NEXT).load(Relaxed) as Place;
            return None;
        }
        self.take_kept(raw);
        Some((raw, from))
    }
}

/// Where the block begins that these bytes are in.
#[inline]
fn place_of(base: NonNull<u8>, bytes: *mut u8) -> Place {
    bytes.addr() - base.addr().get() - HEADER_BYTES
}

/// Puts a block onto a stack, linked by one of its words.
fn push(span: Span, stack: &AtomicUsize, place: Place, word: usize) {
    let mut top = stack.load(Relaxed);
    loop {
        span.word(place, word).store(top as u64, Relaxed);
        match stack.compare_exchange_weak(top, place, Release, Relaxed) {
            Ok(_) => return,
            Err(other) => top = other,
        }
    }
}

/// Gives back the pages inside a raw block from a place on, except those with its first words and its successor.
fn discard(base: NonNull<u8>, place: Place, from: Place, size: usize) {
    let start = (place + RAW_WORDS_BYTES).next_multiple_of(PAGE_BYTES).max(from / PAGE_BYTES * PAGE_BYTES);
    let end = (place + size) / PAGE_BYTES * PAGE_BYTES;
    if start < end {
        // SAFETY: whole pages inside a block that the keeper holds and no thread uses.
        unsafe { system::discard(base.as_ptr().add(start), end - start) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::sync::mpsc;

    const SPAN_BYTES: usize = 4 << 20;
    const ROUNDS: usize = if cfg!(miri) { 300 } else { 100_000 };

    /// An allocation that a thread holds.
    struct Held(*mut u8, usize, u8);

    // SAFETY: the holder of an allocation has its bytes to itself.
    unsafe impl Send for Held {}

    impl Held {
        fn write(&self) {
            // SAFETY: that many bytes were allocated there, and no other thread has them.
            unsafe { self.0.write_bytes(self.2, self.1) };
        }

        fn check(&self) {
            // SAFETY: that many bytes were allocated there and written, and no other thread has them.
            assert!((0..self.1).all(|at| unsafe { *self.0.add(at) } == self.2));
        }
    }

    /// Holes go back, and so does what is freed between them later, although it is too small to go back alone.
    #[test]
    fn what_is_freed_between_holes_goes_back_too() {
        const BYTES: usize = 9000;
        let layout = Layout::from_size_align(SPAN_BYTES, 64 << 10).unwrap();
        // SAFETY: the size is not zero.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        let (arena, mut second) = (Arena::new(), 0);
        // SAFETY: the memory is the arena's until the end of the test.
        assert!(unsafe { arena.claim(memory, SPAN_BYTES) });
        let mut settle = || {
            for _ in 0..8 {
                second += 1;
                // SAFETY: this thread owns the arena.
                while unsafe { arena.tidy(second, || ()) } {
                    arena.serve();
                }
                arena.serve();
            }
        };
        let free_bytes = || {
            // SAFETY: this thread owns the arena.
            let (_, owned) = unsafe { arena.owned() }.unwrap();
            let (mut place, mut bytes) = (GRAIN_BYTES + HEADER_BYTES, 0);
            while !owned.blocks.is_last(place) {
                bytes += if owned.blocks.is_free(place) { owned.blocks.size(place) } else { 0 };
                place = owned.blocks.behind(place);
            }
            bytes
        };
        let mut kept = Vec::new();
        while kept.len() < 300 {
            // SAFETY: this thread owns the arena.
            let bytes = unsafe { arena.allocate(BYTES, || ()) };
            match bytes.is_null() {
                true => arena.serve(),
                false => kept.push(bytes),
            }
        }
        for (_, bytes) in kept.iter().enumerate().filter(|(number, _)| number % 3 < 2) {
            // SAFETY: this thread owns the arena; it was allocated there, and is used no more.
            unsafe { arena.free(*bytes) };
        }
        settle();
        assert!(free_bytes() < 100 * BYTES, "{} bytes are free", free_bytes());
        for bytes in kept.iter().skip(2).step_by(3) {
            // SAFETY: this thread owns the arena.
            unsafe { arena.free(*bytes) };
        }
        settle();
        assert!(free_bytes() <= 2 * AHEAD_BYTES_MIN, "{} bytes are free", free_bytes());
        // SAFETY: no thread uses the arena any more; allocated with this layout.
        unsafe {
            arena.release();
            dealloc(memory.as_ptr(), layout);
        }
    }

    /// An owner, a thread that frees the owner's blocks, and the keeper at once: bytes stay as they are, and all come
    /// back.
    #[test]
    fn owner_others_and_keeper() {
        let layout = Layout::from_size_align(SPAN_BYTES, 64 << 10).unwrap();
        // SAFETY: the size is not zero.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        let arena = Arena::new();
        // SAFETY: the memory is the arena's until the end of the test.
        assert!(unsafe { arena.claim(memory, SPAN_BYTES) } && !unsafe { arena.claim(memory, SPAN_BYTES) });
        let (sender, receiver) = mpsc::channel::<Held>();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (arena, is_over) = (&arena, &is_over);
            scope.spawn(move || {
                for held in receiver {
                    held.check();
                    // SAFETY: it was allocated there, and is used no more.
                    unsafe { arena.free_elsewhere(held.0) };
                }
            });
            scope.spawn(move || {
                while !is_over.load(Relaxed) {
                    arena.serve();
                    std::thread::yield_now();
                }
            });
            let (mut random, mut kept, mut allocated, mut sent) = (1_usize, Vec::new(), 0, 0);
            for round in 0..ROUNDS {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let bytes = (random >> 33) % if round % 16 == 0 { 9000 } else { 400 };
                // SAFETY: this thread owns the arena; what it frees was allocated there.
                unsafe {
                    let place = arena.allocate(bytes, || ());
                    if !place.is_null() {
                        allocated += 1;
                        let held = Held(place, bytes, round as u8);
                        held.write();
                        kept.push(held);
                    } else {
                        std::thread::yield_now();
                    }
                    if kept.len() > 300 || !kept.is_empty() && random >> 62 == 0 {
                        let held = kept.swap_remove((random >> 20) % kept.len());
                        held.check();
                        if random >> 61 & 1 == 0 {
                            arena.free(held.0);
                        } else {
                            sent += 1;
                            sender.send(held).unwrap();
                        }
                    }
                    if round % 64 == 0 {
                        arena.tidy(round, || ());
                    }
                }
            }
            assert!(allocated > ROUNDS / 2 && sent > 0, "{allocated} allocated, {sent} sent");
            drop(sender);
            // SAFETY: this thread owns the arena.
            kept.drain(..).for_each(|held| unsafe { arena.free(held.0) });
            let mut second = ROUNDS;
            while second == ROUNDS || arena.used_bytes() > 0 {
                second += 1;
                // SAFETY: this thread owns the arena.
                unsafe { arena.tidy(second, || ()) };
                std::thread::yield_now();
            }
            is_over.store(true, Relaxed);
            // SAFETY: this thread owns the arena, for the last time.
            unsafe { arena.release() };
        });
        assert_eq!(arena.orphaned_bytes(), Some(0));
        // SAFETY: allocated with this layout; no thread uses the arena any more.
        unsafe { dealloc(memory.as_ptr(), layout) };
    }
}
