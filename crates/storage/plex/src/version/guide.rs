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
//!
//! A large tree is cut into *stretches* of about a hundred tables, each with segments of its own, which are made when a
//! key is first looked for there. The next version of the tree keeps those in which no table has changed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::Tree;
use crate::error::Result;
use crate::fence::Fences;
use crate::sstable::{Filter, Probe, Table, TableInfo};

/// A table that may have a key.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The table's own: here, a search need not touch the table. That of a table that was not read lets everything
    /// through.
    pub filter: Filter,
    /// Of a table that was not read when this was made: set once it is, so that the next guide takes its filter.
    read_later: Option<Arc<AtomicBool>>,
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

    /// The same once more, of a table that was not read when this was made.
    #[inline]
    pub fn may_know_now(&self, probe: &Probe) -> Result<bool> {
        let Some(read_later) = &self.read_later else { return Ok(true) };
        let filter = self.table.filter_now()?;
        read_later.store(true, Ordering::Relaxed);
        Ok(filter.may_contain(probe))
    }
}

/// About as many tables has a stretch when a tree is cut.
const STRETCH_TABLES: usize = if cfg!(test) { 4 } else { 128 };

/// A stretch with as many shows that the tree has grown where it was not cut.
const STRETCH_TABLES_MAX: usize = 8 * STRETCH_TABLES;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Guide {
    cuts: Arc<Cuts>,
    /// One more than there are cuts.
    stretches: Vec<OnceLock<Arc<Stretch>>>,
    /// Whether a stretch was met that is too long.
    is_outgrown: AtomicBool,
}

impl Guide {
    pub fn new(tree: &Tree) -> Self {
        let cuts = Cuts::of(tree);
        let stretches = vec![OnceLock::new(); cuts.keys.len() + 1];
        Self { cuts: Arc::new(cuts), stretches, is_outgrown: AtomicBool::new(false) }
    }

    /// The tables that may have the key, from the newest run to the oldest. `tree` is the one that this is the guide
    /// of.
    #[inline]
    pub fn candidates(&self, tree: &Tree, key: &[u8]) -> &[Candidate] {
        let at = if self.cuts.keys.is_empty() { 0 } else { self.cuts.stretch(key) };
        let stretch = self.stretches[at].get_or_init(|| self.make_stretch(tree, at));
        stretch.candidates(key)
    }

    #[cold]
    fn make_stretch(&self, tree: &Tree, at: usize) -> Arc<Stretch> {
        let (from, to) =
            (at.checked_sub(1).map(|at| &self.cuts.keys[at][..]), self.cuts.keys.get(at).map(|to| &to[..]));
        let tables: Vec<_> = tree
            .runs()
            .enumerate()
            .flat_map(|(age, (_, run))| run.within(from, to).iter().map(move |table| (age, table)))
            .collect();
        if tables.len() >= STRETCH_TABLES_MAX.max(2 * tree.runs().count()) {
            self.is_outgrown.store(true, Ordering::Relaxed);
        }
        Arc::new(Stretch::new(tables))
    }

    /// The guide after a table has come or gone: without the stretches that it reaches into. `None` if the tree is to
    /// be cut anew.
    pub fn without(self: Arc<Self>, table: &TableInfo) -> Option<Arc<Self>> {
        if self.cuts.keys.is_empty() || self.is_outgrown.load(Ordering::Relaxed) {
            return None;
        }
        let mut guide = Arc::try_unwrap(self).unwrap_or_else(|shared| {
            let stretches = shared.stretches.iter().map(|stretch| {
                // One whose tables were read since is made again, with their filters.
                let kept = stretch.get().filter(|stretch| !stretch.read_later.load(Ordering::Relaxed));
                kept.map_or_else(OnceLock::new, |stretch| OnceLock::from(stretch.clone()))
            });
            Self { cuts: shared.cuts.clone(), stretches: stretches.collect(), is_outgrown: AtomicBool::new(false) }
        });
        let (first, last) = (guide.cuts.stretch(&table.smallest), guide.cuts.stretch(&table.largest));
        guide.stretches[first..=last].iter_mut().for_each(|stretch| drop(stretch.take()));
        Some(Arc::new(guide))
    }
}

/// Where a tree is cut.
#[derive(Debug, Default)]
struct Cuts {
    /// First keys of all stretches but the first.
    keys: Vec<Vec<u8>>,
    fences: Fences,
}

