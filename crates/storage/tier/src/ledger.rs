//! Which segments there are, how much of each is live, and which may be removed (T3).

use crate::format::HEADER_BYTES;
use std::collections::BTreeMap;

/// A segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Bytes of its file, once all is written.
    pub bytes: u64,
    /// Bytes of records that entries in memory have.
    pub live: u64,
    /// The newest checkpoint begun when the last entry left it: those after it do not name the segment.
    dead_since: u32,
    /// There is no file, though an entry names it.
    pub is_missing: bool,
    /// Cleaning has moved what it could; the rest is damaged, or leaves soon.
    is_cleaned: bool,
}

/// What the bytes of all segments are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes of records that entries have.
    pub live: u64,
    /// Other bytes of segments that have live ones: cleaning gives them back.
    pub dead: u64,
    /// Bytes of segments without live ones: checkpoints may name them.
    pub pinned: u64,
}

/// Cleaning begins when the dead bytes exceed this share of the live ones. Under uniform overwrites it then writes at
/// most 1.45 bytes per byte written, and the tier takes at most 1.3 bytes per live byte.
const DEAD_SHARE: (u64, u64) = (9, 32);

/// A segment whose live share is greater is not worth cleaning.
const LIVE_SHARE_MAX: (u64, u64) = (15, 16);

/// All segments of a tier.
#[derive(Debug, Default)]
pub struct Ledger {
    segments: BTreeMap<u32, Segment>,
    /// The newest checkpoint that was begun.
    set: u32,
    bytes: u64,
    live: u64,
}

impl Ledger {
    /// A segment that has a file.
    pub fn add(&mut self, number: u32, bytes: u64) {
        self.bytes += bytes;
        self.segments.insert(number, Segment { bytes, dead_since: self.set, ..Segment::default() });
    }

    /// A segment grows.
    pub fn grow(&mut self, number: u32, bytes: u64) {
        if let Some(segment) = self.segments.get_mut(&number) {
            segment.bytes += bytes;
            self.bytes += bytes;
        }
    }

    /// An entry has a record of this many bytes. True when the segment was not known: there is no such file.
    pub fn retain(&mut self, number: u32, bytes: u64) -> bool {
        let is_new = !self.segments.contains_key(&number);
        let segment = self.segments.entry(number).or_default();
        segment.is_missing |= is_new;
        segment.live += bytes;
        self.live += bytes;
        is_new
    }

    /// An entry has it no longer.
    pub fn release(&mut self, number: u32, bytes: u64) {
        let Some(segment) = self.segments.get_mut(&number) else { return };
        debug_assert!(segment.live >= bytes, "{bytes} bytes leave segment {number}, which has {}", segment.live);
        segment.live = segment.live.saturating_sub(bytes);
        self.live = self.live.saturating_sub(bytes);
        if segment.live == 0 {
            segment.dead_since = self.set;
        }
    }

    /// The segment to clean next: the one with the smallest live share (greedy), once enough is dead, or at once when
    /// the tier `is_short` of space. Its live records need no more than `room`: a segment that is moved in part frees
    /// nothing. Segments for which `is_written` is true stay.
    pub fn victim(&self, is_short: bool, room: u64, is_written: impl Fn(u32) -> bool) -> Option<u32> {
        let (mut live, mut bytes, mut best) = (0u64, 0u64, None::<(u64, u64, u32)>);
        for (number, segment) in &self.segments {
            if segment.live == 0 || segment.is_missing || segment.is_cleaned {
                continue;
            }
            (live, bytes) = (live + segment.live, bytes + segment.bytes);
            // Without the header, or a segment of one small value would be cleaned over and over.
            let records = segment.bytes.saturating_sub(HEADER_BYTES as u64);
            let is_worth = u128::from(segment.live) * u128::from(LIVE_SHARE_MAX.1)
                <= u128::from(records) * u128::from(LIVE_SHARE_MAX.0);
            let is_better = best.is_none_or(|(live, bytes, _)| {
                u128::from(segment.live) * u128::from(bytes) < u128::from(live) * u128::from(segment.bytes)
            });
            if is_worth && is_better && segment.live <= room && !is_written(*number) {
                best = Some((segment.live, segment.bytes, *number));
            }
        }
        let is_due = is_short || exceeds(bytes.saturating_sub(live), live);
        best.filter(|_| is_due).map(|(_, _, number)| number)
    }

    /// Cleaning has passed over a segment. What it left there stays.
    pub fn set_cleaned(&mut self, number: u32) {
        if let Some(segment) = self.segments.get_mut(&number) {
            segment.is_cleaned = true;
        }
    }

    /// What the bytes are.
    pub fn space(&self) -> Space {
        let mut space = Space::default();
        for segment in self.segments.values().filter(|segment| !segment.is_missing) {
            space.live += segment.live;
            match segment.live {
                0 => space.pinned += segment.bytes,
                live => space.dead += segment.bytes.saturating_sub(live),
            }
        }
        space
    }

    /// Bytes of segments without live ones that go when all checkpoints before `set` are given up, and of those that
    /// then stay.
    pub fn pinned_before(&self, set: u32) -> (u64, u64) {
        let (mut go, mut stay) = (0, 0);
        for segment in self.segments.values().filter(|segment| segment.live == 0) {
            *if segment.dead_since < set { &mut go } else { &mut stay } += segment.bytes;
        }
        (go, stay)
    }

    /// A checkpoint begins: what dies from now on may be named by it.
    pub fn begin_set(&mut self, set: u32) {
        self.set = self.set.max(set);
    }

