//! Integers as strings hold them: one canonical text each.

/// A decimal 64-bit integer written the one canonical way: no plus, no leading zeros, no spaces, no `-0`.
#[inline]
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude = 0u64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    // Nineteen digits stay below 2^64, so nothing has wrapped; `0 - 2^63` is the one value without a positive twin.
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Room for the text of any 64-bit integer.
#[derive(Default)]
pub struct IntegerText([u8; 20]);

impl IntegerText {
    /// The canonical text of the number.
    #[inline]
    pub fn format(&mut self, number: i64) -> &[u8] {
        let mut magnitude = number.unsigned_abs();
        let mut start = self.0.len();
        for byte in self.0.iter_mut().rev() {
            *byte = b'0' | (magnitude % 10) as u8;
            magnitude /= 10;
            start = start.wrapping_sub(1);
            if magnitude == 0 {
                break;
            }
        }
        // Nineteen digits at most, so there is room for the sign.
        if number < 0 {
            start = start.wrapping_sub(1);
            if let Some(sign) = self.0.get_mut(start) {
                *sign = b'-';
            }
        }
        self.0.get(start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_canonical() {
        for number in [0, 1, -1, 10, i64::MAX, i64::MIN, i64::MIN + 1, 1_000_000_007] {
            let mut text = IntegerText::default();
            assert_eq!(text.format(number), number.to_string().as_bytes());
            assert_eq!(parse_integer(number.to_string().as_bytes()), Some(number));
        }
        for text in [
            "",
            "-",
            "-0",
            "+1",
            "01",
            " 1",
            "1 ",
            "1a",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
        ] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
    }
}
