//! The in-memory part of the log's stream: a ring buffer, in which a byte's position determines its place.
//!
//! ```text
//!            released          published       end            released + capacity
//! stream  ------|===================|=====...====|--------------------|
//!               kept until durable   being filled  not reserved yet
//! place of a byte = position mod capacity; producers: one per worker, and the flush for its marks
//! ```
//!
//! S1. One atomic addition reserves positions, so no two reservations share a byte. The thread that made a reservation
//!     fills it.
//! S2. A producer publishes its position (its *floor*) before it reserves, and clears it after its bytes are in place.
//!     Everything before the lowest floor, and before the end that was read *first*, is in place: that is the published
//!     part.
//! S3. A byte's place is filled only while the byte lies below released + capacity, so no producer overwrites a byte
//!     that is not released.
//! S4. One reader sees the published part that is not released, and only that reader releases.
//!
//! By S1 and S3, two producers never write the same place; by S2 to S4, neither do a producer and the reader. So plain
//! copies suffice.
#![allow(
    unsafe_code,
    reason = "workers copy into a buffer that the writer reads elsewhere; in atomic words that took twice the time"
)]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};

use vfs::AlignedBuf;

/// The floor of a producer that fills nothing.
const IDLE: u64 = u64::MAX;

/// A value on its own cache lines, so that two threads do not contend for one line.
#[repr(align(128))]
struct Alone<T>(T);

/// The producers' side.
pub(crate) struct Stream {
    /// The beginning of `capacity` bytes. `_owner` keeps them allocated and is never used to access them.
    memory: NonNull<u8>,
    /// A power of two.
    capacity: u64,
    /// The position after the last reservation (S1).
    end: Alone<AtomicU64>,
    /// Written by the reader (S4).
    released: Alone<AtomicU64>,
    /// Written by each producer (S2).
    floors: Box<[Alone<AtomicU64>]>,
    _owner: AlignedBuf,
}

// SAFETY: the memory belongs to the owner, which is `Send`; its bytes are accessed only as S1 to S4 allow.
unsafe impl Send for Stream {}
// SAFETY: by S1 to S4 no two threads access the same byte unless one has observed that the other is done with it.
unsafe impl Sync for Stream {}

/// The one reader (S4).
pub(crate) struct StreamReader {
    stream: Arc<Stream>,
    /// The published end when it was last read.
    published: u64,
}

/// A reservation in the stream that its producer is about to fill. It counts as published when this is dropped.
pub(crate) struct Room<'a> {
    stream: &'a Stream,
    floor: &'a AtomicU64,
    lsn: u64,
    bytes: u64,
    /// Whether all of it lies in the buffer (S3).
    fits: bool,
}

impl Stream {
    /// A stream that begins at a position, with at least `bytes` bytes (rounded up to a power of two).
    pub fn new(bytes: usize, producers: usize, first: u64) -> (Arc<Self>, StreamReader) {
        let mut owner = AlignedBuf::zeroed(bytes.next_power_of_two());
        let capacity = owner.len() as u64;
        assert!(capacity.is_power_of_two(), "a block is one too");
        let memory = NonNull::from(&mut *owner).cast();
        let floors = (0..producers).map(|_| Alone(AtomicU64::new(IDLE)));
        let stream = Arc::new(Self {
            memory,
            capacity,
            end: Alone(AtomicU64::new(first)),
            released: Alone(AtomicU64::new(first)),
            floors: floors.collect(),
            _owner: owner,
        });
        (Arc::clone(&stream), StreamReader { stream, published: first })
    }

