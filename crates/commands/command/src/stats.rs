//! The figures that every call of a command updates: counts, time, failures, a histogram of durations.
//!
//! Each worker has its own table and is its only writer, so counting costs plain loads and stores; readers add the
//! tables up.

use crate::sampler::Sampler;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// One worker's figures.
pub struct WorkerStats {
    clock: quanta::Clock,
    commands: Box<[CommandStats]>,
    /// Reads that found an entry.
    pub keyspace_hits: Counter,
    /// Reads that found none.
    pub keyspace_misses: Counter,
    /// When the worker's last turn began, in Unix milliseconds.
    pub turned_at: Counter,
    /// Commands run.
    pub commands_processed: Counter,
    /// Bytes read from clients.
    pub input_bytes: Counter,
    /// Bytes sent to clients.
    pub output_bytes: Counter,
    /// Reads from sockets that brought bytes.
    pub reads: Counter,
    /// Writes to sockets that took bytes.
    pub writes: Counter,
    /// Error replies.
    pub error_replies: Counter,
    /// Chooses the calls that are looked at closely.
    pub sampler: Sampler,
    /// What commands of memcached clients count.
    pub outcomes: Outcomes,
    /// Error replies by their code, up to [`ERROR_CODES_MAX`] of them.
    errors: Mutex<BTreeMap<Box<[u8]>, u64>>,
}

/// Counts that a dialect keeps under numbers of its own: hits and misses of its commands.
pub struct Outcomes {
    counts: Box<[Counter]>,
    /// What the dialect is to do besides: [`DETAILED`] and [`LOGGED`].
    special: AtomicU8,
}

const DETAILED: u8 = 1;
const LOGGED: u8 = 2;

/// Numbers that [`Outcomes`] have.
pub const OUTCOMES_MAX: usize = 128;

impl Outcomes {
    fn new() -> Self {
        let counts = std::iter::repeat_with(Counter::default).take(OUTCOMES_MAX).collect();
        Self { counts, special: AtomicU8::new(0) }
    }

    /// Counts one. Only the owning worker may. A number from [`OUTCOMES_MAX`] on is not counted.
    #[inline]
    pub fn count(&self, number: usize) {
        if let Some(counter) = self.counts.get(number) {
            counter.add(1);
        }
    }

    /// The count under a number.
    pub fn get(&self, number: usize) -> u64 {
        self.counts.get(number).map_or(0, Counter::get)
    }

    /// Whether the dialect is to note more than these counts (`stats detail`).
    #[inline]
    pub fn is_detailed(&self) -> bool {
        self.special.load(Ordering::Relaxed) & DETAILED != 0
    }

    /// Sets [`Self::is_detailed`]; any thread may.
    pub fn set_detailed(&self, is_detailed: bool) {
        self.set(DETAILED, is_detailed);
    }

    /// Whether the dialect is to note each line that a client sends (`cmdlog`).
    #[inline]
    pub fn is_logged(&self) -> bool {
        self.special.load(Ordering::Relaxed) & LOGGED != 0
    }

    /// Sets [`Self::is_logged`]; any thread may.
    pub fn set_logged(&self, is_logged: bool) {
        self.set(LOGGED, is_logged);
    }

    fn set(&self, bit: u8, is_on: bool) {
        match is_on {
            true => self.special.fetch_or(bit, Ordering::Relaxed),
            false => self.special.fetch_and(!bit, Ordering::Relaxed),
        };
    }
}

/// Different error codes counted: a bound, in case a code is ever made of what clients send.
const ERROR_CODES_MAX: usize = 128;

/// A number that one thread raises and others read.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the owning worker may.
    #[inline]
    pub fn add(&self, amount: u64) {
        // Load and store instead of a locked addition: there is one writer.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// Has it be at least this; only the owning worker may.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.0.load(Ordering::Relaxed) {
            self.0.store(value, Ordering::Relaxed);
        }
    }

    /// The present value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Back to 0 (CONFIG RESETSTAT). An addition at the same moment may survive it.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Steps of a duration histogram per doubling.
const STEPS_PER_DOUBLING: usize = 4;

/// Buckets: nanoseconds up to 2^40 (18 minutes), the last one open.
pub const BUCKET_COUNT: usize = 40 * STEPS_PER_DOUBLING;

/// The figures of one command.
pub struct CommandStats {
    /// Calls that ran.
    pub calls: Counter,
    /// Their time in nanoseconds.
    pub nanoseconds: Counter,
    /// Calls refused before they ran (arity, memory, login).
    pub rejected: Counter,
    /// Calls that ran and answered an error.
    pub failed: Counter,
    /// Calls by duration; see [`bucket_upper_ns`].
    pub durations: Box<[Counter]>,
}

