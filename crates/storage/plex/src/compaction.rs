//! Compaction: policies say what to merge, one executor does it.
//!
//! ```text
//!   Tree --> Policy::pick --> Task: stretch of tables, output level and run, where to cut
//!                                     |
//!            merged, hidden versions and dead tombstones dropped --> new tables --> version edit
//! ```
//!
//! C1. A table that stays and overlaps an input is newer than the output if it is newer than the input, and older if it
//!     is older ([`check`]).
//! C2. A policy is a pure function of the tree and of how often its tables were scanned, so it has nothing to recover.
//!     What it keeps between choices ([`Tree::memo`]) only saves work.
//! C3. Each task drops a version, a run, or moves tables to an older place, so that picking comes to an end.

mod deleted;
mod estimate;
mod execute;
mod expire;
mod ldc;
mod ldc_ranged;
mod leveled;
mod ranges;
mod split;
mod stretch;
mod stretches;
mod tiered;
mod trie;
mod unsynced;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::expiry::Expiry;
use crate::key::Seqno;
use crate::key_order::KeyOrder;
use crate::sketch::Sketch;
use crate::sstable::{Table, TableInfo};
use crate::version::{Run, Tree};
pub(crate) use execute::{Outcome, OutputSettings, Visibility, flush, rebuild, renumber};
pub(crate) use expire::expire;
pub(crate) use stretches::Merge;
pub(crate) use unsynced::Unsynced;

/// How tables are chosen for merging; the default is [`Policy::ldc_ranged`].
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// One run per level, each level ten times the one before. Reads and scans look at few runs; every byte is written
    /// about as many times as there are levels, times five.
    Leveled {
        /// Runs of flushed memtables at which they are merged into the next level.
        level0_runs_max: usize,
        /// Size of the first sorted level, in bytes.
        level1_bytes: u64,
    },
    /// All runs of a full level become one run of the next. Least writing, most space and runs.
    Tiered {
        /// Runs at which a level is full.
        runs_per_level: usize,
    },
    /// [`Policy::Tiered`], and a level whose keys have too many copies is merged before it is full: *level
    /// deduplication compaction* of the PlexDB paper, its Algorithms 1 and 2.
    Ldc {
        /// Runs at which a level is full.
        runs_per_level: usize,
        /// Entries per distinct key of a level at which it is merged; the paper tests 1.2 to 1.8.
        duplicates_max: f64,
    },
    /// One sketch per run *and key range*: when files take more than the target, the range that drops most garbage per
    /// byte written is merged into the last, sorted run. Space comes back range by range, so its peak stays near the
    /// target.
    LdcRanged {
        /// Bytes of all tables per byte of live keys and values (of what they take, where they are compressed), above
        /// 1: the dial between writing (low) and space.
        space_amp_target: f64,
        /// Runs over one range at which the newer ones are merged, whatever their garbage.
        runs_max: usize,
    },
    /// LSM-trie's: keys are kept by their hashes, each level is shared out among eight times as many nodes as the one
    /// before, and a full node is merged into its children. Least writing at any size, most space, and no order:
    /// iterators and deleted ranges are refused. A database is made for this policy or for the others, and stays so.
    Trie {
        /// Runs at which a node is full.
        runs_per_node: usize,
    },
}

impl Policy {
    /// LevelDB's shape: 4 flushed runs, 10 MiB.
    pub fn leveled() -> Self {
        Self::Leveled { level0_runs_max: 4, level1_bytes: 10 << 20 }
    }

    /// 8 runs a level.
    pub fn tiered() -> Self {
        Self::Tiered { runs_per_level: 8 }
    }

    /// 8 runs a level, 1.6 copies.
    pub fn ldc() -> Self {
        Self::Ldc { runs_per_level: 8, duplicates_max: 1.6 }
    }

    /// Target 1.5, 20 runs.
    pub fn ldc_ranged() -> Self {
        Self::LdcRanged { space_amp_target: 1.5, runs_max: 20 }
    }

    /// 8 runs a node.
    pub fn trie() -> Self {
        Self::Trie { runs_per_node: 8 }
    }

    /// Whether an idle database merges what is deleted by default: where that costs a part of the tree.
    pub(crate) fn reclaims_when_idle(&self) -> bool {
        matches!(self, Self::Leveled { .. } | Self::LdcRanged { .. })
    }

