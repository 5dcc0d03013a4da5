//! The latency monitor: for each kind of event that took at least the threshold, its last samples.

use config::Settings;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

/// Samples kept of an event, as in Redis.
pub const SAMPLE_COUNT: usize = 160;

/// One sample: the longest time of that second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Seconds since 1970.
    pub at_seconds: i64,
    /// Milliseconds it took.
    pub ms: u64,
}

/// What is known about one kind of event.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// Oldest first.
    pub samples: VecDeque<Sample>,
    /// The longest ever.
    pub ms_max: u64,
}

/// The samples of all events.
pub struct LatencyMonitor {
    events: Mutex<BTreeMap<&'static str, Event>>,
    /// Milliseconds from which on an event counts; 0 switches off.
    threshold_ms: AtomicU64,
}

impl LatencyMonitor {
    /// No samples yet.
    pub fn new(settings: &Settings) -> Self {
        Self { events: Mutex::default(), threshold_ms: AtomicU64::new(settings.latency_monitor_threshold_ms) }
    }

    /// Takes over the threshold.
    pub fn follow(&self, settings: &Settings) {
        self.threshold_ms.store(settings.latency_monitor_threshold_ms, Ordering::Relaxed);
    }

    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.threshold_ms.load(Ordering::Relaxed) > 0
    }

    /// Notes an event if it took at least the threshold.
    pub fn record(&self, event: &'static str, at_seconds: i64, ms: u64) {
        let threshold = self.threshold_ms.load(Ordering::Relaxed);
        if threshold == 0 || ms < threshold {
            return;
        }
        let mut events = self.events.lock();
        let event = events.entry(event).or_default();
        event.ms_max = event.ms_max.max(ms);
        match event.samples.back_mut() {
            Some(last) if last.at_seconds == at_seconds => last.ms = last.ms.max(ms),
            _ => {
                if event.samples.len() == SAMPLE_COUNT {
                    event.samples.pop_front();
                }
                event.samples.push_back(Sample { at_seconds, ms });
            }
        }
    }

    /// All events with samples, by name.
    pub fn events(&self) -> Vec<(&'static str, Event)> {
        self.events.lock().iter().map(|(name, event)| (*name, event.clone())).collect()
    }

    /// One event, its name in any case.
    pub fn event(&self, name: &[u8]) -> Option<(&'static str, Event)> {
        let events = self.events.lock();
        let found = events.iter().find(|(other, _)| name.eq_ignore_ascii_case(other.as_bytes()));
        found.map(|(name, event)| (*name, event.clone()))
    }

    /// Forgets one event, or all; how many there were.
    pub fn reset(&self, name: Option<&[u8]>) -> usize {
        let mut events = self.events.lock();
        let before = events.len();
        events.retain(|other, _| name.is_some_and(|name| !name.eq_ignore_ascii_case(other.as_bytes())));
        before - events.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sample_a_second_and_only_the_last() {
        let monitor = LatencyMonitor::new(&Settings { latency_monitor_threshold_ms: 10, ..Settings::default() });
        monitor.record("command", 0, 9);
        assert!(monitor.events().is_empty());
        for second in 0..200 {
            monitor.record("command", second, 10);
            monitor.record("command", second, 10 + second as u64);
        }
        let (name, event) = monitor.event(b"COMMAND").unwrap();
        assert_eq!((name, event.ms_max, event.samples.len()), ("command", 209, SAMPLE_COUNT));
        assert_eq!(event.samples[0], Sample { at_seconds: 40, ms: 50 });
        assert_eq!(monitor.reset(Some(b"other")), 0);
        assert_eq!(monitor.reset(None), 1);
        assert!(monitor.event(b"command").is_none());
    }
}
