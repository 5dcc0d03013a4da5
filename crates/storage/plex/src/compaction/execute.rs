//! Doing a merge: what is dropped, where tables end, what only moves.

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use vfs::FileSystem;

use super::stretch::{Below, Stretch};
use super::unsynced::Unsynced;
use super::{CompactionFilter, FlushShape, Task, split};
use crate::cache::Fill;
use crate::error::Result;
use crate::expiry::Expiry;
use crate::iter::{MergeCursor, Source};
use crate::key::{Kind, SEQNO_MAX, Seqno};
use crate::key_order::KeyOrder;
use crate::key_space_options::OptionsOfSpaces;
use crate::limiter::{self, Limiter};
use crate::memtable::{Memtable, MemtableCursor};
use crate::options::Options;
use crate::range_tombstone::{Cover, RangeTombstone};
use crate::sstable::{Table, TableBuilder, TableInfo};
use crate::version::{Run, TablePlace, VersionEdit};

/// Which old versions readers may still need.
pub(crate) struct Visibility {
    /// Sequence numbers of the read views, ascending.
    pub views: Vec<Seqno>,
    /// The newest of the views that are kept, 0 for none. The filter is asked only for versions that are newer.
    pub watched: Seqno,
}

impl Visibility {
    /// Versions of one key with the same stripe look the same to everybody but for the newest: the rest is garbage. The
    /// lowest stripe is what every view sees.
    ///
    /// A version above all views is not published yet, as while its log is being synced. Each such version is a stripe
    /// of its own, because the next published number may lie between any two of them.
    fn stripe(&self, seqno: Seqno) -> u64 {
        let stripe = self.views.partition_point(|view| *view < seqno) as u64;
        stripe + self.views.last().map_or(0, |published| seqno.saturating_sub(*published))
    }

    /// Whether the version is published, and no view that is kept sees it.
    fn is_open(&self, seqno: Seqno) -> bool {
        (self.watched == 0 || seqno > self.watched) && self.views.last().is_none_or(|published| seqno <= *published)
    }

    /// What is at or below it, every view sees.
    fn floor(&self) -> Seqno {
        self.views.first().copied().unwrap_or(SEQNO_MAX)
    }
}

/// Where tables go and how they are made.
#[derive(Clone)]
pub(crate) struct OutputSettings<'a> {
    pub fs: &'a dyn FileSystem,
    /// Those of tables; sizes of tables are below.
    pub options: &'a Options,
    pub table_bytes: u64,
    /// What else may go; it sees keys as they were given.
    pub filter: Option<&'a dyn CompactionFilter>,
    /// Options of key spaces that have any, and the moment by which values expire.
    pub spaces: Arc<OptionsOfSpaces>,
    pub now_ms: u64,
    pub key_order: KeyOrder,
    /// Holds back what is written.
    pub limiter: Option<&'a Limiter>,
    /// Gives the next table's number, identity and path.
    pub next_table: &'a (dyn Fn() -> (u64, u64, PathBuf) + Sync),
    /// Takes tables that are to be synced together; without it, each is synced at its end.
    pub unsynced: Option<&'a Unsynced>,
    /// Parts that one merge is split into at most, and whether a thread each does them.
    pub parts_max: usize,
    pub has_threads: bool,
}

impl OutputSettings<'_> {
    fn expiry(&self, key_space: u32) -> Option<Expiry> {
        self.spaces.get(&key_space)?.expiry(self.now_ms)
    }
}

/// What a merge or flush did. The names of the files are not synced, and the files as their settings say.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub edit: VersionEdit,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Versions and tombstones that are gone.
    pub dropped: u64,
    /// Merges, those that were split counted by their parts.
    pub parts: u64,
}

impl Outcome {
    /// Adds the outcome of another part.
    fn add(&mut self, other: Outcome) {
        self.edit.added.extend(other.edit.added);
        self.edit.removed.extend(other.edit.removed);
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.dropped += other.dropped;
        self.parts += other.parts;
    }
}

/// Where the output of one merge goes.
struct Destination {
    key_space: u32,
    level: usize,
    run: u64,
}

