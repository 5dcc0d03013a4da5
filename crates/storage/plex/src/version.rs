//! Which tables count: the immutable version that readers hold, and how an edit makes the next one.
//!
//! ```text
//!   version: key space 0 -> tree: level 0: run 9, run 8, run 5      newest first; each run is sorted tables
//!            key space 1 -> tree          level 1: run 3                that do not overlap
//! ```
//!
//! V1. Tables of one run do not overlap; all versions of a key that a run has are in one table.
//! V2. For any key, what a run holds is newer than what later runs hold: runs of a level in descending order of their
//!     ids, then the next level. A compaction takes a stretch of this order and leaves nothing between.
//! V3. A version never changes. A table's file lives as long as a version that names it.

pub(crate) mod edit;
mod guide;
pub(crate) mod manifest;
mod memo;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::fence::Fences;
use crate::key::SEQNO_MAX;
use crate::range_tombstone::{Cover, RangeTombstone};
use crate::sstable::{Table, TableInfo};
pub(crate) use edit::{TablePlace, VersionEdit};
use guide::{Candidate, Guide};
use memo::Memo;

/// Tables that together are sorted and do not overlap (V1).
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub id: u64,
    pub tables: Vec<Arc<Table>>,
    /// Of the tables' largest keys; made when first needed.
    ends: OnceLock<Fences>,
}

impl Run {
    pub fn new(id: u64, tables: Vec<Arc<Table>>) -> Self {
        Self { id, tables, ends: OnceLock::new() }
    }

    /// The place of the first table that does not lie before the key.
    pub fn position(&self, key: &[u8]) -> usize {
        let ends = self.ends.get_or_init(|| Fences::new(self.tables.iter().map(|table| &table.info.largest[..])));
        let ties = ends.find(key);
        ties.start + self.tables[ties].partition_point(|table| table.info.ends_before(key))
    }

    /// The only table that may have the key.
    #[cfg(test)]
    pub fn table_for(&self, key: &[u8]) -> Option<&Arc<Table>> {
        self.tables.get(self.position(key)).filter(|table| *table.info.smallest <= *key)
    }

    /// Tables that have a key in common with `info`'s range.
    pub fn overlapping<'a>(&'a self, info: &TableInfo) -> impl Iterator<Item = &'a Arc<Table>> + use<'a> {
        let from = self.tables.partition_point(|table| table.info.ends_before(&info.smallest));
        let behind = self.tables[from..].partition_point(|table| !info.ends_before(&table.info.smallest));
        self.tables[from..from + behind].iter()
    }

    /// Tables that may have keys from `from` (included) to `to` (excluded), where `None` has no bound.
    fn within(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> &[Arc<Table>] {
        let begin = from.map_or(0, |from| self.tables.partition_point(|table| table.info.ends_before(from)));
        let rest = &self.tables[begin..];
        &rest[..to.map_or(rest.len(), |to| rest.partition_point(|table| *table.info.smallest < *to))]
    }

    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.info.bytes).sum()
    }
}

/// The runs of one key space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// Level by level, runs newest first (V2). No trailing empty level.
    pub levels: Vec<Vec<Arc<Run>>>,
    /// Made when first needed.
    guide: OnceLock<Arc<Guide>>,
    /// Tables with deleted ranges, by their numbers.
    ranged: BTreeMap<u64, Arc<Table>>,
    /// Of all deleted ranges; made when first needed.
    cover: OnceLock<Arc<Cover>>,
    memo: Memo,
}

impl Tree {
    /// Runs from the newest to the oldest, with their levels.
    pub fn runs(&self) -> impl Iterator<Item = (usize, &Arc<Run>)> {
        self.levels.iter().enumerate().flat_map(|(level, runs)| runs.iter().map(move |run| (level, run)))
    }

    /// All tables with their places, from the newest run to the oldest.
    pub fn tables(&self) -> impl Iterator<Item = (usize, u64, &Arc<Table>)> {
        self.runs().flat_map(|(level, run)| run.tables.iter().map(move |table| (level, run.id, table)))
    }

    pub fn level(&self, level: usize) -> &[Arc<Run>] {
        self.levels.get(level).map_or(&[], |runs| &runs[..])
    }

    pub fn bytes(&self) -> u64 {
        self.runs().map(|(_, run)| run.bytes()).sum()
    }

    /// The tables that may have a key, from the newest run to the oldest.
    #[inline]
    pub fn candidates(&self, key: &[u8]) -> &[Candidate] {
        self.guide.get_or_init(|| Arc::new(Guide::new(self))).candidates(self, key)
    }

    /// All deleted ranges.
    pub fn range_tombstones(&self) -> impl Iterator<Item = &RangeTombstone> {
        self.ranged.values().flat_map(|table| table.ranges())
    }

    /// All deleted ranges, for views that see all of them.
    pub fn cover(&self) -> &Arc<Cover> {
        self.cover.get_or_init(|| Arc::new(Cover::new(self.range_tombstones(), SEQNO_MAX)))
    }

    /// What the policy keeps of this key space between its choices: one memo for all versions of the tree.
    pub fn memo(&self) -> &Memo {
        &self.memo
    }

