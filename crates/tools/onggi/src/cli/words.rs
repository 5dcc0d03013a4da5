//! The words of a line: parted by blanks, with quotes and escapes as redis-cli reads them.

/// The words of a line; `None` for a quote that does not end, or does not end a word.
pub fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii();
    while !rest.is_empty() {
        let mut word = Vec::new();
        rest = match rest[0] {
            b'"' => double_quoted(&rest[1..], &mut word)?,
            b'\'' => single_quoted(&rest[1..], &mut word)?,
            _ => {
                let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                word.extend_from_slice(&rest[..end]);
                &rest[end..]
            }
        };
        if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            return None;
        }
        rest = rest.trim_ascii_start();
        words.push(word);
    }
    Some(words)
}

/// Reads up to the closing quote, and returns what follows it.
fn double_quoted<'l>(mut rest: &'l [u8], word: &mut Vec<u8>) -> Option<&'l [u8]> {
    loop {
        rest = match rest {
            [b'"', rest @ ..] => return Some(rest),
            [b'\\', b'x', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digits = [*high, *low];
                word.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
                rest
            }
            [b'\\', escaped, rest @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest
            }
            [byte, rest @ ..] => {
                word.push(*byte);
                rest
            }
            [] => return None,
        };
    }
}

fn single_quoted<'l>(mut rest: &'l [u8], word: &mut Vec<u8>) -> Option<&'l [u8]> {
    loop {
        rest = match rest {
            [b'\'', rest @ ..] => return Some(rest),
            [b'\\', b'\'', rest @ ..] => {
                word.push(b'\'');
                rest
            }
            [byte, rest @ ..] => {
                word.push(*byte);
                rest
            }
            [] => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_quotes_and_escapes() {
        let words = |line: &str| {
            split(line.as_bytes())
                .map(|words| words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(words("  set  k v\r\n").unwrap(), ["set", "k", "v"]);
        assert_eq!(words(r#"set "a b" 'c "d'"#).unwrap(), ["set", "a b", r#"c \"d"#]);
        assert_eq!(words(r#"echo "\x00\n\"" '\'' """#).unwrap(), ["echo", r#"\x00\n\""#, r"\'", ""]);
        assert_eq!(words(r#"echo "a"#), None);
        assert_eq!(words(r#"echo "a"b"#), None);
        assert_eq!(words("").unwrap(), [""; 0]);
    }
}
