//! Command lines as people paste them into redis-cli: words, `"quoted \x00 bytes"` and `'single quotes'`, both ways.

/// Bytes with everything but printable ASCII escaped, as they stand between double quotes.
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b'"' => text.push_str("\\\""),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b' '..=b'~' => text.push(byte as char),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

/// Bytes for a sentence: printable ASCII as it is, the rest escaped, quotes left alone.
pub fn printable(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|&byte| match byte {
            b' '..=b'~' => (byte as char).to_string(),
            _ => format!("\\x{byte:02x}"),
        })
        .collect()
}

/// One argument, quoted only where a bare word would not do.
pub fn quoted(bytes: &[u8]) -> String {
    let plain = |byte: &u8| matches!(byte, b'!' | b'#'..=b'&' | b'('..=b'[' | b']'..=b'~');
    let directive = matches!(bytes.first(), Some(b'#' | b'!' | b'@' | b'=' | b'{'));
    if !bytes.is_empty() && bytes.iter().all(plain) && !directive {
        String::from_utf8_lossy(bytes).into_owned()
    } else {
        format!("\"{}\"", escaped(bytes))
    }
}

/// A word of a command line, and whether it stood in quotes (quoted words are never placeholders).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The bytes it stands for.
    pub bytes: Vec<u8>,
    /// Whether any of it was quoted.
    pub quoted: bool,
}

/// Splits a command line into words.
///
/// # Errors
/// A sentence that names what is wrong: an open quote, a bad escape.
pub fn split(line: &str) -> Result<Vec<Word>, String> {
    let mut bytes = line.as_bytes();
    let mut words = Vec::new();
    loop {
        bytes = bytes.trim_ascii_start();
        if bytes.is_empty() {
            return Ok(words);
        }
        let mut word = Word { bytes: Vec::new(), quoted: false };
        while let Some(&byte) = bytes.first() {
            match byte {
                b' ' | b'\t' => break,
                b'"' | b'\'' => {
                    word.quoted = true;
                    bytes = quoted_part(&bytes[1..], byte, &mut word.bytes)?;
                }
                _ => {
                    word.bytes.push(byte);
                    bytes = &bytes[1..];
                }
            }
        }
        words.push(word);
    }
}

/// Reads up to the closing quote and returns what follows it.
fn quoted_part<'a>(mut bytes: &'a [u8], quote: u8, into: &mut Vec<u8>) -> Result<&'a [u8], String> {
    loop {
        bytes = match *bytes {
            [] => return Err(format!("a {} is never closed", quote as char)),
            [byte, ref rest @ ..] if byte == quote => return Ok(rest),
            [b'\\', b'x', high, low, ref rest @ ..] if quote == b'"' => {
                let digits = [high, low];
                let digits = std::str::from_utf8(&digits).map_err(|error| error.to_string())?;
                into.push(u8::from_str_radix(digits, 16).map_err(|_| format!("\\x{digits} is not a byte"))?);
                rest
            }
            [b'\\', escape, ref rest @ ..] if quote == b'"' => {
                into.push(match escape {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'0' => 0,
                    other => other,
                });
                rest
            }
            [byte, ref rest @ ..] => {
                into.push(byte);
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_read_back() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in [&all[..], b"", b"plain", b"two words", b"#1", b"{id:1}", b"it's", b"a\\b"] {
            let words = split(&quoted(bytes)).expect("a quoted word parses");
            assert_eq!(words.len(), 1);
            assert_eq!(words[0].bytes, bytes);
        }
    }

    #[test]
    fn open_quotes_and_bad_escapes_are_named() {
        assert!(split("\"abc").is_err_and(|error| error.contains("never closed")));
        assert!(split("\"\\xzz\"").is_err_and(|error| error.contains("not a byte")));
    }
}
