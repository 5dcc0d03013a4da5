//! Elements taken out of a big b+tree, step by step: before anything changes, what stays is made of a shared copy.

use super::btree::{Answer, BOP, Btree, EVENT, Query, Range, Tree};
use super::{Removal, Taken, read, read_to_edit, remove};
use crate::kept::is_same_tree;
use crate::{TypeError, collection};
use engine::{Entry, Keyspace, SharedBig, SharedBytes, Type, Value};
use std::ops;
use value::btree::{Big, Change, Element, View};
use value::{Stored, reaper};

/// Elements that a step looks at: a run of compressed ones takes some 60 us.
const LOOKED_AT: u64 = 64;

/// Gaps that a step leaves: the first one below a node copies it.
const GAPS: u32 = 4;

/// Elements on their way out of a b+tree.
pub struct Taking {
    from: SharedBig,
    query: Query,
    /// Those of the range, by their positions in `from`.
    positions: ops::Range<u64>,
    /// How many of them were looked at, how many of those are meant, and how many of those are taken.
    looked_at: u64,
    met: u64,
    taken: u64,
    /// Neighbours that are taken, and not yet removed from `rest`.
    gap: ops::Range<u64>,
    /// What stays, and the changes that lead to it.
    rest: Big,
    changes: Vec<u8>,
}

impl Btree<'_> {
    /// [`Btree::take`] by what was made of this version of the tree before. Shown is how many elements there are, and
    /// nothing if none.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn take_made(
        &self,
        ks: &mut dyn Keyspace,
        made: Taking,
        (removal, is_read): (Removal, bool),
        show: impl FnOnce(u32, u64),
    ) -> Result<Answer, TypeError> {
        let found = if is_read { read(ks, self.0, Type::Btree)? } else { read_to_edit(ks, self.0, Type::Btree)? };
        let Some(found) = found else { return Ok(Answer::Taken(Taken::NoKey)) };
        let (tree, count) = (Tree::of(&found), made.count());
        if count == 0 {
            let is_trimmed = is_read && tree.is_trimmed_in(made.range());
            return Ok(if is_trimmed { Answer::OutOfRange } else { Answer::Taken(Taken::NoElements) });
        }
        show(tree.flags, count);
        let is_all = count == tree.view.len();
        let (rest, changes) = made.finish();
        if is_all {
            drop(rest);
            return Ok(Answer::Taken(remove(ks, self.0, EVENT, (removal, is_all), &changes)));
        }
        collection::replace(ks, self.0, &SharedBig::new(value::Big::Btree(rest)), &SharedBytes::new(changes));
        ks.notify(BOP, "bop", self.0);
        Ok(Answer::Taken(Taken::Deleted))
    }
}

impl Taking {
    /// Begins, unless the entry is no tree in memory of which the query looks at more than `looked_at_max` elements.
    pub fn begin(entry: &Entry<'_>, query: &Query, looked_at_max: u64) -> Option<Self> {
        let tree = Tree::of_entry(entry).ok()?;
        let (Value::Big(from), View::Big(big)) = (entry.value, tree.view) else { return None };
        // Where leaves are rows, they are read under the locks.
        if from.may_have_rows() || tree.cost(query) <= looked_at_max || !tree.takes(&query.range.from) {
            return None;
        }
        let positions = tree.positions(&query.range);
        Some(Self {
            from: from.clone(),
            query: query.clone(),
            positions,
            looked_at: 0,
            met: 0,
            taken: 0,
            gap: 0..0,
            rest: big.clone(),
            changes: Vec::new(),
        })
    }

    /// Whether it is made of this version of the tree.
    pub fn is_of(&self, entry: &Entry<'_>) -> bool {
        matches!(entry.value, Value::Big(tree) if is_same_tree(&self.from, tree))
    }

    /// How many elements are taken, so far.
    pub fn count(&self) -> u64 {
        self.taken
    }

    /// The range of the query.
    pub fn range(&self) -> &Range {
        &self.query.range
    }

    /// Looks at some elements and shows those that are taken, in the order of the range. True while there is more to
    /// do.
    pub fn step(&mut self, mut show: impl FnMut(&Element<'_>)) -> bool {
        let (from, is_descending) = (self.from.clone(), self.query.range.is_descending());
        let view = View::of(Stored::Big(&from));
        let in_range = self.positions.end.saturating_sub(self.positions.start);
        let first = match is_descending {
            false => self.positions.start.saturating_add(self.looked_at),
            true => self.positions.end.saturating_sub(self.looked_at).saturating_sub(1),
        };
        // One of the two is empty.
        let left = LOOKED_AT.min(in_range.saturating_sub(self.looked_at)) as usize;
        let (up, down) = if is_descending { (0, left) } else { (left, 0) };
        let up = (up > 0).then(|| view.forward(first)).into_iter().flatten();
        let down = (down > 0).then(|| view.backward(first)).into_iter().flatten();
        let mut gaps = 0u32;
        for (element, step) in up.chain(down).take(left).zip(0u64..) {
            let at = if is_descending { first.saturating_sub(step) } else { first.saturating_add(step) };
            self.looked_at = self.looked_at.saturating_add(1);
            if self.takes(&element) {
                show(&element);
                self.taken = self.taken.saturating_add(1);
                self.widen(at);
            } else if !self.gap.is_empty() {
                self.leave_gap();
                gaps = gaps.saturating_add(1);
            }
            if self.query.count > 0 && self.taken >= self.query.count {
                self.looked_at = in_range;
            }
            if gaps >= GAPS || self.looked_at >= in_range {
                break;
            }
        }
        if self.looked_at < in_range {
            return true;
        }
        self.leave_gap();
        false
    }

    /// Whether the query asks for this element, the next one of its range.
    fn takes(&mut self, element: &Element<'_>) -> bool {
        if self.query.filter.as_ref().is_some_and(|filter| !filter.holds(element.eflag)) {
            return false;
        }
        self.met = self.met.saturating_add(1);
        self.met > self.query.offset
    }

    /// The element at this position, a neighbour of the last one, goes.
    fn widen(&mut self, at: u64) {
        let end = at.saturating_add(1);
        self.gap = match self.gap.is_empty() {
            true => at..end,
            false => self.gap.start.min(at)..self.gap.end.max(end),
        };
    }

    /// Removes the neighbours that go.
    fn leave_gap(&mut self) {
        let count = self.gap.end.saturating_sub(self.gap.start);
        if count == 0 {
            return;
        }
        // Upwards, what was removed before stood before them.
        let is_descending = self.query.range.is_descending();
        let removed = if is_descending { 0 } else { self.taken.saturating_sub(count) };
        let start = self.gap.start.saturating_sub(removed);
        self.rest.remove_range(start, count);
        Change::RemoveRange { start, count }.put(&mut self.changes);
        self.gap = 0..0;
    }

    /// What stays, and the changes that lead to it, when there is no more to do.
    pub(super) fn finish(mut self) -> (Big, Vec<u8>) {
        (std::mem::take(&mut self.rest), std::mem::take(&mut self.changes))
    }

    /// Bytes that it may keep.
    pub fn held_bytes(&self) -> usize {
        self.rest.memory_bytes().saturating_add(self.changes.capacity())
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        reaper::free_bytes(std::mem::take(&mut self.changes));
    }
}
