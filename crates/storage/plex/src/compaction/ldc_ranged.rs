//! The default policy: deduplication by key ranges.
//!
//! ```text
//!   level 0   run 9  |  . .  |  . .  |  . .  |      flushed runs, cut at the borders of the ranges,
//!             run 7  |  . .  |       |  . .  |      and merges of them
//!   level 1   last   | ..... | ..... | ..... |      one sorted run; each of its tables is one range
//! ```
//!
//! G1. When all tables together take more than `space_amp_target` times the live bytes, the range with most garbage per
//!     byte of its live data is merged into the last run. What a merge would drop is predicted from the sketches:
//!     entries of the range's tables, less the estimate of their union.
//! G2. When one range has more than `runs_max` runs, its newest become one: as many as cost fewest bytes per flush that
//!     then finds room ([`newest_to_merge`]) - or all of the range goes into the last run, if that is no larger than
//!     what is above it.
//! G3. A task takes whole tables and everything that overlaps them, so it is right whatever the borders were.
//! G4. The first flushed run is taken for the last one as it is, in as many tables as there are to be ranges. So even
//!     the first merges are done range by range.
//! G5. A merge into the last run keeps the borders between its tables, and may add some within a range. So tables that
//!     were flushed meanwhile still fit, and one range does not drag the next one along.
//! G6. Neighbouring runs above the last are merged in a range once the run probes that this would have saved its scans,
//!     counted since all of these runs exist, pay for the write ([`BYTES_PER_SCAN`]). So scans soon read few runs where
//!     there are many scans, and nothing is written elsewhere. A flush is cut at them only where both sides are long
//!     enough: see G8.
//! G7. Ranges have no key in common, so merges of different ones may run concurrently. What such a merge will drop
//!     counts as dropped: no further range is merged for it. Ranges are no larger than [`RANGE_BYTES_MAX`] up to some
//!     number of them; beyond, they grow with the data.
//! G8. No output table is shorter than half of what a range should have, however little the estimate says is live.
//!     Neighbours of the last run that together are shorter than the smallest range become one table. So a tree of tiny
//!     tables heals.
//! G9. While the database is idle, ranges with tombstones are merged into the last run, one by one. Versions that a
//!     read view pins count as live: no merge is made for what it could not drop.
//! G10. Ranges in which scans stepped over many deleted keys are merged into the last run, once these steps took about
//!     as long as the merge does.
//! G11. Tables that come after all of the last run become part of it at once, as they are, unless they have tombstones.
//!     So keys that are written in order soon have borders between them, at which flushes are cut: tombstones at the
//!     head of a queue do not become one table with the values at its tail, which would overlap all between.
//!
//! Space comes back range by range, so no merge needs room for old and new of more than one range, and the garbage of
//! all ranges together stays near the target instead of swinging between it and nothing. At a garbage allowance of g
//! times the live data a merge writes 1/g bytes per byte it drops; ranges being at all stages, the mean is about g/2.

use std::sync::Arc;

use super::ranges::{PartOfRun, Ranges, Reach, TINY_COUNT, TinyBytes, last_run};
use super::{Choose, FlushShape, Now, Task, hull};
use crate::sstable::{BYTES_PER_SCAN, Table};
use crate::version::{Run, Tree};

/// Ranges of a tree. Each flush writes one table per range, and each merge needs room for one range.
const RANGE_COUNT: u64 = 16;

/// Smallest range of a tree that is no smaller than a memtable, in bytes: in a smaller table, filter and sketch would
/// weigh too much.
const RANGE_BYTES_MIN: u64 = 128 << 10;

/// A tree is not merged for its space below this, in bytes: filters and sketches would be most of it.
const SPACE_BYTES_MIN: u64 = 2 << 10;

/// Largest range of a tree that has no more than [`LdcRanged::range_count_max`] of them, in bytes: bounds the time and
/// the room of one merge.
const RANGE_BYTES_MAX: u64 = 256 << 20;

/// Most ranges of a tree: beyond, ranges grow with the data, for each flush writes a table per range.
const RANGE_COUNT_MAX: u64 = 256;

/// A flush should have about this for each range, in bytes: smaller tables are mostly filter, index and sketch.
const FLUSH_BYTES_PER_RANGE: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct LdcRanged {
    pub space_amp_target: f64,
    pub runs_max: usize,
    pub memtable_bytes: u64,
}

