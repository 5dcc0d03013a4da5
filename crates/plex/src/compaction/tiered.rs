//! Tiered compaction, the base of the PlexDB paper: when a level is full, all its runs become one run of the next; the
//! next level's own data is not written again.

use super::{Choose, Task};
use crate::version::Tree;

/// The last level has nowhere to go: its runs become one in place. With 8 runs a level, 6 levels hold 260,000 memtables.
pub(super) const LEVEL_LAST: usize = 6;

#[derive(Debug)]
pub(super) struct Tiered {
    pub runs_per_level: usize,
}

impl Tiered {
    /// All runs of the level, as one newest run of the next level or, in the last, of the same.
    pub fn whole_level(tree: &Tree, level: usize, output_level: usize, reason: &'static str) -> Task {
        let mut task = Task::new(reason, output_level.min(LEVEL_LAST), None);
        tree.level(level).iter().for_each(|run| task.add_run(level, run));
        task
    }
}

impl Choose for Tiered {
    fn pick(&self, tree: &Tree) -> Option<Task> {
        // A tree of another policy may have deeper levels: they only wait to be merged into.
        let full = (0..tree.levels.len()).find(|&level| {
            let runs = tree.level(level).len();
            runs >= self.runs_per_level && (level <= LEVEL_LAST || runs > 1)
        })?;
        let output = if full > LEVEL_LAST { full } else { (full + 1).min(LEVEL_LAST) };
        let mut task = Self::whole_level(tree, full, output, "size");
        task.output_level = output;
        Some(task)
    }

    fn lag(&self, tree: &Tree) -> f64 {
        super::lag_between(tree.level(0).len() as f64 / self.runs_per_level as f64, 2.0, 3.0)
    }
}