    /// Bytes of the buffer.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The position after the last reservation.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end.0.load(SeqCst)
    }

    /// Bytes that can be reserved and have a place in the buffer.
    #[inline]
    pub fn free(&self) -> u64 {
        (self.released.0.load(Relaxed) + self.capacity).saturating_sub(self.end.0.load(Relaxed))
    }

    /// Reserves the next `bytes` bytes.
    ///
    /// # Panics
    /// If the producer has another reservation open.
    #[inline]
    pub fn reserve(&self, producer: usize, bytes: u64) -> Room<'_> {
        let floor = &self.floors[producer].0;
        // At most what the addition below returns, since the end only grows.
        let at_most = self.end.0.load(Relaxed);
        // Compare, do not overwrite: a floor that is already set must stay.
        let taken = floor.compare_exchange(IDLE, at_most, AcqRel, Relaxed);
        assert!(taken.is_ok(), "two threads append as one worker");
        // `Release`: a thread that sees this addition, or a later one, also sees the floor (S2).
        let lsn = self.end.0.fetch_add(bytes, SeqCst);
        // `Acquire`: the reader is done with the bytes that had these places (S3).
        let fits = lsn + bytes <= self.released.0.load(Acquire) + self.capacity;
        Room { stream: self, floor, lsn, bytes, fits }
    }

    /// Everything before this position is in place (S2).
    fn published(&self) -> u64 {
        // `Acquire`, before the floors: for each addition it includes, the floor of its producer is visible, or a later
        // one.
        let end = self.end.0.load(SeqCst);
        // `Acquire`: a later floor makes the bytes visible.
        self.floors.iter().map(|floor| floor.0.load(Acquire)).fold(end, u64::min)
    }

    /// The places of `bytes` bytes from a position on: up to the end of the memory, then from its beginning. At most
    /// `capacity`.
    fn places(&self, lsn: u64, bytes: u64) -> [(NonNull<u8>, usize); 2] {
        assert!(bytes <= self.capacity);
        let at = lsn & (self.capacity - 1);
        let first = bytes.min(self.capacity - at);
        // SAFETY: `at` lies within the memory.
        let start = unsafe { self.memory.add(at as usize) };
        [(start, first as usize), (self.memory, (bytes - first) as usize)]
    }
}

impl Room<'_> {
    /// The position of the first byte.
    #[inline]
    pub fn lsn(&self) -> u64 {
        self.lsn
    }

    /// Whether it has a place in the ring. If not, the producer keeps the bytes elsewhere, where the reader finds them
    /// once this is dropped.
    #[inline]
    pub fn fits(&self) -> bool {
        self.fits
    }

    /// Copies bytes in, from offset `at` of the reservation on.
    ///
    /// # Panics
    /// If they reach beyond the reservation, or it has no place.
    #[inline]
    pub fn fill(&mut self, at: usize, bytes: &[u8]) {
        let (at, len) = (at as u64, bytes.len() as u64);
        assert!(self.fits && at <= self.bytes && len <= self.bytes - at);
        let [(first, count), (second, _)] = self.stream.places(self.lsn + at, len);
        let (before, behind) = bytes.split_at(count);
        // SAFETY: these places belong to this reservation (S1). No reader has seen them as published (S2: the floor is
        // at or below them until this is dropped), and their former bytes are released (S3: `fits`).
        unsafe {
            first.copy_from_nonoverlapping(NonNull::from(before).cast(), before.len());
            second.copy_from_nonoverlapping(NonNull::from(behind).cast(), behind.len());
        }
    }
}

impl Drop for Room<'_> {
    #[inline]
    fn drop(&mut self) {
        // `Release`: after the bytes (S2).
        self.floor.store(IDLE, Release);
    }
}

impl StreamReader {
    /// Reads the end of the published part.
    pub fn published(&mut self) -> u64 {
        self.published = self.stream.published().max(self.published);
        self.published
    }

    /// The last result of [`published`](Self::published).
    pub fn seen(&self) -> u64 {
        self.published
    }

    /// Published bytes, in two parts where they wrap around. The contents of bytes without a place are unspecified.
    ///
    /// # Panics
    /// If they are released, or were not published when [`published`](Self::published) was last called.
    pub fn bytes(&self, from: u64, to: u64) -> [&[u8]; 2] {
        assert!(self.stream.released.0.load(Relaxed) <= from && from <= to && to <= self.published);
        // Do not read the place of another byte for one that has no place.
        let to = to.min(self.stream.released.0.load(Relaxed) + self.stream.capacity).max(from);
        // SAFETY: initialised memory. It is published and not released, so no producer fills these places (S2, S3)
        // until the reader releases them, and the borrow here prevents that (S4).
        self.stream
            .places(from, to - from)
            .map(|(start, len)| unsafe { NonNull::slice_from_raw_parts(start, len).as_ref() })
    }