    /// All entries are loaded. `set` is the newest checkpoint: at most it and earlier ones name segments that no entry
    /// has.
    pub fn loaded(&mut self, set: u32) {
        self.set = self.set.max(set);
        self.segments.values_mut().filter(|segment| segment.live == 0).for_each(|segment| segment.dead_since = set);
    }

    /// Takes out the segments that nothing needs. `oldest` is the oldest retained checkpoint; segments for which
    /// `is_written` is true stay.
    pub fn take_dead(&mut self, oldest: Option<u32>, is_written: impl Fn(u32) -> bool) -> Vec<u32> {
        let is_dead = |number: u32, segment: &Segment| {
            segment.live == 0 && oldest.is_none_or(|oldest| segment.dead_since < oldest) && !is_written(number)
        };
        let dead: Vec<_> =
            self.segments.iter().filter(|(number, segment)| is_dead(**number, segment)).map(|(n, _)| *n).collect();
        for number in &dead {
            let segment = self.segments.remove(number).unwrap_or_default();
            self.bytes -= segment.bytes;
        }
        dead
    }

    /// The highest number there is.
    pub fn last(&self) -> Option<u32> {
        self.segments.last_key_value().map(|(number, _)| *number)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of records that entries have.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Bytes of records of a segment that entries have.
    pub fn live_of(&self, number: u32) -> u64 {
        self.segments.get(&number).map_or(0, |segment| segment.live)
    }

    /// All segments, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Segment)> {
        self.segments.iter().map(|(number, segment)| (*number, segment))
    }
}

/// Whether the dead bytes are more than the mark.
fn exceeds(dead: u64, live: u64) -> bool {
    u128::from(dead) * u128::from(DEAD_SHARE.1) > u128::from(live) * u128::from(DEAD_SHARE.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment goes when no entry has it, and every retained checkpoint began after that.
    #[test]
    fn a_segment_outlives_the_checkpoints_that_may_name_it() {
        let mut ledger = Ledger::default();
        ledger.add(1, 100);
        ledger.retain(1, 40);
        ledger.retain(1, 40);
        assert_eq!((ledger.bytes(), ledger.live()), (100, 80));
        ledger.begin_set(5);
        ledger.release(1, 40);
        assert!(ledger.take_dead(Some(6), |_| false).is_empty(), "an entry has it");
        ledger.release(1, 40);
        assert!(ledger.take_dead(Some(5), |_| false).is_empty(), "checkpoint 5 may name it");
        assert!(ledger.take_dead(Some(6), |number| number == 1).is_empty(), "it is being written");
        assert_eq!(ledger.take_dead(Some(6), |_| false), [1]);
        assert_eq!((ledger.bytes(), ledger.live()), (0, 0));
    }

    /// After a start, a segment that no entry has stays until the checkpoints of before are gone; without any, it goes.
    #[test]
    fn a_start_counts_anew() {
        let mut ledger = Ledger::default();
        ledger.add(1, 100);
        ledger.add(2, 100);
        ledger.retain(2, 16);
        ledger.loaded(9);
        assert!(ledger.take_dead(Some(9), |_| false).is_empty());
        assert_eq!(ledger.take_dead(Some(10), |_| false), [1]);
        ledger.release(2, 16);
        assert_eq!(ledger.take_dead(None, |_| false), [2]);
    }

    /// An address in a file that is not there is counted, and reported.
    #[test]
    fn a_missing_segment_is_noticed_once() {
        let mut ledger = Ledger::default();
        assert!(ledger.retain(3, 32));
        assert!(!ledger.retain(3, 32));
        assert_eq!((ledger.bytes(), ledger.live(), ledger.last()), (0, 64, Some(3)));
        assert!(ledger.iter().all(|(_, segment)| segment.is_missing));
    }

    /// The segment with the smallest live share is cleaned first, once more than the mark is dead.
    #[test]
    fn the_deadest_segment_is_cleaned_first() {
        let mut ledger = Ledger::default();
        for (number, live) in [(1, 900), (2, 600), (3, 500), (4, 1000), (5, 100)] {
            ledger.add(number, 1000);
            ledger.retain(number, live);
        }
        // One value, and the header.
        ledger.add(6, 80);
        ledger.retain(6, 32);
        let is_open = |number: u32| number == 5;
        assert_eq!(ledger.space(), Space { live: 3132, dead: 1948, pinned: 0 });
        assert_eq!(ledger.victim(false, u64::MAX, is_open), Some(3), "segment 5 is being written");
        ledger.set_cleaned(3);
        assert_eq!(ledger.victim(false, u64::MAX, is_open), Some(2));
        ledger.release(2, 600);
        assert_eq!(ledger.space().pinned, 1000);
        assert_eq!(ledger.victim(false, u64::MAX, is_open), None, "the others are not worth it");
        ledger.release(1, 100);
        assert_eq!(ledger.victim(false, u64::MAX, is_open), Some(1), "1148 of 3080 bytes are dead");
        ledger.release(5, 100);
        assert_eq!(ledger.victim(false, u64::MAX, is_open), None, "248 of 2080 bytes are dead");
        assert_eq!(ledger.victim(true, 800, is_open), Some(1), "space is short");
        assert_eq!(ledger.victim(true, 799, is_open), None, "its records have no room");
        ledger.retain(1, 100);
        assert_eq!(ledger.victim(true, u64::MAX, is_open), None, "segment 1 is not worth it");
    }
}
