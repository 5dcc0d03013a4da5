//! The contents of one file at one moment, in pages that copies share.
//!
//! I1. A byte at or beyond `len` reads as zero and is zero in its page: growth shows zeros. (While a crash is drawn, a
//!     page beyond `len` may be written before the length is set, within one function.)
//! I2. `allocated` counts the slots that are not holes.

use std::ops::Range;
use std::sync::Arc;

use super::cow::CowVec;

/// Unit of allocation, in bytes.
pub(super) const PAGE: u64 = 4096;

type Page = [u8; PAGE as usize];

#[derive(Clone, Debug)]
enum Slot {
    /// Reads as zero; a write must allocate first.
    Hole,
    /// Space is reserved but not written: reads as zero.
    Reserved,
    Data(Arc<Page>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    len: u64,
    slots: CowVec<Slot>,
    allocated: u64,
}

/// The part of one page that a range of the file covers.
struct PagePart {
    slot: usize,
    /// Range within the page.
    bytes: Range<usize>,
    /// Range within the caller's buffer.
    buffer: Range<usize>,
}

fn parts(offset: u64, len: usize) -> impl Iterator<Item = PagePart> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let start = (at % PAGE) as usize;
        let n = (PAGE as usize - start).min(len - done);
        let part = PagePart { slot: (at / PAGE) as usize, bytes: start..start + n, buffer: done..done + n };
        done += n;
        Some(part)
    })
}

