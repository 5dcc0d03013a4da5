//! Numbers as people read them.

/// Bytes as the page writes them: `1.5 MiB`.
pub fn bytes(bytes: f64) -> String {
    base::size::size(bytes.round() as u64)
}

/// A count with a unit of 1,000: `12.3 k`.
pub fn count(count: f64) -> String {
    scaled(count, 1000.0, &["", "k", "M", "G", "T"]).trim_end().to_owned()
}

/// A duration of microseconds: `850 us`, `1.2 ms`, `3.4 s`.
pub fn micros(usec: f64) -> String {
    scaled(usec, 1000.0, &["us", "ms", "s"])
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut at = 0;
    while value.abs() >= step && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    let unit = units.get(at).copied().unwrap_or_default();
    let digits = if at == 0 && value.fract() == 0.0 || value.abs() >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 1023.0, 1536.0, 104_857_600.0].map(bytes), ["0 bytes", "1023 bytes", "1.5 KiB", "100.0 MiB"]);
        assert_eq!([0.0, 7.5, 999.0, 12_345.0, 2.5e6].map(count), ["0", "7.5", "999", "12.3 k", "2.5 M"]);
        assert_eq!([12.5, 850.0, 1234.0, 3.4e6].map(micros), ["12.5 us", "850 us", "1.2 ms", "3.4 s"]);
    }
}
