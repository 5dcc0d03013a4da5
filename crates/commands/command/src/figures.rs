//! The running totals of a server, kept by its workers and added up by each reader.

use crate::about;
use crate::stats::{Counter, WorkerStats};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What one worker counts. Each [`Counter`] has that worker as its only writer.
pub struct WorkerFigures {
    /// Calls by command, hits, bytes.
    pub stats: Arc<WorkerStats>,
    /// Entries removed because their time had come.
    pub expired_keys: Counter,
    /// Entries removed to make room.
    pub evicted_keys: Counter,
    /// Effects applied.
    pub changes: Counter,
    /// Longest time between two looks at the sockets and the mailbox.
    pub longest_turn_ns: Counter,
    /// The most processor time in between, with what little went before.
    pub longest_turn_cpu_ns: Counter,
}

impl WorkerFigures {
    /// Figures at zero, with these statistics.
    pub fn new(stats: Arc<WorkerStats>) -> Self {
        Self {
            stats,
            expired_keys: Counter::default(),
            evicted_keys: Counter::default(),
            changes: Counter::default(),
            longest_turn_ns: Counter::default(),
            longest_turn_cpu_ns: Counter::default(),
        }
    }
}

/// Samples kept for rates: at ten a second, the last 1.6 seconds, as in Redis.
const SAMPLE_COUNT: usize = 16;

/// The totals at one moment.
#[derive(Clone, Copy)]
struct Sample {
    at_ns: u64,
    commands: u64,
    input_bytes: u64,
    output_bytes: u64,
}

/// Rates per second over the last samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Commands.
    pub commands: u64,
    /// Bytes received.
    pub input_bytes: u64,
    /// Bytes sent.
    pub output_bytes: u64,
}

/// The figures of a whole server.
pub struct Figures {
    workers: Vec<Arc<WorkerFigures>>,
    /// The last of them is the attendant.
    has_attendant: bool,
    samples: Mutex<VecDeque<Sample>>,
    peak_bytes: AtomicU64,
    /// Memory at the first sample.
    startup: OnceLock<Startup>,
}

impl Figures {
    /// The figures of these workers.
    pub fn new(workers: Vec<Arc<WorkerFigures>>) -> Self {
        Self {
            workers,
            has_attendant: false,
            samples: Mutex::default(),
            peak_bytes: AtomicU64::new(0),
            startup: OnceLock::new(),
        }
    }

    /// The last worker only attends to connections that a busy script keeps waiting.
    #[must_use]
    pub fn with_attendant(mut self) -> Self {
        self.has_attendant = true;
        self
    }

    /// How many workers serve clients at all times.
    pub fn worker_count(&self) -> usize {
        self.workers.len().saturating_sub(usize::from(self.has_attendant))
    }

    /// The workers, by number, with the attendant.
    pub fn workers(&self) -> &[Arc<WorkerFigures>] {
        &self.workers
    }

    /// Adds up one figure of all workers.
    pub fn sum(&self, figure: impl Fn(&WorkerFigures) -> u64) -> u64 {
        self.workers.iter().map(|worker| figure(worker)).fold(0, u64::wrapping_add)
    }

    /// The greatest of one figure of all workers.
    pub fn max(&self, figure: impl Fn(&WorkerFigures) -> u64) -> u64 {
        self.workers.iter().map(|worker| figure(worker)).max().unwrap_or(0)
    }

    /// Adds up one figure of all workers' statistics.
    pub fn sum_stats(&self, figure: impl Fn(&WorkerStats) -> u64) -> u64 {
        self.sum(|worker| figure(&worker.stats))
    }

    /// Shows the statistics of each worker.
    pub fn each_stats(&self, show: impl Fn(&WorkerStats)) {
        self.workers.iter().for_each(|worker| show(&worker.stats));
    }

    /// Notes the totals, for rates, and the memory in use, for its peak. Called ten times a second by one worker;
    /// `at_ns` is monotonic.
    pub fn sample(&self, at_ns: u64, used_bytes: u64) {
        let sample = Sample {
            at_ns,
            commands: self.sum_stats(|stats| stats.commands_processed.get()),
            input_bytes: self.sum_stats(|stats| stats.input_bytes.get()),
            output_bytes: self.sum_stats(|stats| stats.output_bytes.get()),
        };
        let mut samples = self.samples.lock();
        if samples.len() == SAMPLE_COUNT {
            samples.pop_front();
        }
        samples.push_back(sample);
        self.peak_bytes.fetch_max(used_bytes, Ordering::Relaxed);
        self.startup.get_or_init(|| Startup::of(used_bytes, about::resident_bytes()));
    }

    /// Memory when the server had just started.
    pub fn startup(&self) -> Startup {
        self.startup.get().copied().unwrap_or_default()
    }

    /// Rates over the samples kept.
    pub fn rates(&self) -> Rates {
        let samples = self.samples.lock();
        let (Some(first), Some(last)) = (samples.front(), samples.back()) else { return Rates::default() };
        let ns = u128::from(last.at_ns.saturating_sub(first.at_ns));
        let rate = |from: u64, to: u64| {
            let amount = u128::from(to.saturating_sub(from)) * 1_000_000_000;
            amount.checked_div(ns).map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
        };
        Rates {
            commands: rate(first.commands, last.commands),
            input_bytes: rate(first.input_bytes, last.input_bytes),
            output_bytes: rate(first.output_bytes, last.output_bytes),
        }
    }

    /// The most memory seen at a sample, and now.
    pub fn peak_bytes(&self, used_bytes: u64) -> u64 {
        self.peak_bytes.fetch_max(used_bytes, Ordering::Relaxed).max(used_bytes)
    }

    /// Back to 0 (CONFIG RESETSTAT): everything but what is true now and the changes since the start.
    pub fn reset(&self, used_bytes: u64) {
        for worker in &self.workers {
            worker.stats.reset();
            [&worker.expired_keys, &worker.evicted_keys, &worker.longest_turn_ns, &worker.longest_turn_cpu_ns]
                .into_iter()
                .for_each(Counter::reset);
        }
        self.peak_bytes.store(used_bytes, Ordering::Relaxed);
        self.samples.lock().clear();
    }
}

/// Memory when the server had just started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Startup {
    /// What was counted against `maxmemory`.
    pub used_bytes: u64,
    /// What the process had in addition: program, stacks, buffers of workers.
    pub base_bytes: u64,
}

impl Startup {
    fn of(used_bytes: u64, resident_bytes: Option<u64>) -> Self {
        Self { used_bytes, base_bytes: resident_bytes.unwrap_or(0).saturating_sub(used_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_the_samples() {
        let worker = Arc::new(WorkerFigures::new(Arc::new(WorkerStats::new(1))));
        let figures = Figures::new(vec![worker.clone()]);
        assert_eq!(figures.rates(), Rates::default());
        for tenth in 0..40 {
            figures.sample(tenth * 100_000_000, 1000 - tenth);
            worker.stats.commands_processed.add(500);
            worker.stats.input_bytes.add(7);
        }
        assert_eq!(figures.rates(), Rates { commands: 5000, input_bytes: 70, output_bytes: 0 });
        assert_eq!((figures.peak_bytes(10), figures.startup().used_bytes), (1000, 1000));
        figures.reset(5);
        assert_eq!(figures.peak_bytes(4), 5);
        assert_eq!(figures.rates(), Rates::default());
        assert_eq!(worker.stats.commands_processed.get(), 0);
    }
}
