//! What a merge of some tables would keep, estimated from what tables keep in memory.
//!
//! ```text
//!   run 9   | a b   |     newest first: a run keeps its entries whose keys no newer run has
//!   run 7   |   b c |     here 2 of run 9, 1 of run 7 (c), 1 of run 3 (d)
//!   run 3   | a  cd |
//! ```
//!
//! E1. A version counts in the run that has its newest version, with the mean length of that run's entries. So versions
//!     of the same key are never subtracted twice.
//! E2. A tombstone that is the newest version of its key is garbage. A tombstone that a newer run hides is counted
//!     once, as hidden.
//! E3. A newer deleted range hides its share of a table: all of it, or as much as the first bytes of the keys say.
//! E4. Where entries differ in length, a table has a sample of its keys (`sstable::sample`). What newer runs have of
//!     the sample, by their filters, is what they hide of the table.
//! E5. A read view pins what it sees: what is newer than the view hides nothing of what is older. Older versions that a
//!     table has of its own keys count as pinned while a view lies between its sequence numbers.

use std::sync::Arc;

use crate::key::Seqno;
use crate::range_tombstone::RangeTombstone;
use crate::sketch::Sketch;
use crate::sstable::{Probe, Table};

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    /// Bytes that a merge keeps, with all that a table needs for them.
    pub live_bytes: f64,
    /// Lengths of keys and values that a merge keeps, or what they take where they are compressed.
    pub live_user_bytes: f64,
}

/// Estimates the merge of these runs, newest first, each with its tables.
/// `views` are the sequence numbers of the read views, ascending.
pub(super) fn estimate<'a, 'b: 'a>(runs: impl IntoIterator<Item = &'a [&'b Arc<Table>]>, views: &[Seqno]) -> Estimate {
    let (mut newer, mut known) = (Sketch::default(), 0.0);
    let mut deleted: Vec<RangeTombstone> = Vec::new();
    let mut estimate = Estimate::default();
    let mut above: Vec<&Arc<Table>> = Vec::new();
    let mut stripe = None;
    for tables in runs {
        let seqno_max = tables.iter().map(|table| table.seqno_max()).max().unwrap_or(0);
        let next = Some(views.partition_point(|view| *view < seqno_max));
        if next != stripe {
            (stripe, known) = (next, 0.0);
            (newer, deleted, above) = (Sketch::default(), Vec::new(), Vec::new());
        }
        let run = Totals::of(tables, &deleted, &above, views);
        tables.iter().for_each(|table| newer.union(table.sketch()));
        let distinct = newer.estimate();
        // Not clamped: errors of one run make up for those of the next.
        let fresh = (distinct - known + run.pinned) / run.entries.max(1.0);
        known = distinct;
        estimate.live_bytes += fresh * run.put_bytes + run.sampled_bytes;
        estimate.live_user_bytes += fresh * run.put_user_bytes + run.sampled_user_bytes;
        above.extend(tables.iter().copied());
        deleted.extend(tables.iter().flat_map(|table| table.ranges()).cloned());
    }
    let Estimate { live_bytes, live_user_bytes } = estimate;
    Estimate { live_bytes: live_bytes.max(0.0), live_user_bytes: live_user_bytes.max(0.0) }
}

/// The same without their sketches: no newer run hides anything.
pub(super) fn estimate_unread<'a>(tables: impl Iterator<Item = &'a Arc<Table>>) -> Estimate {
    tables.fold(Estimate::default(), |sum, table| {
        let puts = share_of_puts(table);
        Estimate {
            live_bytes: sum.live_bytes + puts * table.info.bytes as f64,
            live_user_bytes: sum.live_user_bytes + puts * table.user_bytes().min(table.info.bytes) as f64,
        }
    })
}

/// Sums over one run's tables.
#[derive(Default)]
struct Totals {
    entries: f64,
    /// Older versions that views pin.
    pinned: f64,
    /// Bytes of tables without tombstones and without what newer deleted ranges hide.
    put_bytes: f64,
    put_user_bytes: f64,
    /// What of the tables with a sample is alive. They are not in the bytes above.
    sampled_bytes: f64,
    sampled_user_bytes: f64,
}

