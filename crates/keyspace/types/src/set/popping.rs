//! Many members popped at random, step by step.

use crate::kept::is_same_tree;
use base::Rng;
use engine::{SharedBig, SharedBytes};
use value::set::{Big, Change};
use value::{absent, reaper};

/// Fewer members than this are popped at once.
const POPPED_MIN: u64 = 64;

/// Members drawn in a step: each is looked up, removed and added in trees that are hardly cached, and the first removal
/// below a node copies it; from a compressed leaf it takes some 60 us.
const DRAWN: u64 = 2;

/// About what a change takes in addition to the member.
const CHANGE_BYTES: usize = 2;

/// A set from which random members are popped. It draws those that go or those that stay, whichever are fewer.
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
    /// `None` where nothing is recorded.
    changes: Option<Vec<u8>>,
}

/// What was made of a set.
pub struct Popped {
    /// What stays.
    pub rest: Big,
    /// What goes.
    pub popped: Big,
    /// The changes that leave the one; none where nothing is recorded.
    pub changes: SharedBytes,
}

impl Popping {
    /// Begins, unless the work is so small that the command should do it at once: few members go, or all of them. With
    /// `is_recorded` it also makes the changes for the record.
    pub fn begin(tree: &SharedBig, count: u64, rng: Rng, is_recorded: bool) -> Option<Self> {
        let value::Big::Set(big) = &**tree else { return None };
        let stays = (big.len() as u64).checked_sub(count).filter(|stays| *stays > 0 && count >= POPPED_MIN)?;
        let draws_rest = stays < count;
        // Room for all, which takes no memory until it is written: when a large buffer grows, the system moves it page
        // by page.
        let bytes = big.content_bytes().checked_div(big.len()).unwrap_or(0).saturating_add(CHANGE_BYTES);
        let mut changes = is_recorded.then(|| Vec::with_capacity(bytes.saturating_mul(count.min(stays) as usize)));
        if let Some(changes) = changes.as_mut().filter(|_| draws_rest) {
            Change::Clear.put(changes);
            Change::Strings.put(changes);
        }
        let (others, drawn, left) = (big.clone(), big.empty_alike(), count.min(stays));
        Some(Self { from: tree.clone(), rng, count, left, others, drawn, draws_rest, changes })
    }

    /// Whether it pops this number of members of this version of the set, and has the changes if they are recorded.
    pub fn is_of(&self, tree: &SharedBig, count: u64, is_recorded: bool) -> bool {
        is_same_tree(&self.from, tree) && self.count == count && (self.changes.is_some() || !is_recorded)
    }

    /// Runs for at most a tenth of a millisecond or so. True while there is more to do.
    pub fn step(&mut self) -> bool {
        for _ in 0..DRAWN.min(self.left) {
            let place = self.rng.below(self.others.len() as u64);
            let Some(member) = self.others.at(place as usize).map(<[u8]>::to_vec) else { break };
            let has_rows = self.others.may_have_rows();
            absent::whole(&mut self.others, has_rows, |others| others.remove(&member));
            self.drawn.add(&member);
            let change = if self.draws_rest { Change::Add(&member) } else { Change::Remove(&member) };
            if let Some(changes) = &mut self.changes {
                change.put(changes);
            }
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
        Popped { rest, popped, changes: SharedBytes::new(self.changes.take().unwrap_or_default()) }
    }

    /// Bytes that it may keep.
    pub fn held_bytes(&self) -> usize {
        let trees = self.others.memory_bytes().saturating_add(self.drawn.memory_bytes());
        trees.saturating_add(self.changes.as_ref().map_or(0, Vec::capacity))
    }
}

impl Drop for Popping {
    fn drop(&mut self) {
        self.changes.take().into_iter().for_each(reaper::free_bytes);
    }
}