    /// Releases the places of everything before a published position.
    pub fn release(&mut self, to: u64) {
        assert!(to <= self.published);
        // `Release`: after the last read of these places (S3).
        self.stream.released.0.fetch_max(to, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    const PRODUCERS: usize = 3;
    /// Bytes of a test record's head: its length and its producer.
    const HEAD: usize = 3;

    fn byte(lsn: u64, at: usize) -> u8 {
        (lsn as usize * 31 + at) as u8
    }

    /// Appends a record that holds its own position; returns its end, or `None` when it found no place.
    fn append(stream: &Stream, producer: usize, len: usize) -> Option<u64> {
        let mut room = stream.reserve(producer, (HEAD + len) as u64);
        let lsn = room.lsn();
        if !room.fits() {
            return None;
        }
        room.fill(0, &[len as u8, (len >> 8) as u8, producer as u8]);
        let payload: Vec<u8> = (0..len).map(|at| byte(lsn, at)).collect();
        let half = len / 2;
        room.fill(HEAD, &payload[..half]);
        room.fill(HEAD + half, &payload[half..]);
        Some(lsn + (HEAD + len) as u64)
    }

    /// The bytes of a range, joined.
    fn read(reader: &StreamReader, from: u64, to: u64) -> Vec<u8> {
        reader.bytes(from, to).concat()
    }

    /// Checks the records of a published range and returns their number.
    fn check(reader: &StreamReader, from: u64, to: u64) -> usize {
        let (mut lsn, mut count) = (from, 0);
        while lsn < to {
            let head = read(reader, lsn, lsn + HEAD as u64);
            let len = usize::from(head[0]) | usize::from(head[1]) << 8;
            assert!(usize::from(head[2]) < PRODUCERS);
            let payload = read(reader, lsn + HEAD as u64, lsn + (HEAD + len) as u64);
            assert!(payload.iter().enumerate().all(|(at, found)| *found == byte(lsn, at)), "at {lsn}");
            lsn += (HEAD + len) as u64;
            count += 1;
        }
        assert_eq!(lsn, to, "a record's end");
        count
    }

    /// Records of all lengths come out unchanged, over many turns of the buffer.
    #[test]
    fn records_come_out_in_order() {
        let (stream, mut reader) = Stream::new(1, PRODUCERS, 1000);
        assert_eq!((stream.capacity(), stream.free()), (4096, 4096));
        let (mut rng, mut from) = (Rng::new(1), 1000);
        for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
            while stream.free() > 600 && !rng.one_in(8) {
                let end = append(&stream, rng.below(PRODUCERS as u64) as usize, rng.below(500) as usize);
                assert_eq!(end, Some(stream.end()));
            }
            let to = reader.published();
            assert_eq!(to, stream.end());
            check(&reader, from, to);
            reader.release(to);
            from = to;
            assert_eq!(stream.free(), 4096);
        }
    }

    /// A reservation that is being filled holds back everything after it; one without a place is published like the
    /// rest.
    #[test]
    fn what_is_being_filled_is_not_published() {
        let (stream, mut reader) = Stream::new(4096, PRODUCERS, 0);
        append(&stream, 0, 10);
        let mut open = stream.reserve(1, 8);
        append(&stream, 0, 10);
        assert_eq!(reader.published(), 13);
        open.fill(0, b"12345678");
        assert_eq!(reader.published(), 13, "filled and not yet said so");
        drop(open);
        assert_eq!(reader.published(), 34);
        assert_eq!(read(&reader, 13, 21), b"12345678");
        let apart = stream.reserve(2, 10_000);
        assert!(!apart.fits());
        drop(apart);
        assert_eq!((reader.published(), stream.free()), (10_034, 0));
        assert_eq!(append(&stream, 0, 1), None, "behind it nothing has a place");
        let to = reader.published();
        reader.release(to);
        assert!(append(&stream, 0, 1).is_some());
    }

    #[test]
    #[should_panic(expected = "two threads append as one worker")]
    fn a_producer_fills_one_thing_at_a_time() {
        let (stream, _reader) = Stream::new(4096, PRODUCERS, 0);
        let _open = stream.reserve(0, 8);
        let _second = stream.reserve(0, 8);
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn what_is_not_published_is_not_read() {
        let (stream, mut reader) = Stream::new(4096, PRODUCERS, 0);
        let _open = stream.reserve(0, 8);
        let to = reader.published();
        reader.bytes(0, to + 8);
    }

    /// Several producers and the reader on separate threads: nothing is lost or torn. Also run under Miri, which finds
    /// accesses that S1 to S4 do not order.
    #[test]
    fn threads_agree() {
        let (stream, mut reader) = Stream::new(4096, PRODUCERS, 0);
        let each = if cfg!(miri) { 60 } else { 50_000 };
        std::thread::scope(|scope| {
            for producer in 0..PRODUCERS {
                let stream = &stream;
                scope.spawn(move || {
                    for n in 0..each {
                        // All producers may find the same room.
                        while stream.free() < (PRODUCERS * 203) as u64 {
                            std::thread::yield_now();
                        }
                        assert!(append(stream, producer, (n * 7 + producer) % 200).is_some());
                    }
                });
            }
            let (mut from, mut count) = (0, 0);
            while count < each * PRODUCERS {
                let to = reader.published();
                if to == from {
                    std::thread::yield_now();
                    continue;
                }
                count += check(&reader, from, to);
                from = to;
                reader.release(to);
            }
        });
        assert_eq!(reader.published(), stream.end());
    }
}
