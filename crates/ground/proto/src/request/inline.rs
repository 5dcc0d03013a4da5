//! Inline requests: one line of words, for people at a terminal and for simple scripts.
//!
//! Words are separated by blanks. A double-quoted part may hold blanks and the escapes `\n \r \t \b \a \xHH`, and any
//! other escaped byte stands for itself; a single-quoted part knows only `\'`. A quoted part may begin and end anywhere
//! in a word. A backslash escapes only where a byte follows that could still close the quote, so `"a\"` is `a\`. All
//! this is as Valkey 9.1 reads it, but for a zero byte: it is a byte like any other here, where there the line is never
//! seen to end.

use super::{Arguments, Limits, ProtocolError, Span};

/// Splits the line at `input[..line_len]` into words and appends them to `out`.
pub(super) fn split(input: &[u8], line_len: usize, limits: &Limits, out: &mut Arguments) -> Result<(), ProtocolError> {
    let line = input.get(..line_len).unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut at = 0usize;
    let mut count = 0usize;
    loop {
        let rest = line.get(at..).unwrap_or_default();
        let Some(skip) = rest.iter().position(|byte| !is_blank(*byte)) else {
            return Ok(());
        };
        let start = at.wrapping_add(skip);
        let word = line.get(start..).unwrap_or_default();
        count = count.wrapping_add(1);
        limits.check_argument_count(count as u64)?;
        let plain = word.iter().position(|byte| ends_word(*byte) || is_quote(*byte)).unwrap_or(word.len());
        let quoted = word.get(plain).is_some_and(|byte| is_quote(*byte));
        let len = if quoted {
            let mut bytes = Vec::new();
            let len = unquote(word, &mut bytes)?;
            limits.check_bulk_bytes(bytes.len() as u64)?;
            out.push_large(bytes).ok_or(ProtocolError::RequestTooLong)?;
            len
        } else {
            limits.check_bulk_bytes(plain as u64)?;
            out.push(Span::new(start, plain).ok_or(ProtocolError::RequestTooLong)?);
            plain
        };
        at = start.wrapping_add(len);
    }
}

/// Decodes the word at the start of `word` into `bytes` and says how long it was.
fn unquote(word: &[u8], bytes: &mut Vec<u8>) -> Result<usize, ProtocolError> {
    let mut quote = None;
    let mut rest = word;
    loop {
        let (byte, used) = match (quote, rest) {
            (None, []) => return Ok(word.len()),
            (None, [byte, ..]) if ends_word(*byte) => return Ok(word.len().wrapping_sub(rest.len())),
            (None, [byte @ (b'"' | b'\''), tail @ ..]) => {
                quote = Some(*byte);
                rest = tail;
                continue;
            }
            (Some(_), []) => return Err(ProtocolError::UnbalancedQuotes),
            (Some(open), [byte, tail @ ..]) if *byte == open => {
                quote = None;
                rest = tail;
                continue;
            }
            (Some(b'"'), [b'\\', b'x', high, low, ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex(*high).wrapping_shl(4) | hex(*low), 4)
            }
            (Some(b'"'), [b'\\', byte, _, ..]) => (escaped(*byte), 2),
            (Some(b'\''), [b'\\', b'\'', _, ..]) => (b'\'', 2),
            (_, [byte, ..]) => (*byte, 1),
        };
        bytes.push(byte);
        rest = rest.get(used..).unwrap_or_default();
    }
}

fn escaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// The value of a hexadecimal digit, which the caller has checked it to be.
fn hex(digit: u8) -> u8 {
    char::from(digit).to_digit(16).unwrap_or_default() as u8
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

/// What may stand before a word.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

/// What ends a word; vertical tab and form feed do not.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
