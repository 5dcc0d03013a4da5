//! A big list: packed runs in a tree, found by position.

use super::change::{Change, End};
use super::leaf::Leaf;
use super::listpack::{self, Limit};
use super::packed;
use crate::cold::Keeper;
use crate::saved::{self, OfRows};
use crate::tree::{ColdLeaf, Leaf as _, Tree};
use crate::{Limits, Progress};
use std::ops::Range;
use std::sync::Arc;

/// The tree.
#[derive(Clone, Debug, Default)]
pub struct Big {
    tree: Tree<Leaf>,
}

impl Big {
    /// The tree of a packed list.
    pub(super) fn of(mut packed: Vec<u8>) -> Self {
        let mut big = Self::default();
        while !packed.is_empty() {
            let count = packed::count_within(&packed, Leaf::MAX_BYTES).max(1);
            let rest = packed::split_off(&mut packed, count);
            packed.shrink_to_fit();
            big.tree.push((), Leaf::of(std::mem::replace(&mut packed, rest), count));
        }
        big
    }

    /// Whether its elements might be packed: false only where its bytes alone show that they are not.
    pub fn may_be_packed(&self, limits: &Limits) -> bool {
        self.is_small(Limit::of(limits.list_size()))
    }

    fn is_small(&self, limit: Limit) -> bool {
        /// A listpack may be smaller than the texts of its integers by this factor.
        const TEXT_PER_LISTPACK_BYTE: usize = 4;
        let bytes_max = usize::try_from(limit.bytes_max()).unwrap_or(usize::MAX);
        // Not what it takes, which may be compressed.
        self.content_bytes() / TEXT_PER_LISTPACK_BYTE <= bytes_max
    }

    /// The packed list of a tree that is far enough below the limit.
    pub(super) fn packed_within(&self, limit: Limit) -> Option<Vec<u8>> {
        if !self.is_small(limit) {
            return None;
        }
        let mut bytes = listpack::EMPTY_BYTES;
        let (mut packed, mut place) = (Vec::new(), self.tree.leaves_at(0));
        while let Some(leaves) = place {
            bytes += packed::listpack_bytes(leaves.leaf().packed());
            place = leaves.next();
        }
        if !limit.is_well_within(bytes, self.len()) {
            return None;
        }
        place = self.tree.leaves_at(0);
        while let Some(leaves) = place {
            packed::append(&mut packed, leaves.leaf().packed());
            place = leaves.next();
        }
        Some(packed)
    }

    /// How many elements it holds.
    #[inline]
    pub fn len(&self) -> u64 {
        self.tree.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    pub(crate) fn tree(&self) -> &Tree<Leaf> {
        &self.tree
    }

    /// The tree, for changes of its form.
    pub(crate) fn tree_mut(&mut self) -> &mut Tree<Leaf> {
        &mut self.tree
    }

    /// The element at an index.
    #[inline]
    pub(super) fn get(&self, index: u64) -> Option<&[u8]> {
        let (leaf, offset) = self.tree.at(index)?;
        leaf.elements().get(offset)
    }

    /// Makes a change.
    pub(super) fn apply(&mut self, change: &Change<'_>) {
        let len = self.len();
        match *change {
            Change::Push { end, value } => self.push(end, value),
            Change::Insert { index, value } => self.insert(index.min(len), value),
            Change::Set { index, value } if index < len => {
                self.tree.edit_at(&(), index, |leaf, offset| leaf.set(offset, value));
            }
            Change::Set { .. } => {}
            Change::Pop { end, count: 1 } if self.pop_within_leaf(end) => {}
            Change::Pop { end: End::Head, count } => self.remove(0..count.min(len)),
            Change::Pop { end: End::Tail, count } => self.remove(len - count.min(len)..len),
            Change::Remove { index, count } => {
                let index = index.min(len);
                self.remove(index..index + count.min(len - index));
            }
        }
    }

    /// Adds an element at an end.
    #[inline]
    pub fn push(&mut self, end: End, value: &[u8]) {
        let is_last = end == End::Tail;
        let pushed = self.tree.edit_end(is_last, |leaf| leaf.has_room(value), |leaf| leaf.push(end, value));
        if pushed.is_none() {
            self.insert(if is_last { self.len() } else { 0 }, value);
        }
    }

    /// Removes the element at an end, if the leaf there is full enough; else nothing, and false.
    fn pop_within_leaf(&mut self, end: End) -> bool {
        self.tree.edit_end(end == End::Tail, |leaf| leaf.has_plenty(end), |leaf| leaf.pop(end)).is_some()
    }

    fn insert(&mut self, index: u64, value: &[u8]) {
        self.tree.edit_at(&(), index, |leaf, offset| leaf.insert(offset, value));
    }

    fn remove(&mut self, range: Range<u64>) {
        let count = range.end - range.start;
        if count == 1 {
            return self.tree.edit_at(&(), range.start, |leaf, offset| leaf.remove(offset..offset + 1));
        }
        let Some((leaf, offset)) = self.tree.at(range.start).filter(|_| count > 0) else { return };
        match count <= (leaf.count() - offset) as u64 {
            true => self.tree.edit_at(&(), range.start, |leaf, offset| leaf.remove(offset..offset + count as usize)),
            false => drop(self.tree.remove_range(&(), range)),
        }
    }

    /// See [`crate::Big::memory_bytes`].
    pub fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes()
    }

