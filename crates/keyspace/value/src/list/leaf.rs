//! A leaf of a list's tree: neighbours in one packed buffer.

use super::change::End;
use super::packed::{self, Elements};
use crate::cold::{Age, Bytes, Cold};
use crate::tree::{COUNTER_BYTES, ColdLeaf, Cut, Leaf as TreeLeaf, OrderedLeaf, allocated};
use std::ops::Range;
use triomphe::Arc;

/// Elements in one buffer. An element of more than [`Leaf::MAX_BYTES`] has a leaf of its own; between an insertion next
/// to it and the split of the leaf, the two lie in two runs, so that it is never copied because of its neighbours.
///
/// [`Leaf::MAX_BYTES`]: TreeLeaf::MAX_BYTES
#[derive(Clone, Debug, Default)]
pub struct Leaf {
    run: Run,
    /// What follows, until the split that comes next.
    after: Option<Box<Run>>,
}

/// A packed buffer and the number of its elements. A clone shares it; a change copies it first if it is shared. Where a
/// list is used from its head, the elements start after a gap, so that adding or removing there does not move all
/// others. A compressed one has no gap.
#[derive(Clone, Debug, Default)]
struct Run {
    bytes: Arc<Bytes>,
    gap: u32,
    count: u32,
}

/// What is allocated in addition to the bytes: a counter, the Vec's three words, the age.
const RUN_HEADER_BYTES: usize = COUNTER_BYTES + size_of::<Bytes>();

/// Unused bytes of a buffer that are kept for what comes next.
const GIVEN_BACK_MIN: usize = 256;

/// Room for elements to be added before the first, so that all others move once per this many bytes.
const GAP_BYTES: usize = 512;

/// A gap of more than that is given back.
const GAP_BYTES_MAX: u32 = 1024;

impl Run {
    fn of(bytes: impl Into<Bytes>, count: usize) -> Self {
        Self { bytes: Arc::new(bytes.into()), gap: 0, count: places(count) }
    }

    fn of_one(element: &[u8]) -> Self {
        let mut bytes = Vec::new();
        packed::push_back(&mut bytes, element);
        Self::of(bytes, 1)
    }

    #[inline]
    fn packed(&self) -> &[u8] {
        &self.bytes.get()[self.gap as usize..]
    }

    /// The same, without counting this as a use.
    fn packed_once<'a>(&'a self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        &self.bytes.get_once(scratch)[self.gap as usize..]
    }

    /// Bytes of the elements.
    #[inline]
    fn len(&self) -> usize {
        self.bytes.len() - self.gap as usize
    }

    #[inline]
    fn count(&self) -> usize {
        self.count as usize
    }

    /// The buffer as it is, for any change.
    #[inline]
    fn own(&mut self) -> &mut Vec<u8> {
        Arc::make_mut(&mut self.bytes).own()
    }

    /// The buffer, which has no gap now, for any change.
    fn close_gap(&mut self) -> &mut Vec<u8> {
        let gap = std::mem::take(&mut self.gap) as usize;
        let bytes = self.own();
        if gap > 0 {
            bytes.drain(..gap);
        }
        bytes
    }

    #[inline]
    fn push_front(&mut self, element: &[u8]) {
        let mut gap = self.gap as usize;
        let bytes = self.own();
        if gap < element.len() {
            packed::widen_gap(bytes, gap, GAP_BYTES);
            gap = GAP_BYTES;
        }
        self.gap = places(packed::push_front(bytes, gap, element));
        self.count += 1;
    }

    /// Removes the first `count`, but not all.
    fn pop_front(&mut self, count: usize) {
        let gap = self.gap as usize;
        self.gap = places(packed::pop_front(self.own(), gap, count));
        self.count -= places(count);
    }

    #[inline]
    fn memory_bytes(&self) -> usize {
        allocated(RUN_HEADER_BYTES) + self.bytes.memory_bytes()
    }

    /// Whether it is one element that is never copied because of others.
    fn is_large(&self) -> bool {
        self.len() > Leaf::MAX_BYTES
    }
}

/// A number of elements or bytes of a buffer.
#[inline]
fn places(count: usize) -> u32 {
    u32::try_from(count).expect("a buffer of many elements has some kilobytes")
}

impl Leaf {
    /// A leaf of `count` packed elements.
    pub(super) fn of(bytes: Vec<u8>, count: usize) -> Self {
        Self { run: Run::of(bytes, count), after: None }
    }

    /// The packed elements.
    #[inline]
    pub(super) fn packed(&self) -> &[u8] {
        self.run.packed()
    }

