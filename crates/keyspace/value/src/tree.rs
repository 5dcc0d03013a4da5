//! A counted B+-tree whose versions share what they have in common: the form of every big collection.
//!
//! ```text
//!                 node  bounds |  -  |  m  |  t  |       bounds[i] parts child i-1 from child i
//!                       counts | 812 | 640 | 911 |       counts[i] elements are below child i
//!                              /      |      \
//!                      node ...    node ...    node ...  (48 children at most)
//!                     /   |   \
//!                  leaf leaf leaf                        a Chunk of packed elements each; owner's layout
//! ```
//!
//! The tree orders leaves and counts elements; what an element is, only the [`Leaf`] knows. So one tree serves lists
//! (by position: `Bound = ()`), sorted sets and streams (by order), sets and hashes (by the hash of the element).
//!
//! Reading. [`Tree::find`] gives the leaf where something is to be looked up, by a predicate over bounds that says
//! "what I seek is not before this bound". [`Tree::locate`] also tells how many elements are before that leaf, so that
//! a rank is one addition; [`Tree::at`] goes the other way. [`Leaves`] walks from leaf to leaf, both ways, without a
//! heap allocation.
//!
//! Changing. [`Tree::edit`] and [`Tree::edit_at`] hand one leaf to a closure, which may change it as it likes, and
//! afterwards split it, merge it with a neighbour or remove it, and correct all counts. [`Tree::edit_end`] and
//! [`Tree::edit_in_place`] are fast paths where the path is not shared. [`Tree::remove_range`] cuts any range out in
//! logarithmic time, [`Tree::push`] appends a whole leaf.
//!
//! ```text
//! tree.find(|bound| *bound <= hash)                          // the only leaf that may hold this hash
//! tree.edit(&cx, |bound| *bound <= hash, |leaf| leaf.insert(..))
//! tree.edit_at(&cx, rank, |leaf, offset| leaf.remove(offset))
//! ```
//!
//! B1. Elements of child `i - 1` are before `bounds[i]` and those of child `i` are not. `bounds[0]` means nothing: the
//!     bound of a first child is found further up, and the first leaf of the tree has none.
//! B2. No leaf is empty and no node is without children; an empty tree has no root. A leaf above [`Leaf::MAX_BYTES`]
//!     has one element, or is one whose elements cannot be parted, or was compressed with its neighbours as one
//!     (`cold`) and has not been changed since.
//! B3. A leaf or node that shrinks below a quarter is merged with a neighbour if the two fit into one, so of two
//!     neighbours that shrank, half is used. One at the right or left end of the tree that is outgrown by appending
//!     there is split so that the other one stays full.
//! B4. What two versions share is never changed: an edit copies the path that it changes if it is shared
//!     ([`Arc::make_mut`]), which are some kilobytes, whatever the size of the tree.
//! B5. `memory_bytes` is exact for the allocator (see [`allocated`]), and kept in every node, so that cutting keeps it
//!     too; as is `content_bytes`. What readers have thawed of compressed leaves is in neither.

mod chunk;
mod chunk_leaf;
mod cold;
mod cut;
pub mod index;
mod leaves;
mod node;
#[cfg(test)]
mod tests;
mod together;

pub use chunk::Chunk;
pub use chunk_leaf::ChunkLeaf;
pub use cold::{ColdLeaf, Found, Plan, Run};
pub use leaves::Leaves;
pub use together::{HashedLeaf, Purpose, TOGETHER, load_lines, positions};

use crate::reaper;
use node::{ByBound, ByRank, Node, Seek, Toward};
use std::fmt;
use std::ops::Range;
use triomphe::Arc;

/// The header of a shared allocation: one counter. One plain read of it tells whether the value is shared; the standard
/// library needs two exchanges, since it knows weak references as well.
pub const COUNTER_BYTES: usize = size_of::<usize>();

/// Above this, a tree is dropped on the reaper's thread: some tens of microseconds of work.
const REAPED_BYTES: usize = 256 << 10;

/// The same of what elements have of their own, which takes longer by the byte.
const REAPED_CHUNKS: u64 = 512;