/// Writes a memtable's entries of one key space as a new run of level 0.
pub(crate) fn flush(
    settings: &OutputSettings<'_>,
    visibility: &Visibility,
    memtable: &Arc<Memtable>,
    key_space: u32,
    run: u64,
    shape: &FlushShape,
) -> Result<Outcome> {
    let cursor = MergeCursor::new(vec![Source::Memtable(MemtableCursor::new(memtable.clone(), key_space))]);
    let ranges = memtable.range_tombstones(key_space);
    let to = Destination { key_space, level: 0, run };
    let mut outcome = Outcome::default();
    let table_bytes = shape.table_bytes.unwrap_or(settings.table_bytes);
    let part = Part { from: None, to: None, ranges };
    merge(settings, visibility, cursor, &part, &Below::unknown(), &shape.cuts, table_bytes, &to, &mut outcome)?;
    Ok(outcome)
}

/// Writes all entries under one number as a new run of level 0.
pub(crate) fn renumber(
    settings: &OutputSettings<'_>,
    mut cursor: MergeCursor,
    seqno: Seqno,
    key_space: u32,
    run: u64,
    shape: &FlushShape,
) -> Result<Outcome> {
    let to = Destination { key_space, level: 0, run };
    let mut outcome = Outcome::default();
    let table_bytes = shape.table_bytes.unwrap_or(settings.table_bytes);
    let mut output = Output {
        settings,
        to: &to,
        kept: Vec::new(),
        cuts: &shape.cuts,
        from: None,
        builder: None,
        unpaced: 0,
        outcome: &mut outcome,
    };
    cursor.seek_to_first()?;
    while cursor.valid() {
        output.cut_before(cursor.key(), table_bytes)?;
        output.builder()?.add(cursor.key(), seqno, cursor.kind(), cursor.value())?;
        cursor.next()?;
    }
    output.finish()?;
    Ok(outcome)
}

/// Merges sources of which it is unknown which is newer, by sequence numbers alone, into a run of level 0. Of entries
/// with the same key and number, the first source's stays.
pub(crate) fn rebuild(
    settings: &OutputSettings<'_>,
    visibility: &Visibility,
    sources: Vec<Source>,
    ranges: &[RangeTombstone],
    key_space: u32,
    run: u64,
) -> Result<Outcome> {
    let to = Destination { key_space, level: 0, run };
    let mut outcome = Outcome::default();
    let cursor = MergeCursor::new(sources);
    let part = Part { from: None, to: None, ranges: ranges.to_vec() };
    merge(settings, visibility, cursor, &part, &Below::unknown(), &[], settings.table_bytes, &to, &mut outcome)?;
    Ok(outcome)
}

