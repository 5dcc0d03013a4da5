//! Merges for values that are over: tables are written anew without them, or go without being read.
//!
//! ```text
//!   due: a table of which all or about half is over, with nothing older that overlaps it
//!   run 9   |   [---c---]    |         c waits until a and b are gone: what it hides may still be there
//!   run 3   | [-a-]  [--b--] |
//! ```
//!
//! In such a place an expired value leaves no tombstone, so the table only becomes smaller. Older tables expire before
//! newer ones, so each has its turn.

use std::sync::Arc;

use super::{Now, Task};
use crate::sstable::Table;
use crate::version::Tree;

/// Writes the first table that is due anew, whatever the policy; `None` if none is.
pub(crate) fn expire(tree: &Tree, now: &Now<'_>) -> Option<Task> {
    let expiry = now.expiry?;
    // Flushes make tombstones of expired values; a table of tombstones alone has no times.
    let is_dead = |table: &Table| table.times().is_none() && now.has_droppable(table);
    let is_due = |table: &Arc<Table>| (expiry.pays(table.times()) || is_dead(table)) && !now.is_busy(table);
    let due = tree.tables().filter(|(_, _, table)| is_due(table));
    let (level, run, table) = due.into_iter().find(|(level, run, table)| {
        let age = (*level, std::cmp::Reverse(*run));
        let mut older = tree.runs().filter(|(level, run)| (*level, std::cmp::Reverse(run.id)) > age);
        !older.any(|(_, run)| run.overlapping(&table.info).next().is_some())
    })?;
    let mut task = Task::new("expired", level, Some(run));
    task.add(level, run, table);
    // It stays one table.
    task.table_bytes = Some(2 * table.info.bytes);
    task.asks_filter = true;
    Some(task)
}
