//! How fast something grows, and when it will be done: for the lines of a long import.

use inspect::text::size;
use std::time::{Duration, Instant};

/// An amount that grows, at the time of the last line.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    at: Instant,
    amount: u64,
}

impl Pace {
    /// It has this amount now.
    pub fn new(at: Instant, amount: u64) -> Self {
        Self { at, amount }
    }

    /// How much it grows in a second, between this moment and another, when it has another amount.
    pub fn rate(&self, at: Instant, amount: u64) -> u64 {
        let seconds = at.saturating_duration_since(self.at).as_secs_f64().max(0.001);
        (amount.saturating_sub(self.amount) as f64 / seconds) as u64
    }
}

/// The time that the rest takes at this rate; `None` at a rate of 0.
pub fn estimate(rest: u64, rate: u64) -> Option<Duration> {
    rest.checked_div(rate).map(|seconds| Duration::from_secs(seconds + 1))
}

/// A time to come: `about 40 s`, `about 12 min`, `about 3 h`.
pub fn about(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("about {seconds} s"),
        120..7200 => format!("about {} min", seconds.div_ceil(60)),
        _ => format!("about {} h", seconds.div_ceil(3600)),
    }
}

/// Bytes of a whole that may be unknown, with the rate and an estimate.
pub fn progress(bytes: u64, total: Option<u64>, rate: u64) -> String {
    let of = total.map_or(String::new(), |total| format!(" of {}", size(total)));
    let rest = total.and_then(|total| estimate(total.saturating_sub(bytes), rate));
    let rest = rest.map_or(String::new(), |time| format!(", {} left", about(time)));
    format!("{}{of}, {}/s{rest}", size(bytes), size(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_since_the_last_line() {
        let start = Instant::now();
        let pace = Pace::new(start, 1000);
        assert_eq!(pace.rate(start + Duration::from_secs(5), 11_000), 2000);
        assert_eq!(pace.rate(start + Duration::from_secs(5), 500), 0, "it is smaller: another connection");
    }

    #[test]
    fn lines_name_what_is_known() {
        const MIB: u64 = 1 << 20;
        assert_eq!(progress(10 * MIB, Some(100 * MIB), 2 * MIB), "10.0 MiB of 100.0 MiB, 2.0 MiB/s, about 46 s left");
        assert_eq!(progress(10 * MIB, None, 2 * MIB), "10.0 MiB, 2.0 MiB/s");
        assert_eq!(progress(10 * MIB, Some(100 * MIB), 0), "10.0 MiB of 100.0 MiB, 0 bytes/s");
        let times = [119, 120, 7199, 7200].map(|seconds| about(Duration::from_secs(seconds)));
        assert_eq!(times, ["about 119 s", "about 2 min", "about 120 min", "about 2 h"]);
    }
}
