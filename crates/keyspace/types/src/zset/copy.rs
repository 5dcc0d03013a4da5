//! A long range of a sorted set as a set of its own, made step by step.

use crate::kept::is_same_tree;
use engine::SharedBig;
use std::ops::Range;
use value::Stored;
use value::zset::{Big, View};

/// Fewer members than this are not worth it.
const MEMBERS_MIN: u64 = 1024;

/// Members added in a step.
const ADDED: u64 = 16;

/// A range on its way.
pub struct Copying {
    from: SharedBig,
    ranks: Range<u64>,
    at: u64,
    made: Big,
}

impl Copying {
    /// Begins, unless there is so little to do that it is better done at once. `tree` is the set's.
    pub fn begin(tree: &SharedBig, ranks: Range<u64>) -> Option<Self> {
        let View::Big(big) = View::of(Stored::Big(tree)) else { return None };
        let is_long = ranks.end.saturating_sub(ranks.start) >= MEMBERS_MIN;
        is_long.then(|| Self { from: tree.clone(), at: ranks.start, made: big.empty_alike(), ranks })
    }

    /// Whether it is made of these ranks of this version of the set.
    pub fn is_of(&self, tree: &SharedBig, ranks: &Range<u64>) -> bool {
        is_same_tree(&self.from, tree) && self.ranks == *ranks
    }

    /// Runs for at most a tenth of a millisecond or so. True while there is more to do.
    pub fn step(&mut self) -> bool {
        let end = self.at.saturating_add(ADDED).min(self.ranks.end);
        let entries = View::of(Stored::Big(&self.from)).forward(self.at).take(end.saturating_sub(self.at) as usize);
        entries.for_each(|entry| self.made.add(&entry));
        self.at = end;
        self.at < self.ranks.end
    }

    /// What was made so far; nothing is left.
    pub fn take(&mut self) -> Big {
        let empty = self.made.empty_alike();
        std::mem::replace(&mut self.made, empty)
    }

    /// Bytes of what was made so far.
    pub fn made_bytes(&self) -> usize {
        self.made.memory_bytes()
    }

    /// Bytes that nothing but this keeps.
    pub fn held_bytes(&self) -> usize {
        let own = if SharedBig::strong_count(&self.from) == 1 { self.from.memory_bytes() } else { 0 };
        self.made_bytes().saturating_add(own)
    }
}
