//! Reads replies: [`Parser`] builds them as [`Value`]s, for clients and tests; [`skip_reply`] only finds their end, for
//! a load generator.
//!
//! P1. A reply may arrive split at any byte, and the work is linear in its bytes: the parser keeps the complete part of
//!     an aggregate, and remembers how much of a line it has searched.
//! P2. Nesting is followed on a list and not on the stack, to a depth of [`DEPTH_MAX`], so that neither reading nor
//!     dropping a value can exhaust the stack.
//! P3. Memory follows bytes received, never sizes announced.

use super::Value;
use crate::number::parse_integer;
use memchr::memchr;
use thiserror::Error;

/// How deep aggregates may be nested.
pub const DEPTH_MAX: usize = 128;

/// The longest line: a status, an error, a number.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Why bytes are not a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// A reply begins with a byte that names no kind. Streamed strings and aggregates (`$?`, `*?`) have no server that
    /// sends them, and are not read.
    #[error("a reply cannot begin with '{}'", .0.escape_ascii())]
    Kind(u8),
    /// The text after a kind's first byte is not what the kind demands.
    #[error("malformed reply of kind '{}'", .0.escape_ascii())]
    Text(u8),
    /// A line or a string does not end with a carriage return and a line feed.
    #[error("a reply does not end where it should")]
    LineEnd,
    /// Aggregates in aggregates, more than [`DEPTH_MAX`] deep, or a line of more than 1 MiB.
    #[error("a reply is nested too deep or has too long a line")]
    TooBig,
}

/// Reads the replies of one connection.
///
/// ```
/// # use proto::reply::{Parser, Value};
/// let mut parser = Parser::new();
/// parser.feed(b"+OK\r\n*2\r\n:1");
/// assert_eq!(parser.next_value(), Ok(Some(Value::Simple(b"OK".to_vec()))));
/// assert_eq!(parser.next_value(), Ok(None));
/// parser.feed(b"\r\n$1\r\nx\r\n");
/// assert_eq!(parser.next_value(), Ok(Some(Value::Array(vec![Value::Integer(1), Value::Bulk(b"x".to_vec())]))));
/// ```
#[derive(Debug, Default)]
pub struct Parser {
    buffer: Vec<u8>,
    /// Start of the element that comes next.
    offset: usize,
    /// Bytes from `offset` on that are known to hold no line end.
    scanned: usize,
    /// The aggregates that have begun and not ended, outermost first.
    open: Vec<Open>,
}

/// An aggregate on its way.
#[derive(Debug)]
struct Open {
    kind: u8,
    /// Elements to come; a pair of a map is two.
    left: usize,
    elements: Vec<Value>,
}

/// Read bytes are cut off when there are this many.
const READ_BYTES_KEPT: usize = 64 * 1024;

impl Parser {
    /// A parser at the start of a reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether every byte fed belongs to a reply that has been returned.
    pub fn is_idle(&self) -> bool {
        self.offset == self.buffer.len() && self.open.is_empty()
    }

    /// The next reply, or `None` if it has not arrived completely.
    ///
    /// # Errors
    ///
    /// The bytes are not a reply. Nothing after them can be read.
    pub fn next_value(&mut self) -> Result<Option<Value>, ReplyError> {
        loop {
            let rest = self.buffer.get(self.offset..).unwrap_or_default();
            let Some((element, consumed)) = element(rest, &mut self.scanned)? else {
                self.forget_read_bytes();
                return Ok(None);
            };
            self.offset = self.offset.saturating_add(consumed);
            self.scanned = 0;
            let complete = match element {
                Element::Scalar(value) => self.close(value),
                Element::Aggregate { kind, left } if self.open.len() < DEPTH_MAX => {
                    self.open.push(Open { kind, left, elements: Vec::new() });
                    self.close_ended()
                }
                Element::Aggregate { .. } => return Err(ReplyError::TooBig),
            };
            if complete.is_some() {
                self.forget_read_bytes();
                return Ok(complete);
            }
        }
    }