impl Cuts {
    /// Where tables of the largest run begin.
    fn of(tree: &Tree) -> Self {
        let tables: usize = tree.runs().map(|(_, run)| run.tables.len()).sum();
        let stretches = tables / STRETCH_TABLES;
        let largest = tree.runs().map(|(_, run)| run).max_by_key(|run| run.tables.len());
        let Some(run) = largest.filter(|_| stretches > 1) else { return Self::default() };
        let step = run.tables.len().div_ceil(stretches);
        let mut keys: Vec<Vec<u8>> =
            run.tables.iter().step_by(step).skip(1).map(|table| table.info.smallest.clone()).collect();
        keys.dedup();
        let fences = Fences::new(keys.iter().map(|key| &key[..]));
        Self { keys, fences }
    }

    /// In which stretch a key is.
    fn stretch(&self, key: &[u8]) -> usize {
        let ties = self.fences.find(key);
        ties.start + self.keys[ties].partition_point(|cut| **cut <= *key)
    }
}

/// The segments of a part of the keys.
#[derive(Debug, Default)]
struct Stretch {
    /// Where segments begin: the keys, and a word of each.
    starts: Vec<Vec<u8>>,
    fences: Fences,
    /// Where each segment's candidates end.
    ends: Vec<usize>,
    candidates: Vec<Candidate>,
    /// Whether one of its tables was read since this was made.
    read_later: Arc<AtomicBool>,
}

impl Stretch {
    /// Of these tables, with the ages of their runs.
    fn new(mut tables: Vec<(usize, &Arc<Table>)>) -> Self {
        tables.sort_by(|a, b| a.1.info.smallest.cmp(&b.1.info.smallest));
        let mut stretch = Self::default();
        let mut open: Vec<(usize, &Arc<Table>)> = Vec::new();
        for (age, table) in tables {
            let start = &table.info.smallest;
            if open.iter().any(|(_, table)| table.info.ends_before(start)) {
                stretch.end_segment(&mut open);
                open.retain(|(_, table)| !table.info.ends_before(start));
            }
            if stretch.starts.len() == stretch.ends.len() {
                stretch.starts.push(start.clone());
            }
            open.push((age, table));
        }
        stretch.end_segment(&mut open);
        stretch.fences = Fences::new(stretch.starts.iter().map(|key| &key[..]));
        stretch
    }

    fn end_segment(&mut self, open: &mut [(usize, &Arc<Table>)]) {
        if self.starts.len() > self.ends.len() {
            open.sort_by_key(|(age, _)| *age);
            self.candidates.extend(open.iter().map(|(_, table)| {
                let is_read = table.is_read();
                let filter = if is_read { table.filter().clone() } else { Filter::build(&[], 0) };
                let read_later = (!is_read).then(|| self.read_later.clone());
                Candidate { filter, read_later, has_ranges: !table.ranges().is_empty(), table: Arc::clone(table) }
            }));
            self.ends.push(self.candidates.len());
        }
    }

