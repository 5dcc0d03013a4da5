//! Inner nodes: where to descend, and what happens to them after an edit below.

use super::{COUNTER_BYTES, ColdLeaf, Cut, Leaf, allocated};
use std::mem::size_of;
use triomphe::Arc;

/// Most children of a node. Copying a shared node touches each of them, finding a place touches a handful of lines.
pub(super) const FANOUT: usize = 48;
/// Vectors of a node grow by this many places, or double if that is less, so that small trees have little slack.
const GROWTH: usize = 6;

/// A node over leaves or over nodes.
pub(super) struct Node<L: Leaf> {
    /// Of this node and everything below.
    memory_bytes: usize,
    /// Of the elements below, without slack.
    content_bytes: usize,
    counts: Vec<u64>,
    bounds: Vec<L::Bound>,
    below: Below<L>,
}

enum Below<L: Leaf> {
    Leaves(Vec<L>),
    Nodes(Vec<Arc<Node<L>>>),
}

/// Whether a path runs along the left or right end of the tree.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) first: bool,
    pub(super) last: bool,
}

impl Edge {
    fn cut(self) -> Cut {
        match (self.first, self.last) {
            (true, false) => Cut::First,
            (false, true) => Cut::Last,
            _ => Cut::Middle,
        }
    }
}

/// By how much an edit has made a node grow; what has shrunk wraps around.
pub(super) struct Grown {
    memory_bytes: usize,
    content_bytes: usize,
    pub(super) count: i64,
}

/// Which way to go, node by node.
pub(super) trait Seek<L: Leaf> {
    fn choose(&mut self, node: &Node<L>) -> usize;
}

/// A way on which elements are counted.
pub(super) trait CountingSeek<L: Leaf>: Seek<L> {
    /// Elements before the child that was chosen last.
    fn before(&self) -> u64;
}

/// To the last leaf whose bound satisfies a predicate.
pub(super) struct Toward<F>(pub(super) F);

impl<L: Leaf, F: Fn(&L::Bound) -> bool> Seek<L> for Toward<F> {
    #[inline]
    fn choose(&mut self, node: &Node<L>) -> usize {
        node.child_by_bound(&self.0)
    }
}

/// The same way, counting. It reads the counts of all children on the left, which are lines that nothing else reads.
pub(super) struct ByBound<F> {
    reaches: F,
    before: u64,
}

impl<F> ByBound<F> {
    pub(super) fn new(reaches: F) -> Self {
        Self { reaches, before: 0 }
    }
}

impl<L: Leaf, F: Fn(&L::Bound) -> bool> Seek<L> for ByBound<F> {
    #[inline]
    fn choose(&mut self, node: &Node<L>) -> usize {
        let index = node.child_by_bound(&self.reaches);
        self.before += node.counts[..index].iter().sum::<u64>();
        index
    }
}

impl<L: Leaf, F: Fn(&L::Bound) -> bool> CountingSeek<L> for ByBound<F> {
    #[inline]
    fn before(&self) -> u64 {
        self.before
    }
}

/// To the leaf with the element of a rank.
pub(super) struct ByRank {
    rest: u64,
    before: u64,
    /// Elements below the node where the path continues.
    below: u64,
}

impl ByRank {
    /// To the element of this rank below a node, or a tree, of `len` elements.
    pub(super) fn new(rank: u64, len: u64) -> Self {
        Self { rest: rank, before: 0, below: len }
    }

    /// Where in the leaf the element is.
    pub(super) fn rest(&self) -> u64 {
        self.rest
    }
}

impl<L: Leaf> Seek<L> for ByRank {
    #[inline]
    fn choose(&mut self, node: &Node<L>) -> usize {
        let counts = &node.counts[..];
        let last = counts.len() - 1;
        // From the nearer side: either end of a long list is used most.
        let (mut index, mut first) =
            if self.rest < self.below / 2 { (0, 0) } else { (last, self.below - counts[last]) };
        while index > 0 && self.rest < first {
            index -= 1;
            first -= counts[index];
        }
        while index < last && self.rest - first >= counts[index] {
            first += counts[index];
            index += 1;
        }
        self.rest -= first;
        self.before += first;
        self.below = counts[index];
        index
    }
}

