//! Durations of one command, added up over all workers.

use crate::Figures;
use command::stats::{BUCKET_COUNT, bucket_upper_ns};

/// Calls of one command by duration, in the buckets of [`command::stats`].
pub struct Histogram {
    counts: Vec<u64>,
    /// All calls.
    pub calls: u64,
}

impl Histogram {
    /// The calls of the row with this index.
    pub fn of(figures: &Figures, row: u32) -> Self {
        let mut counts = vec![0u64; BUCKET_COUNT];
        for worker in figures.workers() {
            let Some(stats) = worker.stats.command(row) else { continue };
            for (sum, count) in counts.iter_mut().zip(&stats.durations) {
                *sum = sum.wrapping_add(count.get());
            }
        }
        let calls = counts.iter().sum();
        Self { counts, calls }
    }

    /// For each doubling of microseconds that has calls: its upper end and the calls up to there. The first one ends at
    /// 1 microsecond; an end is a power of two of nanoseconds, shown in whole microseconds (1, 2, 4, 8, 16, 33, 65,
    /// ...).
    pub fn doublings(&self) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let (mut total, mut shown, mut bucket) = (0u64, 0, 0);
        for power in 10..64 {
            let end = 1u64 << power;
            while bucket < BUCKET_COUNT && bucket_upper_ns(bucket) < end {
                total += self.counts[bucket];
                bucket += 1;
            }
            if total > shown {
                found.push(((end - 1) / 1000, total));
                shown = total;
            }
        }
        found
    }

    /// The duration in nanoseconds that this share (0 to 100) of calls did not exceed, to the width of a bucket.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let wanted = ((self.calls as f64 * percent / 100.0).ceil() as u64).clamp(1, self.calls.max(1));
        let mut total = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            total += count;
            if total >= wanted {
                return bucket_upper_ns(bucket);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkerFigures;
    use command::stats::WorkerStats;
    use std::sync::Arc;

    #[test]
    fn workers_are_added_up() {
        let workers: Vec<_> = (0..2).map(|_| Arc::new(WorkerFigures::new(Arc::new(WorkerStats::new(2))))).collect();
        for worker in &workers {
            (0..49).for_each(|_| worker.stats.command(1).unwrap().record(3_000));
            worker.stats.command(1).unwrap().record(900_000);
        }
        let figures = Figures::new(workers);
        assert_eq!(Histogram::of(&figures, 0).doublings(), []);
        let histogram = Histogram::of(&figures, 1);
        assert_eq!(histogram.calls, 100);
        assert_eq!(histogram.doublings(), [(4, 98), (1048, 100)]);
        assert_eq!(histogram.percentile_ns(50.0), 3071);
        assert!(histogram.percentile_ns(99.0) > 800_000);
    }
}
