//! An hour of figures, a sample a second.
//!
//! H1. Memory is bounded: [`SAMPLES_MAX`] samples of [`FIELDS`], 240 KB.
//! H2. Rates are differences of totals. A total that shrinks (CONFIG RESETSTAT) begins anew.

use crate::figures::Figures;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Samples kept: those of an hour.
pub const SAMPLES_MAX: usize = 3600;

/// What a sample has after its time.
pub const FIELDS: [&str; FIELD_COUNT] = [
    "commands",
    "input_bytes",
    "output_bytes",
    "hits",
    "misses",
    "expired",
    "evicted",
    "errors",
    "p50_usec",
    "p99_usec",
    "p999_usec",
    "used_memory",
    "resident_memory",
    "clients",
    "unsynced_bytes",
    "unsynced_ms",
    "cpu_percent",
];

/// Totals whose rates are the first fields.
const TOTALS: [&str; 8] = [
    "total_commands_processed",
    "total_net_input_bytes",
    "total_net_output_bytes",
    "keyspace_hits",
    "keyspace_misses",
    "expired_keys",
    "evicted_keys",
    "total_error_replies",
];

/// Figures that follow the percentiles.
const GAUGES: [&str; 5] =
    ["used_memory", "used_memory_rss", "connected_clients", "log_unsynced_bytes", "log_oldest_unsynced_ms"];

const PERCENTS: [f64; 3] = [50.0, 99.0, 99.9];
const FIELD_COUNT: usize = 17;
const _: () = assert!(TOTALS.len() + PERCENTS.len() + GAUGES.len() + 1 == FIELD_COUNT);

/// One second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Unix time in milliseconds.
    pub at_ms: i64,
    /// In the order of [`FIELDS`].
    pub values: [f32; FIELD_COUNT],
}

/// The totals at one moment.
struct Totals {
    at_ms: i64,
    counts: [f64; TOTALS.len()],
    cpu_seconds: f64,
    /// Calls by bucket of their duration.
    calls: Vec<u64>,
}

/// The samples, oldest first.
#[derive(Default)]
pub struct History {
    samples: VecDeque<Sample>,
    last: Option<Totals>,
}

impl History {
    /// Adds a sample of these figures; none for the first, which has no rates. `durations` are, for each bucket, its
    /// longest duration in nanoseconds and its calls.
    pub fn add(&mut self, at_ms: i64, figures: &Figures<'_>, durations: &[(u64, u64)]) -> Option<Sample> {
        let number = |name: &str| figures.number(name).unwrap_or(0.0);
        let now = Totals {
            at_ms,
            counts: TOTALS.map(number),
            cpu_seconds: number("used_cpu_sys") + number("used_cpu_user"),
            calls: durations.iter().map(|(_, calls)| *calls).collect(),
        };
        let last = self.last.replace(now)?;
        let now = self.last.as_ref()?;
        let seconds = (now.at_ms - last.at_ms).max(1) as f64 / 1000.0;
        let rates = now.counts.iter().zip(&last.counts).map(|(now, last)| (now - last).max(0.0) / seconds);
        let calls: Vec<u64> = now.calls.iter().zip(&last.calls).map(|(now, last)| now.saturating_sub(*last)).collect();
        let percentiles = PERCENTS.map(|percent| percentile_usec(durations, &calls, percent));
        let cpu = 100.0 * (now.cpu_seconds - last.cpu_seconds).max(0.0) / seconds;
        let all = rates.chain(percentiles).chain(GAUGES.map(number)).chain([cpu]);
        let mut sample = Sample { at_ms, values: [0.0; FIELD_COUNT] };
        sample.values.iter_mut().zip(all).for_each(|(value, found)| *value = found as f32);
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        Some(sample)
    }

    /// All samples, oldest first.
    pub fn samples(&self) -> impl DoubleEndedIterator<Item = &Sample> {
        self.samples.iter()
    }

    /// The newest sample.
    pub fn newest(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// The newest samples as JSON.
    pub fn json(&self, seconds: usize) -> Value {
        let skipped = self.samples.len().saturating_sub(seconds);
        let samples: Vec<_> = self.samples.iter().skip(skipped).map(Sample::json).collect();
        json!({"fields": FIELDS, "samples": samples})
    }
}

impl Sample {
    /// The value of one of [`FIELDS`]; 0 for another name.
    pub fn get(&self, field: &str) -> f64 {
        FIELDS.iter().zip(self.values).find(|(name, _)| **name == field).map_or(0.0, |(_, value)| f64::from(value))
    }

    /// Its time and values by name.
    pub fn object(&self) -> Value {
        let time = std::iter::once(("at_ms".to_owned(), Value::from(self.at_ms)));
        let values = FIELDS.iter().zip(self.values).map(|(name, value)| ((*name).to_owned(), rounded(value)));
        Value::Object(time.chain(values).collect())
    }

    /// Its time and values in one list.
    pub fn json(&self) -> Value {
        let values = self.values.into_iter().map(rounded);
        Value::Array(std::iter::once(Value::from(self.at_ms)).chain(values).collect())
    }
}

/// With two digits after the point.
fn rounded(value: f32) -> Value {
    Value::from((f64::from(value) * 100.0).round() / 100.0)
}

/// A percentile of the durations of the calls, in microseconds; 0 without calls.
fn percentile_usec(durations: &[(u64, u64)], calls: &[u64], percent: f64) -> f64 {
    let total: u64 = calls.iter().sum();
    let wanted = total as f64 * percent / 100.0;
    let mut sum = 0;
    for ((upper_ns, _), count) in durations.iter().zip(calls) {
        sum += count;
        if *count > 0 && sum as f64 >= wanted {
            return *upper_ns as f64 / 1000.0;
        }
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(commands: u64) -> String {
        format!(
            "total_commands_processed:{commands}\r\nused_memory:1024\r\nused_cpu_user:{}\r\n",
            commands as f64 / 1e4
        )
    }

    fn add(history: &mut History, at_ms: i64, commands: u64, durations: &[(u64, u64)]) -> Option<Sample> {
        let text = info(commands);
        history.add(at_ms, &Figures::parse(&text), durations)
    }

    #[test]
    fn a_sample_has_rates_percentiles_and_gauges() {
        let mut history = History::default();
        assert_eq!(add(&mut history, 1000, 100, &[(1000, 100), (8000, 0), (9000, 0)]), None, "no rates yet");
        let sample = add(&mut history, 3000, 300, &[(1000, 298), (8000, 1), (9000, 1)]).unwrap();
        let value = |name: &str| sample.values[FIELDS.iter().position(|field| *field == name).unwrap()];
        assert_eq!(value("commands"), 100.0);
        assert_eq!((value("p50_usec"), value("p99_usec"), value("p999_usec")), (1.0, 1.0, 9.0));
        assert_eq!((value("used_memory"), value("cpu_percent")), (1024.0, 1.0));
        let after_reset = add(&mut history, 4000, 0, &[(1000, 0), (8000, 0), (9000, 0)]).unwrap();
        assert_eq!(after_reset.values[0], 0.0, "CONFIG RESETSTAT begins anew");
    }

    #[test]
    fn an_hour_is_kept() {
        let mut history = History::default();
        for second in 0..SAMPLES_MAX as i64 + 100 {
            add(&mut history, second * 1000, second as u64, &[]);
        }
        let all = history.json(usize::MAX);
        assert_eq!(all["samples"].as_array().unwrap().len(), SAMPLES_MAX);
        assert_eq!(all["samples"][0][0], 100_000);
        assert_eq!(history.json(60)["samples"].as_array().unwrap().len(), 60);
    }
}
