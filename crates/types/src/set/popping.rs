//! Many members popped at random, step by step.

use crate::kept::is_same_tree;
use base::Rng;
use engine::{SharedBig, SharedBytes};
use value::reaper;
use value::set::{Big, Change};

/// Fewer members than this are popped at once.
const POPPED_MIN: u64 = 512;

/// Members drawn in a step.
const DRAWN: u64 = 128;

/// Bytes of changes that are freed by the reaper.
const REAPED_BYTES: usize = 1 << 20;

/// A set whose random members are on their way out. So many are drawn as go or as stay, whichever is less.
pub struct Popping {
    from: SharedBig,
    rng: Rng,
    count: u64,
    /// Members that are still to be drawn.
    left: u64,
    /// Those that were not drawn so far, and those that were.
    others: Big,
    drawn: Big,
    /// Whether it is the drawn ones that stay.
    draws_rest: bool,
    changes: Vec<u8>,
}

/// What was made of a set.
pub struct Popped {
    /// What stays.
    pub rest: Big,
    /// What goes.
    pub popped: Big,
    /// The changes that leave the one.
    pub changes: SharedBytes,
}

impl Popping {
    /// Begins, unless there is so little to do that it is better done at once: few members go, or all of them.
    pub fn begin(tree: &SharedBig, count: u64, rng: Rng) -> Option<Self> {
        let value::Big::Set(big) = &**tree else { return None };
        let stays = (big.len() as u64).checked_sub(count).filter(|stays| *stays > 0 && count >= POPPED_MIN)?;
        let draws_rest = stays < count;
        let mut changes = Vec::new();
        if draws_rest {
            Change::Clear.put(&mut changes);
            Change::Strings.put(&mut changes);
        }
        let (others, drawn, left) = (big.clone(), big.empty_alike(), count.min(stays));
        Some(Self { from: tree.clone(), rng, count, left, others, drawn, draws_rest, changes })
    }

    /// Whether it pops so many members of this version of the set.
    pub fn is_of(&self, tree: &SharedBig, count: u64) -> bool {
        is_same_tree(&self.from, tree) && self.count == count
    }

    /// Goes on for some tenths of a millisecond. True while there is more to do.
    pub fn step(&mut self) -> bool {
        for _ in 0..DRAWN.min(self.left) {
            let place = self.rng.below(self.others.len() as u64);
            let Some(member) = self.others.at(place as usize).map(<[u8]>::to_vec) else { break };
            self.others.remove(&member);
            self.drawn.add(&member);
            let change = if self.draws_rest { Change::Add(&member) } else { Change::Remove(&member) };
            change.put(&mut self.changes);
            self.left = self.left.saturating_sub(1);
        }
        self.left > 0
    }

    /// What was made, when there is no more to do.
    pub fn take(&mut self) -> Popped {
        let empty = self.drawn.empty_alike();
        let others = std::mem::replace(&mut self.others, empty.clone());
        let drawn = std::mem::replace(&mut self.drawn, empty);
        let (rest, popped) = if self.draws_rest { (drawn, others) } else { (others, drawn) };
        Popped { rest, popped, changes: SharedBytes::new(std::mem::take(&mut self.changes)) }
    }

    /// Bytes that it may keep.
    pub fn held_bytes(&self) -> usize {
        let trees = self.others.memory_bytes().saturating_add(self.drawn.memory_bytes());
        trees.saturating_add(self.changes.capacity())
    }
}

impl Drop for Popping {
    fn drop(&mut self) {
        if self.changes.capacity() > REAPED_BYTES {
            reaper::free(Box::new(std::mem::take(&mut self.changes)));
        }
    }
}