/// Does a stretch of a task. `new_run` is used if the task wants one.
pub(super) fn run(
    settings: &OutputSettings<'_>,
    visibility: &Visibility,
    key_space: u32,
    task: &Task,
    stretch: &Stretch,
    is_bottom: bool,
    new_run: u64,
) -> Result<Outcome> {
    let to = Destination { key_space, level: task.output_level, run: task.output_run.unwrap_or(new_run) };
    let mut outcome = Outcome::default();
    let expiry = settings.expiry(key_space);
    for group in groups(task, stretch) {
        let group = &group.iter().map(|at| &task.inputs[*at]).collect::<Vec<_>>()[..];
        if let [(level, run, table)] = group
            && is_bottom
            && stretch.has_all_of(table)
            && table.seqno_max() <= visibility.floor()
            && expiry.is_some_and(|expiry| expiry.is_over_for_all(table.times()))
        {
            // Values that are over and tombstones with nothing to hide: it need not be read.
            let place = TablePlace { key_space, level: *level, run: *run, number: table.number };
            outcome.edit.removed.push(place);
            outcome.dropped += table.info.entry_count;
            continue;
        }
        if let [(level, run, table)] = group
            && stretch.has_all_of(table)
            && (table.tombstone_count() == 0 || !is_bottom)
            && !(task.asks_filter && (settings.filter.is_some() || expiry.is_some()))
        {
            // Nothing to merge with and nothing to drop: the table moves, or stays where it is.
            if (*level, *run) != (to.level, to.run) {
                let from = TablePlace { key_space, level: *level, run: *run, number: table.number };
                let place = TablePlace { level: to.level, run: to.run, ..from };
                outcome.edit.removed.push(from);
                outcome.edit.added.push((place, table.info.clone()));
            }
            continue;
        }
        let tables = || group.iter().map(|(_, _, table)| table);
        let ranges: Vec<RangeTombstone> = tables().flat_map(|table| table.ranges().iter().cloned()).collect();
        let left: Vec<_> = tables().filter(|table| !stretch.has_end_of(table)).collect();
        // The filter of a table that is left does not show what a deleted range hides in it.
        let below = Below { is_bottom: is_bottom && (left.is_empty() || ranges.is_empty()), left };
        let table_bytes = task.table_bytes.unwrap_or(settings.table_bytes);
        // A part begins with a table of its own, which would undo what the task is for.
        let parts_max = if task.joins { 1 } else { settings.parts_max };
        let mut borders = split::borders(&tables().collect::<Vec<_>>(), parts_max, settings.table_bytes)?;
        borders.retain(|border| stretch.has_inside(border));
        let merge_part = |part: &Part| {
            let (cursor, mut done) = (MergeCursor::new(sources(group)), Outcome { parts: 1, ..Outcome::default() });
            merge(settings, visibility, cursor, part, &below, &task.cuts, table_bytes, &to, &mut done)?;
            Ok(done)
        };
        for done in of_each(Part::all(stretch, &borders, &ranges), settings.has_threads, merge_part) {
            outcome.add(done?);
        }
        let merged = || group.iter().filter(|(_, _, table)| stretch.has_end_of(table));
        outcome.bytes_read += merged().map(|(_, _, table)| table.info.bytes).sum::<u64>();
        let places = merged().map(|(level, run, table)| TablePlace {
            key_space,
            level: *level,
            run: *run,
            number: table.number,
        });
        outcome.edit.removed.extend(places);
    }
    Ok(outcome)
}

/// The inputs with something in the stretch, sorted by key and cut where no table reaches from one part into the next,
/// unless the task joins them.
fn groups(task: &Task, stretch: &Stretch) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..task.inputs.len()).filter(|at| stretch.meets(&task.inputs[*at].2)).collect();
    let table = |at: usize| -> &Arc<Table> { &task.inputs[at].2 };
    order.sort_by(|a, b| table(*a).info.smallest.cmp(&table(*b).info.smallest));
    let mut bounds: Vec<Range<usize>> = Vec::new();
    let mut reach: Option<TableInfo> = None;
    for (index, &at) in order.iter().enumerate() {
        let info = &table(at).info;
        match &mut reach {
            Some(reach) if task.joins || !reach.ends_before(&info.smallest) => {
                super::widen(reach, info);
                if let Some(last) = bounds.last_mut() {
                    last.end = index + 1;
                }
            }
            _ => {
                bounds.push(index..index + 1);
                reach = Some(info.clone());
            }
        }
    }
    bounds.into_iter().map(|range| order[range].to_vec()).collect()
}

/// One source per run among the tables, newest first.
fn sources(group: &[&(usize, u64, Arc<Table>)]) -> Vec<Source> {
    let mut runs = std::collections::BTreeMap::<_, Vec<Arc<Table>>>::new();
    for (level, run, table) in group {
        runs.entry((*level, std::cmp::Reverse(*run))).or_default().push(table.clone());
    }
    let sorted = runs.into_iter().map(|((_, id), mut tables)| {
        tables.sort_by(|a, b| a.info.smallest.cmp(&b.info.smallest));
        Source::run(Arc::new(Run::new(id.0, tables)), Fill::Pass)
    });
    sorted.collect()
}

/// A stretch of keys that is merged separately: from a key (included) to one (excluded), with its share of the deleted
/// ranges.
struct Part {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    ranges: Vec<RangeTombstone>,
}