    /// The elements.
    #[inline]
    pub(super) fn elements(&self) -> Elements<'_> {
        packed::elements(self.run.packed())
    }

    /// Inserts an element before the one at `index`, or after the last.
    pub(super) fn insert(&mut self, index: usize, element: &[u8]) {
        if self.run.is_large() {
            let beside = Run::of_one(element);
            let after = if index == 0 { std::mem::replace(&mut self.run, beside) } else { beside };
            self.after = Some(Box::new(after));
            return;
        }
        match index {
            // A large one gets a leaf of its own, and is not to move when its neighbours are parted from it.
            0 if self.run.count > 0 && element.len() <= GAP_BYTES => return self.run.push_front(element),
            _ if index == self.run.count() => packed::push_back(self.run.close_gap(), element),
            _ => packed::insert(self.run.close_gap(), index, element),
        }
        self.run.count += 1;
    }

    /// Whether it takes one more element, which is not large, without becoming too big.
    #[inline]
    pub(super) fn has_room(&self, element: &[u8]) -> bool {
        /// The numbers of a packed list may take this many bytes more.
        const NUMBERS_BYTES: usize = 24;
        let is_short = element.len() <= GAP_BYTES && self.run.count > 0 && self.after.is_none();
        is_short && self.run.len() + element.len() + NUMBERS_BYTES <= Self::MAX_BYTES
    }

    /// Puts an element for which it [has room](Self::has_room) at an end.
    #[inline]
    pub(super) fn push(&mut self, end: End, element: &[u8]) {
        match end {
            End::Head => self.run.push_front(element),
            End::Tail => {
                packed::push_back(self.run.close_gap(), element);
                self.run.count += 1;
            }
        }
    }

    /// Whether it is more than a quarter full without the element at this end.
    #[inline]
    pub(super) fn has_plenty(&self, end: End) -> bool {
        /// The overhead of an element is less.
        const NUMBERS_BYTES: usize = 24;
        let bytes = self.run.len();
        if self.after.is_some() || bytes < Self::MAX_BYTES / 4 + NUMBERS_BYTES || self.run.count < 2 {
            return false;
        }
        let mut elements = self.elements();
        let element = if end == End::Head { elements.next() } else { elements.next_back() };
        element.is_some_and(|element| bytes >= Self::MAX_BYTES / 4 + NUMBERS_BYTES + element.len())
    }

    /// Removes the element at an end, of which it [has plenty](Self::has_plenty).
    #[inline]
    pub(super) fn pop(&mut self, end: End) {
        let index = if end == End::Head { 0 } else { self.run.count() - 1 };
        self.remove(index..index + 1);
    }

    /// Replaces the element at `index`.
    pub(super) fn set(&mut self, index: usize, element: &[u8]) {
        if self.run.count == 1 {
            self.run = Run::of_one(element);
        } else {
            packed::set(self.run.close_gap(), index, element);
        }
    }

    /// Removes the elements of a range, all of which are there.
    pub(super) fn remove(&mut self, range: Range<usize>) {
        if range.len() == self.run.count() {
            self.run = Run::default();
            return;
        }
        if range.start == 0 {
            self.run.pop_front(range.len());
            if self.run.gap <= GAP_BYTES_MAX {
                return;
            }
        } else if range.end == self.run.count() {
            packed::pop_back(self.run.close_gap(), range.len());
            self.run.count -= places(range.len());
        } else {
            packed::remove(self.run.close_gap(), range.clone());
            self.run.count -= places(range.len());
        }
        let bytes = self.run.close_gap();
        // What was given up is worth giving back once it is half of the buffer.
        if bytes.capacity() > 2 * bytes.len() + GIVEN_BACK_MIN {
            bytes.shrink_to(bytes.len() + bytes.len() / 8);
        }
    }
}

impl TreeLeaf for Leaf {
    type Bound = ();
    type Context = ();
    /// An insertion moves half of that on average, which takes some tens of nanoseconds.
    const MAX_BYTES: usize = 4096;

    #[inline]
    fn count(&self) -> usize {
        self.run.count() + self.after.as_ref().map_or(0, |after| after.count())
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.run.len() + self.after.as_ref().map_or(0, |after| after.len())
    }

    #[inline]
    fn memory_bytes(&self) -> usize {
        match &self.after {
            None => self.run.memory_bytes(),
            Some(after) => self.run.memory_bytes() + after.memory_bytes() + allocated(size_of::<Run>()),
        }
    }

    fn split(&mut self, (): &(), cut: Cut) -> Option<((), Self)> {
        if let Some(after) = self.after.take() {
            return Some(((), Self { run: *after, after: None }));
        }
        let count = self.run.count();
        let index = match cut {
            _ if count < 2 => return None,
            Cut::First => 1,
            Cut::Last => count - 1,
            Cut::Middle => packed::middle(self.run.packed()).clamp(1, count - 1),
        };
        let right = self.split_at(index);
        if matches!(cut, Cut::Last) {
            // A list that grows at its end leaves this leaf as it is.
            self.run.own().shrink_to_fit();
        }
        Some(right)
    }

    fn append(&mut self, right: &Self) {
        packed::append(self.run.close_gap(), right.run.packed_once(&mut Vec::new()));
        self.run.count += right.run.count;
    }
}

impl ColdLeaf for Leaf {
    fn age(&self) -> &Age {
        self.run.bytes.age()
    }

    fn cold(&self) -> Option<&Cold> {
        self.run.bytes.cold()
    }

    fn is(&self, other: &Self) -> bool {
        let is_same = Arc::ptr_eq(&self.run.bytes, &other.run.bytes) && self.run.gap == other.run.gap;
        is_same && self.after.is_none() && other.after.is_none()
    }

    fn bytes_once<'a>(&'a self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        self.run.packed_once(scratch)
    }

    fn of_cold(cold: Cold, count: usize) -> Self {
        Self { run: Run::of(cold, count), after: None }
    }

    fn may_be_cold(&self) -> bool {
        self.after.is_none()
    }

    fn shed(&mut self) {
        if let Some(bytes) = Arc::get_mut(&mut self.run.bytes) {
            bytes.shed();
        }
    }

    fn warm(&mut self) {
        if self.cold().is_some() {
            self.run.own();
        }
    }
}

impl OrderedLeaf for Leaf {
    fn split_at(&mut self, index: usize) -> ((), Self) {
        let right = packed::split_off(self.run.close_gap(), index);
        let count = std::mem::replace(&mut self.run.count, places(index)) as usize - index;
        ((), Self::of(right, count))
    }
}