    /// How a database for this policy keeps its keys.
    pub(crate) fn key_order(&self) -> KeyOrder {
        if matches!(self, Self::Trie { .. }) { KeyOrder::Hash } else { KeyOrder::Bytes }
    }

    /// What does the choosing.
    ///
    /// # Errors
    /// The option that is out of range.
    pub(crate) fn chooser(&self, memtable_bytes: u64, table_bytes: u64) -> Result<Box<dyn Choose>, String> {
        let at_least = |name: &str, value: usize, min: usize| {
            if value < min { Err(format!("{name} is {value}, at least {min} is needed")) } else { Ok(value) }
        };
        let above_one = |name: &str, value: f64| {
            if value > 1.0 && value.is_finite() {
                Ok(value)
            } else {
                Err(format!("{name} is {value}, above 1 is needed"))
            }
        };
        let tiers = |runs_per_level| {
            Ok::<_, String>(tiered::Tiered {
                runs_per_level: at_least("runs_per_level", runs_per_level, 2)?,
                table_bytes,
            })
        };
        Ok(match *self {
            Self::Leveled { level0_runs_max, level1_bytes } => Box::new(leveled::Leveled {
                level0_runs_max: at_least("level0_runs_max", level0_runs_max, 1)?,
                level1_bytes: level1_bytes.max(1),
            }),
            Self::Tiered { runs_per_level } => Box::new(tiers(runs_per_level)?),
            Self::Ldc { runs_per_level, duplicates_max } => Box::new(ldc::Ldc {
                tiers: tiers(runs_per_level)?,
                duplicates_max: above_one("duplicates_max", duplicates_max)?,
            }),
            Self::LdcRanged { space_amp_target, runs_max } => Box::new(ldc_ranged::LdcRanged {
                space_amp_target: above_one("space_amp_target", space_amp_target)?,
                runs_max: at_least("runs_max", runs_max, 2)?,
                memtable_bytes,
            }),
            Self::Trie { runs_per_node } => {
                Box::new(trie::Trie { runs_per_node: at_least("runs_per_node", runs_per_node, 2)? })
            }
        })
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::ldc_ranged()
    }
}

/// Says which keys may go when tables are written, such as those whose time has come.
///
/// A key that is not kept reads as deleted from then on. When that happens is not defined: a table that nothing is
/// merged with is not looked at before [`Db::compact_range`](crate::Db::compact_range) comes to it. A version that a
/// [`ReadView`](crate::ReadView) may see is not asked for while the view lives.
///
/// Values with a time to live hold the moment of their end, which readers look at and the filter, too:
///
/// ```
/// use plex::{CompactionFilter, KeySpaceId, Options};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// /// Milliseconds, from wherever; values begin with the moment of their end, 8 bytes, the largest first.
/// #[derive(Debug, Default)]
/// struct Expiration {
///     now: AtomicU64,
/// }
///
/// impl Expiration {
///     fn is_over(&self, value: &[u8]) -> bool {
///         value.first_chunk().is_some_and(|end| u64::from_be_bytes(*end) <= self.now.load(Ordering::Relaxed))
///     }
/// }
///
/// impl CompactionFilter for Expiration {
///     fn keeps(&self, _: KeySpaceId, _: &[u8], value: &[u8]) -> bool {
///         !self.is_over(value)
///     }
/// }
///
/// # let fs = Arc::new(vfs::SimFs::new(1));
/// # let options = Options::new().file_system(fs);
/// let expiration = Arc::new(Expiration::default());
/// let db = options.compaction_filter(expiration.clone()).open("/data/plex")?;
/// db.put(b"session", &[&60_000u64.to_be_bytes()[..], b"Ada"].concat())?;
/// let read = |key: &[u8]| Ok::<_, plex::Error>(db.get(key)?.filter(|value| !expiration.is_over(value)));
/// assert!(read(b"session")?.is_some());
/// expiration.now.store(60_000, Ordering::Relaxed);
/// assert!(read(b"session")?.is_none() && db.get(b"session")?.is_some());
/// db.flush()?;
/// assert!(db.get(b"session")?.is_none(), "the filter has let it go");
/// # Ok::<(), plex::Error>(())
/// ```
pub trait CompactionFilter: Send + Sync + std::fmt::Debug {
    /// Whether the key stays with this value. The flushing or compacting thread calls it; it must not call the
    /// database.
    fn keeps(&self, space: crate::KeySpaceId, key: &[u8], value: &[u8]) -> bool;
}

