//! Passes over the leaves of a tree, for the unused ones: see `cold`.
//!
//! A pass visits leaf after leaf by rank, in steps, and edits may come in between: it may then visit a leaf twice, or
//! not at all. It compresses without holding the tree, so before it replaces a leaf it checks that the leaf is still
//! the same.

use super::node::{ByRank, Edge};
use super::{Leaf, Tree};
use crate::cold::{Age, Cold};
use std::ops::Range;
use triomphe::Arc;

/// A leaf whose bytes may be stored compressed.
pub trait ColdLeaf: Leaf {
    /// The time since its last use.
    fn age(&self) -> &Age;

    /// The stored form of its bytes, if it has one.
    fn cold(&self) -> Option<&Cold>;

    /// The stored form of its bytes, if they are compressed.
    fn compressed(&self) -> Option<&Cold> {
        self.cold().filter(|cold| !cold.is_row())
    }

    /// Whether both share their bytes, so that they are equal as long as both are held.
    fn is(&self, other: &Self) -> bool;

    /// The bytes that may be stored compressed, without counting this as a use.
    fn bytes_once<'a>(&'a self, scratch: &'a mut Vec<u8>) -> &'a [u8];

    /// A leaf of `count` elements with these stored bytes.
    fn of_cold(cold: Cold, count: usize) -> Self;

    /// Whether it may be stored compressed, as far as its elements say.
    fn may_be_cold(&self) -> bool;

    /// See [`Cold::shed`].
    fn shed(&mut self);

    /// Stores the bytes as they are.
    fn warm(&mut self);
}

/// What a pass is after.
pub struct Plan<'p> {
    /// A leaf is cold when this many passes have seen it unused.
    pub age: u8,
    /// Neighbours are compressed together up to this many bytes.
    pub bytes: usize,
    /// A leaf of more bytes is left alone.
    pub bytes_max: usize,
    /// Includes leaves for which an attempt failed.
    pub retries: bool,
    /// Whether plain leaves are to be compressed at all.
    pub compresses: bool,
    /// Includes leaves whose elements are not to be compressed: to store them as they are, as rows.
    pub takes_all: bool,
    /// Only drops thawed copies, used or not: they have become too many.
    pub only_sheds: bool,
    /// Whether a stored form is another one than it should be.
    pub is_other: &'p dyn Fn(&[u8]) -> bool,
}

/// What a pass has found.
#[derive(Debug)]
pub enum Found<L> {
    /// Leaves that are to be stored in another form.
    Run(Run<L>),
    /// The leaf with this element is thawed and unused, or its stored form is in a sparse page: it must
    /// [shed](Tree::shed).
    Thawed(u64),
}

/// Neighbouring leaves of one node. They are shared with the tree until it changes them.
#[derive(Clone, Debug)]
pub struct Run<L> {
    /// The rank of the first element.
    first: u64,
    leaves: Vec<L>,
}

impl<L: ColdLeaf> Run<L> {
    /// All their elements in one leaf; `None` when there is none.
    pub fn merged(&self) -> Option<L> {
        let (first, rest) = self.leaves.split_first()?;
        let mut merged = first.clone();
        rest.iter().for_each(|leaf| merged.append(leaf));
        Some(merged)
    }

    /// The rank of the first element.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Bytes of the leaves, whether they are compressed or not.
    #[expect(clippy::len_without_is_empty, reason = "there is a leaf, which has elements")]
    pub fn len(&self) -> usize {
        self.leaves.iter().map(L::bytes).sum()
    }

    /// Decompresses compressed leaves and keeps the result, so that storing it raw takes no longer than a copy.
    pub fn thaw(&self) {
        self.leaves.iter().filter_map(L::cold).for_each(|cold| _ = cold.bytes());
    }

    /// Whether they are stored compressed: then it is one.
    pub fn is_cold(&self) -> bool {
        self.leaves.iter().any(|leaf| leaf.compressed().is_some())
    }
}

impl<L: ColdLeaf> Tree<L> {
    /// Looks at up to `looks` leaves from the one with element `from` on, until it finds one to store in another form.
    /// Returns also where to continue; `None` at the end.
    pub fn look_for_cold(&self, from: u64, plan: &Plan<'_>, mut looks: usize) -> (Option<Found<L>>, Option<u64>) {
        let mut place = self.leaves_at(from);
        while let Some(here) = place {
            if looks == 0 {
                return (None, Some(here.before()));
            }
            looks -= 1;
            let leaf = here.leaf();
            if plan.only_sheds {
                if leaf.cold().is_some_and(Cold::is_thawed) {
                    return (Some(Found::Thawed(here.before())), Some(here.after()));
                }
                place = here.next();
                continue;
            }
            leaf.age().grow();
            match leaf.cold() {
                Some(cold) if plan.recodes(cold) => {
                    let run = Run { first: here.before(), leaves: vec![leaf.clone()] };
                    return (Some(Found::Run(run)), Some(here.after()));
                }
                Some(cold) if plan.sheds(cold, leaf.age()) => {
                    return (Some(Found::Thawed(here.before())), Some(here.after()));
                }
                None if plan.takes(leaf.bytes(), leaf.age()) && !(plan.takes_all || leaf.may_be_cold()) => {
                    leaf.age().give_up();
                }
                None if plan.takes(leaf.bytes(), leaf.age()) => {
                    let mut run = Run { first: here.before(), leaves: vec![leaf.clone()] };
                    let (mut bytes, mut last) = (leaf.bytes(), here);
                    while last.has_sibling()
                        && let Some(next) = last.next()
                        && next.leaf().cold().is_none()
                        && bytes + next.leaf().bytes() <= plan.bytes
                        && plan.would_take(next.leaf().age())
                        && next.leaf().may_be_cold()
                    {
                        next.leaf().age().grow();
                        bytes += next.leaf().bytes();
                        run.leaves.push(next.leaf().clone());
                        last = next;
                    }
                    return (Some(Found::Run(run)), Some(last.after()));
                }
                _ => {}
            }
            place = here.next();
        }
        (None, None)
    }