impl Part {
    /// The parts of a stretch between these borders.
    fn all(stretch: &Stretch, borders: &[Vec<u8>], ranges: &[RangeTombstone]) -> Vec<Part> {
        let starts = std::iter::once(stretch.from.as_ref()).chain(borders.iter().map(Some));
        let ends = borders.iter().map(Some).chain([stretch.to.as_ref()]);
        let part = |(from, to): (Option<&Vec<u8>>, Option<&Vec<u8>>)| Part {
            from: from.cloned(),
            to: to.cloned(),
            ranges: ranges.iter().filter_map(|t| t.clipped(from.map(|k| &k[..]), to.map(|k| &k[..]))).collect(),
        };
        starts.zip(ends).map(part).collect()
    }
}

/// What `merge` makes of each part, in their order: with threads side by side, the last one on the caller's.
fn of_each(
    parts: Vec<Part>,
    has_threads: bool,
    merge: impl Fn(&Part) -> Result<Outcome> + Sync,
) -> Vec<Result<Outcome>> {
    let Some((last, others)) = parts.split_last().filter(|(_, others)| has_threads && !others.is_empty()) else {
        return parts.iter().map(merge).collect();
    };
    std::thread::scope(|scope| {
        let merge = &merge;
        let start =
            |part| std::thread::Builder::new().name("plex-part".into()).spawn_scoped(scope, move || merge(part));
        let started: Vec<_> = others.iter().map(|part| (part, start(part))).collect();
        let last = merge(last);
        let join = |(part, thread): (&Part, std::io::Result<std::thread::ScopedJoinHandle<'_, _>>)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // No thread to be had: it takes longer.
            Err(_) => merge(part),
        };
        started.into_iter().map(join).chain([last]).collect()
    })
}

/// Writes what of the cursor's entries and of the deleted ranges must stay, as far as they lie in the part.
#[expect(clippy::too_many_arguments, reason = "the one place where a merge is spelled out")]
fn merge(
    settings: &OutputSettings<'_>,
    visibility: &Visibility,
    mut cursor: MergeCursor,
    part: &Part,
    below: &Below<'_>,
    cuts: &[Vec<u8>],
    table_bytes: u64,
    to: &Destination,
    outcome: &mut Outcome,
) -> Result<()> {
    let ranges = &part.ranges;
    let cover = Cover::new(ranges, visibility.floor());
    // Of the tombstones that every view sees, those stay that are the newest over any key. At the bottom none does, as
    // there is nothing left to hide.
    let newest = if below.is_bottom { HashSet::new() } else { cover.seqnos() };
    let stays = |t: &&RangeTombstone| t.seqno > visibility.floor() || newest.contains(&t.seqno);
    let kept: Vec<&RangeTombstone> = ranges.iter().filter(stays).collect();
    outcome.dropped += (ranges.len() - kept.len()) as u64;
    let mut output = Output { settings, to, kept, cuts, from: None, builder: None, unpaced: 0, outcome };
    let expiry = settings.expiry(to.key_space);
    let mut last_key: Vec<u8> = Vec::new();
    let mut last_stripe = None;
    match &part.from {
        Some(from) => cursor.seek(from, SEQNO_MAX)?,
        None => cursor.seek_to_first()?,
    }
    while cursor.valid() && part.to.as_deref().is_none_or(|to| cursor.key() < to) {
        let (key, seqno, kind) = (cursor.key(), cursor.seqno(), cursor.kind());
        let is_new_key = last_stripe.is_none() || key != last_key;
        if is_new_key {
            last_key.clear();
            last_key.extend_from_slice(key);
            last_stripe = None;
        }
        let stripe = visibility.stripe(seqno);
        let is_hidden = last_stripe == Some(stripe) || cover.at(key) > seqno;
        // A filtered version reads as deleted, also where older ones lie below; views must not see that happen.
        let is_open = !is_hidden && kind == Kind::Put && visibility.is_open(seqno);
        let space = crate::KeySpaceId(to.key_space);
        let given = || settings.key_order.given(key);
        // What a reader gets; `None` once it is over, which views see as well.
        let value = expiry.map_or(Some(cursor.value()), |expiry| expiry.value(cursor.value()));
        let is_over = kind == Kind::Put && value.is_none();
        let keeps = |filter: &dyn CompactionFilter| filter.keeps(space, given(), value.unwrap_or_default());
        let is_filtered = is_over || (is_open && settings.filter.is_some_and(|filter| !keeps(filter)));
        let (kind, value) = if is_filtered { (Kind::Delete, &b""[..]) } else { (kind, cursor.value()) };
        let is_last = !is_hidden && stripe == 0 && below.has_none(key);
        let is_dead = kind == Kind::Delete && is_last;
        // A hidden or dead version still hides the older ones of its stripe.
        last_stripe = Some(stripe);
        if is_hidden || is_dead {
            output.outcome.dropped += 1;
        } else {
            if is_new_key || output.builder.is_none() {
                output.cut_before(key, table_bytes)?;
            }
            let seqno = if is_last { 0 } else { seqno };
            output.builder()?.add(key, seqno, kind, value)?;
            output.pace((key.len() + value.len()) as u64);
        }
        cursor.next()?;
    }
    output.finish()
}

