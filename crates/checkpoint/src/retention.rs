//! How many checkpoints are kept.

use crate::SetInfo;
use base::{Lsn, UnixMs};

/// What is to be kept beside the newest checkpoint. An older one, with the log after it, lets a restore go back in time: to
/// before a FLUSHALL, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Keep at least so many sets, the newest included; 0 counts as 1.
    pub sets: usize,
    /// Keep what it takes to reach every moment of the last so many milliseconds.
    pub age_ms: Option<u64>,
    /// Drop old sets, whatever else is said, until those left and the log after the oldest take at most so many bytes. The
    /// newest stays.
    pub bytes: Option<u64>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { sets: 2, age_ms: None, bytes: None }
    }
}

impl Retention {
    /// How many of the sets (oldest first) are to be dropped from the front. `log_bytes` says how long the log is from a
    /// position on.
    pub fn obsolete(&self, sets: &[SetInfo], log_bytes: impl Fn(Lsn) -> u64, now: UnixMs) -> usize {
        let by_count = sets.len().saturating_sub(self.sets.max(1));
        let by_age = self.age_ms.map_or(usize::MAX, |age| {
            // The newest set that is old enough leads, with the log after it, to every moment since.
            let reach = now.saturating_sub_unsigned(age);
            sets.iter().rposition(|set| set.created_ms <= reach).unwrap_or(0)
        });
        let wanted = by_count.min(by_age);
        let by_bytes = self.bytes.map_or(0, |bytes| {
            (0..sets.len()).find(|&first| taken(sets.get(first..), &log_bytes) <= bytes).unwrap_or(usize::MAX)
        });
        wanted.max(by_bytes).min(sets.len().saturating_sub(1))
    }
}

/// Bytes of these sets and of the log after the oldest.
fn taken(sets: Option<&[SetInfo]>, log_bytes: impl Fn(Lsn) -> u64) -> u64 {
    let sets = sets.unwrap_or_default();
    let log = sets.iter().filter_map(|set| set.log_from).min().map_or(0, log_bytes);
    sets.iter().map(SetInfo::bytes).fold(log, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileInfo, SetId};
    use base::HistoryId;

    /// Sets of 100 bytes, made every 1,000 ms; the log grows by 10 bytes between them and ends at 100.
    fn sets(count: u32) -> Vec<SetInfo> {
        let one = |n: u32| SetInfo {
            set: SetId(n),
            cut: Lsn(u64::from(n) * 10),
            history: HistoryId([0; 20]),
            created_ms: i64::from(n) * 1000,
            log_from: Some(Lsn(u64::from(n) * 10)),
            files: vec![FileInfo { bytes: 100, entries: 1, crc: 0 }],
        };
        (1..=count).map(one).collect()
    }

    #[test]
    fn count_age_and_bytes() {
        let log = |from: Lsn| 100 - from.0;
        let drop = |sets: &[SetInfo], retention: Retention, now| retention.obsolete(sets, log, now);
        let default = Retention::default();
        for (count, dropped) in [(0, 0), (1, 0), (2, 0), (3, 1), (5, 3)] {
            assert_eq!(drop(&sets(count), default, 9_000), dropped, "{count} sets");
        }
        assert_eq!(drop(&sets(3), Retention { sets: 0, ..default }, 9_000), 2, "the newest always stays");
        // To reach back to 3,500 ms, the set of 3,000 ms is needed, and all after it.
        let aged = Retention { age_ms: Some(1_500), ..default };
        assert_eq!(drop(&sets(5), aged, 5_000), 2);
        assert_eq!(drop(&sets(5), Retention { age_ms: Some(100_000), ..default }, 5_000), 0, "nothing is old enough");
        assert_eq!(
            drop(&sets(5), Retention { age_ms: Some(0), ..default }, 50_000),
            3,
            "the count holds beside the age"
        );
        // Two sets take 200 bytes, and the log after the older of them 60.
        assert_eq!(drop(&sets(5), Retention { sets: 9, bytes: Some(260), ..default }, 9_000), 3);
        assert_eq!(drop(&sets(5), Retention { sets: 9, bytes: Some(259), ..default }, 9_000), 4);
        assert_eq!(
            drop(&sets(5), Retention { sets: 9, bytes: Some(0), ..default }, 9_000),
            4,
            "the newest always stays"
        );
        assert_eq!(drop(&sets(5), Retention { bytes: Some(10_000), ..default }, 9_000), 3, "room alone keeps nothing");
        assert_eq!(drop(&sets(3), aged, i64::MIN), 0, "times before time itself");
    }
}
