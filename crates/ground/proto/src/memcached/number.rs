//! Numbers in memcached requests.

/// A decimal number of 64 bits, perhaps with a sign; `None` for anything else.
pub fn parse_signed(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let magnitude = i128::from(magnitude(digits)?);
    i64::try_from(if is_negative { magnitude.saturating_neg() } else { magnitude }).ok()
}

/// A decimal number of 64 bits without a minus sign; `None` for anything else.
pub fn parse_unsigned(text: &[u8]) -> Option<u64> {
    magnitude(text.strip_prefix(b"+").unwrap_or(text))
}

fn magnitude(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_and_whole() {
        let unsigned = [
            ("0", Some(0)),
            ("+7", Some(7)),
            ("0012", Some(12)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-1", None),
            ("", None),
            ("+", None),
            ("1x", None),
            (" 1", None),
        ];
        unsigned.iter().for_each(|(text, value)| assert_eq!(parse_unsigned(text.as_bytes()), *value, "{text}"));
        let signed = [
            ("-1", Some(-1)),
            ("+7", Some(7)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-", None),
            ("--1", None),
        ];
        signed.iter().for_each(|(text, value)| assert_eq!(parse_signed(text.as_bytes()), *value, "{text}"));
    }
}
