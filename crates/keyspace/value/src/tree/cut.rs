//! Parting a tree in two and joining two again, in logarithmic time.

use super::node::{ByRank, Edge, Node, Seek};
use super::{Leaf, OrderedLeaf, Tree};
use triomphe::Arc;

impl<L: OrderedLeaf> Tree<L> {
    /// Keeps the first `rank` elements and gives the others, and what parts the two. Neither side may be empty.
    pub(super) fn split_off(&mut self, rank: u64) -> (L::Bound, Self) {
        let Self { height, may_have_rows, .. } = *self;
        let Some(root) = self.root.as_mut().filter(|_| rank > 0 && rank < self.len) else {
            return (L::Bound::default(), if rank == 0 { std::mem::take(self) } else { Self::new() });
        };
        let (bound, right) = Arc::make_mut(root).cut(rank);
        let mut right = Self { root: Some(Arc::new(right)), height, may_have_rows, len: self.len - rank };
        self.len = rank;
        let edge = Edge { first: false, last: false };
        self.settle_root(edge);
        right.settle_root(edge);
        (bound, right)
    }

    /// Appends a tree whose elements all follow; `bound` parts the two.
    pub(super) fn join(&mut self, bound: L::Bound, mut right: Self) {
        let Some(other) = right.root.take() else { return };
        let (height, len) = (right.height, right.len);
        self.may_have_rows |= right.may_have_rows;
        let Some(root) = &mut self.root else {
            *self = Self { root: Some(other), height, may_have_rows: self.may_have_rows, len };
            return;
        };
        self.len += len;
        if self.height >= height {
            if self.height == height {
                self.raise();
            }
            let levels = self.height - height;
            if let Some(root) = &mut self.root {
                Arc::make_mut(root).attach_last(bound, other, levels);
            }
        } else {
            let levels = height - self.height;
            let left = std::mem::replace(root, other);
            Arc::make_mut(root).attach_first(bound, left, levels);
            self.height = height;
        }
        self.settle_root(Edge { first: false, last: false });
    }

    /// Gives the root a parent.
    fn raise(&mut self) {
        if let Some(root) = &mut self.root {
            let below = std::mem::replace(root, Arc::new(Node::empty(self.height + 1)));
            Arc::make_mut(root).push_node(L::Bound::default(), below);
            self.height += 1;
        }
    }
}

impl<L: OrderedLeaf> Node<L> {
    /// Keeps the first `rank` elements, which are some but not all, and gives a node of the others.
    fn cut(&mut self, rank: u64) -> (L::Bound, Self) {
        let mut seek = ByRank::new(rank, self.count());
        let index = seek.choose(self);
        match seek.rest() {
            0 => self.split_at(index),
            rest => self.split_within(index, |leaf| leaf.split_at(rest as usize), |node| node.cut(rest)),
        }
    }
}

impl<L: Leaf> Node<L> {
    /// Makes `node` the last child of the rightmost node that is `levels` above it.
    fn attach_last(&mut self, bound: L::Bound, node: Arc<Self>, levels: u32) {
        if levels == 1 {
            self.push_node(bound, node);
        } else if let Some(last) = self.node_mut(self.width() - 1) {
            last.attach_last(bound, node, levels - 1);
        }
        self.settle_end(self.width() - 1, Edge { first: false, last: false });
    }

    /// Makes `node` the first child of the leftmost node that is `levels` above it.
    fn attach_first(&mut self, bound: L::Bound, node: Arc<Self>, levels: u32) {
        if levels == 1 {
            self.push_node_first(bound, node);
        } else if let Some(first) = self.node_mut(0) {
            first.attach_first(bound, node, levels - 1);
        }
        self.settle_end(0, Edge { first: false, last: false });
    }
}
