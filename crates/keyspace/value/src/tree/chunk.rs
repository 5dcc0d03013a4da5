//! A shareable buffer: what leaves are made of.

use super::allocated;
use crate::cold::{Age, Cold};
use std::ops::Range;
use triomphe::Arc;

/// Up to here a buffer that grows gets an eighth more than it needs; one with a huge element gets nothing.
const SLACK_MAX: usize = 256;
/// What a shared allocation has before its bytes.
const COUNTER_BYTES: usize = super::COUNTER_BYTES;

/// Where most buffers come from before they are written.
static ZEROS: [u8; 2048] = [0; 2048];

/// Packed elements in one allocation. Their number is stored apart, so that counting reads none of its cache lines. A
/// clone shares the bytes; a change copies them first if they are shared. They may be stored compressed (`cold`), which
/// a change undoes.
#[derive(Clone, Debug)]
pub struct Chunk {
    body: Body,
    /// Bytes, whether they are compressed or not.
    len: usize,
    count: u32,
    age: Age,
}

#[derive(Clone, Debug)]
enum Body {
    /// The bytes and the slack after them.
    Plain(Arc<[u8]>),
    Cold(Cold),
}

const _: () = assert!(size_of::<Chunk>() == 32, "two leaves share a line");

impl Default for Chunk {
    /// A chunk of no bytes.
    fn default() -> Self {
        Self::new(&[], 0)
    }
}

impl Chunk {
    /// A chunk of these bytes, without slack, which are `count` elements.
    pub fn new(bytes: &[u8], count: usize) -> Self {
        let body = Body::Plain(copied(exact(bytes.len()), &[(0, bytes)]));
        Self { body, len: bytes.len(), count: number(count), age: Age::default() }
    }

    /// A chunk of bytes that are stored so, which are `count` elements.
    pub fn of_cold(cold: Cold, count: usize) -> Self {
        let len = cold.len();
        Self { body: Body::Cold(cold), len, count: number(count), age: Age::default() }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.age.renew();
        match &self.body {
            Body::Plain(bytes) => &bytes[..self.len],
            Body::Cold(cold) => cold.bytes(),
        }
    }

    /// The bytes, without counting this as a use: no thawed copy is kept.
    pub fn bytes_once<'a>(&'a self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        match &self.body {
            Body::Plain(bytes) => &bytes[..self.len],
            Body::Cold(cold) => cold.bytes_once(scratch),
        }
    }

    /// The stored form, if it has one.
    pub fn cold(&self) -> Option<&Cold> {
        match &self.body {
            Body::Plain(_) => None,
            Body::Cold(cold) => Some(cold),
        }
    }

    /// The time since its last use.
    pub fn age(&self) -> &Age {
        &self.age
    }

    /// Whether both share their bytes: then they are equal as long as both are held.
    pub fn is(&self, other: &Self) -> bool {
        match (&self.body, &other.body) {
            (Body::Plain(one), Body::Plain(other)) => Arc::ptr_eq(one, other),
            (Body::Cold(one), Body::Cold(other)) => one.is(other),
            _ => false,
        }
    }

    /// Drops the thawed copy, unless it is shared.
    pub fn shed(&mut self) {
        if let Body::Cold(cold) = &mut self.body {
            cold.shed();
        }
    }

    /// Stores the bytes as they are, if they are compressed.
    pub fn warm(&mut self) {
        if let Body::Cold(cold) = &self.body {
            self.body = Body::Plain(copied(exact(self.len), &[(0, cold.bytes_once(&mut Vec::new()))]));
        }
    }

    /// The allocation, once the bytes are in one as they are.
    #[inline]
    fn plain(&mut self) -> &mut Arc<[u8]> {
        self.warm();
        match &mut self.body {
            Body::Plain(bytes) => bytes,
            Body::Cold(_) => unreachable!("it has just been stored as it is"),
        }
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
        self.count as usize
    }

    /// Sets the number of elements, which the chunk itself does not know.
    #[inline]
    pub fn set_count(&mut self, count: usize) {
        self.count = number(count);
    }

    /// Bytes of the allocation.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        match &self.body {
            Body::Plain(bytes) => allocated(bytes.len() + COUNTER_BYTES),
            Body::Cold(cold) => cold.memory_bytes(),
        }
    }

    /// How many chunks share the bytes.
    #[inline]
    pub fn owners(&self) -> usize {
        match &self.body {
            Body::Plain(bytes) => Arc::strong_count(bytes),
            Body::Cold(cold) => cold.owners(),
        }
    }

    /// Replaces the bytes of `range` by `length` others, and returns the place to write them at once: until then it is
    /// unspecified.
    ///
    /// # Panics
    /// When the range is not within the bytes.
    pub fn splice(&mut self, range: Range<usize>, length: usize) -> &mut [u8] {
        self.age.renew();
        let old_len = self.len;
        let len = old_len - range.len() + length;
        let gap = range.start..range.start + length;
        let bytes = self.plain();
        let fits = len <= bytes.len() && bytes.len() - len <= slack(len) + 64;
        let stays = fits && is_own(bytes);
        if !stays {
            let (head, tail) = (&bytes[..range.start], &bytes[range.end..old_len]);
            *bytes = copied(exact(len + slack(len)), &[(0, head), (gap.end, tail)]);
        }
        self.len = len;
        let Some(bytes) = Arc::get_mut(self.plain()) else { unreachable!("it has one owner") };
        if stays && range.end != gap.end {
            bytes.copy_within(range.end..old_len, gap.end);
        }
        &mut bytes[gap]
    }

    /// The bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.age.renew();
        let len = self.len;
        let bytes = self.plain();
        if !is_own(bytes) {
            *bytes = copied(bytes.len(), &[(0, &bytes[..len])]);
        }
        let Some(bytes) = Arc::get_mut(bytes) else { unreachable!("it has one owner") };
        &mut bytes[..len]
    }

    /// The bytes, to be changed in place, unless they are compressed or shared.
    #[inline]
    pub fn own_bytes(&mut self) -> Option<&mut [u8]> {
        match &mut self.body {
            Body::Plain(bytes) => Arc::get_mut(bytes).map(|bytes| &mut bytes[..self.len]),
            Body::Cold(_) => None,
        }
    }

    /// Gives the bytes from `at` on, which are all but `count` elements, as a chunk of their own.
    pub fn split_off(&mut self, at: usize, count: usize) -> Self {
        let right = Self::new(&self.bytes()[at..], self.count() - count);
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

/// Whether the bytes are unshared. They cannot become shared either while their chunk is borrowed mutably.
#[inline]
fn is_own(bytes: &Arc<[u8]>) -> bool {
    Arc::strong_count(bytes) == 1
}

/// A number of elements.
#[inline]
fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a chunk of many elements has some kilobytes")
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
