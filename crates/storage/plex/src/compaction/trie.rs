//! LSM-trie's compaction: keys are kept in the order of their hashes, and each level is shared out evenly among nodes,
//! eight times as many as on the level before.
//!
//! ```text
//!   level 0   [         all hashes          ]      a node with `runs_per_node` runs is merged,
//!   level 1   [000] [001] [010]  ...  [111]        and what comes out is one run more for each of
//!   level 2   [000 000]   ...     [111 111]        its eight children
//! ```
//!
//! T1. What a node holds has the same first three bits per level of the hash. A table that only moves down may reach
//!     over more than one node, so a merge takes everything of its level that overlaps its inputs.
//! T2. Nothing is merged with what lies below it: a byte is written once per level, and each level may have copies of
//!     all keys. Least writing, most space.
//!
//! After X. Wu et al., "LSM-trie: An LSM-tree-based Ultra-Large Key-Value Store for Small Data Items" (USENIX ATC
//! 2015); its tables of fixed size and their buckets are left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::tiered::LEVEL_LAST;
use super::{Choose, Now, Task, hull, reach};
use crate::sstable::TableInfo;
use crate::version::{Run, Tree};

/// Bits of the hash that choose a child.
const CHILD_BITS: usize = 3;

#[derive(Debug)]
pub(super) struct Trie {
    pub runs_per_node: usize,
}

/// The number of the node that a stored key lies in, from the smallest hashes on.
fn node_of(level: usize, stored_key: &[u8]) -> u64 {
    let hash = u64::from_be_bytes(std::array::from_fn(|at| stored_key.get(at).copied().unwrap_or(0)));
    hash.checked_shr(64 - (CHILD_BITS * level) as u32).unwrap_or(0)
}

/// No key of the node is smaller. The level is not 0.
fn start_of(level: usize, node: u64) -> Vec<u8> {
    (node << (64 - CHILD_BITS * level)).to_be_bytes().to_vec()
}

impl Trie {
    /// The first node of the level that has too many runs.
    fn full_node(&self, tree: &Tree, level: usize) -> Option<u64> {
        let mut runs = BTreeMap::<u64, usize>::new();
        for run in tree.level(level) {
            let mut nodes: Vec<u64> = run.tables.iter().map(|table| node_of(level, &table.info.smallest)).collect();
            nodes.dedup();
            nodes.into_iter().for_each(|node| *runs.entry(node).or_default() += 1);
        }
        runs.into_iter().find(|(_, count)| *count >= self.runs_per_node).map(|(node, _)| node)
    }

    /// All of the node, as one run more for its children; on the last level as one run in place.
    fn merge_down(tree: &Tree, level: usize, node: u64) -> Option<Task> {
        let tables = tree.level(level).iter().flat_map(|run| &run.tables);
        let of_node = hull(tables.filter(|t| node_of(level, &t.info.smallest) == node))?;
        let reach = reach(tree.level(level).iter(), of_node);
        let below = (level + 1).min(LEVEL_LAST);
        let run =
            if below == level { newest_in(tree.level(level), &reach) } else { free_run(tree.level(below), &reach) };
        let mut task = Task::new("node", below, run.map(|run| run.id));
        for run in tree.level(level) {
            run.overlapping(&reach).for_each(|table| task.add(level, run.id, table));
        }
        task.cuts = cuts_within(below, &reach);
        Some(task)
    }
}

/// Where nodes of the level begin within the range.
fn cuts_within(level: usize, range: &TableInfo) -> Vec<Vec<u8>> {
    let nodes = node_of(level, &range.smallest) + 1..=node_of(level, &range.largest);
    nodes.map(|node| start_of(level, node)).collect()
}

/// The newest run with a table in the range.
fn newest_in<'a>(runs: &'a [Arc<Run>], range: &TableInfo) -> Option<&'a Arc<Run>> {
    runs.iter().find(|run| run.overlapping(range).next().is_some())
}

/// The oldest run that is newer than all that the range meets, so that levels have few runs; `None` for a new one.
fn free_run<'a>(runs: &'a [Arc<Run>], range: &TableInfo) -> Option<&'a Arc<Run>> {
    runs.iter().take_while(|run| run.overlapping(range).next().is_none()).last()
}

impl Choose for Trie {
    fn pick(&self, tree: &Tree, now: &Now<'_>) -> Option<Task> {
        if now.is_tree_busy(tree) {
            return None;
        }
        (0..tree.levels.len()).find_map(|level| Self::merge_down(tree, level, self.full_node(tree, level)?))
    }

    fn reclaim(&self, tree: &Tree, now: &Now<'_>) -> Option<Task> {
        let mut task = super::deleted::reclaim(tree, now)?;
        let hull = hull(task.inputs.iter().map(|(_, _, table)| table))?;
        task.cuts = cuts_within(task.output_level, &hull);
        Some(task)
    }

    fn lag(&self, tree: &Tree, _: &Now<'_>) -> f64 {
        super::lag_between(tree.level(0).len() as f64 / self.runs_per_node as f64, 2.0, 3.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes share out the hashes evenly, and begin where they say.
    #[test]
    fn nodes_of_hashes() {
        assert_eq!(node_of(0, &[0xff; 8]), 0);
        assert_eq!(node_of(1, &[0xff; 8]), 7);
        assert_eq!(node_of(2, &[0xff; 9]), 63);
        for level in 1..=LEVEL_LAST {
            for node in [1, 5, (1 << (CHILD_BITS * level)) - 1] {
                let start = start_of(level, node);
                assert_eq!(node_of(level, &start), node);
                let before = u64::from_be_bytes(start[..].try_into().expect("8 bytes")) - 1;
                assert_eq!(node_of(level, &before.to_be_bytes()), node - 1);
            }
        }
    }
}
