//! Times as ARCUS writes them, in local time.

use base::UnixMs;
use calendar::TimeZone;

/// `YYYYMMDD_hmmss`: the day and the time as numbers. Zeros for no time.
pub fn stamp(at: UnixMs, zone: &TimeZone) -> String {
    if at == 0 {
        return "0_0".to_owned();
    }
    let text = calendar::local(at, zone);
    let digits: String = text.chars().take(19).filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at_checked(8).unwrap_or_default();
    let time = time.trim_start_matches('0');
    format!("{day}_{}", if time.is_empty() { "0" } else { time })
}

/// `hh:mm:ss.uuuuuu`
pub fn time_of_day(at: UnixMs, zone: &TimeZone) -> String {
    let seconds: String = calendar::local(at, zone).chars().skip(11).take(8).collect();
    format!("{seconds}.{:03}000", at.rem_euclid(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers() {
        let zone = TimeZone::UTC;
        assert_eq!(stamp(0, &zone), "0_0");
        assert_eq!(stamp(1_790_000_000_123, &zone), "20260921_141320");
        assert_eq!(stamp(1_789_948_800_000, &zone), "20260921_0");
        assert_eq!(stamp(1_789_948_805_000, &zone), "20260921_5");
        assert_eq!(time_of_day(1_790_000_000_123, &zone), "14:13:20.123000");
    }
}
