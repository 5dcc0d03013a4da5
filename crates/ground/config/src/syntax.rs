//! The smallest pieces of the file's syntax: words with quotes, integers, sizes.

/// Splits a line into words as Redis does: words end at white space; `"..."` knows `\n \r \t \b \a \xHH` and takes any
/// other escaped byte as itself; `'...'` knows `\'` only. A quote must be followed by white space or the end.
/// `None` when a quote is not closed or is followed by something else.
pub(crate) fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let mut word = Vec::new();
        rest = take_word(rest, &mut word)?.trim_ascii_start();
        words.push(word);
    }
    Some(words)
}

/// Takes one word off the front of a line that does not begin with white space.
fn take_word<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    while let [byte, after @ ..] = rest {
        match byte {
            b'"' => return ends_word(take_double_quoted(after, word)?),
            b'\'' => return ends_word(take_single_quoted(after, word)?),
            space if space.is_ascii_whitespace() => return Some(rest),
            _ => word.push(*byte),
        }
        rest = after;
    }
    Some(rest)
}

/// What follows a closing quote, if it is white space or the end.
fn ends_word(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(u8::is_ascii_whitespace).then_some(rest)
}

fn take_double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex_digit(*high) << 4 | hex_digit(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        }
    }
}

fn take_single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'\'', after @ ..] => return Some(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        }
    }
}

/// The value of a hexadecimal digit that has been checked to be one.
fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit.wrapping_sub(b'0'),
        other => other.to_ascii_lowercase().wrapping_sub(b'a').wrapping_add(10),
    }
}

/// A word in double quotes that [`split_words`] reads back, in printable ASCII only.
pub(crate) fn quote(word: &[u8]) -> String {
    let mut quoted = String::with_capacity(word.len().saturating_add(2));
    quoted.push('"');
    for byte in word {
        match byte {
            b'\\' => quoted.push_str("\\\\"),
            b'"' => quoted.push_str("\\\""),
            b'\n' => quoted.push_str("\\n"),
            b'\r' => quoted.push_str("\\r"),
            b'\t' => quoted.push_str("\\t"),
            printable @ 0x20..=0x7e => quoted.push(char::from(*printable)),
            other => quoted.push_str(&format!("\\x{other:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// Text for a message: control bytes and what is not UTF-8 are replaced, and a long text is cut.
pub(crate) fn printable(text: &[u8]) -> String {
    const LENGTH_MAX: usize = 200;
    let text = String::from_utf8_lossy(text);
    let mut shown: String =
        text.chars().take(LENGTH_MAX).map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(LENGTH_MAX).is_some() {
        shown.push_str("...");
    }
    shown
}

/// `yes` or `no`, in any case.
pub(crate) fn parse_flag(word: &[u8]) -> Option<bool> {
    match word {
        yes if yes.eq_ignore_ascii_case(b"yes") => Some(true),
        no if no.eq_ignore_ascii_case(b"no") => Some(false),
        _ => None,
    }
}

/// A decimal integer as Redis takes it: no sign but `-`, no leading zero, no white space.
pub(crate) fn parse_integer(word: &[u8]) -> Option<i64> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    match digits {
        [b'0'] => (digits.len() == word.len()).then_some(0),
        [b'1'..=b'9', ..] => std::str::from_utf8(word).ok()?.parse().ok(),
        _ => None,
    }
}

/// A size: digits, then nothing, `b`, `k`, `kb`, `m`, `mb`, `g` or `gb` in any case; `kb` is 1024, `k` is 1000. No
/// digits mean zero, as in Redis. The product may exceed 64 bits, the digits alone may not.
pub(crate) fn parse_size(word: &[u8]) -> Option<u128> {
    let length = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = word.split_at_checked(length)?;
    let factor: u128 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1000 * 1000,
        b"mb" => 1 << 20,
        b"g" => 1000 * 1000 * 1000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    let number: u64 = if digits.is_empty() { 0 } else { std::str::from_utf8(digits).ok()?.parse().ok()? };
    u128::from(number).checked_mul(factor)
}

/// A size with the largest unit that loses nothing.
pub(crate) fn format_size(bytes: u64) -> String {
    for (shift, unit) in [(30, "gb"), (20, "mb"), (10, "kb")] {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// A number with at most six decimals and no superfluous zeros, as Redis prints percentiles.
pub(crate) fn format_percentile(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &str) -> Option<Vec<String>> {
        Some(split_words(line.as_bytes())?.into_iter().map(|word| String::from_utf8(word).unwrap()).collect())
    }

    #[test]
    fn lines() {
        for (line, expected) in [
            ("", Some(&[][..])),
            ("  port\t6379  ", Some(&["port", "6379"][..])),
            (r#"save """#, Some(&["save", ""])),
            (r#"a "b \"c\" \x41\n\q" d"#, Some(&["a", "b \"c\" A\nq", "d"])),
            (r#"a "\x4g""#, Some(&["a", "x4g"])),
            (r"a 'it\'s \n'", Some(&["a", r"it's \n"])),
            (r#"pre"fix""#, Some(&["prefix"])),
            (r#"a "b"c"#, None),
            (r#"a "b"#, None),
            ("a 'b", None),
            (r#"a "b\"#, None),
        ] {
            assert_eq!(words(line), expected.map(|words| words.iter().map(|w| w.to_string()).collect()), "{line}");
        }
    }

    #[test]
    fn integers() {
        for (word, expected) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("05", None),
            ("-0", None),
            ("+5", None),
            (" 5", None),
            ("5 ", None),
            ("1kb", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(parse_integer(word.as_bytes()), expected, "{word}");
        }
    }

    #[test]
    fn sizes() {
        for (word, expected) in [
            ("0", Some(0)),
            ("100B", Some(100)),
            ("1k", Some(1000)),
            ("1KB", Some(1024)),
            ("2m", Some(2_000_000)),
            ("2Mb", Some(2 << 20)),
            ("3g", Some(3_000_000_000)),
            ("3gb", Some(3 << 30)),
            ("", Some(0)),
            ("18446744073709551615", Some(u128::from(u64::MAX))),
            ("18446744073709551616", None),
            ("18446744073709551615gb", Some(u128::from(u64::MAX) << 30)),
            ("-1", None),
            ("+1", None),
            ("1.5gb", None),
            (" 5", None),
            ("1t", None),
        ] {
            assert_eq!(parse_size(word.as_bytes()), expected, "{word}");
        }
    }

    #[test]
    fn percentiles() {
        for (number, expected) in
            [(50.0, "50"), (99.9, "99.9"), (99.123456, "99.123456"), (100.0 / 3.0, "33.333333"), (0.0, "0")]
        {
            assert_eq!(format_percentile(number), expected);
        }
    }

    proptest! {
        /// What REWRITE quotes is what the next start reads.
        #[test]
        fn quoted_words_return(list: Vec<Vec<u8>>) {
            let line = list.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(split_words(line.as_bytes()), Some(list));
        }

        #[test]
        fn formatted_sizes_return(bytes: u64) {
            prop_assert_eq!(parse_size(format_size(bytes).as_bytes()), Some(u128::from(bytes)));
        }

        /// No line makes the splitter fail otherwise than with `None`.
        #[test]
        fn any_line_is_safe(line: Vec<u8>) {
            if let Some(words) = split_words(&line) {
                prop_assert!(words.iter().map(Vec::len).sum::<usize>() <= line.len());
            }
        }
    }
}
