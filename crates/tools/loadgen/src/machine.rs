//! The machine of a result, so that figures of different machines are not compared by accident.

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
    /// Load average over a minute at the beginning: above 0, other programs were running too.
    pub load_average: f64,
}

impl Machine {
    /// This machine, according to `/proc`; unknown values are empty or 0.
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
    let ms = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    calendar::utc_minute(i64::try_from(ms).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cores_and_memory() {
        let machine = Machine::read();
        assert!(machine.cores > 0 && machine.memory_bytes > 0 && !machine.kernel.is_empty(), "{machine:?}");
    }
}