/// How many of the newest runs become one, where more than `runs_max` of these lengths lie over each other, newest
/// first (G2).
///
/// Where m flushes find room, they become one run in their turn, then the next m - 1, and so on: about m(m+1)/2 are
/// written once more each before any older run is. The number of runs merged at a time follows this, and the result is
/// then left alone: for K = `runs_max`, a range fills with runs of K + 1, K, K - 1, ... flushes until all of them
/// become one, over which there is room for one run less. This is the binomial scheme of Mathieu, Staelin, Young and
/// Yousefi (*Bigtable Merge Compaction*, arXiv 1407.3008), which takes about C(K + d, d) flushes for d writes of each;
/// beyond d = 3 it is only near. The fewest bytes per *run* saved would be the wrong measure: a full range would merge
/// its shortest two or three runs each time, for room for one or two flushes.
fn newest_to_merge(bytes: &[u64], runs_max: usize) -> usize {
    // Two at least, and what is above `runs_max`; one flush more finds room for each further run.
    let least = (bytes.len() + 1).saturating_sub(runs_max).max(2);
    let cost = |count: usize| {
        let room = (runs_max + count - bytes.len()) as f64;
        bytes[..count].iter().sum::<u64>() as f64 / (room * (room + 1.0) / 2.0)
    };
    (least..=bytes.len()).min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(bytes.len())
}

/// The longest stretch of at least two runs for which scans pay (G6).
fn scanned_stretch(upper: &[PartOfRun]) -> Option<&[PartOfRun]> {
    let mut longest = 0..1;
    for from in 0..upper.len() {
        let (mut bytes, mut scans) = (0, u64::MAX);
        for (to, part) in upper.iter().enumerate().skip(from) {
            bytes += part.bytes();
            scans = part.tables.iter().map(|table| table.scans()).min().unwrap_or(0).min(scans);
            let runs_saved = (to - from) as u64;
            if to - from >= longest.len() && scans.saturating_mul(runs_saved * BYTES_PER_SCAN) >= bytes {
                longest = from..to + 1;
            }
        }
    }
    if longest.len() > 1 { upper.get(longest) } else { None }
}

/// The first keys of tables of the last run between which borders stay: neighbours that together have no more than
/// `join_bytes` become one range.
fn borders(tables: &[Arc<Table>], join_bytes: u64) -> Vec<Vec<u8>> {
    let (mut borders, mut bytes) = (Vec::new(), 0);
    for table in tables {
        if bytes > 0 && bytes + table.info.bytes > join_bytes {
            borders.push(table.info.smallest.clone());
            bytes = 0;
        }
        bytes += table.info.bytes;
    }
    borders
}

impl LdcRanged {
    /// A range of live data that is no larger than a memtable.
    fn range_bytes_min(&self) -> u64 {
        (self.memtable_bytes / RANGE_COUNT).max(self.memtable_bytes.min(RANGE_BYTES_MIN))
    }

    /// Bytes of a tree below which G1 does not ask for a merge.
    fn space_bytes_min(&self) -> f64 {
        (4 * self.memtable_bytes).min(SPACE_BYTES_MIN) as f64
    }

    /// Ranges beyond which they grow with the data.
    fn range_count_max(&self) -> u64 {
        (self.memtable_bytes / FLUSH_BYTES_PER_RANGE).clamp(RANGE_COUNT, RANGE_COUNT_MAX)
    }

    /// What a range should have, in bytes.
    fn range_bytes(&self, live_bytes: f64) -> u64 {
        let most = RANGE_BYTES_MAX.max(live_bytes as u64 / self.range_count_max());
        (live_bytes as u64 / RANGE_COUNT).clamp(self.range_bytes_min(), most.max(self.range_bytes_min()))
    }

    /// Neighbours of the last run that together have no more become one range, where ranges should have `range_bytes`:
    /// the smallest range, or where ranges have grown beyond their largest size, a quarter.
    fn join_bytes(&self, range_bytes: u64) -> u64 {
        if range_bytes > RANGE_BYTES_MAX { self.range_bytes_min().max(range_bytes / 4) } else { self.range_bytes_min() }
    }

    /// G4. The oldest flushed run moves down; `None` without one.
    fn make_last(tree: &Tree) -> Option<Task> {
        let mut task = Task::new("first run", 1, None);
        task.add_run(0, tree.level(0).last()?);
        Some(task)
    }

