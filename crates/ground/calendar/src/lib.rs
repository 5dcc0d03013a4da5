//! Moments and durations as people write and read them. Inside the program a moment is a [`UnixMs`].
//!
//! Messages for people give local time with its offset from UTC. Data for programs is in UTC. [`parse`] reads both.

#![forbid(unsafe_code)]

mod read;
mod span;

pub use jiff::tz::TimeZone;
pub use read::{TimeError, parse};
pub use span::{ago, span};

use base::UnixMs;
use jiff::Timestamp;
use jiff::fmt::strtime;

/// A moment as `2026-11-22T06:07:35.120Z`; a plain number of milliseconds outside of the years 0 to 9999.
pub fn utc(at: UnixMs) -> String {
    text("%Y-%m-%dT%H:%M:%S.%3fZ", at, TimeZone::UTC)
}

/// A moment as `2026-11-22 06:07` in UTC.
pub fn utc_minute(at: UnixMs) -> String {
    text("%Y-%m-%d %H:%M", at, TimeZone::UTC)
}

/// A moment as `2026-11-22 15:07:35 +09:00`, which [`parse`] reads.
pub fn local(at: UnixMs, zone: &TimeZone) -> String {
    text("%Y-%m-%d %H:%M:%S %:z", at, zone.clone())
}

/// The zone of this machine: of the variable TZ, or else of the system. UTC where neither says.
pub fn system_zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

fn text(format: &str, at: UnixMs, zone: TimeZone) -> String {
    let shown = Timestamp::from_millisecond(at).ok().map(|at| at.to_zoned_datetime(zone)).filter(|at| at.year() >= 0);
    shown.and_then(|at| strtime::format(format, &at).ok()).unwrap_or_else(|| format!("{at} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(utc(ms), text);
            assert_eq!(parse(text, 0, &TimeZone::UTC), Ok(ms));
        }
        assert_eq!(utc(i64::MAX), format!("{} ms", i64::MAX));
        assert_eq!(utc(i64::MIN), format!("{} ms", i64::MIN));
        assert_eq!(utc_minute(1_763_697_900_000), "2025-11-21 04:05");
    }

    #[test]
    fn local_time_has_its_offset() {
        let seoul = TimeZone::posix("KST-9").expect("a zone");
        let text = local(1_763_697_900_000, &seoul);
        assert_eq!(text, "2025-11-21 13:05:00 +09:00");
        assert_eq!(parse(&text, 0, &TimeZone::UTC), Ok(1_763_697_900_000));
    }
}