/// How a flushed run is cut into tables.
#[derive(Debug, Default)]
pub(crate) struct FlushShape {
    /// Keys before which a table ends, ascending.
    pub cuts: Vec<Vec<u8>>,
    /// Length at which a table ends, in bytes; `None` for the option's.
    pub table_bytes: Option<u64>,
}

impl FlushShape {
    /// Whether a file from outside may be a table as it is: no border lies within, and it is not longer than two tables
    /// where the policy has a length for them.
    pub fn keeps_whole(&self, info: &TableInfo) -> bool {
        let is_cut = self.cuts.iter().any(|cut| *cut > info.smallest && !info.ends_before(cut));
        !is_cut && self.table_bytes.is_none_or(|table_bytes| info.bytes <= 2 * table_bytes)
    }
}

/// The trait of every [`Policy`].
pub(crate) trait Choose: Send + Sync + std::fmt::Debug {
    /// The most urgent merge; `None` if all is well. It overlaps none of those under way.
    fn pick(&self, tree: &Tree, now: &Now<'_>) -> Option<Task>;

    /// A merge for an idle database, which gives back the space of what is deleted; `None` if there is none, or none
    /// that no view needs. Each one drops tombstones or moves them down, so this comes to an end.
    fn reclaim(&self, tree: &Tree, now: &Now<'_>) -> Option<Task> {
        deleted::reclaim(tree, now)
    }

    /// Whether it may choose with tables whose ends were not read. If not, an open reads all.
    fn does_without_ends(&self) -> bool {
        true
    }

    /// Tables whose ends should be read so that the policy knows what a merge of them drops; none once all are that
    /// matter. Until then it must do without.
    fn unread_of(&self, _tree: &Tree, _now: &Now<'_>) -> Vec<Arc<Table>> {
        Vec::new()
    }

    /// How a memtable that is flushed to this tree is cut into tables.
    fn flush_shape(&self, _tree: &Tree) -> FlushShape {
        FlushShape::default()
    }

    /// How far merges lag: not at all at 0, and so far from 1 on that writers must be held up.
    fn lag(&self, tree: &Tree, now: &Now<'_>) -> f64;
}

/// What a choice depends on, apart from the tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Now<'a> {
    /// The tables that merges under way read and write: their numbers and first keys.
    pub others: Option<&'a BTreeMap<u64, Vec<u8>>>,
    /// Sequence numbers of the read views, ascending.
    pub views: &'a [Seqno],
    /// When values expire; `None` where they do not.
    pub expiry: Option<Expiry>,
}

impl Now<'_> {
    pub fn is_busy(&self, table: &Table) -> bool {
        self.others.is_some_and(|others| others.contains_key(&table.number))
    }

    /// Whether any table of the tree is in a merge.
    pub fn is_tree_busy(&self, tree: &Tree) -> bool {
        self.others.is_some_and(|others| !others.is_empty()) && tree.tables().any(|(_, _, table)| self.is_busy(table))
    }

    /// Whether the table has tombstones that hide nothing from any view once they are merged with all that is older.
    pub fn has_droppable(&self, table: &Table) -> bool {
        table.tombstone_count() > 0 && self.views.first().is_none_or(|view| table.seqno_max() <= *view)
    }
}

/// How far merges of a tree lag, whatever merges are under way.
pub(crate) fn lag(chooser: &dyn Choose, tree: &Tree, views: &[Seqno]) -> f64 {
    chooser.lag(tree, &Now { others: None, views, expiry: None })
}

/// A lag that is 0 up to `slow` and 1 at `stop`.
fn lag_between(now: f64, slow: f64, stop: f64) -> f64 {
    ((now - slow) / (stop - slow)).max(0.0)
}

/// A merge to be done.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Tables with their levels and runs.
    pub inputs: Vec<(usize, u64, Arc<Table>)>,
    pub output_level: usize,
    /// `None` for a new run, newer than all of its level.
    pub output_run: Option<u64>,
    /// Length at which an output table ends, in bytes; `None` for the option's.
    pub table_bytes: Option<u64>,
    /// Bytes of input after which what is merged counts, about; `None` for all at once.
    pub stretch_bytes: Option<u64>,
    /// Keys before which the output is cut, ascending.
    pub cuts: Vec<Vec<u8>>,
    /// Whether tables that nothing is merged with are written anew if there is a [`CompactionFilter`], so that it sees
    /// them, or if values expire.
    pub asks_filter: bool,
    /// Whether tables that do not overlap are written as one. Otherwise tables that are merged with no other stay as
    /// they are.
    pub joins: bool,
    /// Why, in a word, for statistics and messages.
    pub reason: &'static str,
}

