//! The ranges of a tree and what a merge of each would drop, kept from one choice to the next.
//!
//! ```text
//!   run 9        |  . .  |  . .  |  . .  |      a flush adds a table to each range that it meets
//!   last run     | ..... | ..... | ..... |      a merge replaces the tables of one range
//!                ^start  ^start  ^start
//! ```
//!
//! R1. A range begins where a table of the last run begins, and ends where the next one does. The first begins at the
//!     smallest key. Ranges with a table in common are one, so every table lies in one range.
//! R2. What is kept follows from the tree alone: [`Ranges::follow`] finds the runs that changed and builds only those
//!     ranges anew whose tables did. The result is that of a look at the whole tree.
//! R3. A range is measured (its sketches joined) when a choice needs it, once for the tables that it has. A range with
//!     tables that were not read since the open counts as one without garbage. It is measured again once they were,
//!     which merging threads see to where the range has runs above the last.
//!
//! So a choice costs as much as has changed since the one before, times the logarithm of the number of ranges.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::estimate::{estimate, estimate_unread};
use super::{Now, widen};
use crate::key::Seqno;
use crate::sstable::{BYTES_PER_DELETED_STEP, Table, TableInfo};
use crate::version::{Run, Tree};

/// A table with its level and run.
type Placed = (usize, u64, Arc<Table>);

/// The tables of one run that a range has.
#[derive(Debug)]
pub(super) struct PartOfRun {
    pub level: usize,
    pub run: u64,
    pub tables: Vec<Arc<Table>>,
}

impl PartOfRun {
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.info.bytes).sum()
    }
}

/// A range with everything that overlaps its tables of the last run.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// By run from the newest; no run is empty.
    pub upper: Vec<PartOfRun>,
    pub last: Vec<Arc<Table>>,
    pub bytes: u64,
    measure: Measure,
}

/// What a merge would leave and drop, about.
#[derive(Clone, Copy, Debug, Default)]
struct Measure {
    live_bytes: f64,
    garbage_bytes: f64,
    live_user_bytes: f64,
}

impl Reach {
    /// Everything that overlaps `seed`, and what overlaps that, until nothing is added; measured.
    pub fn around(tree: &Tree, mut seed: TableInfo, now: &Now<'_>) -> Self {
        let last_run = last_run(tree).map(|run| run.id);
        loop {
            let overlapping = tree.runs().flat_map(|(level, run)| {
                run.overlapping(&seed).map(move |table| (level, run.id, table.clone())).collect::<Vec<_>>()
            });
            let placed: Vec<Placed> = overlapping.collect();
            let mut reached = seed.clone();
            placed.iter().for_each(|(_, _, table)| widen(&mut reached, &table.info));
            if reached == seed {
                let mut reach = Self::of(placed, last_run);
                reach.measure(now.views);
                return reach;
            }
            seed = reached;
        }
    }

    /// Of these tables, not measured.
    fn of(mut placed: Vec<Placed>, last_run: Option<u64>) -> Self {
        placed.sort_by(|(level, run, table), (other_level, other_run, other)| {
            let (age, other_age) = ((level, std::cmp::Reverse(run)), (other_level, std::cmp::Reverse(other_run)));
            age.cmp(&other_age).then_with(|| table.info.smallest.cmp(&other.info.smallest))
        });
        let mut reach = Self { bytes: placed.iter().map(|(_, _, table)| table.info.bytes).sum(), ..Self::default() };
        for (level, run, table) in placed {
            if level > 0 && Some(run) == last_run {
                reach.last.push(table);
                continue;
            }
            match reach.upper.last_mut().filter(|part| (part.level, part.run) == (level, run)) {
                Some(part) => part.tables.push(table),
                None => reach.upper.push(PartOfRun { level, run, tables: vec![table] }),
            }
        }
        reach
    }

