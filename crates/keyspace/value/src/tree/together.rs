//! Look-ups that wait for memory together.
//!
//! ```text
//! one after the other:  bounds ... leaf ... index ... element ... bounds ... leaf ... index ... element
//! together:             bounds, bounds, bounds ... leaf, leaf, leaf ... index, index, index ... element, ...
//! ```
//!
//! Each step of a look-up depends on the one before, so in a tree that exceeds the CPU's cache a look-up waits for
//! memory half a dozen times. Before a batch of look-ups, [`Tree::load_together`] walks all paths side by side: within
//! a round no step depends on another, so the CPU loads all their cache lines at once. The look-ups then find
//! everything in the cache.

use super::node::Node;
use super::{Leaf, Tree};
use crate::position::Position;
use base::hash::KeyHasher;
use std::hint::black_box;

/// Ways walked side by side: as many misses as a processor has under way.
pub const TOGETHER: usize = 16;

/// Of a line of the cache.
const LINE_BYTES: usize = 64;

/// What look-ups that are loaded are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To find the element.
    Find,
    /// To find it and to know how many elements precede it.
    Rank,
    /// To add or to remove it.
    Edit,
}

/// The positions of elements, [`TOGETHER`] of them at most.
pub fn positions<'a>(hasher: &KeyHasher, elements: impl Iterator<Item = &'a [u8]>) -> [Position; TOGETHER] {
    let mut positions = [Position::default(); TOGETHER];
    positions.iter_mut().zip(elements).for_each(|(position, element)| *position = Position::of(hasher, element));
    positions
}

/// A leaf of elements in the order of their hashes.
pub trait HashedLeaf: Leaf<Bound = u64, Context = KeyHasher> {
    /// What bounds are compared with.
    fn place(position: Position) -> u64;

    /// What a look-up reads first.
    fn index(&self) -> &[u8];

    /// What it reads next: by the index, the bytes of the first element that may be the one at this position.
    fn candidate(&self, position: Position) -> &[u8];

    /// How many share its bytes: what a change reads besides.
    fn owners(&self) -> usize;
}

impl<L: HashedLeaf> Tree<L> {
    /// Loads what looking up these elements reads, for up to [`TOGETHER`] of them, and returns the leaves where they
    /// are or belong. It skips the counts above them: most edits replace a value, and read none.
    pub fn load_together(&self, positions: &[Position], is_edit: bool) -> [Option<&L>; TOGETHER] {
        let leaves = self.load_ways(positions, |bound, position| *bound <= L::place(*position), Purpose::Find);
        let ends = || leaves.iter().flatten().zip(positions);
        load(ends().map(|(leaf, _)| leaf.count()));
        ends().for_each(|(leaf, _)| load_ends(leaf.index()));
        if is_edit {
            load(ends().map(|(leaf, _)| leaf.owners()));
        }
        let mut candidates: [&[u8]; TOGETHER] = [&[]; TOGETHER];
        for (candidate, (leaf, position)) in candidates.iter_mut().zip(ends()) {
            *candidate = leaf.candidate(*position);
        }
        candidates.iter().for_each(|candidate| load_ends(candidate));
        leaves
    }
}

impl<L: Leaf> Tree<L> {
    /// Loads the nodes on the paths to these goals, up to [`TOGETHER`] of them, and returns the leaves at the ends.
    /// `reaches` is that of [`Tree::find`].
    pub fn load_ways<G>(
        &self,
        goals: &[G],
        reaches: impl Fn(&L::Bound, &G) -> bool,
        purpose: Purpose,
    ) -> [Option<&L>; TOGETHER] {
        let mut leaves = [None; TOGETHER];
        let Some(root) = &self.root else { return leaves };
        let goals = &goals[..goals.len().min(TOGETHER)];
        let mut nodes: [&Node<L>; TOGETHER] = [root; TOGETHER];
        let mut indices = [0; TOGETHER];
        for level in (0..self.height).rev() {
            for ((node, index), goal) in nodes.iter().zip(&mut indices).zip(goals) {
                *index = node.child_by_bound(&|bound: &L::Bound| reaches(bound, goal));
            }
            let ways = nodes.iter().zip(&indices).take(goals.len());
            match purpose {
                Purpose::Find => {}
                Purpose::Rank => ways.for_each(|(node, index)| load(every_line(&node.counts()[..*index]).copied())),
                Purpose::Edit => load(ways.map(|(node, index)| node.counts()[*index])),
            }
            for ((node, leaf), index) in nodes.iter_mut().zip(&mut leaves).zip(&indices).take(goals.len()) {
                match node.below(*index) {
                    Ok(below) => *leaf = Some(below),
                    Err(below) => *node = below,
                }
            }
            if level > 0 {
                let nodes = &nodes[..goals.len()];
                load(nodes.iter().map(|node| node.width()));
                for (node, goal) in nodes.iter().zip(goals) {
                    load(every_line(node.bounds()).map(|bound| reaches(bound, goal)));
                }
            }
        }
        leaves
    }
}

/// One value of each line, or more.
#[inline]
fn every_line<T>(values: &[T]) -> impl Iterator<Item = &T> {
    values.iter().step_by((LINE_BYTES / size_of::<T>().max(1)).max(1))
}

/// Reads the first byte and the last one: what lies between them is seldom more than a line.
#[inline]
fn load_ends(bytes: &[u8]) {
    load([bytes.first(), bytes.last()].into_iter().flatten().copied());
}

/// Reads all lines of these bytes.
#[inline]
pub fn load_lines(bytes: &[u8]) {
    load(every_line(bytes).copied());
}

/// Reads all of these, for the processor's sake.
#[inline]
fn load<T>(values: impl Iterator<Item = T>) {
    values.for_each(|value| {
        black_box(value);
    });
}
