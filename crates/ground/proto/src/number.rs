//! Integers as requests announce sizes.

/// Reads a signed 64-bit integer that fills `text`. `None` for an empty text, a plus sign, blanks, leading zeros, minus
/// zero, any other byte, and for what does not fit: an accepted text is the only way to write its number.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] => return if negative { None } else { Some(0) },
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    // Nineteen digits are enough for any i64 and fit into a u64.
    if digits.len() > 19 {
        return None;
    }
    let mut magnitude = 0u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts exactly what `i64`'s own canonical text is: anything parsed writes back to the same bytes.
    #[test]
    fn only_the_canonical_text_of_a_number_is_accepted() {
        for number in [0, 1, 9, 10, -1, -10, 1_048_576, i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1] {
            assert_eq!(parse_integer(number.to_string().as_bytes()), Some(number));
        }
        for text in [
            "",
            "-",
            "+1",
            "01",
            "-0",
            "-01",
            "00",
            " 1",
            "1 ",
            "1a",
            "a",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "99999999999999999999",
            "1\r",
            "0x1",
            "1.0",
            "--1",
        ] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
    }
}
