//! Numbers as text, where Lua's own way is not the one that clients see.

/// A number as an argument of a command: an integer where it is one, otherwise the shortest text that reads back as
/// the same.
pub fn write_argument(number: f64, out: &mut impl FnMut(&[u8])) {
    const SAFE: f64 = (i64::MAX / 2) as f64;
    if (-SAFE..=SAFE).contains(&number) && number.trunc() == number {
        return out((number as i64).to_string().as_bytes());
    }
    if number.is_sign_negative() {
        out(b"-");
    }
    match number.abs() {
        number if number.is_nan() => out(b"nan"),
        f64::INFINITY => out(b"inf"),
        number => write_shortest(number, out),
    }
}

/// The shortest digits, placed as Valkey's `fpconv` places them.
fn write_shortest(number: f64, out: &mut impl FnMut(&[u8])) {
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: String = mantissa.chars().filter(|digit| *digit != '.').collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let count = i32::try_from(digits.len()).unwrap_or(0);
    let last = exponent - (count - 1);
    if last >= 0 && exponent < count + 7 {
        out(digits.as_bytes());
        (0..last).for_each(|_| out(b"0"));
    } else if last < 0 && (last > -7 || exponent.abs() < 4) {
        let point = count + last;
        if point <= 0 {
            out(b"0.");
            (point..0).for_each(|_| out(b"0"));
            out(digits.as_bytes());
        } else {
            let (whole, rest) = digits.split_at(point.unsigned_abs() as usize);
            out(whole.as_bytes());
            out(b".");
            out(rest.as_bytes());
        }
    } else {
        let (first, rest) = digits.split_at(1);
        out(first.as_bytes());
        if !rest.is_empty() {
            out(b".");
            out(rest.as_bytes());
        }
        out(if exponent < 0 { b"e-" } else { b"e+" });
        out(exponent.abs().to_string().as_bytes());
    }
}

/// A number as C's `%.{precision}g` writes it. `precision` is at least 1.
pub fn write_general(number: f64, precision: usize, out: &mut impl FnMut(&[u8])) {
    if number.is_sign_negative() {
        out(b"-");
    }
    let number = number.abs();
    if number.is_nan() {
        return out(b"nan");
    }
    if number.is_infinite() {
        return out(b"inf");
    }
    let text = format!("{number:.*e}", precision - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let precision = i32::try_from(precision).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= precision {
        out(without_zeros(mantissa).as_bytes());
        out(if exponent < 0 { b"e-" } else { b"e+" });
        return out(format!("{:02}", exponent.abs()).as_bytes());
    }
    let fixed = format!("{number:.*}", usize::try_from(precision - 1 - exponent).unwrap_or(0));
    out(without_zeros(&fixed).as_bytes());
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A number as C converts it to a 64-bit integer on x86-64: what does not fit is the smallest one.
pub fn to_integer(number: f64) -> i64 {
    // 2^63 is exact as a double.
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&number) { number as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut dyn FnMut(&[u8]))) -> String {
        let mut all = Vec::new();
        write(&mut |part: &[u8]| all.extend_from_slice(part));
        String::from_utf8(all).unwrap()
    }

    /// As Valkey 9.1 stores what a script passes to SET.
    #[test]
    fn arguments_are_written_as_valkey_writes_them() {
        for (number, expected) in [
            (1e20, "1e+20"),
            (0.1, "0.1"),
            (-0.0, "0"),
            (1e300, "1e+300"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (9_223_372_036_854_775_808.0, "9223372036854776000"),
            (1e-7, "1e-7"),
            (123_456_789.0, "123456789"),
            (-1.5, "-1.5"),
            (f64::INFINITY, "inf"),
            (-f64::NAN, "-nan"),
            (0.000_123, "0.000123"),
        ] {
            assert_eq!(text(|out| write_argument(number, &mut |part| out(part))), expected);
        }
    }

    #[test]
    fn general_format_is_that_of_c() {
        for (number, expected) in [
            (std::f64::consts::PI, "3.1415926535898"),
            (1e15, "1e+15"),
            (1e14, "1e+14"),
            (12_345_678_901_234.0, "12345678901234"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (100.0, "100"),
            (-0.5, "-0.5"),
        ] {
            assert_eq!(text(|out| write_general(number, 14, &mut |part| out(part))), expected);
        }
    }
}