    fn measure(&mut self, views: &[Seqno]) {
        let kept = if self.tables().all(|table| table.is_read()) {
            let upper: Vec<Vec<&Arc<Table>>> = self.upper.iter().map(|part| part.tables.iter().collect()).collect();
            let last: Vec<&Arc<Table>> = self.last.iter().collect();
            estimate(upper.iter().chain([&last]).map(|tables| &tables[..]), views)
        } else {
            estimate_unread(self.tables())
        };
        let live_bytes = kept.live_bytes.min(self.bytes as f64);
        self.measure = Measure {
            live_bytes,
            garbage_bytes: self.bytes as f64 - live_bytes,
            // Compressed, live data is what it takes, or else garbage would be let grow to its full length.
            live_user_bytes: kept.live_user_bytes.min(live_bytes),
        };
    }

    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.upper.iter().flat_map(|part| &part.tables).chain(&self.last)
    }

    /// Tables that were not read yet, and can be.
    fn unread_of(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables().filter(|table| !table.is_read() && !table.is_damaged())
    }

    pub fn upper_bytes(&self) -> u64 {
        self.upper.iter().map(PartOfRun::bytes).sum()
    }

    /// About how many bytes a merge would leave.
    pub fn live_bytes(&self) -> f64 {
        self.measure.live_bytes
    }

    /// Garbage dropped per byte written.
    pub fn gain(&self) -> f64 {
        self.measure.garbage_bytes / self.measure.live_bytes.max(1.0)
    }

    /// Whether scans stepped over deleted keys as often as pays for a merge that drops them.
    pub fn pays_for_deleted(&self, now: &Now<'_>) -> bool {
        let steps: u64 = self.tables().map(|table| table.deleted_steps()).sum();
        let pays = steps.saturating_mul(BYTES_PER_DELETED_STEP) >= self.bytes;
        pays && steps > 0 && self.tables().any(|table| now.has_droppable(table))
    }

    pub fn is_busy(&self, now: &Now<'_>) -> bool {
        self.tables().any(|table| now.is_busy(table))
    }

    /// The views on which the measure depends: those between the sequence numbers of its tables.
    fn views_inside<'a>(&self, views: &'a [Seqno]) -> &'a [Seqno] {
        let from = self.tables().map(|table| table.seqno_min()).min().unwrap_or(0);
        let to = self.tables().map(|table| table.seqno_max()).max().unwrap_or(0);
        let place = |seqno: Seqno| views.partition_point(|view| *view < seqno);
        &views[place(from)..place(to).max(place(from))]
    }

    fn into_placed(self, last: (usize, u64)) -> impl Iterator<Item = Placed> {
        let upper = self
            .upper
            .into_iter()
            .flat_map(|PartOfRun { level, run, tables }| tables.into_iter().map(move |table| (level, run, table)));
        upper.chain(self.last.into_iter().map(move |table| (last.0, last.1, table)))
    }
}

/// The sorted run at the bottom, if the tree has one: the oldest run, unless it is a flushed one.
pub(super) fn last_run(tree: &Tree) -> Option<&Arc<Run>> {
    tree.runs().last().filter(|(level, _)| *level > 0).map(|(_, run)| run)
}

/// Tiny neighbours above the last run at which they are joined: a merge may be cut into several tables by their length.
pub(super) const TINY_COUNT: usize = 4;

/// Which neighbours are tiny, in bytes of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct TinyBytes(pub u64);

impl TinyBytes {
    pub fn are(self, neighbours: &[Arc<Table>]) -> bool {
        neighbours.iter().map(|table| table.info.bytes).sum::<u64>() <= self.0
    }

    /// Whether the range has tables to join, but for those that a neighbour range begins with.
    fn are_in(self, range: &Reach) -> bool {
        let place = |table: &Table| range.last.partition_point(|last| last.info.smallest <= table.info.smallest);
        let of_part = |part: &PartOfRun| {
            let mut stretches = part.tables.windows(TINY_COUNT);
            stretches.any(|tiny| self.are(tiny) && place(&tiny[0]) == place(&tiny[TINY_COUNT - 1]))
        };
        range.last.windows(2).any(|pair| self.are(pair)) || range.upper.iter().any(of_part)
    }
}

