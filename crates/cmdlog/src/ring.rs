//! A ring of records from one worker to the flush: one writes, one reads, neither waits.
//!
//! ```text
//!          released          read            published
//! words  ----|================|=================|--------------
//!      free   kept for refill   not merged yet     free
//! entry = LSN (1 word) | payload bytes (1 word) | payload, in whole words
//! ```
//!
//! R1. Only the worker publishes and only the flush reads and releases. Both cursors count words since the beginning.
//! R2. An entry's words are stored before the cursor that publishes them (`Release`), and read after it (`Acquire`).
//! R3. Words are written again only after the cursor that releases them has been seen (`Release`, `Acquire`).
//!
//! Everything is an atomic, so a broken rule gives wrong bytes but never undefined behaviour, and no `unsafe` is needed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Words of an entry before its payload.
const HEAD_WORDS: u64 = 2;
const WORD_BYTES: usize = 8;

/// A value on cache lines of its own, so that two threads do not fight over one line.
#[repr(align(128))]
struct Alone<T>(T);

/// The ring.
pub(crate) struct Ring {
    words: Box<[AtomicU64]>,
    mask: u64,
    /// Written by the worker.
    published: Alone<AtomicU64>,
    /// Written by the flush.
    released: Alone<AtomicU64>,
}

/// An entry's place in the ring and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub lsn: u64,
    /// Bytes of the payload.
    pub bytes: usize,
    at: u64,
}

impl Entry {
    /// Where the next entry begins.
    pub fn end(&self) -> u64 {
        self.at + entry_words(self.bytes)
    }
}

fn entry_words(payload: usize) -> u64 {
    HEAD_WORDS + payload.div_ceil(WORD_BYTES) as u64
}

impl Ring {
    /// A ring of at least so many bytes (rounded up to a power of two).
    pub fn new(bytes: usize) -> Self {
        let words = (bytes / WORD_BYTES).max(HEAD_WORDS as usize).next_power_of_two();
        Self {
            words: std::iter::repeat_with(|| AtomicU64::new(0)).take(words).collect(),
            mask: words as u64 - 1,
            published: Alone(AtomicU64::new(0)),
            released: Alone(AtomicU64::new(0)),
        }
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        &self.words[(at & self.mask) as usize]
    }

    /// The words of a payload that begins at a position: up to the end of the memory, and from its beginning.
    fn payload_words(&self, at: u64, bytes: usize) -> [&[AtomicU64]; 2] {
        let (start, count) = ((at & self.mask) as usize, bytes.div_ceil(WORD_BYTES));
        let first = count.min(self.words.len() - start);
        [&self.words[start..start + first], &self.words[..count - first]]
    }

    /// Bytes in all.
    pub fn capacity(&self) -> usize {
        self.words.len() * WORD_BYTES
    }

    /// Bytes that are neither published nor kept. By the worker: a lower bound, since the flush only adds to it.
    pub fn free(&self) -> usize {
        let used = self.published.0.load(Ordering::Relaxed).wrapping_sub(self.released.0.load(Ordering::Acquire));
        (self.words.len() - used as usize) * WORD_BYTES
    }

    /// As [`free`](Self::free), by the flush: an upper bound, since the worker only takes from it.
    pub fn free_seen_by_flush(&self) -> usize {
        let used = self.published.0.load(Ordering::Acquire).wrapping_sub(self.released.0.load(Ordering::Relaxed));
        (self.words.len() - used as usize) * WORD_BYTES
    }

    /// Publishes an entry, unless there is no room. By the worker only (R1).
    pub fn push(&self, lsn: u64, payload: &[u8]) -> bool {
        let at = self.published.0.load(Ordering::Relaxed);
        let words = entry_words(payload.len());
        // `Acquire`: the flush has read what is overwritten here (R3).
        let used = at - self.released.0.load(Ordering::Acquire);
        if used + words > self.words.len() as u64 {
            return false;
        }
        self.word(at).store(lsn, Ordering::Relaxed);
        self.word(at + 1).store(payload.len() as u64, Ordering::Relaxed);
        let [first, second] = self.payload_words(at + HEAD_WORDS, payload.len());
        let (before, behind) = payload.split_at(payload.len().min(first.len() * WORD_BYTES));
        fill(first, before);
        fill(second, behind);
        self.published.0.store(at + words, Ordering::Release);
        true
    }

