//! Leveled compaction, LevelDB's: level 0 has the flushed runs, every other level is one run, ten times the size of the
//! one before. The table to go down is the one that drags the fewest bytes of the next level along.

use std::sync::Arc;

use super::{Choose, Now, Task, hull};
use crate::sstable::Table;
use crate::version::Tree;

/// How much larger each level is than the one before.
const LEVEL_FACTOR: u64 = 10;

#[derive(Debug)]
pub(super) struct Leveled {
    pub level0_runs_max: usize,
    pub level1_bytes: u64,
}

impl Leveled {
    fn level_bytes_max(&self, level: usize) -> u64 {
        self.level1_bytes.saturating_mul(LEVEL_FACTOR.saturating_pow(level as u32 - 1))
    }

    /// All runs of level 0 and what they meet in level 1.
    fn down_from_0(tree: &Tree) -> Task {
        let mut task = Self::into_level(tree, 1, "level 0");
        tree.level(0).iter().for_each(|run| task.add_run(0, run));
        Self::add_overlapping(tree, &mut task, 1);
        task
    }

    /// This table of the level and what it meets in the next.
    fn into_next(tree: &Tree, level: usize, run: u64, table: &Arc<Table>, reason: &'static str) -> Task {
        let mut task = Self::into_level(tree, level + 1, reason);
        task.add(level, run, table);
        Self::add_overlapping(tree, &mut task, level + 1);
        task
    }

    /// One table of the level and what it meets in the next.
    fn down_from(tree: &Tree, level: usize) -> Option<Task> {
        let run = tree.level(level).first()?;
        let cost = |table: &&Arc<Table>| {
            let next = tree.level(level + 1).iter().flat_map(|next| next.overlapping(&table.info));
            let dragged: u64 = next.map(|other| other.info.bytes).sum();
            dragged.saturating_mul(1 << 10) / table.info.bytes.max(1)
        };
        let table = run.tables.iter().min_by_key(cost)?;
        Some(Self::into_next(tree, level, run.id, table, "level size"))
    }

    /// A level that another policy left with several runs becomes one.
    fn into_one_run(tree: &Tree) -> Option<Task> {
        let level = (1..tree.levels.len()).find(|&level| tree.level(level).len() > 1)?;
        let mut task = Self::into_level(tree, level, "one run a level");
        tree.level(level).iter().for_each(|run| task.add_run(level, run));
        Some(task)
    }

    /// A task whose output goes to the level's only run, or to its first.
    fn into_level(tree: &Tree, level: usize, reason: &'static str) -> Task {
        Task::new(reason, level, tree.level(level).last().map(|run| run.id))
    }

    fn add_overlapping(tree: &Tree, task: &mut Task, level: usize) {
        let Some(hull) = hull(task.inputs.iter().map(|(_, _, table)| table)) else { return };
        for run in tree.level(level) {
            run.overlapping(&hull).for_each(|table| task.add(level, run.id, table));
        }
    }
}

impl Choose for Leveled {
    fn pick(&self, tree: &Tree, now: &Now<'_>) -> Option<Task> {
        if now.is_tree_busy(tree) {
            return None;
        }
        if let Some(task) = Self::into_one_run(tree) {
            return Some(task);
        }
        if tree.level(0).len() >= self.level0_runs_max {
            return Some(Self::down_from_0(tree));
        }
        let too_big = (1..tree.levels.len()).find(|&level| {
            let bytes: u64 = tree.level(level).iter().map(|run| run.bytes()).sum();
            bytes > self.level_bytes_max(level)
        })?;
        Self::down_from(tree, too_big)
    }

    /// Tombstones go down level by level; where nothing older is left, their table is written anew without them.
    fn reclaim(&self, tree: &Tree, now: &Now<'_>) -> Option<Task> {
        if now.is_tree_busy(tree) {
            return None;
        }
        let (level, run, table) = tree.tables().find(|(_, _, table)| now.has_droppable(table))?;
        if level == 0 && (tree.level(0).len() > 1 || tree.levels.len() > 1) {
            return Some(Self::down_from_0(tree));
        }
        if tree.tables().any(|(other, _, older)| other > level && older.info.overlaps(&table.info)) {
            return Some(Self::into_next(tree, level, run, table, "deleted"));
        }
        let mut task = Task::new("deleted", level, Some(run));
        task.add(level, run, table);
        Some(task)
    }

    fn lag(&self, tree: &Tree, _: &Now<'_>) -> f64 {
        let (slow, stop) = (2 * self.level0_runs_max + 4, 3 * self.level0_runs_max + 8);
        super::lag_between(tree.level(0).len() as f64, slow as f64, stop as f64)
    }
}