impl<L: Leaf> CountingSeek<L> for ByRank {
    #[inline]
    fn before(&self) -> u64 {
        self.before
    }
}

impl<L: Leaf> Node<L> {
    /// A node for level `height`, to which children are to be added at once.
    pub(super) fn empty(height: u32) -> Self {
        let below = if height == 1 { Below::Leaves(Vec::new()) } else { Below::Nodes(Vec::new()) };
        let mut node = Self { memory_bytes: 0, content_bytes: 0, counts: Vec::new(), bounds: Vec::new(), below };
        node.recount();
        node
    }

    pub(super) fn of_leaf(leaf: L) -> Self {
        let mut node = Self::empty(1);
        node.push_leaf(L::Bound::default(), leaf);
        node
    }

    #[inline]
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    #[inline]
    pub(super) fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    #[inline]
    pub(super) fn width(&self) -> usize {
        self.counts.len()
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The last child whose bound satisfies `reaches`, or the first of all.
    #[inline]
    pub(super) fn child_by_bound(&self, reaches: &impl Fn(&L::Bound) -> bool) -> usize {
        self.bounds[1..].partition_point(reaches)
    }

    /// What parts the children; the first bound means nothing (B1).
    #[inline]
    pub(super) fn bounds(&self) -> &[L::Bound] {
        &self.bounds
    }

    /// How many elements are below each child.
    #[inline]
    pub(super) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// What parts child `index` from the one before; `None` for the first (B1).
    #[inline]
    pub(super) fn bound(&self, index: usize) -> Option<&L::Bound> {
        if index == 0 { None } else { self.bounds.get(index) }
    }

    /// Child `index`, a leaf or a node.
    #[inline]
    pub(super) fn below(&self, index: usize) -> Result<&L, &Self> {
        match &self.below {
            Below::Leaves(leaves) => Ok(&leaves[index]),
            Below::Nodes(nodes) => Err(&nodes[index]),
        }
    }

    /// [`Self::below`] for a change that leaves all that this node knows of it.
    #[inline]
    pub(super) fn below_mut(&mut self, index: usize) -> Result<&mut L, &mut Arc<Self>> {
        match &mut self.below {
            Below::Leaves(leaves) => Ok(&mut leaves[index]),
            Below::Nodes(nodes) => Err(&mut nodes[index]),
        }
    }

    /// The only child, if it is a node.
    pub(super) fn only_node(&self) -> Option<&Arc<Self>> {
        match &self.below {
            Below::Nodes(nodes) if nodes.len() == 1 => nodes.first(),
            _ => None,
        }
    }

    /// See [`super::Tree::edit`]. Also returns by how much the number of elements has changed, or `None` when neither
    /// that nor any bytes have: then nothing above the leaf changes either. `heal` merges thin nodes along the path
    /// even if this edit did not shrink them, and returns a number.
    pub(super) fn edit<R, S: Seek<L>>(
        &mut self,
        cx: &L::Context,
        mut seek: S,
        edge: Edge,
        heal: bool,
        edit: impl FnOnce(&mut L, &S) -> R,
    ) -> (R, Option<i64>) {
        let index = seek.choose(self);
        let edge = Edge { first: edge.first && index == 0, last: edge.last && index + 1 == self.width() };
        match &mut self.below {
            Below::Leaves(leaves) => {
                let leaf = &mut leaves[index];
                let (bytes, memory, count) = (leaf.bytes(), leaf.memory_bytes(), leaf.count());
                let result = edit(leaf, &seek);
                let delta = leaf.count().wrapping_sub(count) as i64;
                let (bytes_now, memory_now) = (leaf.bytes(), leaf.memory_bytes());
                if delta == 0 && bytes_now == bytes && memory_now == memory && !heal {
                    return (result, None);
                }
                self.memory_bytes = self.memory_bytes + memory_now - memory;
                self.content_bytes = self.content_bytes + bytes_now - bytes;
                let has_shrunk = heal || bytes_now < bytes;
                self.recount_child(index, delta);
                self.settle(cx, index, edge, has_shrunk);
                (result, Some(delta))
            }
            Below::Nodes(nodes) => {
                let Self { memory_bytes: memory, content_bytes: content, .. } = *nodes[index];
                let width = nodes[index].width();
                let child = Arc::make_mut(&mut nodes[index]);
                let (result, delta) = child.edit(cx, seek, edge, heal, edit);
                // Also when nothing has changed below: a copy of a node that was shared has no slack.
                if child.memory_bytes != memory {
                    self.memory_bytes = self.memory_bytes + child.memory_bytes - memory;
                }
                let Some(delta) = delta else { return (result, None) };
                self.content_bytes = self.content_bytes + child.content_bytes - content;
                let has_shrunk = heal || child.width() < width;
                self.recount_child(index, delta);
                self.settle(cx, index, edge, has_shrunk);
                (result, Some(delta))
            }
        }
    }

    /// See [`super::Tree::edit_end`]. Also returns by how much the subtree has grown.
    pub(super) fn edit_end<R>(
        &mut self,
        is_last: bool,
        fits: impl FnOnce(&L) -> bool,
        edit: impl FnOnce(&mut L) -> R,
    ) -> Option<(R, Grown)> {
        let index = if is_last { self.counts.len() - 1 } else { 0 };
        let (result, grown) = match &mut self.below {
            Below::Leaves(leaves) => {
                let leaf = leaves.get_mut(index).filter(|leaf| fits(leaf))?;
                let (bytes, memory, count) = (leaf.bytes(), leaf.memory_bytes(), leaf.count());
                let result = edit(leaf);
                debug_assert!((L::MAX_BYTES / 4..=L::MAX_BYTES).contains(&leaf.bytes()) || leaf.bytes() >= bytes);
                let grown = Grown {
                    memory_bytes: leaf.memory_bytes().wrapping_sub(memory),
                    content_bytes: leaf.bytes().wrapping_sub(bytes),
                    count: leaf.count().wrapping_sub(count) as i64,
                };
                (result, grown)
            }
            Below::Nodes(nodes) => Arc::get_mut(nodes.get_mut(index)?)?.edit_end(is_last, fits, edit)?,
        };
        self.memory_bytes = self.memory_bytes.wrapping_add(grown.memory_bytes);
        self.content_bytes = self.content_bytes.wrapping_add(grown.content_bytes);
        self.counts[index] = self.counts[index].wrapping_add_signed(grown.count);
        Some((result, grown))
    }

    /// Replaces this many neighbours by one leaf with the same elements.
    pub(super) fn replace_leaves(&mut self, mut seek: ByRank, count: usize, by: L) {
        let index = seek.choose(self);
        match &mut self.below {
            Below::Leaves(leaves) => {
                let merged = index + 1..index + count;
                leaves[index] = by;
                leaves.drain(merged.clone());
                leaves.shrink_to_fit();
                self.counts[index] += self.counts[merged.clone()].iter().sum::<u64>();
                self.counts.drain(merged.clone());
                self.counts.shrink_to_fit();
                self.bounds.drain(merged);
                self.bounds.shrink_to_fit();
                self.recount();
            }
            Below::Nodes(nodes) => {
                let Self { memory_bytes: memory, content_bytes: content, .. } = *nodes[index];
                let child = Arc::make_mut(&mut nodes[index]);
                child.replace_leaves(seek, count, by);
                let is_thin = child.width() < FANOUT / 4;
                self.memory_bytes = self.memory_bytes + child.memory_bytes - memory;
                self.content_bytes = self.content_bytes + child.content_bytes - content;
                if is_thin {
                    self.merge_child(index);
                }
            }
        }
    }

    /// Adds to the count of child `index`. If nothing is added, as when a value is replaced, the count is not even
    /// read: it has a cache line of its own.
    #[inline]
    fn recount_child(&mut self, index: usize, delta: i64) {
        if delta != 0 {
            self.counts[index] = self.counts[index].wrapping_add_signed(delta);
        }
    }

    /// Splits child `index` if it is too big, merges it if it has shrunk too far, removes it if it is empty.
    #[inline]
    pub(super) fn settle(&mut self, cx: &L::Context, index: usize, edge: Edge, has_shrunk: bool) {
        let (size, max) = (self.size(index), self.size_max());
        if size > max {
            self.split_child(cx, index, edge);
        } else if has_shrunk && size < max / 4 {
            self.merge_child(index);
        }
    }

    /// Appends a leaf at the right end of the subtree.
    pub(super) fn push_leaf(&mut self, bound: L::Bound, leaf: L) {
        match &mut self.below {
            Below::Leaves(_) => {
                let count = leaf.count() as u64;
                self.insert(self.width(), bound, count, Child::Leaf(leaf));
            }
            Below::Nodes(nodes) => {
                let last = nodes.len() - 1;
                Arc::make_mut(&mut nodes[last]).push_leaf(bound, leaf);
                self.settle_end(last, Edge { first: false, last: true });
            }
        }
    }

    /// Appends a child.
    pub(super) fn push_node(&mut self, bound: L::Bound, node: Arc<Self>) {
        let count = node.count();
        self.insert(self.width(), bound, count, Child::Node(node));
    }

    /// Makes `node` the first child; `bound` parts it from what was.
    pub(super) fn push_node_first(&mut self, bound: L::Bound, node: Arc<Self>) {
        let count = node.count();
        self.bounds[0] = bound;
        self.insert(0, L::Bound::default(), count, Child::Node(node));
    }

    /// The first or last child, for a change after which [`Self::settle_end`] is called.
    pub(super) fn node_mut(&mut self, index: usize) -> Option<&mut Self> {
        match &mut self.below {
            Below::Leaves(_) => None,
            Below::Nodes(nodes) => nodes.get_mut(index).map(Arc::make_mut),
        }
    }

    /// After a change in child `index`, which is a node: its count, splitting and merging.
    pub(super) fn settle_end(&mut self, index: usize, edge: Edge) {
        let Below::Nodes(nodes) = &mut self.below else { return };
        self.counts[index] = nodes[index].count();
        if nodes[index].width() > FANOUT {
            let (bound, right) = Arc::make_mut(&mut nodes[index]).split(edge);
            self.counts[index] = nodes[index].count();
            self.insert(index + 1, bound, right.count(), Child::Node(Arc::new(right)));
        } else if nodes[index].width() < FANOUT / 4 {
            self.merge_child(index);
        }
        self.recount();
    }

    /// Parts a node that is too wide.
    pub(super) fn split(&mut self, edge: Edge) -> (L::Bound, Self) {
        let at = match edge.cut() {
            Cut::Middle => self.width() / 2,
            Cut::First => 1,
            Cut::Last => self.width() - 1,
        };
        self.split_at(at)
    }

    /// Parts a node before child `at`.
    pub(super) fn split_at(&mut self, at: usize) -> (L::Bound, Self) {
        let below = match &mut self.below {
            Below::Leaves(leaves) => Below::Leaves(tail(leaves, at)),
            Below::Nodes(nodes) => Below::Nodes(tail(nodes, at)),
        };
        let mut right = Self {
            memory_bytes: 0,
            content_bytes: 0,
            counts: tail(&mut self.counts, at),
            bounds: tail(&mut self.bounds, at),
            below,
        };
        // Before it is counted what the node takes.
        let bound = right.bounds.first_mut().map(std::mem::take).unwrap_or_default();
        self.recount();
        right.recount();
        (bound, right)
    }

    /// Replaces child `index` by the two halves of it that `part` makes.
    pub(super) fn split_within(
        &mut self,
        index: usize,
        leaf: impl FnOnce(&mut L) -> (L::Bound, L),
        node: impl FnOnce(&mut Self) -> (L::Bound, Self),
    ) -> (L::Bound, Self) {
        let (bound, count, child) = match &mut self.below {
            Below::Leaves(leaves) => {
                let (bound, right) = leaf(&mut leaves[index]);
                (bound, right.count() as u64, Child::Leaf(right))
            }
            Below::Nodes(nodes) => {
                let (bound, right) = node(Arc::make_mut(&mut nodes[index]));
                (bound, right.count(), Child::Node(Arc::new(right)))
            }
        };
        self.counts[index] -= count;
        self.insert(index + 1, bound, count, child);
        self.split_at(index + 1)
    }

    /// Bytes of a leaf, children of a node.
    #[inline]
    fn size(&self, index: usize) -> usize {
        match &self.below {
            Below::Leaves(leaves) => leaves[index].bytes(),
            Below::Nodes(nodes) => nodes[index].width(),
        }
    }

    fn size_max(&self) -> usize {
        match &self.below {
            Below::Leaves(_) => L::MAX_BYTES,
            Below::Nodes(_) => FANOUT,
        }
    }

    fn split_child(&mut self, cx: &L::Context, index: usize, edge: Edge) {
        let (bound, count, child) = match &mut self.below {
            Below::Leaves(leaves) => {
                let Some((bound, right)) = leaves[index].split(cx, edge.cut()) else { return };
                (bound, right.count() as u64, Child::Leaf(right))
            }
            Below::Nodes(nodes) => {
                let (bound, right) = Arc::make_mut(&mut nodes[index]).split(edge);
                (bound, right.count(), Child::Node(Arc::new(right)))
            }
        };
        self.counts[index] -= count;
        self.insert(index + 1, bound, count, child);
        // One element can be far bigger than a leaf should be, so that either half may be too big still.
        for index in [index + 1, index] {
            self.settle(cx, index, Edge { first: false, last: false }, false);
        }
    }

    fn merge_child(&mut self, index: usize) {
        if self.counts[index] == 0 {
            self.remove(index);
            return;
        }
        let fits = |left: usize| left + 1 < self.width() && self.size(left) + self.size(left + 1) <= self.size_max();
        let left = if index > 0 && fits(index - 1) {
            index - 1
        } else if fits(index) {
            index
        } else {
            return;
        };
        let (bound, child) = self.remove(left + 1);
        match (&mut self.below, child) {
            (Below::Leaves(leaves), Child::Leaf(right)) => {
                leaves[left].append(&right);
                self.counts[left] += right.count() as u64;
            }
            (Below::Nodes(nodes), Child::Node(right)) => {
                self.counts[left] += right.count();
                Arc::make_mut(&mut nodes[left]).absorb(bound, Arc::unwrap_or_clone(right));
            }
            _ => unreachable!("children of a node are of one kind"),
        }
        self.recount();
    }

    /// Appends the children of the node to the right; `bound` parts the two.
    fn absorb(&mut self, bound: L::Bound, right: Self) {
        let first = self.bounds.len();
        self.counts.extend(right.counts);
        self.bounds.extend(right.bounds);
        self.bounds[first] = bound;
        match (&mut self.below, right.below) {
            (Below::Leaves(leaves), Below::Leaves(right)) => leaves.extend(right),
            (Below::Nodes(nodes), Below::Nodes(right)) => nodes.extend(right),
            _ => unreachable!("nodes of one level"),
        }
        self.recount();
    }

    fn insert(&mut self, index: usize, bound: L::Bound, count: u64, child: Child<L>) {
        insert(&mut self.counts, index, count);
        insert(&mut self.bounds, index, bound);
        match (&mut self.below, child) {
            (Below::Leaves(leaves), Child::Leaf(leaf)) => insert(leaves, index, leaf),
            (Below::Nodes(nodes), Child::Node(node)) => insert(nodes, index, node),
            _ => unreachable!("children of a node are of one kind"),
        }
        self.recount();
    }

    fn remove(&mut self, index: usize) -> (L::Bound, Child<L>) {
        self.counts.remove(index);
        let bound = self.bounds.remove(index);
        let child = match &mut self.below {
            Below::Leaves(leaves) => Child::Leaf(leaves.remove(index)),
            Below::Nodes(nodes) => Child::Node(nodes.remove(index)),
        };
        self.recount();
        (bound, child)
    }

    /// Counts memory and content anew, from the children's.
    fn recount(&mut self) {
        let sum = |(memory, content): (usize, usize), child: (usize, usize)| (memory + child.0, content + child.1);
        let below = match &self.below {
            Below::Leaves(leaves) => leaves.iter().map(|leaf| (leaf.memory_bytes(), leaf.bytes())).fold((0, 0), sum),
            Below::Nodes(nodes) => nodes.iter().map(|node| (node.memory_bytes, node.content_bytes)).fold((0, 0), sum),
        };
        (self.memory_bytes, self.content_bytes) = (self.own_bytes() + below.0, below.1);
    }

    fn own_bytes(&self) -> usize {
        let children = match &self.below {
            Below::Leaves(leaves) => allocated(leaves.capacity() * size_of::<L>()),
            Below::Nodes(nodes) => allocated(nodes.capacity() * size_of::<Arc<Self>>()),
        };
        allocated(size_of::<Self>() + COUNTER_BYTES)
            + allocated(self.counts.capacity() * size_of::<u64>())
            + allocated(self.bounds.capacity() * size_of::<L::Bound>())
            + self.bounds.iter().map(L::bound_bytes).sum::<usize>()
            + children
    }
}

#[cfg(test)]
impl<L: Leaf> Node<L> {
    /// Checks B1 (by `is_parted`: bound, the leaf before it, the leaf after it), B2, the counts and B5; returns the
    /// level.
    pub(super) fn check(&self, is_parted: &impl Fn(&L::Bound, &L, &L) -> bool) -> u32 {
        assert!(self.width() > 0, "B2");
        assert!(self.width() <= FANOUT);
        assert_eq!(self.width(), self.bounds.len());
        let mut recounted = self.clone();
        recounted.counts = self.counts.clone();
        let slack = self.own_bytes() - recounted.own_bytes();
        recounted.recount();
        assert_eq!(self.memory_bytes, recounted.memory_bytes + slack, "B5");
        assert_eq!(self.content_bytes, recounted.content_bytes, "B5");
        for index in 1..self.width() {
            let (left, right) = (self.end(index - 1, true), self.end(index, false));
            assert!(is_parted(&self.bounds[index], left, right), "B1");
        }
        match &self.below {
            Below::Leaves(leaves) => {
                for (index, leaf) in leaves.iter().enumerate() {
                    assert!(leaf.count() > 0, "B2");
                    assert_eq!(leaf.count() as u64, self.counts[index]);
                }
                1
            }
            Below::Nodes(nodes) => {
                for (index, node) in nodes.iter().enumerate() {
                    assert_eq!(node.count(), self.counts[index]);
                }
                let levels: Vec<u32> = nodes.iter().map(|node| node.check(is_parted)).collect();
                assert!(levels.iter().all(|level| *level == levels[0]));
                levels[0] + 1
            }
        }
    }