    /// Adds a value to the innermost open aggregate. A value outside of all is the reply.
    fn close(&mut self, value: Value) -> Option<Value> {
        let Some(innermost) = self.open.last_mut() else { return Some(value) };
        innermost.elements.push(value);
        innermost.left = innermost.left.saturating_sub(1);
        self.close_ended()
    }

    /// Closes the aggregates that have all their elements, from the inside out.
    fn close_ended(&mut self) -> Option<Value> {
        while let Some(ended) = self.open.pop_if(|open| open.left == 0) {
            let value = match ended.kind {
                b'%' => Value::Map(pairs(ended.elements)),
                b'~' => Value::Set(ended.elements),
                b'>' => Value::Push(ended.elements),
                b'|' => {
                    // The attributes are read; the value they belong to is one more element in the same place.
                    self.open.push(Open { kind: ATTRIBUTED, left: 1, elements: ended.elements });
                    return None;
                }
                ATTRIBUTED => {
                    let mut attributes = ended.elements;
                    let value = Box::new(attributes.pop().unwrap_or(Value::Null));
                    Value::Attributed { attributes: pairs(attributes), value }
                }
                _ => Value::Array(ended.elements),
            };
            let Some(outer) = self.open.last_mut() else { return Some(value) };
            outer.elements.push(value);
            outer.left = outer.left.saturating_sub(1);
        }
        None
    }

    fn forget_read_bytes(&mut self) {
        if self.offset == self.buffer.len() {
            self.buffer.clear();
            self.offset = 0;
        } else if self.offset >= READ_BYTES_KEPT && self.offset > self.buffer.len() / 2 {
            self.buffer.drain(..self.offset);
            self.offset = 0;
        }
    }
}

/// Kind of an open aggregate that holds attributes and waits for the value they belong to.
const ATTRIBUTED: u8 = 0;

fn pairs(elements: Vec<Value>) -> Vec<(Value, Value)> {
    let mut pairs = Vec::with_capacity(elements.len() / 2);
    let mut elements = elements.into_iter();
    while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
        pairs.push((key, value));
    }
    pairs
}

enum Element {
    Scalar(Value),
    Aggregate { kind: u8, left: usize },
}

/// What stands at the start of `input`, and its length. `None` if it has not arrived completely.
fn element(input: &[u8], scanned: &mut usize) -> Result<Option<(Element, usize)>, ReplyError> {
    let Some((kind, text, line)) = line(input, scanned)? else { return Ok(None) };
    let malformed = ReplyError::Text(kind);
    let scalar = match kind {
        b'+' => Value::Simple(text.to_vec()),
        b'-' => Value::Error(text.to_vec()),
        b':' => Value::Integer(parse_integer(text).ok_or(malformed)?),
        b'_' if text.is_empty() => Value::Null,
        b'#' if text == b"t" => Value::Boolean(true),
        b'#' if text == b"f" => Value::Boolean(false),
        b',' => Value::Double(parse_double(text).ok_or(malformed)?),
        b'(' if is_decimal(text) => Value::BigNumber(text.to_vec()),
        b'$' | b'*' if text == b"-1" => {
            if kind == b'$' {
                Value::NullBulk
            } else {
                Value::NullArray
            }
        }
        b'$' | b'!' | b'=' => {
            let len = parse_size(text).ok_or(malformed)?;
            let end = line.saturating_add(len);
            let Some(body) = body(input, line, end)? else { return Ok(None) };
            let value = match (kind, body) {
                (b'$', _) => Value::Bulk(body.to_vec()),
                (b'!', _) => Value::Error(body.to_vec()),
                (_, [a, b, c, b':', text @ ..]) => Value::Verbatim { format: [*a, *b, *c], text: text.to_vec() },
                _ => return Err(malformed),
            };
            return Ok(Some((Element::Scalar(value), end.saturating_add(2))));
        }
        b'*' | b'%' | b'~' | b'>' | b'|' => {
            let left = elements(kind, text).ok_or(malformed)?;
            return Ok(Some((Element::Aggregate { kind, left }, line)));
        }
        b'_' | b'#' | b'(' => return Err(malformed),
        other => return Err(ReplyError::Kind(other)),
    };
    Ok(Some((Element::Scalar(scalar), line)))
}