/// Sums over all ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    bytes: u64,
    tombstones: u64,
    /// Of the last run alone.
    last_bytes: u64,
    last_entries: u64,
    last_user_bytes: u64,
    /// Of the ranges that are measured.
    live_bytes: u64,
    live_user_bytes: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// The runs that were followed last.
    runs: Vec<(usize, Arc<Run>)>,
    /// Level and id of the last run.
    last: (usize, u64),
    by_start: BTreeMap<Vec<u8>, Reach>,
    unmeasured: BTreeSet<Vec<u8>>,
    /// Ranges with runs above the last and tables that are to be read.
    unread: BTreeSet<Vec<u8>>,
    /// Measured ranges with runs above the last, by the bits of their gain.
    gains: BTreeSet<(u64, Vec<u8>)>,
    /// Ranges by the number of their runs above the last.
    crowds: BTreeSet<(usize, Vec<u8>)>,
    /// Ranges with tiny neighbours, or whose last table is one with the next range's first.
    tiny: BTreeSet<Vec<u8>>,
    /// Ranges that have changed since it was last checked whether a merge pays for scans.
    unseen: BTreeSet<Vec<u8>>,
    /// Signals of tables at the last look ([`Table::scan_signals`]).
    signals_seen: u64,
    views: Vec<Seqno>,
    /// No table has a larger number.
    seqno_max: Seqno,
    sums: Sums,
}

impl Ranges {
    /// Makes this what the tree has (R2). Without a last run there is no range.
    pub fn follow(&mut self, tree: &Tree, views: &[Seqno], tiny: TinyBytes) {
        let Some((last, id)) = tree.runs().last().map(|(level, run)| (level, run.id)).filter(|(level, _)| *level > 0)
        else {
            *self = Self::default();
            return;
        };
        if self.last != (last, id) {
            *self = Self { last: (last, id), ..Self::default() };
            self.put(Vec::new(), Reach::default(), tiny);
        }
        let (removed, mut added) = self.changes(tree);
        if !removed.is_empty() || !added.is_empty() {
            added.sort_by(|(_, _, a), (_, _, b)| a.info.smallest.cmp(&b.info.smallest));
            self.rebuild(&removed, &added, tiny);
            self.runs = tree.runs().map(|(level, run)| (level, run.clone())).collect();
        }
        self.see_views(views);
    }

    /// Tables that the tree no longer has, and those that it has since, with their places.
    fn changes(&self, tree: &Tree) -> (Vec<Placed>, Vec<Placed>) {
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        let mut old: BTreeMap<(usize, u64), &Arc<Run>> =
            self.runs.iter().map(|(level, run)| ((*level, run.id), run)).collect();
        for (level, run) in tree.runs() {
            let before = old.remove(&(level, run.id));
            if before.is_some_and(|before| Arc::ptr_eq(before, run)) {
                continue;
            }
            let before = before.map_or(&[][..], |before| &before.tables);
            changes_of_run(before, &run.tables, |table, is_new| {
                let to = if is_new { &mut added } else { &mut removed };
                to.push((level, run.id, table.clone()));
            });
        }
        let gone =
            old.into_iter().flat_map(|((level, id), run)| run.tables.iter().map(move |t| (level, id, t.clone())));
        removed.extend(gone);
        (removed, added)
    }

    /// Builds the ranges anew that these tables lie in. `added` is sorted by first key.
    fn rebuild(&mut self, removed: &[Placed], added: &[Placed], tiny: TinyBytes) {
        let mut touched = BTreeSet::new();
        for (_, _, table) in removed.iter().chain(added) {
            touched.extend(self.starts_over(&table.info));
        }
        let removed: BTreeSet<(usize, u64, u64)> =
            removed.iter().map(|(level, run, table)| (*level, *run, table.number)).collect();
        while let Some(mut start) = touched.pop_first() {
            let mut tables = Vec::new();
            let mut next = self.next_start(&start);
            let mut of_this = start.clone();
            loop {
                tables.extend(self.take(&of_this));
                let from = added.partition_point(|(_, _, table)| table.info.smallest < of_this);
                let len = match &next {
                    Some(next) => added[from..].partition_point(|(_, _, table)| table.info.smallest < *next),
                    None => added.len() - from,
                };
                tables.retain(|(level, run, table)| !removed.contains(&(*level, *run, table.number)));
                tables.extend_from_slice(&added[from..from + len]);
                match next.take_if(|next| touched.remove(next)) {
                    Some(following) => {
                        next = self.next_start(&following);
                        of_this = following;
                    }
                    None => break,
                }
            }
            // R1: a range whose first table of the last run is gone belongs to the one before.
            while !start.is_empty()
                && !tables.iter().any(|placed| self.is_last(placed) && placed.2.info.smallest == start)
            {
                start = self.by_start.range(..start).next_back().map_or(Vec::new(), |(start, _)| start.clone());
                tables.extend(self.take(&start));
            }
            // The first range has no other one before: without a table of the last run, it takes the next one in.
            while !tables.iter().any(|placed| self.is_last(placed))
                && let Some(following) = next
            {
                next = self.next_start(&following);
                tables.extend(self.take(&following));
            }
            for (start, placed) in self.split(start, tables) {
                self.put(start, Reach::of(placed, Some(self.last.1)), tiny);
            }
        }
    }

