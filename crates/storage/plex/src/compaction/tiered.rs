//! Tiered compaction, the base of the PlexDB paper: when a level is full, all its runs become one run of the next; the
//! next level's own data is not written again.

use super::{Choose, Now, Task};
use crate::version::Tree;

/// The last level has nowhere to go: its runs become one in place. With 8 runs a level, 6 levels hold 260,000
/// memtables.
pub(super) const LEVEL_LAST: usize = 6;

/// Stretches that a level is merged in at most: space is taken twice for as long as one of them is written, and each
/// ends with an edit of the manifest, which is synced.
const STRETCHES_MAX: u64 = 32;

/// Tables that a level's bytes make at least, since of each run one reaches over the end of a stretch. Those shorter
/// than an eighth of the option's would cost more in files than they save.
const TABLES_MIN: u64 = 256;

/// A stretch has at least the bytes of this many tables; of each run one is left over.
const STRETCH_TABLES_MIN: u64 = 4;

#[derive(Debug)]
pub(super) struct Tiered {
    pub runs_per_level: usize,
    /// The option's.
    pub table_bytes: u64,
}

impl Tiered {
    /// All runs of the level, as one newest run of the next level or, in the last, of the same.
    pub fn whole_level(&self, tree: &Tree, level: usize, output_level: usize, reason: &'static str) -> Task {
        let mut task = Task::new(reason, output_level.min(LEVEL_LAST), None);
        tree.level(level).iter().for_each(|run| task.add_run(level, run));
        let bytes: u64 = tree.level(level).iter().map(|run| run.bytes()).sum();
        let table_bytes = (bytes / TABLES_MIN).clamp(self.table_bytes.div_ceil(8), self.table_bytes);
        task.table_bytes = Some(table_bytes);
        // Runs are flushed to level 0 while it is merged.
        task.stretch_bytes = (level > 0).then(|| (bytes / STRETCHES_MAX).max(STRETCH_TABLES_MIN * table_bytes));
        task
    }
}

impl Choose for Tiered {
    fn pick(&self, tree: &Tree, now: &Now<'_>) -> Option<Task> {
        if now.is_tree_busy(tree) {
            return None;
        }
        // A tree of another policy may have deeper levels: they only wait to be merged into.
        let full = (0..tree.levels.len()).find(|&level| {
            let runs = tree.level(level).len();
            runs >= self.runs_per_level && (level <= LEVEL_LAST || runs > 1)
        })?;
        let output = if full > LEVEL_LAST { full } else { (full + 1).min(LEVEL_LAST) };
        let mut task = self.whole_level(tree, full, output, "size");
        task.output_level = output;
        Some(task)
    }

    fn lag(&self, tree: &Tree, _: &Now<'_>) -> f64 {
        super::lag_between(tree.level(0).len() as f64 / self.runs_per_level as f64, 2.0, 3.0)
    }
}
