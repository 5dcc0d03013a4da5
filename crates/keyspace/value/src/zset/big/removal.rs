//! Removes a long range from a big sorted set, step by step: the tree by score is cut at once; members leave the other
//! tree one by one, or that tree is built anew when fewer stay.

use super::{Big, Run};
use crate::absent;
use crate::tree::Tree;

/// A version of a set without a range, on its way.
#[derive(Debug)]
pub struct Removal {
    left: Big,
    /// What is gone through: the entries that go or, where `is_rebuilt`, those that stay.
    entries: Tree<Run>,
    is_rebuilt: bool,
    /// The rank in there to continue from.
    at: u64,
}

impl Removal {
    /// Begins: `count` entries of `from` from this rank on go, and some stay.
    pub fn begin(from: &Big, start: u64, count: u64) -> Self {
        let mut left = from.clone();
        let removed = left.by_score.remove_range(&(), start..start.saturating_add(count));
        let is_rebuilt = removed.len() > left.len();
        if is_rebuilt {
            left.by_member = Tree::new();
        }
        let entries = if is_rebuilt { left.by_score.clone() } else { removed };
        Self { left, entries, is_rebuilt, at: 0 }
    }

    /// Removes up to `count` more entries. True while there is more to do.
    pub fn step(&mut self, entries: u64) -> bool {
        let Self { left: Big { by_member, hasher, .. }, entries: runs, is_rebuilt, at } = self;
        let has_rows = by_member.may_have_rows();
        *at = absent::whole(by_member, has_rows, |by_member| {
            let (mut at, end) = (*at, (*at + entries).min(runs.len()));
            let mut place = runs.leaves_at(at);
            while let Some(runs) = place.filter(|_| at < end) {
                let here = at.saturating_sub(runs.before()) as usize;
                for entry in runs.leaf().entries().skip(here).take((end - at) as usize) {
                    let hash = hasher.hash(entry.member);
                    by_member.edit(
                        hasher,
                        |bound| *bound <= hash,
                        |leaf| match is_rebuilt {
                            true => leaf.set(hash, &entry),
                            false => leaf.remove(hash, entry.member),
                        },
                    );
                }
                at = runs.after().min(end);
                place = runs.next();
            }
            at
        });
        self.at < self.entries.len()
    }

    /// What is left, when there is no more to do.
    pub fn take(self) -> Big {
        self.left
    }

    /// Bytes of the rest, shared chunks included.
    pub fn memory_bytes(&self) -> usize {
        self.left.memory_bytes()
    }
}