impl CommandStats {
    fn new() -> Self {
        Self {
            calls: Counter::default(),
            nanoseconds: Counter::default(),
            rejected: Counter::default(),
            failed: Counter::default(),
            durations: std::iter::repeat_with(Counter::default).take(BUCKET_COUNT).collect(),
        }
    }

    /// One call took this long.
    #[inline]
    pub fn record(&self, ns: u64) {
        self.calls.add(1);
        self.nanoseconds.add(ns);
        if let Some(bucket) = self.durations.get(bucket_of(ns)) {
            bucket.add(1);
        }
    }

    fn reset(&self) {
        [&self.calls, &self.nanoseconds, &self.rejected, &self.failed].into_iter().for_each(Counter::reset);
        self.durations.iter().for_each(Counter::reset);
    }
}

/// The bucket of a duration: its power of two, and the next two bits below.
#[inline]
fn bucket_of(ns: u64) -> usize {
    let power = (ns | 4).ilog2() as usize;
    let step = (ns >> power.saturating_sub(2)) as usize & (STEPS_PER_DOUBLING - 1);
    power.saturating_mul(STEPS_PER_DOUBLING).saturating_add(step).min(BUCKET_COUNT - 1)
}

/// The longest duration that falls into a bucket.
pub fn bucket_upper_ns(bucket: usize) -> u64 {
    let (power, step) = (bucket / STEPS_PER_DOUBLING, bucket % STEPS_PER_DOUBLING);
    (STEPS_PER_DOUBLING.saturating_add(step).saturating_add(1) as u64)
        .checked_shl(u32::try_from(power).unwrap_or(u32::MAX))
        .map_or(u64::MAX, |end| (end >> 2).saturating_sub(1))
}

impl WorkerStats {
    /// Figures for that many rows of the command table.
    pub fn new(row_count: usize) -> Self {
        Self {
            clock: quanta::Clock::new(),
            commands: std::iter::repeat_with(CommandStats::new).take(row_count).collect(),
            keyspace_hits: Counter::default(),
            keyspace_misses: Counter::default(),
            turned_at: Counter::default(),
            commands_processed: Counter::default(),
            input_bytes: Counter::default(),
            output_bytes: Counter::default(),
            reads: Counter::default(),
            writes: Counter::default(),
            error_replies: Counter::default(),
            sampler: Sampler::default(),
            outcomes: Outcomes::new(),
            errors: Mutex::default(),
        }
    }

    /// An error was answered. Its code is its first word.
    #[cold]
    pub fn count_error(&self, text: &[u8]) {
        self.error_replies.add(1);
        let code = text.split(|byte| *byte == b' ').next().unwrap_or(text);
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = errors.get_mut(code) {
            *count = count.saturating_add(1);
        } else if errors.len() < ERROR_CODES_MAX {
            errors.insert(code.into(), 1);
        }
    }

    /// A request was refused before it ran, with this error; `row` is that of the command it named.
    #[cold]
    pub fn count_refusal(&self, row: Option<u32>, text: &[u8]) {
        self.count_error(text);
        if let Some(command) = row.and_then(|row| self.command(row)) {
            command.rejected.add(1);
        }
    }

    /// Error replies by their code.
    pub fn errors(&self) -> BTreeMap<Box<[u8]>, u64> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Nanoseconds on the processor's own counter, for durations: cheaper than the operating system's clock, and read
    /// once between two commands. It decides nothing, so the simulator need not drive it.
    #[inline]
    pub fn now(&self) -> u64 {
        self.clock.delta_as_nanos(0, self.clock.raw())
    }

    /// The figures of a row of the command table.
    #[inline]
    pub fn command(&self, index: u32) -> Option<&CommandStats> {
        self.commands.get(index as usize)
    }

    /// Back to 0 (CONFIG RESETSTAT).
    pub fn reset(&self) {
        self.commands.iter().for_each(CommandStats::reset);
        for counter in [
            &self.keyspace_hits,
            &self.keyspace_misses,
            &self.commands_processed,
            &self.input_bytes,
            &self.output_bytes,
            &self.reads,
            &self.writes,
            &self.error_replies,
        ] {
            counter.reset();
        }
        self.outcomes.counts.iter().for_each(Counter::reset);
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every duration falls into a bucket that holds it, and buckets are at most a quarter wide.
    #[test]
    fn buckets_hold_their_durations() {
        for shift in 2..39 {
            for ns in [1u64 << shift, (1 << shift) + 1, (2 << shift) - 1, 3 << (shift - 1)] {
                let bucket = bucket_of(ns);
                assert!(ns <= bucket_upper_ns(bucket), "{ns} in {bucket}");
                assert!(ns > bucket_upper_ns(bucket - 1), "{ns} in {bucket}");
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKET_COUNT - 1);
    }
}