    /// A run whose tables will change.
    fn run_mut(&mut self, level: usize, id: u64) -> &mut Run {
        if self.levels.len() <= level {
            self.levels.resize(level + 1, Vec::new());
        }
        let runs = &mut self.levels[level];
        let at = runs.partition_point(|run| run.id > id);
        if runs.get(at).is_none_or(|run| run.id != id) {
            runs.insert(at, Arc::new(Run::new(id, Vec::new())));
        }
        let run = Arc::make_mut(&mut runs[at]);
        run.ends.take();
        run
    }

    fn remove(&mut self, place: &TablePlace) -> Option<Arc<Table>> {
        let run = self.run_mut(place.level, place.run);
        let at = run.tables.iter().position(|table| table.number == place.number)?;
        let table = run.tables.remove(at);
        self.note_changed(&table);
        self.ranged.remove(&table.number);
        Some(table)
    }

    /// A table comes or goes.
    fn note_changed(&mut self, table: &Table) {
        if let Some(guide) = self.guide.take().and_then(|guide| guide.without(&table.info)) {
            self.guide = OnceLock::from(guide);
        }
        if !table.ranges().is_empty() {
            self.cover.take();
        }
    }

    /// Whether the table finds its place in the run without overlap (V1).
    fn insert(&mut self, level: usize, run: u64, table: Arc<Table>) -> bool {
        self.note_changed(&table);
        if !table.ranges().is_empty() {
            self.ranged.insert(table.number, table.clone());
        }
        let tables = &mut self.run_mut(level, run).tables;
        // Many that come in order, as those of a manifest, are not searched for.
        let at = match tables.last() {
            Some(last) if !last.info.ends_before(&table.info.smallest) => {
                tables.partition_point(|other| other.info.ends_before(&table.info.smallest))
            }
            _ => tables.len(),
        };
        let fits = tables.get(at).is_none_or(|next| !next.info.overlaps(&table.info));
        tables.insert(at, table);
        fits
    }

    fn tidy(&mut self) {
        for runs in &mut self.levels {
            runs.retain(|run| !run.tables.is_empty());
        }
        while self.levels.last().is_some_and(|runs| runs.is_empty()) {
            self.levels.pop();
        }
    }
}

/// Why an edit cannot be applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    /// A bug, or a damaged manifest.
    #[error("the edit removes table {0}, which is not there")]
    Missing(u64),
    /// A bug, or a damaged manifest.
    #[error("the edit adds table {0}, which overlaps another of its run")]
    Overlap(u64),
    /// A table that it adds cannot be opened.
    #[error(transparent)]
    Table(crate::Error),
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    pub trees: BTreeMap<u32, Arc<Tree>>,
}

impl Version {
    /// The version after an edit, and the tables that it no longer names. `open` gives the table of a number.
    ///
    /// # Errors
    /// Why the edit does not fit this version, or `open`'s error.
    pub fn apply(
        &self,
        edit: &VersionEdit,
        mut open: impl FnMut(u64, &TableInfo) -> crate::Result<Arc<Table>>,
    ) -> Result<(Version, Vec<Arc<Table>>), ApplyError> {
        let mut next = self.clone();
        let mut removed: BTreeMap<u64, Arc<Table>> = BTreeMap::new();
        for place in &edit.removed {
            let tree = Arc::make_mut(next.trees.entry(place.key_space).or_default());
            let table = tree.remove(place).ok_or(ApplyError::Missing(place.number))?;
            removed.insert(table.number, table);
        }
        for (place, info) in &edit.added {
            // A table that only moves stays open.
            let table = match removed.remove(&place.number) {
                Some(table) => table,
                None => open(place.number, info).map_err(ApplyError::Table)?,
            };
            next.add(place, table)?;
        }
        for tree in next.trees.values_mut() {
            if tree.runs().any(|(_, run)| run.tables.is_empty()) || tree.levels.last().is_some_and(Vec::is_empty) {
                Arc::make_mut(tree).tidy();
            }
        }
        Ok((next, removed.into_values().collect()))
    }

    /// The version of these tables. It is quick if they come by key space, level, run and key.
    ///
    /// # Errors
    /// As those of [`apply`](Self::apply).
    pub fn of<'a>(
        tables: impl Iterator<Item = &'a (TablePlace, TableInfo)>,
        mut open: impl FnMut(u64, &TableInfo) -> crate::Result<Arc<Table>>,
    ) -> Result<Version, ApplyError> {
        let mut version = Version::default();
        for (place, info) in tables {
            version.add(place, open(place.number, info).map_err(ApplyError::Table)?)?;
        }
        Ok(version)
    }

    fn add(&mut self, place: &TablePlace, table: Arc<Table>) -> Result<(), ApplyError> {
        let tree = Arc::make_mut(self.trees.entry(place.key_space).or_default());
        if tree.insert(place.level, place.run, table) { Ok(()) } else { Err(ApplyError::Overlap(place.number)) }
    }

    /// The edit that makes this version from nothing.
    pub fn as_edit(&self) -> VersionEdit {
        let mut edit = VersionEdit::default();
        for (&key_space, tree) in &self.trees {
            edit.added.extend(tree.tables().map(|(level, run, table)| {
                (TablePlace { key_space, level, run, number: table.number }, table.info.clone())
            }));
        }
        edit
    }

    pub fn tree(&self, key_space: u32) -> Option<&Arc<Tree>> {
        self.trees.get(&key_space)
    }
}
