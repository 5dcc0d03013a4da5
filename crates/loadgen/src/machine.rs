//! What a result was measured on, so that nobody compares figures of different machines by accident.

use crate::process::field_of;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: usize,
    /// Version of the Linux kernel.
    pub kernel: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Load average over a minute when the run began: above 0 others were working too.
    pub load_average: f64,
}

impl Machine {
    /// This machine, as `/proc` tells it; what it does not tell is empty or 0.
    pub fn read() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpu = text("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned()));
        Self {
            cpu: cpu.unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_bytes: field_of(&text("/proc/meminfo"), "MemTotal:").unwrap_or(0) * 1024,
            load_average: text("/proc/loadavg").split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gib = self.memory_bytes as f64 / f64::from(1 << 30);
        write!(f, "{}, {} cores, {gib:.0} GiB, Linux {}", self.cpu, self.cores, self.kernel)
    }
}

/// A moment as `2025-11-21 04:05` in UTC.
pub fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60)
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar: whole years are taken off, then
/// whole months.
fn civil(mut day: u64) -> (u64, usize, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= months[month] {
        day -= months[month];
        month += 1;
    }
    (year, month + 1, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_gregorian() {
        let at = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00");
        assert_eq!(at(951_782_400), "2000-02-29 00:00");
        assert_eq!(at(951_868_800), "2000-03-01 00:00");
        assert_eq!(at(1_735_689_599), "2024-12-31 23:59");
        assert_eq!(at(1_763_697_900), "2025-11-21 04:05");
    }

    #[test]
    fn this_machine_has_cores_and_memory() {
        let machine = Machine::read();
        assert!(machine.cores > 0 && machine.memory_bytes > 0 && !machine.kernel.is_empty(), "{machine:?}");
    }
}