/// A line: its first byte, its text, and its length with its end.
type Line<'a> = (u8, &'a [u8], usize);

/// The line at the start of `input`. `None` if it has not arrived completely.
#[inline]
fn line<'a>(input: &'a [u8], scanned: &mut usize) -> Result<Option<Line<'a>>, ReplyError> {
    let Some(kind) = input.first() else { return Ok(None) };
    if !b"+-:_#,($!=*%~>|".contains(kind) {
        return Err(ReplyError::Kind(*kind));
    }
    let unseen = input.get(*scanned..).unwrap_or_default();
    let Some(found) = memchr(b'\r', unseen) else {
        *scanned = input.len();
        return if input.len() > LINE_BYTES_MAX { Err(ReplyError::TooBig) } else { Ok(None) };
    };
    let end = scanned.saturating_add(found);
    *scanned = end;
    match input.get(end.saturating_add(1)) {
        None => Ok(None),
        Some(b'\n') if end <= LINE_BYTES_MAX => {
            Ok(Some((*kind, input.get(1..end).unwrap_or_default(), end.saturating_add(2))))
        }
        Some(b'\n') => Err(ReplyError::TooBig),
        Some(_) => Err(ReplyError::LineEnd),
    }
}

/// The bytes from `start` to `end`, which a line end follows. `None` if they have not arrived completely.
#[inline]
fn body(input: &[u8], start: usize, end: usize) -> Result<Option<&[u8]>, ReplyError> {
    match input.get(end..).and_then(|rest| rest.first_chunk()) {
        None => Ok(None),
        Some(b"\r\n") => Ok(input.get(start..end)),
        Some(_) => Err(ReplyError::LineEnd),
    }
}

fn parse_size(text: &[u8]) -> Option<usize> {
    usize::try_from(parse_integer(text)?).ok()
}

/// The elements of an aggregate whose line has this text: fewer than 2^32, or pairs of them.
fn elements(kind: u8, text: &[u8]) -> Option<usize> {
    let count = u32::try_from(parse_integer(text)?).ok()? as usize;
    Some(if matches!(kind, b'%' | b'|') { count.saturating_mul(2) } else { count })
}

/// A double as RESP3 has it. The standard library takes more: `infinity`, a plus sign.
fn parse_double(text: &[u8]) -> Option<f64> {
    match text {
        b"inf" => Some(f64::INFINITY),
        b"-inf" => Some(f64::NEG_INFINITY),
        b"nan" | b"-nan" => Some(f64::NAN),
        [b'0'..=b'9' | b'-', ..] if text.last().is_some_and(u8::is_ascii_digit) => {
            std::str::from_utf8(text).ok()?.parse().ok()
        }
        _ => None,
    }
}

fn is_decimal(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// The length of the reply at the start of `input`, without looking at what it says. `None` if it has not arrived
/// completely.
///
/// It begins anew at each call, so a caller that waits for a long reply calls it again only when much more has arrived.
///
/// # Errors
///
/// The bytes are not a reply.
pub fn skip_reply(input: &[u8]) -> Result<Option<usize>, ReplyError> {
    // Elements that have to follow for the reply to be complete.
    let mut left = 1u64;
    let mut offset = 0usize;
    while left > 0 {
        let rest = input.get(offset..).unwrap_or_default();
        let Some((kind, text, line)) = line(rest, &mut 0)? else { return Ok(None) };
        left = left.saturating_sub(1);
        let mut len = line;
        match kind {
            b'$' | b'*' if text == b"-1" => {}
            b'$' | b'!' | b'=' => {
                let end = line.saturating_add(parse_size(text).ok_or(ReplyError::Text(kind))?);
                if body(rest, line, end)?.is_none() {
                    return Ok(None);
                }
                len = end.saturating_add(2);
            }
            b'*' | b'%' | b'~' | b'>' | b'|' => {
                let more = elements(kind, text).ok_or(ReplyError::Text(kind))? as u64;
                let more = if kind == b'|' { more.saturating_add(1) } else { more };
                left = left.saturating_add(more);
            }
            _ => {}
        }
        offset = offset.saturating_add(len);
    }
    Ok(Some(offset))
}