    /// See [`crate::Big::content_bytes`].
    pub fn content_bytes(&self) -> usize {
        self.tree.content_bytes()
    }

    /// See [`crate::Big::write_changes`]: the first number is the index to continue from.
    pub fn write_changes(&self, from: Progress, budget: usize, out: &mut Vec<u8>) -> Option<Progress> {
        let full = out.len().saturating_add(budget);
        let (mut index, mut scratch, mut place) = (from.0, Vec::new(), self.tree.leaves_at(from.0));
        while let Some(here) = place {
            let mut elements = packed::elements(here.leaf().bytes_once(&mut scratch));
            elements.drop_front((index - here.before()) as usize);
            for value in elements {
                if index > from.0 && out.len() >= full {
                    return Some(Progress(index, 0));
                }
                Change::Push { end: End::Tail, value }.put(out);
                index += 1;
            }
            place = here.next();
        }
        None
    }

    /// See [`crate::Big::write_leaves`]. Progress is how many elements are done.
    pub(crate) fn write_leaves(
        &self,
        from: Progress,
        (budget, rows): (usize, OfRows),
        out: &mut Vec<u8>,
    ) -> Option<Progress> {
        let end = out.len().saturating_add(budget);
        let (mut scratch, mut place) = (Vec::new(), self.tree.leaves_at(from.0));
        while let Some(here) = place {
            let leaf = here.leaf();
            if !saved::put_stored(leaf.cold(), leaf.count(), rows, out) {
                saved::Leaf::Plain(leaf.bytes_once(&mut scratch)).put(out);
            }
            place = here.next();
            if out.len() >= end && place.is_some() {
                return Some(Progress(here.after(), 0));
            }
        }
        None
    }

    /// See [`crate::Big::push_leaves`]. `None` when these are none.
    pub(crate) fn push_leaves(&mut self, mut rest: &[u8], keeper: &Arc<dyn Keeper>) -> Option<()> {
        while !rest.is_empty() {
            let leaf = match saved::Leaf::take(&mut rest)? {
                saved::Leaf::Plain(bytes) => Leaf::of(bytes.to_vec(), packed::elements(bytes).len()),
                stored => stored.stored(keeper)?,
            };
            self.tree.push_saved((), leaf);
        }
        Some(())
    }

    /// See [`crate::Big::check_leaves`].
    pub(crate) fn check_leaves(mut rest: &[u8], is_stored: impl Fn(&[u8]) -> bool) -> bool {
        if rest.is_empty() {
            return false;
        }
        while !rest.is_empty() {
            let is_good = match saved::Leaf::take(&mut rest) {
                Some(saved::Leaf::Plain(bytes)) => packed::is_valid(bytes),
                Some(saved::Leaf::Cold { stored, .. }) => is_stored(stored),
                Some(saved::Leaf::Row { .. }) | None => false,
            };
            if !is_good {
                return false;
            }
        }
        true
    }

    /// See [`crate::Big::stored_in_leaves`].
    pub(crate) fn stored_in_leaves<'a>(mut rest: &'a [u8], visit: &mut dyn FnMut(saved::Leaf<'a>)) {
        while let Some(leaf) = saved::Leaf::take(&mut rest) {
            visit(leaf);
        }
    }
}