    /// All of the range becomes part of the last run.
    fn merge_into_last(&self, tree: &Tree, last: u64, range: &Reach, live_bytes: f64, reason: &'static str) -> Task {
        let last_level = tree.levels.len() - 1;
        let mut task = Task::new(reason, last_level, Some(last));
        for part in &range.upper {
            part.tables.iter().for_each(|table| task.add(part.level, part.run, table));
        }
        range.last.iter().for_each(|table| task.add(last_level, last, table));
        // G5. The borders stay; a range that has grown is split into parts of equal length.
        let range_bytes = self.range_bytes(live_bytes);
        task.cuts = borders(&range.last, self.join_bytes(range_bytes));
        let parts = (range.live_bytes() / range_bytes as f64).round().max(1.0);
        // By half a part more than an equal share: the last part is then about half of one, and no rest is left over.
        let part_bytes = match range.last.len() {
            0 | 1 => (range.live_bytes() / (parts - 0.5)) as u64,
            _ => 2 * range_bytes,
        };
        // G8. An estimate may be wrong, and a table per key must not come of it.
        task.table_bytes = Some(part_bytes.max(range_bytes / 2) + 1);
        task
    }

    /// G11, of the last range.
    fn extend_last(&self, tree: &Tree, last: &Run, range: &Reach, now: &Now<'_>) -> Option<Task> {
        let (oldest, end) = (range.upper.last()?, range.last.last()?);
        let may_move = |table: &&Arc<Table>| {
            let is_long = table.info.bytes >= self.range_bytes_min();
            is_long && table.tombstone_count() == 0 && end.info.ends_before(&table.info.smallest) && !now.is_busy(table)
        };
        let mut task = Task::new("in order", tree.levels.len() - 1, Some(last.id));
        oldest.tables.iter().filter(may_move).for_each(|table| task.add(oldest.level, oldest.run, table));
        Some(task).filter(|task| !task.inputs.is_empty())
    }

    /// Tiny neighbours become one table (G8): in the last run with all that overlaps them, in another run within one
    /// range.
    fn join_tiny(&self, tree: &Tree, last: &Run, live_bytes: f64, now: &Now<'_>) -> Option<Task> {
        let range_bytes = self.range_bytes(live_bytes);
        let is_free = |task: &Task| !task.inputs.iter().any(|(_, _, table)| now.is_busy(table));
        let of_last = self.tiny(last, 2, range_bytes, |_, _| true).find_map(|stretch| {
            let range = Reach::around(tree, hull(stretch)?, now);
            let mut task = self.merge_into_last(tree, last.id, &range, live_bytes, "tiny tables");
            task.cuts = borders(&range.last, range_bytes);
            (task.table_bytes, task.joins) = (Some(2 * range_bytes), true);
            Some(task).filter(is_free)
        });
        let range_of = |table: &Table| last.tables.partition_point(|other| other.info.smallest <= table.info.smallest);
        let are_near = |a: &Table, b: &Table| range_of(a) == range_of(b);
        of_last.or_else(|| {
            tree.runs().filter(|(_, run)| run.id != last.id).find_map(|(level, run)| {
                let mut task = Task::new("tiny tables", level, Some(run.id));
                let stretch = self.tiny(run, TINY_COUNT, range_bytes, are_near).next()?;
                stretch.iter().for_each(|table| task.add(level, run.id, table));
                (task.table_bytes, task.joins) = (Some(2 * range_bytes), true);
                Some(task).filter(is_free)
            })
        })
    }