    fn is_last(&self, (level, run, _): &Placed) -> bool {
        (*level, *run) == self.last
    }

    /// Starts of the ranges that a table lies in.
    fn starts_over(&self, info: &TableInfo) -> Vec<Vec<u8>> {
        let first = self.by_start.range::<[u8], _>((Bound::Unbounded, Bound::Included(&info.smallest[..]))).next_back();
        let further = self.by_start.range::<[u8], _>((Bound::Excluded(&info.smallest[..]), Bound::Unbounded));
        let further = further.take_while(|(start, _)| !info.ends_before(start));
        first.into_iter().chain(further).map(|(start, _)| start.clone()).collect()
    }

    fn next_start(&self, start: &[u8]) -> Option<Vec<u8>> {
        let further = self.by_start.range::<[u8], _>((Bound::Excluded(start), Bound::Unbounded)).next();
        further.map(|(start, _)| start.clone())
    }

    /// Tables of a stretch of keys by the ranges that they make (R1).
    fn split(&self, start: Vec<u8>, tables: Vec<Placed>) -> Vec<(Vec<u8>, Vec<Placed>)> {
        let of_last = tables.iter().filter(|placed| self.is_last(placed));
        let mut borders: Vec<Vec<u8>> = of_last.map(|(_, _, table)| table.info.smallest.clone()).collect();
        borders.sort_unstable();
        // The first range begins at the start.
        borders = borders.split_off(borders.len().min(1));
        let (mut is_crossed, mut from) = (vec![false; borders.len()], 0);
        for (_, _, table) in &tables {
            from = place_near(&borders, from, |border| *border <= table.info.smallest);
            let behind = borders[from..].partition_point(|border| !table.info.ends_before(border));
            is_crossed[from..from + behind].fill(true);
        }
        let kept = borders.into_iter().zip(is_crossed).filter(|(_, is_crossed)| !is_crossed).map(|(border, _)| border);
        let mut ranges: Vec<(Vec<u8>, Vec<Placed>)> =
            std::iter::once(start).chain(kept).map(|start| (start, Vec::new())).collect();
        let mut at = 0;
        for placed in tables {
            at = place_near(&ranges, at, |(start, _)| *start <= placed.2.info.smallest);
            ranges[at.saturating_sub(1)].1.push(placed);
        }
        ranges
    }

    /// Adds a range.
    fn put(&mut self, start: Vec<u8>, range: Reach, tiny: TinyBytes) {
        self.account(&range, |sum, amount| *sum += amount);
        self.crowds.insert((range.upper.len(), start.clone()));
        self.seqno_max = range.tables().map(|table| table.seqno_max()).fold(self.seqno_max, Seqno::max);
        self.unmeasured.insert(start.clone());
        self.unseen.insert(start.clone());
        if !range.upper.is_empty() && range.unread_of().next().is_some() {
            self.unread.insert(start.clone());
        }
        let before = self.by_start.range::<Vec<u8>, _>(..&start).next_back().map(|(start, _)| start.clone());
        self.by_start.insert(start.clone(), range);
        before.iter().chain([&start]).for_each(|start| self.note_tiny(start, tiny));
    }

    /// Whether the range has tiny neighbours, or its last table of the last run is one with that of the next range.
    fn note_tiny(&mut self, start: &Vec<u8>, tiny: TinyBytes) {
        let mut from_here = self.by_start.range::<Vec<u8>, _>(start..).map(|(_, range)| range);
        let (range, next) = (from_here.next(), from_here.next());
        let pair = range.and_then(|range| range.last.last()).zip(next.and_then(|next| next.last.first()));
        let is_tiny = range.is_some_and(|range| tiny.are_in(range))
            || pair.is_some_and(|(one, other)| tiny.are(&[one.clone(), other.clone()]));
        if is_tiny {
            self.tiny.insert(start.clone());
        } else {
            self.tiny.remove(start);
        }
    }