    #[inline]
    fn candidates(&self, key: &[u8]) -> &[Candidate] {
        let ties = self.fences.find(key);
        let behind = ties.start + self.starts[ties].partition_point(|start| **start <= *key);
        let Some(segment) = behind.checked_sub(1) else { return &[] };
        let from = segment.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.candidates[from..self.ends[segment]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::BlockCache;
    use crate::key::{Kind, SEQNO_MAX};
    use crate::range_tombstone::{Cover, RangeTombstone};
    use crate::sstable::{Compression, Filters, Indexes, TableBuilder, TableOptions};
    use crate::version::{TablePlace, Version, VersionEdit};
    use base::Rng;
    use std::path::PathBuf;
    use vfs::{FileSystem, SimFs};

    /// Makes tables, and the edits that put them into a tree.
    struct Tables {
        fs: Arc<dyn FileSystem>,
        cache: Arc<BlockCache>,
        number: u64,
    }

    impl Tables {
        fn new() -> Self {
            Self { fs: Arc::new(SimFs::new(1)), cache: Arc::new(BlockCache::new(0, 4096)), number: 0 }
        }

        /// Adds a run: a sorted list of tables without common keys, some with a deleted range at the end.
        fn add_run(&mut self, edit: &mut VersionEdit, run: u64, count: u64, rng: &mut Rng) {
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
            let mut key = rng.below(40);
            for _ in 0..count {
                self.number += 1;
                let number = self.number;
                let path = PathBuf::from(format!("/{number}"));
                let mut builder = TableBuilder::new(&*self.fs, &path, number, options).unwrap();
                for _ in 0..=rng.below(4) {
                    builder.add(format!("{key:04}").as_bytes(), number, Kind::Put, b"").unwrap();
                    key += 1 + rng.below(20);
                }
                if rng.one_in(3) {
                    let bound = |key: u64| format!("{key:04}").into_bytes();
                    builder.add_range(RangeTombstone { start: bound(key - 1), end: bound(key), seqno: number });
                }
                let place = TablePlace { key_space: 0, level: (run % 2) as usize, run, number };
                edit.added.push((place, builder.finish().unwrap()));
            }
        }

        fn apply(&self, version: &Version, edit: &VersionEdit) -> Version {
            let open = |number, info: &_| {
                let path = PathBuf::from(format!("/{number}"));
                let (info, how) = (Clone::clone(info), vfs::OpenOptions::read());
                Table::open(&self.fs, &self.cache, path, number, info, how).map(Arc::new)
            };
            version.apply(edit, open).unwrap().0
        }
    }

    /// Every table that may have the key is listed, from the newest run to the oldest, and never two of one run.
    fn check(tree: &Tree, key: u64) {
        let age = |number: u64| tree.runs().position(|(_, run)| run.tables.iter().any(|t| t.number == number));
        let key = format!("{key:04}").into_bytes();
        let listed: Vec<u64> = tree.candidates(&key).iter().map(|c| c.table.number).collect();
        assert!(listed.iter().all(|number| age(*number).is_some()), "{listed:?}");
        assert!(listed.is_sorted_by_key(|number| age(*number)), "{listed:?}");
        assert!(listed.windows(2).all(|pair| age(pair[0]) != age(pair[1])), "{listed:?}");
        for (_, run) in tree.runs() {
            let found = run.table_for(&key).map(|table| table.number);
            assert!(found.is_none_or(|number| listed.contains(&number)), "{found:?} {listed:?}");
        }
    }

    #[test]
    fn lists_what_a_search_of_every_run_finds() {
        let mut rng = Rng::new(17);
        for _ in 0..60 {
            let (mut tables, mut edit) = (Tables::new(), VersionEdit::default());
            for run in 1..=rng.below(6) {
                let count = rng.below(6);
                tables.add_run(&mut edit, run, count, &mut rng);
            }
            let version = tables.apply(&Version::default(), &edit);
            let Some(tree) = version.tree(0) else { continue };
            (0..300).for_each(|key| check(tree, key));
        }
    }

    /// The same of the versions of a tree, each of which takes over what its predecessor had made.
    #[test]
    fn a_guide_follows_its_tree() {
        let mut rng = Rng::new(18);
        let (mut kept, mut made) = (0, 0);
        for _ in 0..20 {
            let (mut tables, mut version) = (Tables::new(), Version::default());
            for run in 1..20 {
                let mut edit = VersionEdit::default();
                if let Some(tree) = version.tree(0) {
                    for (level, run, table) in tree.tables().filter(|_| rng.one_in(10)) {
                        edit.removed.push(TablePlace { key_space: 0, level, run, number: table.number });
                    }
                }
                let count = if run == 1 { 40 } else { rng.below(4) };
                tables.add_run(&mut edit, run, count, &mut rng);
                version = tables.apply(&version, &edit);
                let Some(tree) = version.tree(0) else { continue };
                if let Some(guide) = tree.guide.get() {
                    kept += guide.stretches.iter().filter(|stretch| stretch.get().is_some()).count();
                }
                (0..20).for_each(|_| check(tree, rng.below(600)));
                made += tree.guide.get().unwrap().stretches.iter().filter(|stretch| stretch.get().is_some()).count();
                let ranges: Vec<_> = tree.tables().flat_map(|(_, _, table)| table.ranges().to_vec()).collect();
                let cover = Cover::new(&ranges, SEQNO_MAX);
                for key in 0..600 {
                    let key = format!("{key:04}").into_bytes();
                    assert_eq!(tree.cover().at(&key), cover.at(&key));
                }
            }
        }
        assert!(kept > made / 4, "{kept} of {made}");
    }
}
