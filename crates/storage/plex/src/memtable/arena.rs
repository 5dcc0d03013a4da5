//! Bytes of entries, one entry after the other, written by one thread and read by any number, which never wait.
//!
//! ```text
//!   shared chunks  [ length | entry | length | entry | ... | not written yet ]  ...
//!                                                          ^ len
//!   own chunks     [ length | a long entry ]  ...
//! ```
//!
//! A1. Bytes of a chunk below its `len` are written, and are never written again.
//! A2. Only the [`ArenaWriter`], of which there is one, writes: at and above `len`, which it then moves (a release).
//! A3. Chunks go with the last of writer and readers.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::grow::Grow;
use crate::prefetch::prefetch;

/// Bytes of a chunk that entries share.
const CHUNK_BYTES: usize = if cfg!(miri) { 1 << 12 } else { 1 << 20 };

/// A longer entry gets a chunk of its own, as long as it is, so that no more than this is left over at the end of a
/// shared one.
const SHARING_BYTES_MAX: usize = CHUNK_BYTES / 8;

/// Entries begin at multiples of it, so that 32 bits identify a place.
const ALIGNMENT: usize = 8;

/// Of a place in a shared chunk, the low bits that give the offset in it, in units of the alignment.
const OFFSET_BITS: u32 = (CHUNK_BYTES / ALIGNMENT).ilog2();

/// Set in the place of an entry that has a chunk of its own; the other bits are that chunk's number. Thus long entries,
/// however many, take no numbers from the shared chunks.
const IS_OWN: u32 = 1 << (u32::BITS - 1);

/// Bytes of an entry's length.
const LEN_LEN: usize = size_of::<u32>();

/// Bytes in a line of the processor's cache.
const CACHE_LINE: usize = 64;

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    fn shared(chunk: u32, offset: usize) -> Self {
        assert!(
            chunk < IS_OWN >> OFFSET_BITS,
            "by MEMTABLE_BYTES_MAX and BATCH_BYTES_MAX there are fewer than 16,384 chunks"
        );
        Self(chunk << OFFSET_BITS | (offset / ALIGNMENT) as u32)
    }

    fn own(chunk: u32) -> Self {
        assert!(chunk < IS_OWN, "that many long entries would be 256 TiB");
        Self(IS_OWN | chunk)
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
        // SAFETY: the bytes are below `len`, as was just looked at. By A1 they are initialised and stay as they are; by
        // A3 they live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast::<u8>().cast_const().add(at), len) }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: `new` took it out of a box of this type, and nothing else frees it.
        drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
    }
}

/// All chunks.
struct Chunks {
    shared: Grow<Chunk>,
    own: Grow<Chunk>,
}

/// The reading side.
pub(super) struct Arena(Arc<Chunks>);

impl Arena {
    pub fn new() -> (Self, ArenaWriter) {
        let chunks = Arc::new(Chunks { shared: Grow::new(), own: Grow::new() });
        (Self(chunks.clone()), ArenaWriter { chunks, shared: 0, own: 0 })
    }

    /// The chunk of a place, and where in it.
    #[inline]
    fn find(&self, Place(bits): Place) -> (&Chunk, usize) {
        let (chunk, at) = match bits & IS_OWN {
            0 => {
                let offset = (bits & ((1 << OFFSET_BITS) - 1)) as usize * ALIGNMENT;
                (self.0.shared.get(bits >> OFFSET_BITS), offset)
            }
            _ => (self.0.own.get(bits & !IS_OWN), 0),
        };
        (chunk.expect("an entry's chunk exists"), at)
    }

    /// The entry at this place.
    #[inline]
    pub fn get(&self, place: Place) -> &[u8] {
        let (chunk, at) = self.find(place);
        let len = chunk.written(at, LEN_LEN).first_chunk().map_or(0, |len| u32::from_le_bytes(*len));
        chunk.written(at + LEN_LEN, len as usize)
    }

    /// Asks memory for the beginning of an entry.
    pub fn prefetch(&self, place: Place, bytes: usize) {
        let (chunk, at) = self.find(place);
        let behind = chunk.len.load(Ordering::Acquire) - at;
        let bytes = chunk.written(at, behind.min(bytes));
        (0..bytes.len()).step_by(CACHE_LINE).for_each(|at| prefetch(bytes, at));
    }
}

/// The writing side.
pub(super) struct ArenaWriter {
    chunks: Arc<Chunks>,
    /// How many of each there are. Short entries go to the last shared one.
    shared: u32,
    own: u32,
}

impl ArenaWriter {
    /// Writes an entry that consists of these parts, of less than 4 GiB together.
    pub fn push(&mut self, parts: &[&[u8]]) -> Place {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let frame = u32::try_from(len).expect("key and value are shorter than 4 GiB").to_le_bytes();
        let (chunk, place) = self.room(LEN_LEN + len);
        let begin = chunk.end();
        let mut at = chunk.len.load(Ordering::Relaxed);
        // What is left over by the alignment is written, too, since it will be below `len`.
        for part in [&[0; ALIGNMENT][..begin - at], &frame].iter().chain(parts) {
            assert!(at + part.len() <= chunk.bytes.len(), "there is room for all parts");
            // SAFETY: the bytes are within the chunk, as was just checked. They are above `len`: by A2 no other thread
            // writes there, and by A1 none reads there, so no reference leads to them; `part` does not either.
            unsafe {
                let to = chunk.bytes.as_ptr().cast::<u8>().add(at);
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
            }
            at += part.len();
        }
        chunk.len.store(at, Ordering::Release);
        place
    }

    /// A chunk with room for `needed` bytes, and the place of what is written there next.
    fn room(&mut self, needed: usize) -> (&Chunk, Place) {
        if needed > SHARING_BYTES_MAX {
            let number = self.own;
            self.own += 1;
            return (self.chunks.own.put(number, Chunk::new(needed)), Place::own(number));
        }
        let has_room = |chunk: &Chunk| chunk.bytes.len().saturating_sub(chunk.end()) >= needed;
        let last = self.shared.checked_sub(1).filter(|last| self.chunks.shared.get(*last).is_some_and(has_room));
        let number = last.unwrap_or(self.shared);
        let chunk = match last.and_then(|last| self.chunks.shared.get(last)) {
            Some(chunk) => chunk,
            None => {
                self.shared += 1;
                self.chunks.shared.put(number, Chunk::new(CHUNK_BYTES))
            }
        };
        (chunk, Place::shared(number, chunk.end()))
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

    /// Long entries take what they need, and none of the places of short ones: of these there are as many as 14 GiB
    /// have.
    #[test]
    fn long_entries_leave_places_to_short_ones() {
        let (arena, mut writer) = Arena::new();
        let long = vec![7; SHARING_BYTES_MAX];
        for _ in 0..10 {
            let place = writer.push(&[&long]);
            assert_eq!(arena.find(place).0.bytes.len(), LEN_LEN + long.len());
        }
        assert_eq!(writer.push(&[b"short"]), Place::shared(0, 0));
        let last = Place::shared((IS_OWN >> OFFSET_BITS) - 1, CHUNK_BYTES - ALIGNMENT);
        assert_eq!((last.0, Place::own(0).0), (IS_OWN - 1, IS_OWN));
    }

    /// A reader sees what was written before it received the place, while the writer continues.
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
