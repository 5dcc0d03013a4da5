//! Bytes, times and sizes as people read them.

use base::UnixMs;
use std::fmt::Write;

const MS_PER_DAY: i64 = 86_400_000;
/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;
/// Days of 400 years: the calendar repeats after them.
const DAYS_PER_ERA: i64 = 146_097;

/// Bytes as printable ASCII: others as `\xNN`, and `\\` for a backslash, so that no two strings look the same.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' => out.push(char::from(byte)),
            // Writing to a string does not fail.
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out
}

/// A moment as `2026-11-22T06:07:35.120Z`; a plain number of milliseconds outside of the years 0 to 9999.
pub fn time(at: UnixMs) -> String {
    let (days, ms) = (at.div_euclid(MS_PER_DAY), at.rem_euclid(MS_PER_DAY));
    // Years begin in March here, so that a leap day is the last of its year.
    let shifted = days.saturating_add(DAYS_TO_EPOCH);
    let (era, day) = (shifted.div_euclid(DAYS_PER_ERA), shifted.rem_euclid(DAYS_PER_ERA));
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    if !(0..=9999).contains(&year) {
        return format!("{at} ms");
    }
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Reads `2026-11-22T06:07:35.120Z`; a space for the `T`, no seconds or no fraction, another zone (`+09:00`) and none, which
/// is UTC, are fine too. `None` for anything else.
pub fn parse_time(text: &str) -> Option<UnixMs> {
    let (date, clock) = text.split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-').map(digits);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone_at = clock.find(['Z', 'z', '+', '-']).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at_checked(zone_at)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.splitn(3, ':').map(digits);
    let (hour, minute) = (clock.next()??, clock.next()??);
    let second = clock.next().unwrap_or(Some(0))?;
    let fraction = format!("{fraction:0<3}");
    let ms = digits(&fraction).and_then(|_| digits(fraction.get(..3)?))?;
    let zone_minutes = match zone {
        "" | "Z" | "z" => 0,
        _ => {
            let (sign, rest) = zone.split_at_checked(1)?;
            let (hours, minutes) = rest.split_once(':')?;
            let minutes = digits(hours)?.checked_mul(60)?.checked_add(digits(minutes)?)?;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    };
    let possible = year <= 9999
        && (1..=12).contains(&month)
        && (1..=days_in_month).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && zone_minutes.abs() < 24 * 60;
    if !possible {
        return None;
    }
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted_year.div_euclid(400), shifted_year.rem_euclid(400));
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * DAYS_PER_ERA + day_of_era - DAYS_TO_EPOCH;
    let minutes = (days * 24 + hour) * 60 + minute - zone_minutes;
    Some((minutes * 60 + second) * 1000 + ms)
}

/// A number of at most nine digits, and nothing else.
fn digits(text: &str) -> Option<i64> {
    let plain = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// So many bytes, as `1.5 MiB (1,572,864 bytes)` would be without the second part.
pub fn size(bytes: u64) -> String {
    let mut unit = 0;
    let mut value = bytes as f64;
    const UNITS: [&str; 6] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match UNITS.get(unit) {
        Some(name) if unit > 0 => format!("{value:.1} {name}"),
        _ if bytes == 1 => "1 byte".to_owned(),
        _ => format!("{bytes} bytes"),
    }
}

/// A count and its noun: `1 entry`, `2 entries`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(time(ms), text);
            assert_eq!(parse_time(text), Some(ms));
        }
        assert_eq!(time(i64::MAX), format!("{} ms", i64::MAX));
        assert_eq!(time(i64::MIN), format!("{} ms", i64::MIN));
    }

    #[test]
    fn times_are_read_in_several_forms() {
        for (text, ms) in [
            ("1970-01-02 00:00", 86_400_000),
            ("1970-01-01T09:00:01+09:00", 1000),
            ("1969-12-31t19:30:00.5-04:30", 500),
            ("1970-01-01 00:00:00.123456Z", 123),
        ] {
            assert_eq!(parse_time(text), Some(ms), "{text}");
        }
        for other in [
            "",
            "now",
            "1970-01-01",
            "1970-13-01 00:00",
            "2023-02-29 00:00",
            "1970-01-01 24:00",
            "1970-01-01 00:00:00+",
            "1970-01-01 00:00:00+9",
            "1970-01-01 0a:00",
            "-1970-01-01 00:00",
        ] {
            assert_eq!(parse_time(other), None, "{other}");
        }
    }

    #[test]
    fn bytes_sizes_and_counts() {
        assert_eq!(escape(b"a b\\\n\xff\0"), "a b\\\\\\n\\xff\\x00");
        assert_eq!((size(1), size(1023), size(1536)), ("1 byte".into(), "1023 bytes".into(), "1.5 KiB".into()));
        assert_eq!((count(1, "key", "keys"), count(0, "key", "keys")), ("1 key".into(), "0 keys".into()));
    }
}
