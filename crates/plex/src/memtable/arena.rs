//! Bytes of entries, one entry behind the other, written by one and read by any number, who never wait.
//!
//! ```text
//!   chunk 0  [ length | entry | length | entry | ... | not written yet ]      chunk 1  [ length | a long entry ]      ...
//!                                                    ^ len
//! ```
//!
//! A1. Bytes of a chunk below its `len` are written, and nobody writes them again.
//! A2. Only the [`ArenaWriter`], of which there is one, writes: at and above `len`, which it then moves (a release).
//! A3. Chunks go with the last of writer and readers.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::grow::Grow;
use crate::prefetch::prefetch;

/// Bytes of a chunk, unless one entry needs more.
const CHUNK_BYTES: usize = if cfg!(miri) { 1 << 12 } else { 1 << 20 };

/// An entry longer than this gets a chunk of its own, so that no more than this is left over at the end of another one.
const SHARING_BYTES_MAX: usize = CHUNK_BYTES / 8;

/// Entries begin at multiples of it, so that 32 bits tell a place.
const ALIGNMENT: usize = 8;

/// Low bits of a place that tell where in the chunk it is, in units of the alignment; the others are the chunk's number.
const OFFSET_BITS: u32 = (CHUNK_BYTES / ALIGNMENT).ilog2();

/// Bytes of an entry's length.
const LEN_LEN: usize = size_of::<u32>();

/// Bytes in a line of the processor's cache.
const CACHE_LINE: usize = 64;

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    fn new(chunk: u32, offset: usize) -> Self {
        assert!(chunk < 1 << (u32::BITS - OFFSET_BITS), "a memtable is switched long before 32,768 chunks");
        Self(chunk << OFFSET_BITS | (offset / ALIGNMENT) as u32)
    }

    fn chunk(self) -> u32 {
        self.0 >> OFFSET_BITS
    }

    fn offset(self) -> usize {
        (self.0 & ((1 << OFFSET_BITS) - 1)) as usize * ALIGNMENT
    }

    /// As a number, to be kept in an atomic.
    pub fn to_bits(self) -> u32 {
        self.0
    }

    /// Undoes [`to_bits`](Self::to_bits). A number that never was a place is safe and gives some bytes, or a panic.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

struct Chunk {
    bytes: NonNull<[MaybeUninit<u8>]>,
    /// See A1.
    len: AtomicUsize,
}

// SAFETY: a chunk owns its bytes, and what A1 and A2 say of them holds on whatever thread.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new(bytes: usize) -> Self {
        let bytes = Box::into_raw(Box::new_uninit_slice(bytes));
        Self { bytes: NonNull::new(bytes).expect("a box is somewhere"), len: AtomicUsize::new(0) }
    }

    /// Where the next entry begins.
    fn end(&self) -> usize {
        self.len.load(Ordering::Relaxed).next_multiple_of(ALIGNMENT)
    }

    /// These bytes, all of which must be written.
    #[inline]
    fn written(&self, at: usize, len: usize) -> &[u8] {
        let end = self.len.load(Ordering::Acquire);
        assert!(at <= end && len <= end - at, "an entry lies below the end of what is written");
        // SAFETY: the bytes are below `len`, as was just looked at. By A1 they are initialised and stay as they are; by A3 they
        // live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast::<u8>().cast_const().add(at), len) }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: `new` took it out of a box of this type, and nobody else frees it.
        drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
    }
}

/// The reading side.
pub(super) struct Arena(Arc<Grow<Chunk>>);

impl Arena {
    pub fn new() -> (Self, ArenaWriter) {
        let chunks = Arc::new(Grow::new());
        (Self(chunks.clone()), ArenaWriter { chunks, count: 0, current: 0 })
    }

    #[inline]
    fn chunk(&self, place: Place) -> &Chunk {
        self.0.get(place.chunk()).expect("an entry's chunk exists")
    }