    /// Takes a range out; its tables with their places.
    fn take(&mut self, start: &Vec<u8>) -> Vec<Placed> {
        let Some(range) = self.by_start.remove(start) else { return Vec::new() };
        self.account(&range, |sum, amount| *sum -= amount);
        self.forget_measure(start, &range);
        self.crowds.remove(&(range.upper.len(), start.clone()));
        self.unmeasured.remove(start);
        self.unread.remove(start);
        self.unseen.remove(start);
        self.tiny.remove(start);
        range.into_placed(self.last).collect()
    }

    fn account(&mut self, range: &Reach, mut add: impl FnMut(&mut u64, u64)) {
        let sums = &mut self.sums;
        add(&mut sums.bytes, range.bytes);
        range.tables().for_each(|table| add(&mut sums.tombstones, table.tombstone_count()));
        for table in &range.last {
            add(&mut sums.last_bytes, table.info.bytes);
            add(&mut sums.last_entries, table.info.entry_count);
            add(&mut sums.last_user_bytes, table.user_bytes().min(table.info.bytes));
        }
    }

    fn forget_measure(&mut self, start: &Vec<u8>, range: &Reach) {
        if !self.unmeasured.contains(start) {
            self.sums.live_bytes -= range.measure.live_bytes.round() as u64;
            self.sums.live_user_bytes -= range.measure.live_user_bytes.round() as u64;
            self.gains.remove(&(range.gain().to_bits(), start.clone()));
        }
    }

    /// Ranges whose measure another set of views changes are to be measured again.
    fn see_views(&mut self, views: &[Seqno]) {
        if self.views != views {
            // What may be dropped changed with them.
            self.unseen.extend(self.by_start.keys().cloned());
        }
        let relevant = |views: &[Seqno]| views[..views.partition_point(|view| *view < self.seqno_max)].to_vec();
        let (before, after) = (relevant(&self.views), relevant(views));
        if before != after {
            let changed =
                self.by_start.iter().filter(|(_, range)| range.views_inside(&before) != range.views_inside(&after));
            for start in changed.map(|(start, _)| start.clone()).collect::<Vec<_>>() {
                if let Some(range) = self.by_start.remove(&start) {
                    self.forget_measure(&start, &range);
                    self.by_start.insert(start.clone(), range);
                    self.unmeasured.insert(start);
                }
            }
        }
        self.views = views.to_vec();
    }

    /// Tables of one range whose ends should be read, so that it can be measured; none once all are.
    pub fn unread_of(&mut self) -> Vec<Arc<Table>> {
        while let Some(start) = self.unread.first().cloned() {
            let Some(range) = self.by_start.get(&start) else { break };
            let tables: Vec<Arc<Table>> = range.unread_of().cloned().collect();
            if !tables.is_empty() {
                return tables;
            }
            self.unread.remove(&start);
            if let Some(range) = self.by_start.remove(&start) {
                self.forget_measure(&start, &range);
                self.by_start.insert(start.clone(), range);
                self.unmeasured.insert(start);
            }
        }
        Vec::new()
    }

    /// Measures what is not measured yet (R3).
    fn measure(&mut self) {
        while let Some(start) = self.unmeasured.pop_first() {
            if let Some(range) = self.by_start.get_mut(&start) {
                range.measure(&self.views);
                self.sums.live_bytes += range.measure.live_bytes.round() as u64;
                self.sums.live_user_bytes += range.measure.live_user_bytes.round() as u64;
                if !range.upper.is_empty() {
                    self.gains.insert((range.gain().to_bits(), start));
                }
            }
        }
    }

    /// About what all merges would leave.
    pub fn live_bytes(&mut self) -> f64 {
        self.measure();
        self.sums.live_bytes as f64
    }

    /// The same, of keys and values alone.
    pub fn live_user_bytes(&mut self) -> f64 {
        self.measure();
        self.sums.live_user_bytes as f64
    }

    /// What all tables take, in bytes.
    pub fn bytes(&self) -> u64 {
        self.sums.bytes
    }

