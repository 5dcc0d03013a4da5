//! A shareable buffer: what leaves are made of.

use super::allocated;
use std::ops::Range;
use triomphe::Arc;

/// Up to here a buffer that grows gets an eighth more than it needs; one with a huge element gets nothing.
const SLACK_MAX: usize = 256;
/// What a shared allocation has before its bytes.
const COUNTER_BYTES: usize = super::COUNTER_BYTES;

/// Where most buffers come from before they are written.
static ZEROS: [u8; 2048] = [0; 2048];

/// Packed elements in one allocation, with their number beside it so that counting reads no line of it. A clone shares the
/// bytes; a change copies them first if they are shared.
#[derive(Clone, Debug)]
pub struct Chunk {
    bytes: Arc<[u8]>,
    len: usize,
    count: usize,
}

impl Default for Chunk {
    /// A chunk of no bytes.
    fn default() -> Self {
        Self { bytes: copied(exact(0), &[]), len: 0, count: 0 }
    }
}

impl Chunk {
    /// A chunk of these bytes, without slack, which are `count` elements.
    pub fn new(bytes: &[u8], count: usize) -> Self {
        Self { bytes: copied(exact(bytes.len()), &[(0, bytes)]), len: bytes.len(), count }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of elements, as it was last set.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Sets the number of elements, which the chunk itself does not know.
    #[inline]
    pub fn set_count(&mut self, count: usize) {
        self.count = count;
    }

    /// Bytes of the allocation.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        allocated(self.bytes.len() + COUNTER_BYTES)
    }

    /// How many chunks share the bytes.
    #[inline]
    pub fn owners(&self) -> usize {
        Arc::strong_count(&self.bytes)
    }

    /// Replaces the bytes of `range` by `length` others, and gives the place where they are to be written at once: until
    /// then it holds anything.
    ///
    /// # Panics
    /// When the range is not within the bytes.
    pub fn splice(&mut self, range: Range<usize>, length: usize) -> &mut [u8] {
        let len = self.len - range.len() + length;
        let gap = range.start..range.start + length;
        let fits = len <= self.bytes.len() && self.bytes.len() - len <= slack(len) + 64;
        let stays = fits && self.is_own();
        if !stays {
            let (head, tail) = (&self.bytes[..range.start], &self.bytes[range.end..self.len]);
            self.bytes = copied(exact(len + slack(len)), &[(0, head), (gap.end, tail)]);
        }
        let old_len = std::mem::replace(&mut self.len, len);
        let Some(bytes) = Arc::get_mut(&mut self.bytes) else { unreachable!("nobody else holds it") };
        if stays && range.end != gap.end {
            bytes.copy_within(range.end..old_len, gap.end);
        }
        &mut bytes[gap]
    }

    /// Whether nobody shares the bytes. Nobody can come to share them either, while this chunk is borrowed to be changed.
    #[inline]
    fn is_own(&mut self) -> bool {
        self.owners() == 1
    }

    /// The bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.len;
        if !self.is_own() {
            self.bytes = copied(self.bytes.len(), &[(0, &self.bytes[..len])]);
        }
        let Some(bytes) = Arc::get_mut(&mut self.bytes) else { unreachable!("nobody else holds it") };
        &mut bytes[..len]
    }

    /// Gives the bytes from `at` on, which are all but `count` elements, as a chunk of their own.
    pub fn split_off(&mut self, at: usize, count: usize) -> Self {
        let right = Self::new(&self.bytes()[at..], self.count - count);
        *self = Self::new(&self.bytes()[..at], count);
        right
    }

    /// Appends the bytes and elements of another.
    pub fn append(&mut self, right: &Self) {
        let end = self.len;
        self.splice(end..end, right.len).copy_from_slice(right.bytes());
        self.count += right.count;
    }
}

fn slack(len: usize) -> usize {
    if len > 32 * SLACK_MAX { 0 } else { (len / 8).min(SLACK_MAX) }
}

/// The most that costs the allocator no more than `len` bytes do.
fn exact(len: usize) -> usize {
    allocated(len + COUNTER_BYTES) - 8 - COUNTER_BYTES
}

/// An allocation of `capacity` bytes with these parts at their places.
fn copied(capacity: usize, parts: &[(usize, &[u8])]) -> Arc<[u8]> {
    // Filled with zeros first, since there is no safe way to leave it; it is in the cache when it is overwritten.
    let mut bytes: Arc<[u8]> = match ZEROS.get(..capacity) {
        Some(zeros) => zeros.into(),
        None => vec![0; capacity].into(),
    };
    if let Some(bytes) = Arc::get_mut(&mut bytes) {
        for (at, part) in parts {
            bytes[*at..at + part.len()].copy_from_slice(part);
        }
    }
    bytes
}