/// A run of elements. Its clone is to be cheap and to share: a leaf is one [`Chunk`], or a few.
pub trait Leaf: Clone + Default + Send + Sync + 'static {
    /// What parts neighbours. `()` where elements are found by position alone.
    type Bound: Clone + Default + Send + Sync + 'static;
    /// What splitting needs to know: the hasher of a tree ordered by hash; `()` for others.
    type Context;
    /// A leaf with more bytes than this is split.
    const MAX_BYTES: usize;
    /// Chunks that each element has of its own and that are freed with it, about.
    const ELEMENT_CHUNKS: usize = 0;

    /// How many elements it holds.
    fn count(&self) -> usize;

    /// Bytes of its elements, without slack.
    fn bytes(&self) -> usize;

    /// Bytes of its allocations, by [`allocated`]; its own `size_of` is counted by the tree.
    fn memory_bytes(&self) -> usize;

    /// Splits the leaf in two that are not empty, and returns the bound between them and the right one. `None`, and no
    /// change, when its elements cannot be split: there is but one, or their order is the same.
    fn split(&mut self, cx: &Self::Context, cut: Cut) -> Option<(Self::Bound, Self)>;

    /// Appends the elements of `right`, which all follow.
    fn append(&mut self, right: &Self);

    /// Bytes that a bound has allocated.
    fn bound_bytes(_bound: &Self::Bound) -> usize {
        0
    }
}

/// A leaf whose elements are in order, so that it can be parted anywhere.
pub trait OrderedLeaf: Leaf {
    /// Parts before element `index`, which is neither 0 nor beyond the end.
    fn split_at(&mut self, index: usize) -> (Self::Bound, Self);
}

/// Where a leaf that is too big is to be parted. A leaf without an order of its own may do the same for all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// In the middle of its bytes.
    Middle,
    /// After its first element: the tree grows at the left end.
    First,
    /// Before its last element: the tree grows at the right end.
    Last,
}

/// The tree. A clone takes constant time and shares everything.
pub struct Tree<L: Leaf> {
    root: Option<Arc<Node<L>>>,
    /// Levels of nodes; those on level 1 hold leaves.
    height: u32,
    /// See [`Self::may_have_rows`]. It takes no memory: there is room after the height.
    may_have_rows: bool,
    len: u64,
}

impl<L: Leaf> Tree<L> {
    /// An empty tree. Allocates nothing.
    pub fn new() -> Self {
        Self { root: None, height: 0, may_have_rows: false, len: 0 }
    }

    /// Whether leaves are rows, or were: then it is edited in a clone only ([`crate::absent::whole`]).
    #[inline]
    pub fn may_have_rows(&self) -> bool {
        self.may_have_rows
    }