    /// Puts a leaf in the place of those of the run; it has the same elements. False when these are no longer there.
    pub fn replace_run(&mut self, run: &Run<L>, by: L) -> bool {
        let is_there = self.is_there(run);
        if is_there && let Some(root) = &mut self.root {
            self.may_have_rows |= by.cold().is_some_and(Cold::is_row);
            Arc::make_mut(root).replace_leaves(ByRank::new(run.first, self.len), run.leaves.len(), by);
            self.settle_root(Edge { first: false, last: false });
        }
        is_there
    }

    /// As [`Self::push`], a leaf that may be a row.
    pub fn push_saved(&mut self, bound: L::Bound, leaf: L) {
        self.may_have_rows |= leaf.cold().is_some_and(Cold::is_row);
        self.push(bound, leaf);
    }

    /// Gives this version leaves of its own where these elements are in rows that are not in memory: the copies that
    /// reading brings go with it, and no other version has them.
    pub fn set_apart(&mut self, ranks: Range<u64>) {
        let mut from = ranks.start;
        while from < ranks.end
            && let Some(here) = self.leaves_at(from)
        {
            let (first, leaf) = (here.before(), here.leaf());
            from = here.after();
            if let Some(cold) = leaf.cold().filter(|cold| cold.is_row() && !cold.is_thawed()) {
                let (run, by) = (Run { first, leaves: vec![leaf.clone()] }, L::of_cold(cold.apart(), leaf.count()));
                self.replace_run(&run, by);
            }
        }
    }

    /// Stores the leaves of the run as they are. False when these are no longer there.
    pub fn warm_run(&mut self, cx: &L::Context, run: &Run<L>) -> bool {
        let is_there = self.is_there(run);
        if is_there {
            let ends = run.leaves.iter().scan(run.first, |end, leaf| {
                *end += leaf.count() as u64;
                Some(*end)
            });
            // Parts of a leaf that is split have smaller ranks, so that the next one's is the same.
            ends.for_each(|end| self.edit_at(cx, end - 1, |leaf, _| leaf.warm()));
        }
        is_there
    }

    /// Notes that the leaves of the run do not get shorter, if they are still there.
    pub fn give_run_up(&self, run: &Run<L>) {
        if self.is_there(run) {
            let mut place = self.leaves_at(run.first);
            for _ in &run.leaves {
                let Some(here) = place else { return };
                here.leaf().age().give_up();
                place = here.next();
            }
        }
    }

    /// Drops the thawed copy of the leaf with this element, unless it or its path is shared.
    pub fn shed(&mut self, rank: u64) {
        if rank < self.len
            && let Some(root) = self.root.as_mut().and_then(Arc::get_mut)
        {
            root.shed(ByRank::new(rank, self.len));
        }
    }

    /// Whether any leaf is stored compressed. In time to the leaves before the first.
    pub fn has_cold(&self) -> bool {
        std::iter::successors(self.leaves_at(0), super::Leaves::next).any(|here| here.leaf().compressed().is_some())
    }

    fn is_there(&self, run: &Run<L>) -> bool {
        let mut place = self.leaves_at(run.first).filter(|here| here.before() == run.first);
        let count = run.leaves.len();
        run.leaves.iter().enumerate().all(|(number, leaf)| {
            let Some(here) = place else { return false };
            place = here.next();
            here.leaf().is(leaf) && (number + 1 == count || here.has_sibling())
        })
    }
}

impl Plan<'_> {
    /// Whether to compress a plain leaf of this many bytes that this pass has looked at.
    pub(crate) fn takes(&self, bytes: usize, age: &Age) -> bool {
        self.compresses && bytes <= self.bytes_max && age.next() > self.age && (self.retries || !age.is_given_up())
    }

    /// Whether a compressed leaf is to be stored in another form.
    pub(crate) fn recodes(&self, cold: &Cold) -> bool {
        !cold.is_row() && cold.with_stored(|stored| (self.is_other)(stored))
    }

    /// Whether it would be, if this pass looked at it.
    fn would_take(&self, age: &Age) -> bool {
        self.compresses && age.next() >= self.age && (self.retries || !age.is_given_up())
    }

    /// Whether a leaf that this pass has looked at must give back memory: its thawed copy, or its place in a sparse
    /// page.
    pub(crate) fn sheds(&self, cold: &Cold, age: &Age) -> bool {
        cold.is_sparse() || cold.is_thawed() && age.next() > self.age
    }
}