/// The tables a merge writes, one after the other.
struct Output<'a> {
    settings: &'a OutputSettings<'a>,
    to: &'a Destination,
    kept: Vec<&'a RangeTombstone>,
    /// Those not passed yet.
    cuts: &'a [Vec<u8>],
    /// Where the current table's share of the deleted ranges begins; `None` before the first.
    from: Option<Vec<u8>>,
    builder: Option<(u64, TableBuilder)>,
    /// Bytes that the limiter does not know of yet.
    unpaced: u64,
    outcome: &'a mut Outcome,
}

impl Output<'_> {
    /// Ends the current table if it must not contain this key, which is new.
    fn cut_before(&mut self, key: &[u8], table_bytes: u64) -> Result<()> {
        let passed = self.cuts.partition_point(|cut| cut.as_slice() <= key);
        self.cuts = &self.cuts[passed..];
        let is_full = self.builder.as_ref().is_some_and(|(_, builder)| builder.len() >= table_bytes);
        if passed > 0 || is_full { self.end_table(Some(key)) } else { Ok(()) }
    }

    /// Waits for the limiter now and then.
    fn pace(&mut self, bytes: u64) {
        if let Some(limiter) = self.settings.limiter {
            self.unpaced += bytes;
            if self.unpaced >= limiter::PIECE_BYTES {
                limiter.pass(std::mem::take(&mut self.unpaced));
            }
        }
    }

    fn builder(&mut self) -> Result<&mut TableBuilder> {
        if self.builder.is_none() {
            let (number, identity, path) = (self.settings.next_table)();
            let own = self.settings.spaces.get(&self.to.key_space);
            let options = self.settings.options.of_tables(self.to.level, own);
            let builder = TableBuilder::new(self.settings.fs, &path, identity, options)?;
            self.builder = Some((number, builder));
        }
        Ok(&mut self.builder.as_mut().expect("made above").1)
    }

    /// Ends the table; the next one begins with the key.
    fn end_table(&mut self, next: Option<&[u8]>) -> Result<()> {
        let share: Vec<RangeTombstone> =
            self.kept.iter().filter_map(|t| t.clipped(self.from.as_deref(), next)).collect();
        self.from = next.map(<[u8]>::to_vec);
        if !share.is_empty() {
            let builder = self.builder()?;
            share.into_iter().for_each(|tombstone| builder.add_range(tombstone));
        }
        let Some((number, builder)) = self.builder.take() else { return Ok(()) };
        let info = match self.settings.unsynced {
            Some(unsynced) => {
                let (info, file) = builder.finish_unsynced()?;
                unsynced.add(file)?;
                info
            }
            None => builder.finish()?,
        };
        self.outcome.bytes_written += info.bytes;
        let place = TablePlace { key_space: self.to.key_space, level: self.to.level, run: self.to.run, number };
        self.outcome.edit.added.push((place, info));
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.end_table(None)
    }
}
