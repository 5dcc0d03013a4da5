//! Durations in words.

use base::UnixMs;

const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];

/// A duration by its two largest units: `1 h 40 min`, `10 min`, `3 d 4 h`, `0 s`.
pub fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    let largest = UNITS.iter().position(|(_, unit)| seconds >= *unit).unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let mut words = Vec::new();
    for (name, unit) in UNITS.iter().skip(largest).take(2) {
        if rest / unit > 0 || words.is_empty() {
            words.push(format!("{} {name}", rest / unit));
        }
        rest %= unit;
    }
    words.join(" ")
}

/// How long before `now` a moment is: `10 min ago`, `now`, `in 5 s` where a clock was set.
pub fn ago(at: UnixMs, now: UnixMs) -> String {
    match now.saturating_sub(at) / 1000 {
        0 => "now".to_owned(),
        1.. => format!("{} ago", span(now.abs_diff(at))),
        _ => format!("in {}", span(now.abs_diff(at))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (100, "1 min 40 s"),
            (6_000, "1 h 40 min"),
            (3_601, "1 h"),
            (86_399, "23 h 59 min"),
            (86_400, "1 d"),
            (273_600, "3 d 4 h"),
        ] {
            assert_eq!(span(seconds * 1000 + 999), text);
        }
        assert_eq!((ago(0, 600_000), ago(0, 999), ago(5_000, 0)), ("10 min ago".into(), "now".into(), "in 5 s".into()));
    }
}
