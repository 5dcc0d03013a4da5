//! Replies as bytes and as values: where a frame ends, what it holds, and how a reader sees it on one line.
//!
//! R1. A value keeps everything its bytes say: RESP2 and RESP3 nulls, sets and arrays, doubles as their text. Two
//!     well-formed frames with equal values are equal bytes, so that comparing values hides nothing.
//! R2. What no conforming server sends (`:+1`, `:01`, a length with a sign, a stray line ending) is malformed, not read
//!     kindly.

use std::fmt;

/// One reply. Numbers that a client may read as floating point stay text, since their digits are part of the contract.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// `+text`
    Simple(Vec<u8>),
    /// `-text`, or `!` with a length
    Error(Vec<u8>),
    /// `:number`
    Int(i64),
    /// `$` with a length
    Bulk(Vec<u8>),
    /// `$-1`
    NullBulk,
    /// `*-1`
    NullArray,
    /// `_`
    Null,
    /// `#t` or `#f`
    Bool(bool),
    /// `,text`
    Double(Vec<u8>),
    /// `(digits`
    BigNumber(Vec<u8>),
    /// `=`, with its three-letter format and the text after the colon
    Verbatim(Vec<u8>, Vec<u8>),
    /// `*`
    Array(Vec<Value>),
    /// `~`
    Set(Vec<Value>),
    /// `>`
    Push(Vec<Value>),
    /// `%`
    Map(Vec<(Value, Value)>),
}

/// Why bytes are not a reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// More bytes may complete it.
    #[error("incomplete frame")]
    Partial,
    /// No continuation can make it a frame.
    #[error("malformed frame: {0}")]
    Malformed(&'static str),
}

/// The reply at the start of `bytes` and its length.
///
/// # Errors
/// [`FrameError::Partial`] when the bytes end inside it, [`FrameError::Malformed`] when they are no reply.
pub fn parse(bytes: &[u8]) -> Result<(Value, usize), FrameError> {
    let mut reader = Reader { bytes, at: 0 };
    let value = reader.value(0)?;
    Ok((value, reader.at))
}

/// Nesting beyond this is a broken server: no command's reply is a tenth as deep.
const DEPTH_MAX: usize = 64;

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn line(&mut self) -> Result<&'a [u8], FrameError> {
        let rest = &self.bytes[self.at..];
        let Some(end) = rest.iter().position(|&byte| byte == b'\r' || byte == b'\n') else {
            return Err(FrameError::Partial);
        };
        match rest.get(end..end + 2) {
            Some(b"\r\n") => {}
            None if rest[end] == b'\r' => return Err(FrameError::Partial),
            _ => return Err(FrameError::Malformed("a line ends in something else than CR LF")),
        }
        self.at += end + 2;
        Ok(&rest[..end])
    }

    fn number(&mut self) -> Result<i64, FrameError> {
        let line = self.line()?;
        let number = std::str::from_utf8(line).ok().and_then(|text| text.parse::<i64>().ok());
        number
            .filter(|number| number.to_string().as_bytes() == line)
            .ok_or(FrameError::Malformed("a number is not in its plain decimal form"))
    }

    /// A length; `None` is the -1 of RESP2's nulls.
    fn length(&mut self) -> Result<Option<usize>, FrameError> {
        match self.number()? {
            -1 => Ok(None),
            length => usize::try_from(length).map(Some).map_err(|_| FrameError::Malformed("a negative length")),
        }
    }

    fn blob(&mut self) -> Result<Option<&'a [u8]>, FrameError> {
        let Some(length) = self.length()? else { return Ok(None) };
        let rest = &self.bytes[self.at..];
        if rest.len() < length + 2 {
            return Err(FrameError::Partial);
        }
        if &rest[length..length + 2] != b"\r\n" {
            return Err(FrameError::Malformed("a blob is longer than its length"));
        }
        self.at += length + 2;
        Ok(Some(&rest[..length]))
    }

    fn items(&mut self, count: usize, depth: usize) -> Result<Vec<Value>, FrameError> {
        (0..count).map(|_| self.value(depth + 1)).collect()
    }

    fn value(&mut self, depth: usize) -> Result<Value, FrameError> {
        if depth > DEPTH_MAX {
            return Err(FrameError::Malformed("nested too deeply"));
        }
        let Some(&kind) = self.bytes.get(self.at) else { return Err(FrameError::Partial) };
        self.at += 1;
        let required = |length: Option<usize>| length.ok_or(FrameError::Malformed("a RESP3 aggregate without length"));
        Ok(match kind {
            b'+' => Value::Simple(self.line()?.to_vec()),
            b'-' => Value::Error(self.line()?.to_vec()),
            b':' => Value::Int(self.number()?),
            b',' => Value::Double(self.line()?.to_vec()),
            b'(' => Value::BigNumber(self.line()?.to_vec()),
            b'_' if self.line()?.is_empty() => Value::Null,
            b'#' => match self.line()? {
                b"t" => Value::Bool(true),
                b"f" => Value::Bool(false),
                _ => return Err(FrameError::Malformed("a boolean is neither t nor f")),
            },
            b'$' => self.blob()?.map_or(Value::NullBulk, |bytes| Value::Bulk(bytes.to_vec())),
            b'!' => Value::Error(self.blob()?.ok_or(FrameError::Malformed("an error without text"))?.to_vec()),
            b'=' => match self.blob()? {
                Some([a, b, c, b':', text @ ..]) => Value::Verbatim(vec![*a, *b, *c], text.to_vec()),
                _ => return Err(FrameError::Malformed("verbatim text without its format")),
            },
            b'*' => match self.length()? {
                None => Value::NullArray,
                Some(count) => Value::Array(self.items(count, depth)?),
            },
            b'~' => {
                let count = required(self.length()?)?;
                Value::Set(self.items(count, depth)?)
            }
            b'>' => {
                let count = required(self.length()?)?;
                Value::Push(self.items(count, depth)?)
            }
            b'%' => {
                let count = required(self.length()?)?;
                let pairs = (0..count).map(|_| Ok((self.value(depth + 1)?, self.value(depth + 1)?)));
                Value::Map(pairs.collect::<Result<_, FrameError>>()?)
            }
            _ => return Err(FrameError::Malformed("an unknown first byte")),
        })
    }
}

