//! A leaf of a list's tree: neighbours in one packed buffer.

use super::packed::{self, Elements};
use crate::tree::{Cut, Leaf as TreeLeaf, OrderedLeaf, allocated};
use std::ops::Range;
use std::sync::Arc;

/// Elements in one buffer. An element of more than [`Leaf::MAX_BYTES`] has a leaf of its own; for the moment between an
/// insertion beside it and the split of the leaf, the two lie in two runs, so that it is never copied for its neighbours' sake.
///
/// [`Leaf::MAX_BYTES`]: TreeLeaf::MAX_BYTES
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    run: Run,
    /// What follows, until the split that comes next.
    after: Option<Box<Run>>,
}

/// A packed buffer and how many elements it holds. A clone shares it; a change copies it first if it is shared.
#[derive(Clone, Debug, Default)]
struct Run {
    bytes: Arc<Vec<u8>>,
    count: usize,
}

/// The two counters of an Arc and the Vec's three words.
const RUN_HEADER_BYTES: usize = 2 * size_of::<usize>() + size_of::<Vec<u8>>();

/// Unused bytes of a buffer that are kept for what comes next.
const GIVEN_BACK_MIN: usize = 256;

impl Run {
    fn of(bytes: Vec<u8>, count: usize) -> Self {
        Self { bytes: Arc::new(bytes), count }
    }

    fn of_one(element: &[u8]) -> Self {
        let mut bytes = Vec::new();
        packed::push_back(&mut bytes, element);
        Self::of(bytes, 1)
    }

    fn memory_bytes(&self) -> usize {
        allocated(RUN_HEADER_BYTES) + allocated(self.bytes.capacity())
    }

    /// Whether it is one element that is copied for nobody's sake.
    fn is_large(&self) -> bool {
        self.bytes.len() > Leaf::MAX_BYTES
    }
}

impl Leaf {
    /// A leaf of packed elements, so many of them.
    pub(super) fn of(bytes: Vec<u8>, count: usize) -> Self {
        Self { run: Run::of(bytes, count), after: None }
    }

    /// The packed elements.
    #[inline]
    pub(super) fn packed(&self) -> &[u8] {
        &self.run.bytes
    }

    /// The elements.
    #[inline]
    pub(super) fn elements(&self) -> Elements<'_> {
        packed::elements(&self.run.bytes)
    }

    /// Puts an element before the one at `index`, or behind the last.
    pub(super) fn insert(&mut self, index: usize, element: &[u8]) {
        if self.run.is_large() {
            let beside = Run::of_one(element);
            let after = if index == 0 { std::mem::replace(&mut self.run, beside) } else { beside };
            self.after = Some(Box::new(after));
            return;
        }
        let bytes = Arc::make_mut(&mut self.run.bytes);
        match index == self.run.count {
            true => packed::push_back(bytes, element),
            false => packed::insert(bytes, index, element),
        }
        self.run.count += 1;
    }

    /// Replaces the element at `index`.
    pub(super) fn set(&mut self, index: usize, element: &[u8]) {
        if self.run.count == 1 {
            self.run = Run::of_one(element);
        } else {
            packed::set(Arc::make_mut(&mut self.run.bytes), index, element);
        }
    }

    /// Removes the elements of a range, all of which are there.
    pub(super) fn remove(&mut self, range: Range<usize>) {
        if range.len() == self.run.count {
            self.run = Run::default();
            return;
        }
        let bytes = Arc::make_mut(&mut self.run.bytes);
        match range.end == self.run.count {
            true => packed::pop_back(bytes, range.len()),
            false => packed::remove(bytes, range.clone()),
        }
        self.run.count -= range.len();
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
        self.run.count + self.after.as_ref().map_or(0, |after| after.count)
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.run.bytes.len() + self.after.as_ref().map_or(0, |after| after.bytes.len())
    }

    #[inline]
    fn memory_bytes(&self) -> usize {
        let after = self.after.as_ref().map_or(0, |after| after.memory_bytes() + allocated(size_of::<Run>()));
        self.run.memory_bytes() + after
    }

    fn split(&mut self, (): &(), cut: Cut) -> Option<((), Self)> {
        if let Some(after) = self.after.take() {
            return Some(((), Self { run: *after, after: None }));
        }
        let count = self.run.count;
        let index = match cut {
            _ if count < 2 => return None,
            Cut::First => 1,
            Cut::Last => count - 1,
            Cut::Middle => packed::middle(&self.run.bytes).clamp(1, count - 1),
        };
        Some(self.split_at(index))
    }

    fn append(&mut self, right: &Self) {
        packed::append(Arc::make_mut(&mut self.run.bytes), &right.run.bytes);
        self.run.count += right.run.count;
    }
}

impl OrderedLeaf for Leaf {
    fn split_at(&mut self, index: usize) -> ((), Self) {
        let right = packed::split_off(Arc::make_mut(&mut self.run.bytes), index);
        let count = std::mem::replace(&mut self.run.count, index) - index;
        ((), Self::of(right, count))
    }
}