impl Task {
    pub fn new(reason: &'static str, output_level: usize, output_run: Option<u64>) -> Self {
        Self {
            inputs: Vec::new(),
            output_level,
            output_run,
            table_bytes: None,
            stretch_bytes: None,
            cuts: Vec::new(),
            asks_filter: false,
            joins: false,
            reason,
        }
    }

    pub fn add(&mut self, level: usize, run: u64, table: &Arc<Table>) {
        self.inputs.push((level, run, table.clone()));
    }

    pub fn add_run(&mut self, level: usize, run: &Run) {
        run.tables.iter().for_each(|table| self.add(level, run.id, table));
    }

    pub fn numbers(&self) -> BTreeSet<u64> {
        self.inputs.iter().map(|(_, _, table)| table.number).collect()
    }
}

/// The range from the smallest key of all tables to the largest; `None` without tables.
pub(crate) fn hull<'a>(tables: impl IntoIterator<Item = &'a Arc<Table>>) -> Option<TableInfo> {
    let mut tables = tables.into_iter();
    let mut hull = tables.next()?.info.clone();
    for table in tables {
        widen(&mut hull, &table.info);
    }
    Some(hull)
}

/// The range with all tables of these runs that overlap it, and what overlaps those.
pub(crate) fn reach<'a>(runs: impl Iterator<Item = &'a Arc<Run>> + Clone, mut range: TableInfo) -> TableInfo {
    loop {
        let mut reached = range.clone();
        runs.clone().flat_map(|run| run.overlapping(&range)).for_each(|table| widen(&mut reached, &table.info));
        if reached == range {
            return range;
        }
        range = reached;
    }
}

/// Makes the range hold another one, too.
pub(crate) fn widen(hull: &mut TableInfo, info: &TableInfo) {
    if info.smallest < hull.smallest {
        hull.smallest.clone_from(&info.smallest);
    }
    if info.largest > hull.largest || (info.largest == hull.largest && hull.largest_is_excluded) {
        hull.largest.clone_from(&info.largest);
        hull.largest_is_excluded = info.largest_is_excluded;
    }
}

/// Entries of the tables, which must be read, and about how many distinct keys they have.
pub(crate) fn count<'a>(tables: impl IntoIterator<Item = &'a Arc<Table>>) -> (u64, f64) {
    let (mut sketch, mut entries) = (Sketch::default(), 0);
    for table in tables {
        sketch.union(table.sketch());
        entries += table.info.entry_count;
    }
    // Rounding errors aside, there is at least one key and there are no more keys than entries.
    (entries, sketch.estimate().clamp(entries.min(1) as f64, entries as f64))
}

/// Whether the task may be done on this tree (C1), and whether nothing older than its inputs overlaps them.
///
/// # Errors
/// What is wrong with the task.
pub(crate) fn check(tree: &Tree, task: &Task) -> Result<bool, String> {
    let inputs = task.numbers();
    if task.inputs.is_empty() {
        return Err("no inputs".into());
    }
    let present = tree.tables().filter(|(level, run, table)| {
        task.inputs.iter().any(|(l, r, t)| (l, r, t.number) == (level, run, table.number))
    });
    if present.count() != inputs.len() || inputs.len() != task.inputs.len() {
        return Err("an input is not where the task says".into());
    }
    // Places in the order of age; a new run comes before all others of its level.
    let place = |level: usize, run: u64| (level, std::cmp::Reverse(run));
    let output = place(task.output_level, task.output_run.unwrap_or(u64::MAX));
    let mut is_bottom = true;
    for (level, run, table) in tree.tables().filter(|(_, _, table)| !inputs.contains(&table.number)) {
        let age = place(level, run);
        let mut met = task.inputs.iter().filter(|(_, _, input)| input.info.overlaps(&table.info)).peekable();
        if met.peek().is_none() {
            continue;
        }
        // Newer inputs must stay newer than what they meet, and older ones older.
        let keeps_order = age != output && met.all(|(l, r, _)| (place(*l, *r) < age) == (output < age));
        if !keeps_order {
            return Err(format!("table {} lies between inputs and output of a task ({})", table.number, task.reason));
        }
        is_bottom &= age < output;
    }
    Ok(is_bottom)
}
