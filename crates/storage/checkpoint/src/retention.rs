//! Retention: which checkpoints are kept, and how much of the log with them.
//!
//! ```text
//! set 3 ---log--- set 7 ---log--- set 8 ---log--- now
//! ^ every moment from here on can be restored: from the nearest set before it, and the log after that set
//! ```
//!
//! R1. The newest set stays, always: a start needs it.
//! R2. A set between two others is a shortcut: the log covers the same moments, but a restore without it reads more of
//!     the log. So shortcuts are removed before the oldest set, where the history begins.
//! R3. A *pinned* set is the newest one before a flush (FLUSHALL, FLUSHDB). It is kept for [`PIN_MS`], whatever count
//!     and age say. Only the limit of space removes it, after everything else.
//! R4. When the server shuts down, the space limit removes only shortcuts. The next start removes the rest, so a
//!     restore after the stop can still reach everything from before it.

use crate::{Manifest, SetId, SetInfo};
use base::{Lsn, UnixMs};

/// How long a set before a flush is pinned: a day.
pub const PIN_MS: i64 = 86_400_000;

/// The most sets per age limit, without the newest: one an hour for a day.
const SETS_PER_AGE: u64 = 24;

/// [`Space::Automatic`] allows this many times the largest set, and at least [`AUTOMATIC_BYTES_MIN`].
///
/// A server writes a new set (1) while it keeps the newest (1) and the log after it (up to 1). The rest is history.
pub const AUTOMATIC_SETS: u64 = 6;

/// See [`AUTOMATIC_SETS`].
pub const AUTOMATIC_BYTES_MIN: u64 = 1 << 30;

/// A shortcut is removed for space only if it has at least one part in this many of the excess bytes.
const WORTH: u64 = 8;

/// The most that all sets and the log together may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// No limit.
    Unlimited,
    /// This many bytes.
    Bytes(u64),
    /// [`AUTOMATIC_SETS`] times the largest set and at least [`AUTOMATIC_BYTES_MIN`], but at most half of the disk
    /// space available to it.
    Automatic,
}

impl Space {
    /// `disk_bytes` are the bytes in use or free.
    fn bytes(self, sets: &[SetInfo], disk_bytes: u64) -> u64 {
        match self {
            Self::Unlimited => u64::MAX,
            Self::Bytes(bytes) => bytes,
            Self::Automatic => {
                let largest = sets.iter().map(SetInfo::bytes).max().unwrap_or(0);
                largest.saturating_mul(AUTOMATIC_SETS).max(AUTOMATIC_BYTES_MIN).min(disk_bytes / 2)
            }
        }
    }
}

/// What is kept with the newest checkpoint. An older checkpoint, and the log after it, lets a restore go back in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Keep at least this many sets, the newest included; 0 counts as 1.
    pub sets: usize,
    /// Keep what a restore to any moment of the last milliseconds needs.
    pub age_ms: Option<u64>,
    /// Remove history, whatever count and age say, until sets and log fit.
    pub space: Space,
}

impl Default for Retention {
    fn default() -> Self {
        Self { sets: 2, age_ms: None, space: Space::Unlimited }
    }
}

/// The state in which [`Retention::obsolete`] decides.
#[derive(Clone, Copy)]
pub struct Moment<'m> {
    /// The server's time.
    pub now: UnixMs,
    /// Bytes of the files that hold the log from a position on.
    pub log_bytes: &'m dyn Fn(Lsn) -> u64,
    /// Bytes free on the disk; `u64::MAX` if unknown.
    pub free_bytes: u64,
    /// Bytes that will be written before the next decision.
    pub reserve_bytes: u64,
    /// Sets followed by a flush; see R3. Expired pins have no effect.
    pub pins: &'m [Pin],
    /// The server is shutting down; see R4.
    pub is_end: bool,
}

/// The newest set before a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The set.
    pub set: SetId,
    /// A time after the flush.
    pub at_ms: UnixMs,
}