    /// Keys and values of the last run, less its share of what may be deleted: known without a measurement.
    pub fn user_bytes_of_last(&self) -> f64 {
        let Sums { tombstones, last_entries, last_user_bytes, .. } = self.sums;
        last_user_bytes as f64 * (1.0 - tombstones as f64 / last_entries.max(1) as f64)
    }

    pub fn has_tiny(&self) -> bool {
        !self.tiny.is_empty()
    }

    /// Garbage of the ranges in which merges are under way.
    pub fn busy_garbage(&mut self, now: &Now<'_>) -> f64 {
        self.measure();
        let others = now.others.into_iter().flatten();
        let starts: BTreeSet<&Vec<u8>> = others
            .filter_map(|(_, first)| {
                let at = (Bound::Unbounded, Bound::Included(&first[..]));
                self.by_start.range::<[u8], _>(at).next_back().map(|(start, _)| start)
            })
            .collect();
        let busy = starts.into_iter().filter_map(|start| self.by_start.get(start)).filter(|range| range.is_busy(now));
        busy.map(|range| range.measure.garbage_bytes).sum()
    }

    /// The range that no merge is in with the largest gain, of those that have runs above the last.
    pub fn best(&mut self, now: &Now<'_>) -> Option<&Reach> {
        self.measure();
        let by_gain = self.gains.iter().rev().filter_map(|(_, start)| self.by_start.get(start));
        by_gain.into_iter().find(|range| !range.is_busy(now))
    }

    /// Of the ranges without a running merge, the one with most runs.
    pub fn most_crowded(&self, now: &Now<'_>) -> Option<&Reach> {
        let by_runs = self.crowds.iter().rev().filter_map(|(_, start)| self.by_start.get(start));
        by_runs.into_iter().find(|range| !range.is_busy(now))
    }

    /// How many runs above the last the range with most of them has.
    pub fn runs_most(&self) -> usize {
        self.crowds.last().map_or(0, |(runs, _)| *runs)
    }

    /// All ranges, by key.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Reach> {
        self.by_start.values()
    }

    /// What `look` finds in ranges where scans may pay for a merge: those that changed, or all once a table had enough
    /// scans. They are looked at again as long as something is found.
    pub fn look_for_scans<T>(&mut self, look: impl FnOnce(&[&Reach]) -> Option<T>) -> Option<T> {
        let signals = self.runs.first().and_then(|(_, run)| run.tables.first()).map_or(0, |table| table.scan_signals());
        let is_all = signals != self.signals_seen;
        let unseen: Vec<&Reach> = if is_all {
            self.by_start.values().collect()
        } else {
            self.unseen.iter().filter_map(|start| self.by_start.get(start)).collect()
        };
        let found = look(&unseen);
        if found.is_none() {
            self.unseen.clear();
            self.signals_seen = signals;
        }
        found
    }
}

/// The partition point of what is partitioned: mostly at `near`, or one after it.
fn place_near<T>(items: &[T], near: usize, is_before: impl Fn(&T) -> bool) -> usize {
    let is_here = |at: usize| {
        at.checked_sub(1).and_then(|last| items.get(last)).is_none_or(&is_before)
            && items.get(at).is_none_or(|item| !is_before(item))
    };
    [near, near + 1]
        .into_iter()
        .find(|at| *at <= items.len() && is_here(*at))
        .unwrap_or_else(|| items.partition_point(is_before))
}

/// Calls `change` with each table that only one of the two lists has, and whether that is the new one. Both are sorted.
fn changes_of_run(before: &[Arc<Table>], after: &[Arc<Table>], mut change: impl FnMut(&Arc<Table>, bool)) {
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    loop {
        match (old.peek(), new.peek()) {
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => {
                old.next();
                new.next();
            }
            (Some(a), Some(b)) if a.info.smallest < b.info.smallest => {
                change(a, false);
                old.next();
            }
            (Some(a), Some(b)) if a.info.smallest > b.info.smallest => {
                change(b, true);
                new.next();
            }
            (Some(a), Some(b)) => {
                change(a, false);
                change(b, true);
                old.next();
                new.next();
            }
            (Some(a), None) => {
                change(a, false);
                old.next();
            }
            (None, Some(b)) => {
                change(b, true);
                new.next();
            }
            (None, None) => return,
        }
    }
}

#[cfg(test)]
mod tests;