    /// How many elements it holds.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of its allocations, shared ones included, without `size_of::<Tree>()`. Constant time.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        self.root.as_ref().map_or(0, |root| root.memory_bytes())
    }

    /// Bytes of its elements, without slack. Constant time.
    #[inline]
    pub fn content_bytes(&self) -> usize {
        self.root.as_ref().map_or(0, |root| root.content_bytes())
    }

    /// The last leaf whose bound satisfies `reaches`, or the first leaf of all; `None` when the tree is empty.
    ///
    /// `reaches` must be true for bounds up to some point and false from there on. `|bound| *bound <= key` finds where
    /// `key` is or belongs; `|bound| *bound < key` finds the first leaf that can hold it, if several elements may be
    /// equal.
    #[inline]
    pub fn find(&self, reaches: impl Fn(&L::Bound) -> bool) -> Option<&L> {
        let mut node = self.root.as_deref()?;
        loop {
            let index = node.child_by_bound(&reaches);
            match node.below(index) {
                Ok(leaf) => return Some(leaf),
                Err(child) => node = child,
            }
        }
    }

    /// As [`Self::find`], a place to walk on from, which also knows how many elements precede the leaf.
    pub fn locate(&self, reaches: impl Fn(&L::Bound) -> bool) -> Option<Leaves<'_, L>> {
        Leaves::seek(self, ByBound::new(reaches))
    }

    /// The leaf with element `rank`, and its place in there. `None` when the tree has fewer elements.
    #[inline]
    pub fn at(&self, rank: u64) -> Option<(&L, usize)> {
        let leaves = self.leaves_at(rank)?;
        Some((leaves.leaf(), (rank - leaves.before()) as usize))
    }

    /// A place to walk from: the leaf with element `rank`. `None` when the tree has fewer elements.
    pub fn leaves_at(&self, rank: u64) -> Option<Leaves<'_, L>> {
        if rank >= self.len {
            return None;
        }
        Leaves::seek(self, ByRank::new(rank, self.len))
    }

    /// The bound at which the leaf with element `rank` begins; `None` for the first leaf and beyond the end. For
    /// cursors of the SCAN family: they continue at the bound of the next leaf.
    pub fn bound_at(&self, rank: u64) -> Option<&L::Bound> {
        let mut node = self.root.as_deref().filter(|_| rank < self.len)?;
        let mut seek = ByRank::new(rank, self.len);
        let mut bound = None;
        loop {
            let index = seek.choose(node);
            bound = node.bound(index).or(bound);
            match node.below(index) {
                Ok(_) => return bound,
                Err(child) => node = child,
            }
        }
    }

    /// Hands the leaf that [`Self::find`] would return to `edit`, which may do anything to its elements that keeps
    /// their order. An empty tree hands out an empty leaf. Returns the result of `edit`.
    ///
    /// If the path to the leaf is shared, it is copied even if `edit` changes nothing: look first where that is likely.
    #[inline]
    pub fn edit<R>(
        &mut self,
        cx: &L::Context,
        reaches: impl Fn(&L::Bound) -> bool,
        edit: impl FnOnce(&mut L) -> R,
    ) -> R {
        self.edit_by(cx, Toward(reaches), false, |leaf, _| edit(leaf))
    }

    /// Hands the leaf that [`Self::find`] would return to `edit`, if the path is not shared, for a change that keeps
    /// its number of elements and bytes: nothing above it is touched. Returns the result of `edit`; false, with nothing
    /// done, when [`Self::edit`] must be called.
    #[inline]
    pub fn edit_in_place(&mut self, reaches: impl Fn(&L::Bound) -> bool, edit: impl FnOnce(&mut L) -> bool) -> bool {
        let mut way = self.root.as_mut();
        while let Some(node) = way.and_then(Arc::get_mut) {
            let index = node.child_by_bound(&reaches);
            match node.below_mut(index) {
                Ok(leaf) => return edit(leaf),
                Err(child) => way = Some(child),
            }
        }
        false
    }

    /// Hands the leaf with element `rank`, and its place in there, to `edit`; from the number of elements on, the last
    /// leaf and its length. An empty tree hands out an empty leaf. Returns the result of `edit`.
    #[inline]
    pub fn edit_at<R>(&mut self, cx: &L::Context, rank: u64, edit: impl FnOnce(&mut L, usize) -> R) -> R {
        let rank = rank.min(self.len);
        self.edit_by(cx, ByRank::new(rank, self.len), false, |leaf, seek| edit(leaf, seek.rest() as usize))
    }

    /// Hands the first leaf, or the last, to `edit`, if the path is not shared and `fits` says that the leaf will be
    /// neither too big afterwards nor less than a quarter full. The fast path of [`Self::edit_at`] for collections used
    /// at their ends; `None`, with nothing done, when that one must be used.
    #[inline]
    pub fn edit_end<R>(
        &mut self,
        is_last: bool,
        fits: impl FnOnce(&L) -> bool,
        edit: impl FnOnce(&mut L) -> R,
    ) -> Option<R> {
        let root = Arc::get_mut(self.root.as_mut()?)?;
        let (result, grown) = root.edit_end(is_last, fits, edit)?;
        self.len = self.len.wrapping_add_signed(grown.count);
        Some(result)
    }

    /// Appends a leaf that is not empty. All its elements follow those that are there, and `bound` parts them.
    pub fn push(&mut self, bound: L::Bound, leaf: L) {
        debug_assert!(leaf.count() > 0, "an empty leaf");
        self.len += leaf.count() as u64;
        match &mut self.root {
            Some(root) => {
                Arc::make_mut(root).push_leaf(bound, leaf);
                self.settle_root(node::Edge { first: false, last: true });
            }
            None => self.plant(leaf),
        }
    }

    fn edit_by<R, S: Seek<L>>(
        &mut self,
        cx: &L::Context,
        seek: S,
        heal: bool,
        edit: impl FnOnce(&mut L, &S) -> R,
    ) -> R {
        let Some(root) = &mut self.root else {
            let mut leaf = L::default();
            let result = edit(&mut leaf, &seek);
            if leaf.count() > 0 {
                self.len = leaf.count() as u64;
                self.plant(leaf);
                self.split_first(cx);
            }
            return result;
        };
        let edge = node::Edge { first: true, last: true };
        let (result, delta) = Arc::make_mut(root).edit(cx, seek, edge, heal, edit);
        if let Some(delta) = delta {
            self.len = self.len.wrapping_add_signed(delta);
            self.settle_root(edge);
        }
        result
    }

    /// The tree becomes one leaf.
    fn plant(&mut self, leaf: L) {
        self.root = Some(Arc::new(Node::of_leaf(leaf)));
        self.height = 1;
    }

    /// Splits the only leaf while it is too big.
    fn split_first(&mut self, cx: &L::Context) {
        if let Some(root) = &mut self.root {
            Arc::make_mut(root).settle(cx, 0, node::Edge { first: true, last: true }, false);
        }
    }

    /// Gives a root that is too wide a parent, takes away one that has one child or none.
    fn settle_root(&mut self, edge: node::Edge) {
        let Some(root) = &mut self.root else { return };
        if root.width() > node::FANOUT {
            let mut left = std::mem::replace(root, Arc::new(Node::empty(self.height + 1)));
            let (bound, right) = Arc::make_mut(&mut left).split(edge);
            let above = Arc::make_mut(root);
            above.push_node(L::Bound::default(), left);
            above.push_node(bound, Arc::new(right));
            self.height += 1;
        }
        while let Some(root) = &mut self.root {
            if root.width() == 0 {
                *self = Self::new();
                return;
            }
            let Some(child) = root.only_node() else { return };
            let child = child.clone();
            self.root = Some(child);
            self.height -= 1;
        }
    }
}

