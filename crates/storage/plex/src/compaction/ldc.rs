//! Level deduplication compaction, as the PlexDB paper has it (Algorithms 1 and 2).
//!
//! A level is merged when it is full (size), else when its entries per distinct key exceed a threshold (deduplication).
//! The paper clears the sketch of a merged level and feeds the output's keys into the sketch of the level it goes to;
//! here each table brings its own sketch and a level's is the union of its tables', which is the same set at any moment
//! and survives a restart. Two gaps of the text are filled so: copies are counted over entries and estimated distinct
//! keys of all runs of the level, and "more than half of the sub-levels are empty" is asked before the inputs go.

use super::tiered::Tiered;
use super::{Choose, Now, Task, count};
use crate::version::Tree;

#[derive(Debug)]
pub(super) struct Ldc {
    pub tiers: Tiered,
    pub duplicates_max: f64,
}

impl Ldc {
    /// Entries per distinct key.
    fn duplicate_rate(tree: &Tree, level: usize) -> f64 {
        let (entries, distinct) = count(tree.level(level).iter().flat_map(|run| &run.tables));
        if entries == 0 { 1.0 } else { entries as f64 / distinct }
    }
}

/// A level may have this much more copies than the threshold allows, relative to it, before writers wait: in the
/// paper's system, which merges inline, they wait for every merge.
const DUPLICATES_LAG: f64 = 0.02;

impl Choose for Ldc {
    fn does_without_ends(&self) -> bool {
        false
    }

    fn pick(&self, tree: &Tree, now: &Now<'_>) -> Option<Task> {
        if now.is_tree_busy(tree) {
            return None;
        }
        // Algorithm 1: the size trigger goes first.
        if let Some(task) = self.tiers.pick(tree, now) {
            return Some(task);
        }
        // One run has no copies but those that read views hold.
        let stale = (0..tree.levels.len())
            .find(|&level| tree.level(level).len() > 1 && Self::duplicate_rate(tree, level) > self.duplicates_max)?;
        let empty = self.tiers.runs_per_level.saturating_sub(tree.level(stale).len());
        if 2 * empty <= self.tiers.runs_per_level {
            return Some(self.tiers.whole_level(tree, stale, stale + 1, "deduplication"));
        }
        let mut task = self.tiers.whole_level(tree, stale, stale, "deduplication");
        if stale == 0 {
            // In the newest input's place: runs flushed meanwhile stay in front of it.
            task.output_run = tree.level(0).first().map(|run| run.id);
        }
        Some(task)
    }

    fn lag(&self, tree: &Tree, now: &Now<'_>) -> f64 {
        let rates = (0..tree.levels.len()).filter(|&level| tree.level(level).len() > 1);
        let most = rates.map(|level| Self::duplicate_rate(tree, level)).fold(1.0, f64::max);
        self.tiers.lag(tree, now).max(super::lag_between(most / self.duplicates_max, 1.0, 1.0 + DUPLICATES_LAG))
    }
}