impl Value {
    /// The bytes of a string in any form; `None` for everything else.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Value::Simple(text) | Value::Bulk(text) | Value::Verbatim(_, text) => Some(text),
            _ => None,
        }
    }

    /// The elements of an array, set or push.
    pub fn items(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) | Value::Set(items) | Value::Push(items) => Some(items),
            _ => None,
        }
    }

    /// The pairs of a map, or of RESP2's flat array that stands for one.
    pub fn pairs(&self) -> Option<Vec<(Value, Value)>> {
        match self {
            Value::Map(pairs) => Some(pairs.clone()),
            Value::Array(items) if items.len() % 2 == 0 => {
                Some(items.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
            }
            _ => None,
        }
    }
}

/// On one line, with the kind visible: `+OK`, `-ERR text`, `:1`, `"bytes"`, `nil`, `[a, b]`, `{k: v}`, `~[a]`, `,1.5`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, open: &str, items: &[Value]| {
            f.write_str(open)?;
            for (i, item) in items.iter().enumerate() {
                write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
            }
            f.write_str("]")
        };
        match self {
            Value::Simple(text) => write!(f, "+{}", crate::text::printable(text)),
            Value::Error(text) => write!(f, "-{}", crate::text::printable(text)),
            Value::Int(number) => write!(f, ":{number}"),
            Value::Bulk(bytes) => write!(f, "\"{}\"", crate::text::escaped(bytes)),
            Value::NullBulk => f.write_str("nil"),
            Value::NullArray => f.write_str("nil-array"),
            Value::Null => f.write_str("null"),
            Value::Bool(true) => f.write_str("#t"),
            Value::Bool(false) => f.write_str("#f"),
            Value::Double(text) => write!(f, ",{}", crate::text::printable(text)),
            Value::BigNumber(text) => write!(f, "({}", crate::text::printable(text)),
            Value::Verbatim(format, text) => {
                write!(f, "={}:\"{}\"", crate::text::printable(format), crate::text::escaped(text))
            }
            Value::Array(items) => list(f, "[", items),
            Value::Set(items) => list(f, "~[", items),
            Value::Push(items) => list(f, ">[", items),
            Value::Map(pairs) => {
                f.write_str("{")?;
                for (i, (key, value)) in pairs.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind, whole and cut at every byte: the cut ones ask for more.
    #[test]
    fn frames_parse_whole_and_are_partial_when_cut() {
        let frames: &[(&[u8], &str)] = &[
            (b"+OK\r\n", "+OK"),
            (b"-ERR no\r\n", "-ERR no"),
            (b"!6\r\nERR no\r\n", "-ERR no"),
            (b":-9223372036854775808\r\n", ":-9223372036854775808"),
            (b"$2\r\n\r\n\r\n", "\"\\r\\n\""),
            (b"$-1\r\n", "nil"),
            (b"*-1\r\n", "nil-array"),
            (b"_\r\n", "null"),
            (b"#t\r\n", "#t"),
            (b",1.50\r\n", ",1.50"),
            (b"(123\r\n", "(123"),
            (b"=7\r\ntxt:abc\r\n", "=txt:\"abc\""),
            (b"*2\r\n:1\r\n*0\r\n", "[:1, []]"),
            (b"~1\r\n+a\r\n", "~[+a]"),
            (b">1\r\n+a\r\n", ">[+a]"),
            (b"%1\r\n+k\r\n$1\r\nv\r\n", "{+k: \"v\"}"),
        ];
        for &(bytes, shown) in frames {
            let (value, length) = parse(bytes).expect(shown);
            assert_eq!((value.to_string().as_str(), length), (shown, bytes.len()));
            for cut in 0..bytes.len() {
                assert_eq!(parse(&bytes[..cut]), Err(FrameError::Partial), "{shown} cut at {cut}");
            }
        }
    }

    #[test]
    fn what_no_server_sends_is_malformed() {
        for bytes in
            [&b":+1\r\n"[..], b":01\r\n", b":-0\r\n", b"$-2\r\n", b"$1\r\nab\r\n", b"?\r\n", b"+a\n", b"#x\r\n"]
        {
            assert!(matches!(parse(bytes), Err(FrameError::Malformed(_))), "{bytes:?}");
        }
    }
}