impl<L: OrderedLeaf> Tree<L> {
    /// Takes these elements out, as a tree of their own. Logarithmic time; both trees share what was shared.
    pub fn remove_range(&mut self, cx: &L::Context, range: Range<u64>) -> Self {
        let range = range.start.min(self.len)..range.end.min(self.len);
        if range.is_empty() {
            return Self::new();
        }
        if range == (0..self.len) {
            return std::mem::take(self);
        }
        if let Some(leaf) = self.remove_within_leaf(cx, &range) {
            let mut removed = Self::new();
            removed.push(L::Bound::default(), leaf);
            return removed;
        }
        let (_, mut removed) = self.split_off(range.start);
        let (bound, rest) = removed.split_off(range.end - range.start);
        self.join(bound, rest);
        for rank in [range.start.saturating_sub(1), range.start] {
            self.edit_by(cx, ByRank::new(rank.min(self.len), self.len), true, |_, _| ());
        }
        removed
    }

    fn remove_within_leaf(&mut self, cx: &L::Context, range: &Range<u64>) -> Option<L> {
        let (leaf, start) = self.at(range.start)?;
        let end = start + usize::try_from(range.end - range.start).ok()?;
        if end > leaf.count() {
            return None;
        }
        Some(self.edit_at(cx, range.start, |leaf, _| {
            let right = (end < leaf.count()).then(|| leaf.split_at(end).1);
            let removed = if start == 0 { std::mem::take(leaf) } else { leaf.split_at(start).1 };
            if let Some(right) = right {
                leaf.append(&right);
            }
            removed
        }))
    }
}

/// What the program's allocator (crate `heap`), and the C library's, take for a request of this size: one more word, in
/// steps of 16.
#[inline]
pub fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
}

impl<L: Leaf> Default for Tree<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: Leaf> Clone for Tree<L> {
    fn clone(&self) -> Self {
        let Self { height, may_have_rows, len, .. } = *self;
        Self { root: self.root.clone(), height, may_have_rows, len }
    }
}

impl<L: Leaf> Drop for Tree<L> {
    fn drop(&mut self) {
        let chunks = self.len * L::ELEMENT_CHUNKS as u64;
        if self.memory_bytes() > REAPED_BYTES || chunks > REAPED_CHUNKS {
            reaper::free_chunks(Box::new(self.root.take()));
        }
    }
}

impl<L: Leaf> fmt::Debug for Tree<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("len", &self.len).field("height", &self.height).finish_non_exhaustive()
    }
}
