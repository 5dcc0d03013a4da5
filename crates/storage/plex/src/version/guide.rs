//! Which tables of a tree may have a key: one search for all runs.
//!
//! ```text
//!   run 9   | [---a---]   [---b---] |  [--c--]       a segment begins where a table begins after another one ended,
//!   run 3   |   [---d---] | [---e------] |  [-f-]    and lists the tables that reach into it, newest run first
//!           a d           e b          c e?
//! ```
//!
//! Policies cut flushed runs where the last run is cut, so the segments of a tree are about its ranges, and each lists
//! one table of a run. In any tree there are no more segments than tables, and no segment lists two tables of one run.

use std::sync::{Arc, OnceLock};

use super::Tree;
use crate::error::Result;
use crate::fence::Fences;
use crate::key::SEQNO_MAX;
use crate::range_tombstone::{Cover, RangeTombstone};
use crate::sstable::{Filter, Probe, Table};

/// A table that may have a key.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The table's own: here, a search need not touch the table. That of a table that was not read lets everything
    /// through.
    pub filter: Filter,
    /// Whether the table was read when the guide was made.
    is_read: bool,
    pub has_ranges: bool,
    pub table: Arc<Table>,
}

impl Candidate {
    /// Whether the table must be asked: its filter lets the key through, or it has deleted ranges, which filters know
    /// nothing of.
    #[inline]
    pub fn may_know(&self, probe: &Probe) -> bool {
        self.filter.may_contain(probe) | self.has_ranges
    }

