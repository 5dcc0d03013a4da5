//! A big set: a tree in the order of the members' keyed hashes.

use super::Change;
use super::leaf::{self, Leaf};
use crate::Progress;
use crate::position::Position;
use crate::saved::OfRows;
use crate::saved::hashed::{self, HashedTree};
use crate::tree::{Leaves, Run, TOGETHER, Tree, positions};
use crate::wire;
use base::hash::KeyHasher;

/// The tree.
#[derive(Clone, Debug)]
pub struct Big {
    tree: Tree<Leaf>,
    hasher: KeyHasher,
}

impl Big {
    /// A set without members, which keeps the hasher.
    pub(crate) fn new(hasher: &KeyHasher) -> Self {
        Self { tree: Tree::new(), hasher: hasher.clone() }
    }

    /// A set without members that has them in the same order.
    pub fn empty_alike(&self) -> Self {
        Self::new(&self.hasher)
    }

    /// What orders the members.
    pub(crate) fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    pub(crate) fn tree(&self) -> &Tree<Leaf> {
        &self.tree
    }

    /// Whether leaves are rows, or were: then it is edited in a clone only ([`crate::absent::whole`]).
    pub fn may_have_rows(&self) -> bool {
        self.tree.may_have_rows()
    }

    /// The tree, for changes of its form.
    pub(crate) fn tree_mut(&mut self) -> &mut Tree<Leaf> {
        &mut self.tree
    }

    /// See [`Tree::warm_run`].
    pub(crate) fn warm_run(&mut self, run: &Run<Leaf>) -> bool {
        self.tree.warm_run(&self.hasher, run)
    }

    /// See [`crate::Big::is_ordered_by`].
    pub(crate) fn is_ordered_by(&self, hasher: &KeyHasher) -> bool {
        self.hasher.is(hasher)
    }

    /// How many members.
    #[inline]
    pub fn len(&self) -> usize {
        self.tree.len() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// Whether the member is there.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        let position = Position::of(&self.hasher, member);
        let leaf = self.tree.find(|bound| *bound <= position.place());
        leaf.is_some_and(|leaf| leaf.find(position, member).is_some())
    }

    /// See [`crate::Big::load`].
    pub fn load(&self, requests: &[[&[u8]; 2]], is_edit: bool) {
        for requests in requests.chunks(TOGETHER) {
            let positions = positions(&self.hasher, requests.iter().map(|[member, _]| *member));
            self.tree.load_together(&positions[..requests.len()], is_edit);
        }
    }

    /// The member at this place of the tree's order.
    pub fn at(&self, index: usize) -> Option<&[u8]> {
        let (leaf, place) = self.tree.at(index as u64)?;
        Some(leaf.at(place))
    }

    /// The members from this place of the tree's order on, leaf by leaf.
    pub fn iter_from(&self, index: usize) -> Iter<'_> {
        let leaves = self.tree.leaves_at(index as u64);
        let mut members = leaves.map(|leaves| leaves.leaf().iter()).unwrap_or_default();
        let before = leaves.map_or(0, |leaves| index - leaves.before() as usize);
        members.by_ref().take(before).for_each(drop);
        Iter { leaves, members }
    }

    /// See [`super::View::scan`]. The cursor is the place where the next leaf begins.
    pub fn scan<'a>(&'a self, cursor: u64, count: u64, visit: &mut dyn FnMut(&'a [u8])) -> u64 {
        let mut leaves = self.tree.locate(|bound| *bound <= cursor);
        let mut visited = 0;
        while let Some(here) = leaves {
            for member in here.leaf().iter() {
                // Only of the first leaf some were visited before, when that was split since.
                if Position::of(&self.hasher, member).place() >= cursor {
                    visit(member);
                    visited += 1;
                }
            }
            if visited >= count {
                return self.tree.bound_at(here.after()).copied().unwrap_or(0);
            }
            leaves = here.next();
        }
        0
    }

    /// Adds the member unless it is there.
    pub fn add(&mut self, member: &[u8]) {
        let position = Position::of(&self.hasher, member);
        self.tree.edit(
            &self.hasher,
            |bound| *bound <= position.place(),
            |leaf| {
                if leaf.find(position, member).is_none() {
                    leaf.push(position, member);
                }
            },
        );
    }

    /// Removes the member if it is there.
    pub fn remove(&mut self, member: &[u8]) {
        let position = Position::of(&self.hasher, member);
        self.tree.edit(
            &self.hasher,
            |bound| *bound <= position.place(),
            |leaf| {
                if let Some(place) = leaf.find(position, member) {
                    leaf.remove(place);
                }
            },
        );
    }

    /// See [`crate::Big::memory_bytes`].
    pub fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes()
    }

    /// See [`crate::Big::content_bytes`].
    pub fn content_bytes(&self) -> usize {
        self.tree.content_bytes()
    }

    /// See [`crate::Big::write_changes`]. Progress is the place where the next leaf begins.
    pub fn write_changes(&self, from: Progress, budget: usize, out: &mut Vec<u8>) -> Option<Progress> {
        let (end, start) = (out.len().saturating_add(budget), from.0);
        if start == 0 {
            Change::Expect(self.tree.len()).put(out);
        }
        let (mut scratch, mut leaves) = (Vec::new(), self.tree.locate(|bound| *bound <= start));
        while let Some(here) = leaves {
            here.leaf().iter_once(&mut scratch).for_each(|member| Change::Add(member).put(out));
            if out.len() >= end {
                return self.tree.bound_at(here.after()).map(|bound| Progress(*bound, 0));
            }
            leaves = here.next();
        }
        None
    }

    /// See [`crate::Big::write_leaves`]. Progress is how many members are done.
    pub(crate) fn write_leaves(&self, from: Progress, budget: (usize, OfRows), out: &mut Vec<u8>) -> Option<Progress> {
        hashed::write(&self.tree, &self.hasher, from.0, budget, out).map(|done| Progress(done, 0))
    }
}

impl HashedTree for Big {
    type Leaf = Leaf;

    fn tree(&mut self) -> (&mut Tree<Leaf>, &mut KeyHasher) {
        (&mut self.tree, &mut self.hasher)
    }

    fn push_leaf(&mut self, bound: u64, mut members: &[u8]) {
        let mut leaf = Leaf::default();
        while let Some(member) = wire::take_string(&mut members) {
            leaf.push(Position::of(&self.hasher, member), member);
        }
        self.tree.push(bound, leaf);
    }

    fn add_each(&mut self, mut members: &[u8]) {
        while let Some(member) = wire::take_string(&mut members) {
            self.add(member);
        }
    }
}

/// Over the members of a big set.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    leaves: Option<Leaves<'a, Leaf>>,
    members: leaf::Iter<'a>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if let Some(member) = self.members.next() {
                return Some(member);
            }
            self.leaves = self.leaves?.next();
            self.members = self.leaves?.leaf().iter();
        }
    }
}
