//! Walking from leaf to leaf.

use super::node::{CountingSeek, Node};
use super::{Leaf, Tree};

/// A place in a tree: a leaf. It stays in the node above as long as it can, and descends from the root for the next
/// one.
pub struct Leaves<'t, L: Leaf> {
    tree: &'t Tree<L>,
    above: &'t Node<L>,
    index: usize,
    leaf: &'t L,
    before: u64,
}

impl<'t, L: Leaf> Leaves<'t, L> {
    pub(super) fn seek(tree: &'t Tree<L>, mut seek: impl CountingSeek<L>) -> Option<Self> {
        let mut above = tree.root.as_deref()?;
        loop {
            let index = seek.choose(above);
            match above.below(index) {
                Ok(leaf) => return Some(Self { tree, above, index, leaf, before: seek.before() }),
                Err(child) => above = child,
            }
        }
    }

    /// The leaf.
    #[inline]
    pub fn leaf(&self) -> &'t L {
        self.leaf
    }

    /// How many elements are before the leaf.
    #[inline]
    pub fn before(&self) -> u64 {
        self.before
    }

    /// How many elements are before the next leaf.
    #[inline]
    pub fn after(&self) -> u64 {
        self.before + self.leaf.count() as u64
    }

    /// Whether the next leaf is in the same node.
    #[inline]
    pub(super) fn has_sibling(&self) -> bool {
        self.index + 1 < self.above.width()
    }

    /// The next leaf; `None` when this is the last.
    pub fn next(&self) -> Option<Self> {
        let before = self.after();
        if self.has_sibling() {
            return self.sibling(self.index + 1, |_| before);
        }
        self.tree.leaves_at(before)
    }

    /// The leaf before; `None` when this is the first.
    pub fn previous(&self) -> Option<Self> {
        if self.index > 0 {
            return self.sibling(self.index - 1, |leaf| self.before - leaf.count() as u64);
        }
        self.tree.leaves_at(self.before.checked_sub(1)?)
    }

    fn sibling(&self, index: usize, before: impl Fn(&L) -> u64) -> Option<Self> {
        let leaf = self.above.below(index).ok()?;
        Some(Self { index, leaf, before: before(leaf), ..*self })
    }
}

impl<L: Leaf> Clone for Leaves<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Leaf> Copy for Leaves<'_, L> {}

impl<L: Leaf> std::fmt::Debug for Leaves<'_, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leaves").field("before", &self.before).finish_non_exhaustive()
    }
}