    /// Stretches of a run's tables that begin with `count` tiny ones and have no more than `bytes_max`.
    fn tiny<'a>(
        &self,
        run: &'a Run,
        count: usize,
        bytes_max: u64,
        are_near: impl Fn(&Table, &Table) -> bool,
    ) -> impl Iterator<Item = &'a [Arc<Table>]> {
        let tiny_bytes = self.range_bytes_min();
        run.tables.windows(count).enumerate().filter_map(move |(at, tiny)| {
            let mut bytes: u64 = tiny.iter().map(|table| table.info.bytes).sum();
            if bytes > tiny_bytes || !are_near(&tiny[0], &tiny[count - 1]) {
                return None;
            }
            let further = run.tables[at + count..].iter().take_while(|table| {
                bytes += table.info.bytes;
                bytes <= bytes_max && are_near(&tiny[0], table)
            });
            Some(&run.tables[at..at + count + further.count()])
        })
    }

    /// Makes room for flushes in a range that has more than `runs_max` runs (G2).
    fn merge_newest(&self, range: &Reach) -> Task {
        let bytes: Vec<u64> = range.upper.iter().map(PartOfRun::bytes).collect();
        Self::merge_stretch(&range.upper[..newest_to_merge(&bytes, self.runs_max)], "runs")
    }

    /// The longest stretch of at least two runs above the last that is worth it for scans (G6).
    fn merge_scanned(ranges: &[&Reach]) -> Option<Task> {
        let longest =
            ranges.iter().filter_map(|range| scanned_stretch(&range.upper)).max_by_key(|parts| parts.len())?;
        Some(Self::merge_stretch(longest, "scans"))
    }

    /// Makes one run of these, which follow each other in one range.
    fn merge_stretch(parts: &[PartOfRun], reason: &'static str) -> Task {
        let oldest = &parts[parts.len() - 1];
        let mut task = Task::new(reason, oldest.level, Some(oldest.run));
        for part in parts {
            part.tables.iter().for_each(|table| task.add(part.level, part.run, table));
        }
        task
    }
}

impl Choose for LdcRanged {
    fn pick(&self, tree: &Tree, now: &Now<'_>) -> Option<Task> {
        let Some(last) = last_run(tree) else {
            return Self::make_last(tree).filter(|_| !now.is_tree_busy(tree));
        };
        self.with_ranges(tree, now, |ranges| self.pick_of(ranges, tree, last, now))
    }

    /// G9.
    fn reclaim(&self, tree: &Tree, now: &Now<'_>) -> Option<Task> {
        let last = last_run(tree)?;
        self.with_ranges(tree, now, |ranges| {
            let live_bytes = ranges.live_bytes();
            let may_drop = |range: &&Reach| range.tables().any(|table| now.has_droppable(table)) && !range.is_busy(now);
            let range = ranges.all().filter(may_drop).max_by(|a, b| a.gain().total_cmp(&b.gain()))?;
            Some(self.merge_into_last(tree, last.id, range, live_bytes, "deleted"))
        })
    }

    fn unread_of(&self, tree: &Tree, now: &Now<'_>) -> Vec<Arc<Table>> {
        self.with_ranges(tree, now, Ranges::unread_of)
    }

    fn flush_shape(&self, tree: &Tree) -> FlushShape {
        // The oldest run is the last one or is about to be it (G4).
        let tables = tree.runs().last().map_or(&[][..], |(_, run)| &run.tables);
        let bytes: u64 = tables.iter().map(|table| table.info.bytes).sum();
        let cuts = borders(tables, self.join_bytes(self.range_bytes(bytes as f64)));
        let is_first = tree.levels.is_empty();
        FlushShape { cuts, table_bytes: is_first.then(|| self.range_bytes_min()) }
    }

    fn lag(&self, tree: &Tree, now: &Now<'_>) -> f64 {
        self.with_ranges(tree, now, |ranges| {
            // Until there is a last run, the next step costs nothing.
            let Some(last) = last_run(tree) else { return 0.0 };
            let (slow, stop) = (self.runs_max + self.runs_max / 2 + 4, 2 * self.runs_max + 8);
            let of_runs = super::lag_between(ranges.runs_most() as f64 + 1.0, slow as f64, stop as f64);
            let lag = of_runs.max(self.lag_of_space(ranges));
            // No writer may wait for a merge that will not be made.
            if lag > 0.0 && self.pick_of(ranges, tree, last, now).is_none() { 0.0 } else { lag }
        })
    }
}

impl LdcRanged {
    /// Calls `work` with the ranges of this tree.
    fn with_ranges<T>(&self, tree: &Tree, now: &Now<'_>, work: impl FnOnce(&mut Ranges) -> T) -> T {
        tree.memo().with(|ranges: &mut Ranges| {
            ranges.follow(tree, now.views, TinyBytes(self.range_bytes_min()));
            work(ranges)
        })
    }

