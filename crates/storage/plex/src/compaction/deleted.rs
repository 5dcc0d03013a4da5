//! Merges that give back the space of what is deleted, for policies that have no cheaper way.
//!
//! ```text
//!   run 9   | [-a-]  [-b-] |     a has tombstones: a, all that is older and overlaps it, and all that overlaps these
//!   run 5   |    [-c-]     |     become part of run 3
//!   run 3   | [--d--] [-e-]|
//! ```
//!
//! Nothing older overlaps what comes out, so nothing is left for its tombstones to hide. Where tables reach over all
//! keys, this merges everything that is older.

use super::{Now, Task, reach};
use crate::version::Tree;

/// A merge of the newest table with tombstones that no view needs; `None` if there is none.
pub(super) fn reclaim(tree: &Tree, now: &Now<'_>) -> Option<Task> {
    if now.is_tree_busy(tree) {
        return None;
    }
    let (first_level, first, table) = tree.tables().find(|(_, _, table)| now.has_droppable(table))?;
    let runs: Vec<_> = tree.runs().skip_while(|(level, run)| (*level, run.id) != (first_level, first)).collect();
    let reach = reach(runs.iter().map(|(_, run)| *run), table.info.clone());
    let (level, oldest) = runs.iter().rfind(|(_, run)| run.overlapping(&reach).next().is_some())?;
    let mut task = Task::new("deleted", *level, Some(oldest.id));
    for (level, run) in &runs {
        run.overlapping(&reach).for_each(|table| task.add(*level, run.id, table));
    }
    Some(task)
}