    /// The entry at a position that the flush has come to; `None` if it is not published yet.
    pub fn entry(&self, at: u64) -> Option<Entry> {
        if at == self.published.0.load(Ordering::Acquire) {
            return None;
        }
        let lsn = self.word(at).load(Ordering::Relaxed);
        let bytes = self.word(at + 1).load(Ordering::Relaxed) as usize;
        Some(Entry { lsn, bytes, at })
    }

    /// Copies an entry's payload; `out` is as long.
    pub fn copy(&self, entry: &Entry, out: &mut [u8]) {
        let [first, second] = self.payload_words(entry.at + HEAD_WORDS, entry.bytes);
        let (before, behind) = out.split_at_mut(entry.bytes.min(first.len() * WORD_BYTES));
        read(first, before);
        read(second, behind);
    }

    /// Where the first entry that is kept begins.
    pub fn released(&self) -> u64 {
        self.released.0.load(Ordering::Relaxed)
    }

    /// Gives everything before a position back to the worker. By the flush only (R1).
    pub fn release(&self, at: u64) {
        if at > self.released() {
            self.released.0.store(at, Ordering::Release);
        }
    }
}

/// Stores bytes in the words they need.
fn fill(words: &[AtomicU64], bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<WORD_BYTES>();
    for (word, chunk) in words.iter().zip(whole) {
        word.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
    }
    if let Some(word) = words.get(whole.len()) {
        let mut last = [0; WORD_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        word.store(u64::from_le_bytes(last), Ordering::Relaxed);
    }
}

/// The reverse of [`fill`].
fn read(words: &[AtomicU64], bytes: &mut [u8]) {
    let (whole, rest) = bytes.as_chunks_mut::<WORD_BYTES>();
    for (word, chunk) in words.iter().zip(&mut *whole) {
        *chunk = word.load(Ordering::Relaxed).to_le_bytes();
    }
    if let Some(word) = words.get(whole.len()) {
        rest.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes()[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use std::collections::VecDeque;

    /// Payload bytes that tell where they belong.
    fn payload(lsn: u64, len: usize) -> Vec<u8> {
        (0..len).map(|i| (lsn as usize * 31 + i) as u8).collect()
    }

    /// Entries of all lengths come out as they went in, over many turns; a full ring takes nothing.
    #[test]
    fn entries_come_out_in_order() {
        let ring = Ring::new(1024);
        let mut rng = Rng::new(1);
        let mut model = VecDeque::new();
        let (mut lsn, mut read) = (0u64, 0u64);
        for _ in 0..if cfg!(miri) { 300 } else { 20_000 } {
            if rng.one_in(2) {
                let len = rng.below(200) as usize;
                let fits = ring.free() >= 16 + len.div_ceil(8) * 8;
                assert_eq!(ring.push(lsn, &payload(lsn, len)), fits);
                if fits {
                    model.push_back((lsn, len));
                    lsn += 1;
                }
            } else {
                let entry = ring.entry(read);
                assert_eq!(entry.map(|e| (e.lsn, e.bytes)), model.pop_front());
                if let Some(entry) = entry {
                    let mut bytes = vec![0; entry.bytes];
                    ring.copy(&entry, &mut bytes);
                    assert_eq!(bytes, payload(entry.lsn, entry.bytes));
                    read = entry.end();
                    if rng.one_in(3) {
                        ring.release(read);
                    }
                }
            }
            if model.is_empty() {
                ring.release(read);
                assert_eq!(ring.free(), ring.capacity());
            }
        }
    }

    /// A worker and the flush on two threads: nothing is lost, doubled or torn. Run under Miri too, which checks that
    /// the orderings are enough.
    #[test]
    fn two_threads_agree() {
        let ring = Ring::new(512);
        let count = if cfg!(miri) { 100 } else { 100_000u64 };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for lsn in 0..count {
                    while !ring.push(lsn, &payload(lsn, lsn as usize % 40)) {
                        std::thread::yield_now();
                    }
                }
            });
            let (mut read, mut bytes) = (0, Vec::new());
            for lsn in 0..count {
                let entry = loop {
                    match ring.entry(read) {
                        Some(entry) => break entry,
                        None => std::thread::yield_now(),
                    }
                };
                bytes.resize(entry.bytes, 0);
                ring.copy(&entry, &mut bytes);
                assert_eq!((entry.lsn, &bytes), (lsn, &payload(lsn, lsn as usize % 40)));
                read = entry.end();
                ring.release(read);
            }
        });
    }
}