    fn pick_of(&self, ranges: &mut Ranges, tree: &Tree, last: &Run, now: &Now<'_>) -> Option<Task> {
        let (live_bytes, live_user_bytes) = (ranges.live_bytes(), ranges.live_user_bytes());
        if ranges.has_tiny()
            && let Some(task) = self.join_tiny(tree, last, live_bytes, now)
        {
            return Some(task);
        }
        if let Some(task) = ranges.all().next_back().and_then(|range| self.extend_last(tree, last, range, now)) {
            return Some(task);
        }
        // G1. Below a few memtables, or of a tree that has little of each, below some blocks, space is not worth a
        //     merge.
        let mut takes = ranges.bytes() as f64;
        // G7.
        if now.others.is_some_and(|others| !others.is_empty()) {
            takes -= ranges.busy_garbage(now);
        }
        if takes > self.space_amp_target * live_user_bytes && takes > self.space_bytes_min() {
            // Under half of the allowance, the excess is no garbage that a merge could drop.
            if let Some(range) = ranges.best(now).filter(|range| range.gain() > (self.space_amp_target - 1.0) / 2.0) {
                return Some(self.merge_into_last(tree, last.id, range, live_bytes, "garbage"));
            }
        }
        // G2.
        let crowded = ranges.most_crowded(now)?;
        if crowded.upper.len() <= self.runs_max {
            return ranges.look_for_scans(|ranges| {
                let free: Vec<&Reach> = ranges.iter().copied().filter(|range| !range.is_busy(now)).collect();
                let met = free.iter().find(|range| range.pays_for_deleted(now));
                let merge_met = |range| self.merge_into_last(tree, last.id, range, live_bytes, "deleted keys in scans");
                met.map(|range| merge_met(range)).or_else(|| Self::merge_scanned(&free))
            });
        }
        let last_bytes: u64 = crowded.last.iter().map(|table| table.info.bytes).sum();
        if last_bytes <= crowded.upper_bytes() {
            return Some(self.merge_into_last(tree, last.id, crowded, live_bytes, "runs into last"));
        }
        Some(self.merge_newest(crowded))
    }

    /// A twentieth more than the target, and what is on its way, before writers wait for space to come back. On its way
    /// are two memtables, but of a tree that is smaller, no more than two of what is alive, and one memtable at least.
    fn lag_of_space(&self, ranges: &mut Ranges) -> f64 {
        let (memtable_bytes, bytes) = (self.memtable_bytes as f64, ranges.bytes() as f64);
        let lag_at = |live: f64| {
            let (target, on_its_way) = (self.space_amp_target * live, live.clamp(memtable_bytes / 2.0, memtable_bytes));
            super::lag_between(bytes, 1.02 * target + on_its_way, 1.05 * target + 2.0 * on_its_way)
        };
        // Mostly the last run alone shows that there is no lag, without counting distinct keys.
        let of_last = lag_at(ranges.user_bytes_of_last());
        if of_last == 0.0 { of_last } else { lag_at(ranges.live_user_bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes of flushes of length 1 to one range, without the flushes themselves, and the most runs that stayed.
    fn written(flushes: u64, runs_max: usize) -> (u64, usize) {
        let (mut runs, mut written, mut most) = (Vec::new(), 0, 0);
        for _ in 0..flushes {
            runs.insert(0, 1);
            if runs.len() > runs_max {
                let merged = runs.drain(..newest_to_merge(&runs, runs_max)).sum();
                runs.insert(0, merged);
                written += merged;
            }
            most = most.max(runs.len());
        }
        (written, most)
    }

    /// G2: C(K + d, d) flushes are written at most d times more each, as far as anybody will go.
    #[test]
    fn merges_above_the_last_run_are_few() {
        for runs_max in [2u64, 5, 20] {
            let mut flushes = 1;
            for times in 1..=3 {
                flushes = flushes * (runs_max + times) / times;
                let (written, most) = written(flushes, runs_max as usize);
                assert!(written <= times * flushes, "{runs_max} runs, {flushes} flushes: {written}");
                assert!(most <= runs_max as usize);
            }
        }
    }

    /// After an interval without a merge, one merge is enough for the bound to hold.
    #[test]
    fn a_merge_leaves_no_more_runs_than_may_be() {
        for count in 3..50 {
            for runs_max in 2..count {
                let merged = newest_to_merge(&vec![1; count], runs_max);
                assert!((2..=count).contains(&merged) && count - merged < runs_max, "{count} {runs_max}: {merged}");
            }
        }
    }
}