impl Totals {
    fn of(tables: &[&Arc<Table>], deleted: &[RangeTombstone], above: &[&Arc<Table>], views: &[Seqno]) -> Self {
        let mut totals = Self::default();
        for table in tables {
            let (bytes, entries) = (table.info.bytes as f64, table.info.entry_count as f64);
            totals.entries += entries;
            let pinned = pinned_versions(table, views);
            totals.pinned += pinned;
            let puts = share_of_puts(table) * (1.0 - covered(table, deleted));
            let user_bytes = table.user_bytes().min(table.info.bytes) as f64;
            match share_of_sample(table, above) {
                Some(alive) => {
                    let alive = alive + (1.0 - alive) * pinned / entries.max(1.0);
                    totals.sampled_bytes += bytes * puts * alive;
                    totals.sampled_user_bytes += user_bytes * puts * alive;
                }
                None => {
                    totals.put_bytes += bytes * puts;
                    totals.put_user_bytes += user_bytes * puts;
                }
            }
        }
        totals
    }
}

/// How many of a table's entries are older versions of its own keys that a view pins (E5).
fn pinned_versions(table: &Table, views: &[Seqno]) -> f64 {
    let is_pinned = views.iter().any(|view| (table.seqno_min()..table.seqno_max()).contains(view));
    if is_pinned { (table.info.entry_count as f64 - table.sketch().estimate()).max(0.0) } else { 0.0 }
}

/// The share of a table's bytes that newer tables do not hide, by its sample (E4); `None` without a sample, or where a
/// newer table's keys are not known.
fn share_of_sample(table: &Table, above: &[&Arc<Table>]) -> Option<f64> {
    let newer: Vec<_> = above.iter().filter(|newer| newer.info.overlaps(&table.info)).collect();
    let is_known = !table.sample().is_empty() && newer.iter().all(|newer| newer.knows_keys());
    is_known.then(|| {
        table.sample().share(|hash| {
            let probe = Probe::new(hash);
            !newer.iter().any(|newer| newer.filter().may_contain(&probe))
        })
    })
}

/// The share of a table's bytes that its values and their keys take. A tombstone takes its key, here the mean of the
/// smallest and the largest, and some bytes of its head.
fn share_of_puts(table: &Table) -> f64 {
    const HEAD_BYTES: f64 = 12.0;
    let deletes = table.tombstone_count().saturating_sub(table.ranges().len() as u64) as f64;
    let (bytes, entries) = (table.info.bytes.max(1) as f64, table.info.entry_count.max(1) as f64);
    if deletes >= entries {
        return 0.0;
    }
    let key_bytes = (table.info.smallest.len() + table.info.largest.len()) as f64 / 2.0;
    1.0 - (deletes * (key_bytes + HEAD_BYTES)).min(bytes * deletes / entries) / bytes
}

/// The share of a table that the ranges cover.
fn covered(table: &Table, ranges: &[RangeTombstone]) -> f64 {
    let info = &table.info;
    let over = ranges.iter().filter_map(|range| {
        let start = range.start.as_slice().max(&info.smallest);
        let end = range.end.as_slice();
        (start < end && !info.ends_before(start)).then_some((start, end))
    });
    let mut over: Vec<(&[u8], &[u8])> = over.collect();
    if over.is_empty() {
        return 0.0;
    }
    over.sort_unstable();
    let place = Places::between(&info.smallest, &info.largest);
    let (mut share, mut reached, mut has_gap) = (0.0, info.smallest.as_slice(), false);
    for (start, end) in over {
        has_gap |= start > reached;
        let start = start.max(reached);
        if end > start {
            share += place.of(end) - place.of(start);
            reached = end;
        }
    }
    if !has_gap && info.ends_before(reached) { 1.0 } else { share.clamp(0.0, 1.0) }
}

/// Where keys lie between two others, from 0 to 1, as if they were spread evenly.
struct Places {
    shared: usize,
    from: f64,
    width: f64,
}

impl Places {
    fn between(smallest: &[u8], largest: &[u8]) -> Self {
        let shared = smallest.iter().zip(largest).take_while(|(a, b)| a == b).count();
        let from = Self::number(smallest, shared);
        Self { shared, from, width: (Self::number(largest, shared) - from).max(1.0) }
    }

    /// The eight bytes after the common prefix of the two keys.
    fn number(key: &[u8], shared: usize) -> f64 {
        let mut bytes = [0; 8];
        let rest = key.get(shared..).unwrap_or_default();
        let len = rest.len().min(8);
        bytes[..len].copy_from_slice(&rest[..len]);
        u64::from_be_bytes(bytes) as f64
    }

    /// The key must not lie before the smallest.
    fn of(&self, key: &[u8]) -> f64 {
        let shared = self.shared.min(key.len());
        ((Self::number(key, shared) - self.from) / self.width).clamp(0.0, 1.0)
    }
}