    /// The first or last leaf below child `index`.
    fn end(&self, index: usize, is_last: bool) -> &L {
        match &self.below {
            Below::Leaves(leaves) => &leaves[index],
            Below::Nodes(nodes) => nodes[index].end(if is_last { nodes[index].width() - 1 } else { 0 }, is_last),
        }
    }
}

impl<L: ColdLeaf> Node<L> {
    /// See [`super::Tree::shed`].
    pub(super) fn shed(&mut self, mut seek: ByRank) {
        let index = seek.choose(self);
        match &mut self.below {
            Below::Leaves(leaves) => leaves[index].shed(),
            Below::Nodes(nodes) => {
                if let Some(child) = Arc::get_mut(&mut nodes[index]) {
                    child.shed(seek);
                }
            }
        }
    }
}

/// What a node points at.
enum Child<L: Leaf> {
    Leaf(L),
    Node(Arc<Node<L>>),
}

impl<L: Leaf> Clone for Node<L> {
    fn clone(&self) -> Self {
        let below = match &self.below {
            Below::Leaves(leaves) => Below::Leaves(leaves.clone()),
            Below::Nodes(nodes) => Below::Nodes(nodes.clone()),
        };
        let (counts, bounds) = (self.counts.clone(), self.bounds.clone());
        let mut clone = Self { memory_bytes: 0, content_bytes: self.content_bytes, counts, bounds, below };
        // The vectors of a clone have no slack.
        clone.memory_bytes = self.memory_bytes - self.own_bytes() + clone.own_bytes();
        clone
    }
}

fn insert<T>(to: &mut Vec<T>, index: usize, value: T) {
    if to.len() == to.capacity() {
        to.reserve_exact(to.len().clamp(1, GROWTH));
    }
    to.insert(index, value);
}

/// Moves everything from `at` on to a vector of its own.
fn tail<T>(from: &mut Vec<T>, at: usize) -> Vec<T> {
    let tail = from.drain(at..).collect();
    from.shrink_to(from.len() + GROWTH);
    tail
}