impl Image {
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Pages of the device in use.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    /// Fills `buf` from `offset` up to the end of the file; returns the number of bytes.
    pub fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let n = (buf.len() as u64).min(self.len.saturating_sub(offset)) as usize;
        for part in parts(offset, n) {
            match self.slots.get(part.slot) {
                Some(Slot::Data(page)) => buf[part.buffer].copy_from_slice(&page[part.bytes]),
                _ => buf[part.buffer].fill(0),
            }
        }
        n
    }

    /// The number of leading bytes that are already present at `offset`.
    pub fn same_bytes(&self, bytes: &[u8], offset: u64) -> usize {
        let mut old = vec![0; bytes.len()];
        let n = self.read(&mut old, offset);
        old[..n].iter().zip(bytes).take_while(|(old, new)| old == new).count()
    }

    /// All bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len as usize];
        self.read(&mut bytes, 0);
        bytes
    }

    /// Stores bytes; the length stays (see [`grow`](Self::grow)).
    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        for part in parts(offset, bytes.len()) {
            let slot = self.slot_mut(part.slot);
            let was_hole = matches!(slot, Slot::Hole);
            if !matches!(slot, Slot::Data(_)) {
                *slot = Slot::Data(Arc::new([0; PAGE as usize]));
            }
            if let Slot::Data(page) = slot {
                Arc::make_mut(page)[part.bytes].copy_from_slice(&bytes[part.buffer]);
            }
            self.allocated += u64::from(was_hole);
        }
    }

    /// Sets the length to at least `len`.
    pub fn grow(&mut self, len: u64) {
        self.len = self.len.max(len);
    }

    /// Limits the length to `len` and frees all space after it, including reserved space.
    pub fn cut(&mut self, len: u64) {
        let keep = len.div_ceil(PAGE) as usize;
        let dropped = (keep..self.slots.len()).filter(|&i| !matches!(self.slots.get(i), Some(Slot::Hole)));
        self.allocated -= dropped.count() as u64;
        self.slots.truncate(keep);
        self.zero(len..len.next_multiple_of(PAGE));
        self.len = self.len.min(len);
    }

    /// Sets the length. Truncation frees space, extension takes none.
    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.cut(len);
        }
        self.grow(len);
    }

    /// Reserves space for the range.
    pub fn reserve(&mut self, range: Range<u64>) {
        for index in range.start / PAGE..range.end.div_ceil(PAGE) {
            let slot = self.slot_mut(index as usize);
            if matches!(slot, Slot::Hole) {
                *slot = Slot::Reserved;
                self.allocated += 1;
            }
        }
    }

    /// Frees whole pages of the range and zeroes the rest of it.
    pub fn punch(&mut self, range: Range<u64>) {
        let whole = range.start.div_ceil(PAGE)..range.end / PAGE;
        if whole.start >= whole.end {
            return self.zero(range);
        }
        self.zero(range.start..whole.start * PAGE);
        for index in whole.start..whole.end.min(self.slots.len() as u64) {
            let slot = self.slots.get_mut(index as usize).expect("inside");
            if !matches!(slot, Slot::Hole) {
                *slot = Slot::Hole;
                self.allocated -= 1;
            }
        }
        self.zero(whole.end * PAGE..range.end);
    }

    /// Zeroes bytes, in pages that hold data.
    fn zero(&mut self, range: Range<u64>) {
        for part in parts(range.start, range.end.saturating_sub(range.start) as usize) {
            if let Some(Slot::Data(_)) = self.slots.get(part.slot)
                && let Some(Slot::Data(page)) = self.slots.get_mut(part.slot)
            {
                Arc::make_mut(page)[part.bytes].fill(0);
            }
        }
    }

    /// The number of bytes of a write at `offset` that find space if `free` more pages may be taken.
    pub fn fitting(&self, offset: u64, len: usize, free: u64) -> usize {
        let mut left = free;
        let mut fitting = 0;
        for part in parts(offset, len) {
            if self.is_hole(part.slot) {
                let Some(rest) = left.checked_sub(1) else { break };
                left = rest;
            }
            fitting = part.buffer.end;
        }
        fitting
    }

    /// Pages that must be taken before the whole range is reserved.
    pub fn missing(&self, range: Range<u64>) -> u64 {
        (range.start / PAGE..range.end.div_ceil(PAGE)).filter(|&index| self.is_hole(index as usize)).count() as u64
    }

    fn is_hole(&self, slot: usize) -> bool {
        matches!(self.slots.get(slot), None | Some(Slot::Hole))
    }

    fn slot_mut(&mut self, index: usize) -> &mut Slot {
        while self.slots.len() <= index {
            self.slots.push(Slot::Hole);
        }
        self.slots.get_mut(index).expect("just made")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// Random writes, truncations, holes and reservations match a plain vector, and space is counted correctly.
    #[test]
    #[cfg_attr(miri, ignore = "safe code, and slow there")]
    fn agrees_with_a_vector() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let (mut image, mut plain) = (Image::default(), Vec::<u8>::new());
            for step in 1..100u64 {
                let (start, n) = (rng.below(20_000), 1 + rng.below(9_000));
                match rng.below(5) {
                    0 => {
                        image.set_len(start);
                        plain.resize(start as usize, 0);
                    }
                    1 => {
                        image.punch(start..start + n);
                        let end = ((start + n) as usize).min(plain.len());
                        let start = (start as usize).min(end);
                        plain[start..end].fill(0);
                    }
                    2 => image.reserve(start..start + n),
                    _ => {
                        let bytes = vec![step as u8; n as usize];
                        let missing = image.missing(start..start + n);
                        let before = image.allocated();
                        assert_eq!(image.fitting(start, n as usize, missing), n as usize);
                        assert!(missing == 0 || image.fitting(start, n as usize, missing - 1) < n as usize);
                        image.write(&bytes, start);
                        image.grow(start + n);
                        assert_eq!(image.allocated(), before + missing);
                        let end = (start + n) as usize;
                        plain.resize(plain.len().max(end), 0);
                        plain[start as usize..end].copy_from_slice(&bytes);
                    }
                }
                assert_eq!(image.to_vec(), plain, "seed {seed}, step {step}");
                let counted = image.slots.iter().filter(|slot| !matches!(slot, Slot::Hole)).count();
                assert_eq!(image.allocated(), counted as u64, "I2: seed {seed}, step {step}");
            }
        }
    }
}