impl Retention {
    /// The sets of a manifest to remove, oldest first.
    pub fn obsolete(&self, manifest: &Manifest, moment: &Moment<'_>) -> Vec<SetId> {
        let mut plan = Plan { manifest, moment, left: manifest.sets.iter().collect() };
        let disk_bytes = plan.taken().saturating_add(moment.free_bytes);
        plan.drop_old(self);
        plan.thin(self);
        plan.fit(self, self.space.bytes(&manifest.sets, disk_bytes));
        let is_left = |set: &SetId| plan.left.iter().any(|left| left.set == *set);
        manifest.sets.iter().map(|set| set.set).filter(|set| !is_left(set)).collect()
    }
}

/// A decision in the making.
struct Plan<'p> {
    manifest: &'p Manifest,
    moment: &'p Moment<'p>,
    /// Oldest first.
    left: Vec<&'p SetInfo>,
}

impl Plan<'_> {
    /// Removes from the front the sets that neither count nor age nor a pin protects.
    fn drop_old(&mut self, retention: &Retention) {
        let by_count = self.left.len().saturating_sub(retention.sets.max(1));
        let by_age = retention.age_ms.map_or(usize::MAX, |age| {
            // The newest set that is old enough connects, by the log after it, to every moment since.
            let reach = self.moment.now.saturating_sub_unsigned(age);
            self.left.iter().rposition(|set| set.created_ms <= reach).unwrap_or(0)
        });
        let by_pin = (0..self.left.len()).find(|&index| self.is_pinned(index)).unwrap_or(usize::MAX);
        self.left.drain(..by_count.min(by_age).min(by_pin));
    }

    /// Removes shortcuts that are closer together than the age limit requires.
    fn thin(&mut self, retention: &Retention) {
        let Some(spacing) = retention.age_ms.map(|age| age / SETS_PER_AGE) else { return };
        let mut index = 1;
        while index + retention.sets.max(1) < self.left.len() {
            if self.is_shortcut(index) && !self.is_pinned(index) && self.gap(index) <= spacing {
                self.left.remove(index);
            } else {
                index += 1;
            }
        }
    }

    /// Removes sets until everything fits.
    fn fit(&mut self, retention: &Retention, limit: u64) {
        loop {
            let excess = self.taken().saturating_add(self.moment.reserve_bytes).saturating_sub(limit);
            if excess == 0 || self.left.len() < 2 {
                return;
            }
            // The history that would be lost instead; all of it matters if it begins with a flush to undo.
            let keeps_front = self.moment.is_end || self.is_pinned(0);
            let span = self.moment.now.abs_diff(self.left.first().map_or(0, |set| set.created_ms));
            let is_worth =
                |&index: &usize| keeps_front || (self.bytes(index) >= excess / WORTH && self.gap(index) <= span / 2);
            let newest = self.left.len() - 1;
            let older = newest.saturating_sub(retention.sets.max(1) - 1);
            // Sets protected by the count go last; they may be needed if the newest is damaged.
            let best = |end: usize| {
                let shortcuts = (1..end).filter(|&index| self.is_shortcut(index) && !self.is_pinned(index));
                shortcuts.filter(is_worth).min_by_key(|&index| self.gap(index))
            };
            let shortcut = best(older).or_else(|| best(newest).filter(|_| keeps_front && !self.moment.is_end));
            match shortcut {
                Some(index) => drop(self.left.remove(index)),
                None if self.moment.is_end => return,
                None => drop(self.left.remove(0)),
            }
        }
    }

    /// Whether the history loses no moment without the set (R2): the log covers it, or it represents only one moment.
    fn is_shortcut(&self, index: usize) -> bool {
        let (Some(before), Some(set)) = (index.checked_sub(1).and_then(|i| self.left.get(i)), self.left.get(index))
        else {
            return false;
        };
        set.log_from.is_none() || self.manifest.leads(before, set)
    }

    fn is_pinned(&self, index: usize) -> bool {
        let Some(set) = self.left.get(index) else { return false };
        let is_recent = |at: UnixMs| self.moment.now.saturating_sub(at) < PIN_MS;
        let is_noted = self.moment.pins.iter().any(|pin| pin.set == set.set && is_recent(pin.at_ms));
        // Flushes before the last start are not recorded: a set with less than half of the keys follows one.
        let is_seen = self
            .left
            .get(index + 1)
            .is_some_and(|next| next.entries().saturating_mul(2) < set.entries() && is_recent(next.created_ms));
        is_noted || is_seen
    }

    /// Milliseconds between the sets before and after it.
    fn gap(&self, index: usize) -> u64 {
        let at = |index: usize| self.left.get(index).map_or(self.moment.now, |set| set.created_ms);
        at(index + 1).abs_diff(at(index.saturating_sub(1)))
    }

    fn bytes(&self, index: usize) -> u64 {
        self.left.get(index).map_or(0, |set| set.bytes())
    }

    /// Bytes of the remaining sets, and of the log that they need.
    fn taken(&self) -> u64 {
        let log = self.left.iter().filter_map(|set| set.log_from).min().map_or(0, self.moment.log_bytes);
        self.left.iter().map(|set| set.bytes()).fold(log, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileInfo, LogState};
    use base::HistoryId;

    const HISTORY: HistoryId = HistoryId([0; 20]);

    /// Sets of 100 bytes and one key, 1,000 ms apart; the log grows by 10 bytes between them.
    fn manifest(count: u32) -> Manifest {
        let one = |n: u32| SetInfo {
            set: SetId(n),
            cut: Lsn(u64::from(n) * 10),
            history: HISTORY,
            created_ms: i64::from(n) * 1000,
            log_from: Some(Lsn(u64::from(n) * 10)),
            files: vec![FileInfo { bytes: 100, entries: 1, crc: 0 }],
            rows: None,
        };
        let mut manifest = Manifest::new(HISTORY, LogState { on: true, since: Lsn(0), since_ms: 0 });
        manifest.sets = (1..=count).map(one).collect();
        manifest
    }

    /// The log ends at 100.
    fn log(from: Lsn) -> u64 {
        100 - from.0
    }

    fn at(now: UnixMs) -> Moment<'static> {
        Moment { now, log_bytes: &log, free_bytes: u64::MAX, reserve_bytes: 0, pins: &[], is_end: false }
    }

    fn dropped(retention: Retention, manifest: &Manifest, moment: &Moment<'_>) -> Vec<u32> {
        retention.obsolete(manifest, moment).into_iter().map(|set| set.0).collect()
    }

    #[test]
    fn count_and_age() {
        let default = Retention::default();
        for (count, expected) in [(0, vec![]), (1, vec![]), (2, vec![]), (3, vec![1]), (5, vec![1, 2, 3])] {
            assert_eq!(dropped(default, &manifest(count), &at(9_000)), expected, "{count} sets");
        }
        let none = Retention { sets: 0, ..default };
        assert_eq!(dropped(none, &manifest(3), &at(9_000)), [1, 2], "the newest always stays");
        // To reach back to 3,500 ms, the set of 3,000 ms and everything after it are needed.
        let aged = Retention { age_ms: Some(1_500), ..default };
        assert_eq!(dropped(aged, &manifest(5), &at(5_000)), [1, 2]);
        let ancient = Retention { age_ms: Some(10_000), ..default };
        assert_eq!(dropped(ancient, &manifest(5), &at(5_000)), [], "nothing is old enough");
        let now_only = Retention { age_ms: Some(0), ..default };
        assert_eq!(dropped(now_only, &manifest(5), &at(50_000)), [1, 2, 3], "the count holds with the age");
        assert_eq!(dropped(aged, &manifest(3), &at(i64::MIN)), [], "times before time itself");
    }

    /// One save a minute for two days does not keep a set a minute: the oldest reaches back a day, then one an hour.
    #[test]
    fn a_day_of_sets_is_thinned_to_one_an_hour() {
        let minute = 60_000;
        let retention = Retention { sets: 2, age_ms: Some(86_400_000), space: Space::Unlimited };
        let mut manifest = manifest(0);
        for n in 1..=2 * 24 * 60u32 {
            let set = SetInfo { created_ms: i64::from(n) * minute, ..self::manifest(1).sets.remove(0) };
            manifest.sets.push(SetInfo { set: SetId(n), ..set });
            let now = i64::from(n) * minute;
            let obsolete = retention.obsolete(&manifest, &Moment { log_bytes: &|_| 0, ..at(now) });
            manifest.sets.retain(|set| !obsolete.contains(&set.set));
            assert!(manifest.sets.len() <= 27, "{} sets", manifest.sets.len());
            let reach = (now - 86_400_000).max(minute);
            assert!(manifest.sets[0].created_ms <= reach, "every moment of the day is reached");
        }
    }

    #[test]
    fn a_set_that_the_log_does_not_lead_to_is_no_shortcut() {
        let mut manifest = manifest(4);
        // The log was off at the second set, and on again from the third.
        manifest.sets[1].log_from = None;
        manifest.log.since = Lsn(30);
        manifest.sets.iter_mut().skip(2).for_each(|set| set.history = HistoryId([1; 20]));
        let retention = Retention { sets: 1, age_ms: Some(1_000_000), space: Space::Unlimited };
        assert_eq!(
            dropped(retention, &manifest, &at(5_000)),
            [2],
            "it stands for one moment; the third for all after it"
        );
    }

    #[test]
    fn space_removes_shortcuts_first_and_then_the_oldest() {
        let day = Retention { sets: 1, age_ms: Some(86_400_000), space: Space::Unlimited };
        // Hours apart, so that thinning removes nothing: five sets, and the log from the first on.
        let mut manifest = manifest(5);
        manifest.sets.iter_mut().for_each(|set| set.created_ms *= 7_200_000 / 1000);
        let now = 11 * 3_600_000;
        let taking = |bytes| Retention { space: Space::Bytes(bytes), ..day };
        for (limit, expected) in [
            (590, vec![]),
            (589, vec![2]),
            // Three remain (300), with the log from the first on (90). The middle one covers most of the time.
            (390, vec![2, 4]),
            (389, vec![1, 2, 4]),
            (259, vec![1, 2, 3, 4]),
            (0, vec![1, 2, 3, 4]),
        ] {
            assert_eq!(dropped(taking(limit), &manifest, &at(now)), expected, "{limit} bytes");
        }
        let reserve = Moment { reserve_bytes: 1, ..at(now) };
        assert_eq!(dropped(taking(590), &manifest, &reserve), [2], "what is about to be written counts");
        let end = Moment { is_end: true, ..at(now) };
        assert_eq!(dropped(taking(0), &manifest, &end), [2, 3, 4], "an end keeps the beginning of the history");
    }

    #[test]
    fn the_automatic_limit_follows_the_largest_set() {
        let mut manifest = manifest(2);
        let limit = |manifest: &Manifest, disk_bytes| Space::Automatic.bytes(&manifest.sets, disk_bytes);
        assert_eq!(limit(&manifest, u64::MAX), AUTOMATIC_BYTES_MIN);
        assert_eq!(limit(&manifest, 1 << 30), 1 << 29, "half of a small disk");
        manifest.sets[0].files[0].bytes = 1 << 30;
        assert_eq!(limit(&manifest, u64::MAX), 6 << 30);
    }

    /// The set before a flush outlives the count for a day, and is removed last when space is short.
    #[test]
    fn a_set_before_a_flush_is_pinned() {
        let pins = [Pin { set: SetId(2), at_ms: 3_000 }];
        let pinned = |now| Moment { pins: &pins, ..at(now) };
        let two = Retention::default();
        assert_eq!(dropped(two, &manifest(5), &pinned(5_000)), [1]);
        assert_eq!(dropped(two, &manifest(5), &pinned(3_000 + PIN_MS - 1)), [1]);
        assert_eq!(dropped(two, &manifest(5), &pinned(3_000 + PIN_MS)), [1, 2, 3], "a day later it goes");
        let taking = |bytes| Retention { space: Space::Bytes(bytes), ..two };
        // The second and the newest remain (200), and the log from the second on (80).
        assert_eq!(dropped(taking(280), &manifest(5), &pinned(5_000)), [1, 3, 4]);
        assert_eq!(dropped(taking(279), &manifest(5), &pinned(5_000)), [1, 2, 3, 4], "space has the last word");
        let mut emptied = manifest(5);
        emptied.sets[1].files[0].entries = 3;
        assert_eq!(dropped(two, &emptied, &at(5_000)), [1], "the third has less than half of its keys");
        assert_eq!(dropped(two, &emptied, &at(3_000 + PIN_MS)), [1, 2, 3]);
    }
}