    /// The same once more, of a table that was not read when the guide was made.
    #[inline]
    pub fn may_know_now(&self, probe: &Probe) -> Result<bool> {
        Ok(self.is_read || self.table.filter_now()?.may_contain(probe))
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Guide {
    /// Where segments begin: the keys, and a word of each.
    starts: Vec<Vec<u8>>,
    fences: Fences,
    /// Where each segment's candidates end.
    ends: Vec<usize>,
    candidates: Vec<Candidate>,
    ranges: Vec<RangeTombstone>,
    /// Of all of them; made when first needed.
    cover: OnceLock<Arc<Cover>>,
}

impl Guide {
    pub fn new(tree: &Tree) -> Self {
        // By first key, with the age of the run.
        let mut tables: Vec<(usize, &Arc<Table>)> = tree
            .runs()
            .enumerate()
            .flat_map(|(age, (_, run))| run.tables.iter().map(move |table| (age, table)))
            .collect();
        tables.sort_by(|a, b| a.1.info.smallest.cmp(&b.1.info.smallest));
        let mut guide = Self::default();
        let mut open: Vec<(usize, &Arc<Table>)> = Vec::new();
        for (age, table) in tables {
            let start = &table.info.smallest;
            if open.iter().any(|(_, table)| table.info.ends_before(start)) {
                guide.end_segment(&mut open);
                open.retain(|(_, table)| !table.info.ends_before(start));
            }
            if guide.starts.len() == guide.ends.len() {
                guide.starts.push(start.clone());
            }
            open.push((age, table));
        }
        guide.end_segment(&mut open);
        guide.fences = Fences::new(guide.starts.iter().map(|key| &key[..]));
        guide.ranges = tree.tables().flat_map(|(_, _, table)| table.ranges().iter().cloned()).collect();
        guide
    }

    fn end_segment(&mut self, open: &mut [(usize, &Arc<Table>)]) {
        if self.starts.len() > self.ends.len() {
            open.sort_by_key(|(age, _)| *age);
            self.candidates.extend(open.iter().map(|(_, table)| {
                let is_read = table.is_read();
                let filter = if is_read { table.filter().clone() } else { Filter::build(&[], 0) };
                Candidate { filter, is_read, has_ranges: !table.ranges().is_empty(), table: Arc::clone(table) }
            }));
            self.ends.push(self.candidates.len());
        }
    }

    /// The tables that may have the key, from the newest run to the oldest.
    pub fn candidates(&self, key: &[u8]) -> &[Candidate] {
        let ties = self.fences.find(key);
        let behind = ties.start + self.starts[ties].partition_point(|start| **start <= *key);
        let Some(segment) = behind.checked_sub(1) else { return &[] };
        let from = segment.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.candidates[from..self.ends[segment]]
    }

    /// All deleted ranges of the tree, for views that see all of them.
    pub fn cover(&self) -> &Arc<Cover> {
        self.cover.get_or_init(|| Arc::new(Cover::new(&self.ranges, SEQNO_MAX)))
    }

    /// All deleted ranges of the tree.
    pub fn range_tombstones(&self) -> &[RangeTombstone] {
        &self.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::BlockCache;
    use crate::key::Kind;
    use crate::sstable::{Compression, Filters, Indexes, TableBuilder, TableOptions};
    use crate::version::{TablePlace, Version, VersionEdit};
    use base::Rng;
    use std::path::PathBuf;
    use vfs::{FileSystem, SimFs};

    /// A tree of random runs: each a sorted list of tables without common keys, some with a deleted range at the end.
    fn random_tree(rng: &mut Rng) -> Version {
        let fs: Arc<dyn FileSystem> = Arc::new(SimFs::new(1));
        let cache = Arc::new(BlockCache::new(0, 4096));
        let options = TableOptions {
            block_bytes: 64,
            filter_bits_per_key: 16,
            filters: Filters::Full,
            indexes: Indexes::Full,
            compression: Compression::None,
            prefix_bytes: 0,
            is_direct: false,
            has_times: false,
        };
        let (mut edit, mut number) = (VersionEdit::default(), 0);
        for run in 1..=rng.below(6) {
            let mut key = rng.below(40);
            for _ in 0..rng.below(6) {
                number += 1;
                let path = PathBuf::from(format!("/{number}"));
                let mut builder = TableBuilder::new(&*fs, &path, number, options).unwrap();
                for _ in 0..=rng.below(4) {
                    builder.add(format!("{key:03}").as_bytes(), number, Kind::Put, b"").unwrap();
                    key += 1 + rng.below(20);
                }
                if rng.one_in(3) {
                    let bound = |key: u64| format!("{key:03}").into_bytes();
                    builder.add_range(RangeTombstone { start: bound(key - 1), end: bound(key), seqno: number });
                }
                let place = TablePlace { key_space: 0, level: (run % 2) as usize, run, number };
                edit.added.push((place, builder.finish().unwrap()));
            }
        }
        let open = |number, info: &_| {
            let path = PathBuf::from(format!("/{number}"));
            Table::open(&fs, &cache, path, number, Clone::clone(info), vfs::OpenOptions::read()).map(Arc::new)
        };
        Version::default().apply(&edit, open).unwrap().0
    }

    /// Every table that may have a key is listed, from the newest run to the oldest, and never two of one run.
    #[test]
    fn lists_what_a_search_of_every_run_finds() {
        let mut rng = Rng::new(17);
        for _ in 0..60 {
            let version = random_tree(&mut rng);
            let Some(tree) = version.tree(0) else { continue };
            let age = |number: u64| tree.runs().position(|(_, run)| run.tables.iter().any(|t| t.number == number));
            for key in 0..300 {
                let key = format!("{key:03}").into_bytes();
                let listed: Vec<u64> = tree.guide().candidates(&key).iter().map(|c| c.table.number).collect();
                assert!(listed.is_sorted_by_key(|number| age(*number)), "{listed:?}");
                assert!(listed.windows(2).all(|pair| age(pair[0]) != age(pair[1])), "{listed:?}");
                for (_, run) in tree.runs() {
                    let found = run.table_for(&key).map(|table| table.number);
                    assert!(found.is_none_or(|number| listed.contains(&number)), "{found:?} {listed:?}");
                }
            }
        }
    }
}
