//! What people write for a moment.

use base::UnixMs;
use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};

/// Why a text is no moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// None of the forms.
    #[error(
        "`{0}` is no time; write a duration before now (-10m, -1h30m, -2d), a time of day (13:21:57), or a date and a \
         time (2026-11-22 13:21:57, with Z or +09:00 for another zone)"
    )]
    Form(String),
    /// The clock skipped it.
    #[error("{0} does not exist in the local time zone, where clocks go forward then; add an offset such as +09:00")]
    Gap(String),
}

/// Reads a moment:
///
/// | Text | Meaning |
/// |---|---|
/// | `-10m`, `-90s`, `-1h30m`, `-2d` | this long before `now` |
/// | `13:21`, `13:21:57`, `13:21:57.120` | the last time before `now` that clocks in `zone` showed this |
/// | `2026-11-22 13:21:57` | by clocks in `zone`; `T` may stand for the space, seconds may be missing |
/// | `2026-11-22 13:21:57 +09:00`, `...Z` | by clocks with this offset from UTC |
///
/// Where clocks are set back, a local time comes twice: the first is meant. An offset says which.
///
/// # Errors
/// [`TimeError`], for people.
pub fn parse(text: &str, now: UnixMs, zone: &TimeZone) -> Result<UnixMs, TimeError> {
    let text = text.trim();
    let unknown = || TimeError::Form(text.to_owned());
    if let Some(duration) = text.strip_prefix('-') {
        let ms = duration_ms(duration).ok_or_else(unknown)?;
        return now.checked_sub(ms).ok_or_else(unknown);
    }
    if !text.contains(':') {
        return Err(unknown());
    }
    // A date with a time would be read as a time alone.
    if !text.contains(['-', 'T', 't', ' '])
        && let Ok(time) = text.parse::<Time>()
    {
        return time_of_day(time, now, zone).ok_or_else(unknown)?;
    }
    // The offset may be written apart, as our own messages do.
    let joined = text.replacen(" +", "+", 1).replacen(" -", "-", 1);
    if let Ok(at) = joined.parse::<Timestamp>() {
        return Ok(at.as_millisecond());
    }
    civil(text.parse().map_err(|_| unknown())?, zone)
}

/// Milliseconds of `1h30m`.
fn duration_ms(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut sum = 0i64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at_checked(digits)?;
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at_checked(letters)?;
        let seconds = match unit {
            "s" | "sec" => 1,
            "m" | "min" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        sum = sum.checked_add(number.parse::<i64>().ok()?.checked_mul(seconds)?.checked_mul(1000)?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(sum)
}

/// Today, or yesterday if that is still to come. `None` at the ends of the calendar.
fn time_of_day(time: Time, now: UnixMs, zone: &TimeZone) -> Option<Result<UnixMs, TimeError>> {
    let today = Timestamp::from_millisecond(now).ok()?.to_zoned_datetime(zone.clone()).date();
    match civil(today.to_datetime(time), zone) {
        Ok(at) if at > now => Some(civil(today.yesterday().ok()?.to_datetime(time), zone)),
        read => Some(read),
    }
}

/// A moment by clocks in a zone.
fn civil(at: DateTime, zone: &TimeZone) -> Result<UnixMs, TimeError> {
    let out_of_range = || TimeError::Form(at.to_string());
    let moment = zone.to_ambiguous_timestamp(at);
    if matches!(moment.offset(), AmbiguousOffset::Gap { .. }) {
        return Err(TimeError::Gap(at.to_string()));
    }
    Ok(moment.compatible().map_err(|_| out_of_range())?.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22T12:00:00Z.
    const NOW: UnixMs = 1_795_348_800_000;

    fn seoul() -> TimeZone {
        TimeZone::posix("KST-9").expect("a zone")
    }

    #[test]
    fn durations_count_back_from_now() {
        for (text, seconds) in
            [("-10m", 600), ("-90s", 90), ("-1h30m", 5_400), ("-2d", 172_800), ("-10min", 600), ("-0s", 0)]
        {
            assert_eq!(parse(text, NOW, &seoul()), Ok(NOW - seconds * 1000), "{text}");
        }
    }

    #[test]
    fn times_of_day_are_the_last_ones_that_clocks_showed() {
        // It is 21:00 there.
        for (text, hours_ago) in [("20:00", 1.0), ("20:30:00", 0.5), ("21:00", 0.0), ("21:30:00", 23.5)] {
            assert_eq!(parse(text, NOW, &seoul()), Ok(NOW - (hours_ago * 3_600_000.0) as i64), "{text}");
        }
        assert_eq!(parse("20:59:59.120", NOW, &seoul()), Ok(NOW - 880));
    }

    #[test]
    fn dates_are_local_unless_they_have_an_offset() {
        for text in [
            "2026-11-22 21:00:00",
            "2026-11-22 21:00",
            "2026-11-22T21:00:00.000",
            "2026-11-22 12:00Z",
            "2026-11-22t12:00:00z",
            "2026-11-22 21:00:00 +09:00",
            "2026-11-22 07:30:00-04:30",
            " 2026-11-22 07:30:00 -04:30 ",
        ] {
            assert_eq!(parse(text, 0, &seoul()), Ok(NOW), "{text}");
        }
    }

    #[test]
    fn clocks_that_are_set() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        let read = |text| parse(text, NOW, &berlin);
        // 02:30 comes twice on this day: at 00:30 and at 01:30 of UTC.
        assert_eq!(read("2026-10-25 02:30"), read("2026-10-25 00:30Z"));
        assert_eq!(read("2026-10-25 02:30 +01:00"), read("2026-10-25 01:30Z"));
        let skipped = read("2026-03-29 02:30").expect_err("clocks went from 02:00 to 03:00");
        assert_eq!(
            skipped.to_string(),
            "2026-03-29T02:30:00 does not exist in the local time zone, where clocks go forward then; \
             add an offset such as +09:00"
        );
    }

    #[test]
    fn other_texts_are_refused_in_words() {
        for text in [
            "",
            "-",
            "-10",
            "-m",
            "-10x",
            "-1h-30m",
            "- 10m",
            "-99999999999999999d",
            "now",
            "yesterday",
            "13",
            "25:00",
            "13:60",
            "1970-01-01",
            "1970-13-01 00:00",
            "2023-02-29 00:00",
            "1970-01-01 24:01",
            "1970-01-01 00:00:00+",
            "1970-01-01 0a:00",
        ] {
            let error = parse(text, NOW, &seoul()).expect_err(text);
            assert!(
                error.to_string().starts_with(&format!("`{text}` is no time; write a duration before now (-10m,")),
                "{error}"
            );
        }
    }
}