    /// The entry at this place.
    #[inline]
    pub fn get(&self, place: Place) -> &[u8] {
        let (chunk, at) = (self.chunk(place), place.offset());
        let len = chunk.written(at, LEN_LEN).first_chunk().map_or(0, |len| u32::from_le_bytes(*len));
        chunk.written(at + LEN_LEN, len as usize)
    }

    /// Asks memory for the beginning of an entry.
    pub fn prefetch(&self, place: Place, bytes: usize) {
        let (chunk, at) = (self.chunk(place), place.offset());
        let behind = chunk.len.load(Ordering::Acquire) - at;
        let bytes = chunk.written(at, behind.min(bytes));
        (0..bytes.len()).step_by(CACHE_LINE).for_each(|at| prefetch(bytes, at));
    }
}

/// The writing side.
pub(super) struct ArenaWriter {
    chunks: Arc<Grow<Chunk>>,
    /// Chunks so far.
    count: u32,
    /// The one that short entries go to; there is none yet if there are no chunks.
    current: u32,
}

impl ArenaWriter {
    /// Writes an entry that consists of these parts.
    pub fn push(&mut self, parts: &[&[u8]]) -> Place {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let frame = u32::try_from(len).expect("an entry is shorter than 4 GiB").to_le_bytes();
        let number = self.chunk_with_room(LEN_LEN + len);
        let chunk = self.chunks.get(number).expect("it was just looked at or made");
        let begin = chunk.end();
        let mut at = chunk.len.load(Ordering::Relaxed);
        // What is left over by the alignment is written, too, since it will be below `len`.
        for part in [&[0; ALIGNMENT][..begin - at], &frame].iter().chain(parts) {
            assert!(at + part.len() <= chunk.bytes.len(), "there is room for all parts");
            // SAFETY: the bytes are within the chunk, as was just looked at. They are above `len`: by A2 nobody else writes
            // there, and by A1 nobody reads there, so no reference leads to them, `part` neither.
            unsafe {
                let to = chunk.bytes.as_ptr().cast::<u8>().add(at);
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
            }
            at += part.len();
        }
        chunk.len.store(at, Ordering::Release);
        Place::new(number, begin)
    }

    /// The number of a chunk that has room for so many bytes.
    fn chunk_with_room(&mut self, needed: usize) -> u32 {
        let has_room = |chunk: &Chunk| chunk.bytes.len().saturating_sub(chunk.end()) >= needed;
        if self.chunks.get(self.current).is_some_and(has_room) {
            return self.current;
        }
        let number = self.count;
        self.chunks.put(number, Chunk::new(needed.max(CHUNK_BYTES)));
        self.count += 1;
        if needed <= SHARING_BYTES_MAX {
            self.current = number;
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Entries of all lengths come back as they were, those with a chunk of their own between the others.
    #[test]
    fn entries_come_back() {
        let (arena, mut writer) = Arena::new();
        let mut written = Vec::new();
        for number in 0..300usize {
            let len = [number, 700, 13, if number % 50 == 0 { CHUNK_BYTES + number } else { 1 }][number % 4];
            let value = vec![number as u8; len];
            written.push((writer.push(&[&number.to_le_bytes(), &value]), number, value));
        }
        for (place, number, value) in written {
            let bytes = arena.get(Place::from_bits(place.to_bits()));
            assert_eq!(bytes[..8], number.to_le_bytes());
            assert_eq!(bytes[8..], value);
        }
    }

    /// A reader sees what was written before it was told the place, while the writer goes on.
    #[test]
    fn readers_beside_the_writer() {
        let (arena, mut writer) = Arena::new();
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            let arena = &arena;
            scope.spawn(move || {
                for (place, number) in told {
                    assert_eq!(arena.get(place)[..8], u64::to_le_bytes(number));
                }
            });
            for number in 0u64..if cfg!(miri) { 100 } else { 20_000 } {
                tell.send((writer.push(&[&number.to_le_bytes(), b"behind"]), number)).expect("the reader listens");
            }
            drop(tell);
        });
    }
}
