//! Look-ups that wait for memory together.
//!
//! ```text
//! one after the other:  bounds ... leaf ... index ... element ... bounds ... leaf ... index ... element
//! together:             bounds, bounds, bounds ... leaf, leaf, leaf ... index, index, index ... element, element, element
//! ```
//!
//! Each step of a look-up says where the next one is to read, so in a tree that is bigger than the processor's cache a look-up
//! waits for memory half a dozen times. Before a batch of them, [`Tree::load_together`] walks all ways side by side: within a
//! round no step depends on another, so the processor asks for all their lines at once. The look-ups themselves then find
//! everything in the cache.

use super::node::Node;
use super::{Leaf, Tree};
use crate::position::Position;
use base::hash::KeyHasher;
use std::hint::black_box;

/// Ways walked side by side: as many misses as a processor has under way.
const TOGETHER: usize = 16;

/// Of a line of the cache.
const LINE_BYTES: usize = 64;

/// A leaf of elements in the order of their hashes.
pub trait HashedLeaf: Leaf<Bound = u64, Context = KeyHasher> {
    /// What a look-up reads first.
    fn index(&self) -> &[u8];

    /// What it reads next: by the index, the bytes of the first element that may be the one at this position.
    fn candidate(&self, position: Position) -> &[u8];

    /// How many share its bytes: what a change reads besides.
    fn owners(&self) -> usize;
}

impl<L: HashedLeaf> Tree<L> {
    /// Has the processor load what looking up these elements reads, and changing them too if that is the purpose.
    pub fn load_together(&self, hasher: &KeyHasher, elements: &[&[u8]], is_edit: bool) {
        if let Some(root) = &self.root {
            elements.chunks(TOGETHER).for_each(|elements| self.load_some(root, hasher, elements, is_edit));
        }
    }

    fn load_some(&self, root: &Node<L>, hasher: &KeyHasher, elements: &[&[u8]], is_edit: bool) {
        let mut positions = [Position::default(); TOGETHER];
        for (position, element) in positions.iter_mut().zip(elements) {
            *position = Position::of(hasher, element);
        }
        let positions = &positions[..elements.len()];
        let mut nodes = [root; TOGETHER];
        for _ in 1..self.height {
            for (node, position) in nodes.iter_mut().zip(positions) {
                if let Err(below) = node.below_place(*position) {
                    *node = below;
                }
            }
            let nodes = &nodes[..positions.len()];
            load(nodes.iter().map(|node| node.width()));
            nodes.iter().for_each(|node| load(node.bounds().iter().step_by(LINE_BYTES / size_of::<u64>()).copied()));
        }
        let mut leaves = [None; TOGETHER];
        for (leaf, (node, position)) in leaves.iter_mut().zip(nodes.iter().zip(positions)) {
            *leaf = node.below_place(*position).ok();
        }
        let leaves = || leaves.iter().flatten().zip(positions);
        load(leaves().map(|(leaf, _)| leaf.count()));
        leaves().for_each(|(leaf, _)| load_ends(leaf.index()));
        if is_edit {
            load(leaves().map(|(leaf, _)| leaf.owners()));
        }
        let mut candidates: [&[u8]; TOGETHER] = [&[]; TOGETHER];
        for (candidate, (leaf, position)) in candidates.iter_mut().zip(leaves()) {
            *candidate = leaf.candidate(*position);
        }
        candidates.iter().for_each(|candidate| load_ends(candidate));
    }
}

impl<L: Leaf<Bound = u64>> Node<L> {
    #[inline]
    fn below_place(&self, position: Position) -> Result<&L, &Self> {
        self.below(self.child_by_bound(&|bound: &u64| *bound <= position.place()))
    }
}

/// Reads the first byte and the last one: what lies between them is seldom more than a line.
#[inline]
fn load_ends(bytes: &[u8]) {
    load([bytes.first(), bytes.last()].into_iter().flatten().copied());
}

/// Reads all of these, for the processor's sake.
#[inline]
fn load<T>(values: impl Iterator<Item = T>) {
    values.for_each(|value| {
        black_box(value);
    });
}
