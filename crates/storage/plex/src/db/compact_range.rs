//! Merging all of a range of keys because a caller asks for it, and not because the policy does.
//!
//! ```text
//!   run 9   |  a  |     | b  |         stretch by stretch: a table, all that overlap it, all that overlap these ...
//!   run 3   | c | d |  | e  | f |      here {a c d} becomes part of run 3, then {b e f}
//! ```
//!
//! Nothing that stays overlaps a stretch, so what comes out of it may stand in the oldest run (C1 of [`compaction`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Inner;
use super::merging::Chosen;
use crate::KeySpaceId;
use crate::compaction::{self, Task};
use crate::error::{Error, Result};
use crate::iter::IterOptions;
use crate::sstable::{Table, TableInfo};
use crate::version::Tree;

/// What comes next.
enum Next {
    Merge(Task),
    /// Another thread merges a table of the stretch.
    Wait,
    Done,
}

impl Inner {
    pub(super) fn compact_range(&self, space: KeySpaceId, range: &IterOptions) -> Result<()> {
        self.key_order.check_scan()?;
        let (mut from, to) = (range.lower.clone().unwrap_or_default(), range.upper.as_deref());
        loop {
            let mut waits = false;
            let begun = self.merging.begin(self.options.merges_max, |others| {
                self.check_running()?;
                let state = self.state();
                let Some(tree) = state.version.tree(space.0) else { return Ok(None) };
                let task = match next(tree, &from, to, others) {
                    Next::Merge(task) => task,
                    Next::Wait => {
                        waits = true;
                        return Ok(None);
                    }
                    Next::Done => return Ok(None),
                };
                let is_bottom = compaction::check(tree, &task).map_err(Error::Bug)?;
                Ok(Some(Chosen { space: space.0, task, is_bottom }))
            })?;
            match begun {
                Some((turn, chosen)) => {
                    from = compaction::hull(chosen.task.inputs.iter().map(|(_, _, table)| table)).map_or(from, behind);
                    self.merge(turn, chosen)?;
                }
                None if waits => drop(self.merging.await_one()),
                None => return Ok(()),
            }
        }
    }
}

/// The first key after a table's range.
fn behind(info: TableInfo) -> Vec<u8> {
    let mut key = info.largest;
    if !info.largest_is_excluded {
        key.push(0);
    }
    key
}

/// The first stretch with something from this key on.
fn next(tree: &Tree, from: &[u8], to: Option<&[u8]>, others: &BTreeMap<u64, Vec<u8>>) -> Next {
    let is_inside =
        |table: &&Arc<Table>| !table.info.ends_before(from) && to.is_none_or(|to| *table.info.smallest < *to);
    if to.is_some_and(|to| *to <= *from) {
        return Next::Done;
    }
    let tables = || tree.tables().map(|(_, _, table)| table);
    let Some(first) = tables().filter(is_inside).min_by(|a, b| a.info.smallest.cmp(&b.info.smallest)) else {
        return Next::Done;
    };
    let Some((oldest_level, oldest)) = tree.runs().last() else { return Next::Done };
    let stretch = compaction::reach(tree.levels.iter().flatten(), first.info.clone());
    let mut task = Task::new("asked for", oldest_level, Some(oldest.id));
    for (level, run) in tree.runs() {
        run.overlapping(&stretch).for_each(|table| task.add(level, run.id, table));
    }
    if task.inputs.iter().any(|(_, _, table)| others.contains_key(&table.number)) {
        return Next::Wait;
    }
    // The borders of the oldest run stay, and its tables about as long as they are.
    task.cuts = oldest.overlapping(&stretch).skip(1).map(|table| table.info.smallest.clone()).collect();
    task.table_bytes = oldest.overlapping(&stretch).map(|table| 2 * table.info.bytes).max();
    task.asks_filter = true;
    Next::Merge(task)
}
