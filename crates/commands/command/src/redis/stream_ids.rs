//! Ids of streams as clients write and read them.

use crate::Ctx;
use crate::error::{Stop, up_to_zero};
use proto::ReplyBuffer;
use types::stream::{Entry, Id};

/// What was to be an id is none.
pub(super) const INVALID_ID: Stop = Stop::error("ERR Invalid stream ID specified as stream command argument");
/// An open interval begins after the last id.
const INVALID_START: Stop = Stop::error("ERR invalid start ID for the interval");
/// An open interval ends before the first id.
const INVALID_END: Stop = Stop::error("ERR invalid end ID for the interval");

/// The longest text that is looked at.
const TEXT_BYTES_MAX: usize = 127;

/// `ms-seq`, or `ms` with a number within it that goes without saying.
pub(super) fn parse(text: &[u8], missing_seq: u64) -> Option<Id> {
    let (ms, seq) = halves(text)?;
    Some(Id { ms: parse_number(ms)?, seq: seq.map_or(Some(missing_seq), parse_number)? })
}

/// The time in `ms-*`.
pub(super) fn parse_any_seq(text: &[u8]) -> Option<u64> {
    match halves(text)? {
        (ms, Some(b"*")) => parse_number(ms),
        _ => None,
    }
}

/// The parts before and after the dash.
fn halves(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let mut halves = up_to_zero(text).splitn(2, |byte| *byte == b'-');
    Some((halves.next()?, halves.next()))
}

/// A number as `strtoull` of C reads it, from which clients of Valkey may have their ways: space and a sign may come
/// first, and what is negative counts from the other end. A single digit run is the rule.
fn parse_number(text: &[u8]) -> Option<u64> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0B;
    let start = text.iter().position(|byte| !is_space(byte))?;
    let (digits, is_negative) = match text.get(start..)? {
        [b'+', digits @ ..] => (digits, false),
        // A number that is plainly negative is none.
        [b'-', b'1'..=b'9', ..] if start == 0 => return None,
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    if digits.is_empty() {
        return None;
    }
    let value = digits.iter().try_fold(0u64, |value, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })?;
    Some(if is_negative { value.wrapping_neg() } else { value })
}

/// The argument at `index` as an id.
pub(super) fn id(ctx: &Ctx<'_>, index: usize) -> Result<Id, Stop> {
    parse(&ctx.args[index], 0).ok_or(INVALID_ID)
}

/// The arguments from `from` to `to` as ids.
pub(super) fn ids(ctx: &Ctx<'_>, from: usize) -> Result<Vec<Id>, Stop> {
    ctx.args.from(from).map(|text| parse(text, 0).ok_or(INVALID_ID)).collect()
}

/// The argument at `index` as an id, or `-` or `+` for the first and the last there is.
pub(super) fn id_or_end(ctx: &Ctx<'_>, index: usize, missing_seq: u64) -> Result<Id, Stop> {
    match &ctx.args[index] {
        b"-" => Ok(Id::MIN),
        b"+" => Ok(Id::MAX),
        text => parse(text, missing_seq).ok_or(INVALID_ID),
    }
}

/// The argument at `index` as the first id of an interval: after an id if it begins with `(`.
pub(super) fn start(ctx: &Ctx<'_>, index: usize) -> Result<Id, Stop> {
    match &ctx.args[index] {
        [b'(', text @ ..] if !text.is_empty() => parse(text, 0).ok_or(INVALID_ID)?.next().ok_or(INVALID_START),
        _ => id_or_end(ctx, index, 0),
    }
}

/// The argument at `index` as the last id of an interval: before an id if it begins with `(`.
pub(super) fn end(ctx: &Ctx<'_>, index: usize) -> Result<Id, Stop> {
    match &ctx.args[index] {
        [b'(', text @ ..] if !text.is_empty() => parse(text, u64::MAX).ok_or(INVALID_ID)?.previous().ok_or(INVALID_END),
        _ => id_or_end(ctx, index, u64::MAX),
    }
}

/// Writes an id.
pub(super) fn reply_id(reply: &mut ReplyBuffer, id: Id) {
    reply.bulk(IdText::of(id).as_bytes());
}

/// An id as text.
pub(super) struct IdText {
    bytes: [u8; ID_TEXT_MAX],
    len: usize,
}

impl IdText {
    pub(super) fn of(id: Id) -> Self {
        let mut text = Self { bytes: [0; ID_TEXT_MAX], len: 0 };
        let (mut ms, mut seq) = (itoa::Buffer::new(), itoa::Buffer::new());
        for part in [ms.format(id.ms), "-", seq.format(id.seq)] {
            let end = text.len.saturating_add(part.len());
            if let Some(place) = text.bytes.get_mut(text.len..end) {
                place.copy_from_slice(part.as_bytes());
                text.len = end;
            }
        }
        text
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Two numbers of 20 digits and a dash.
const ID_TEXT_MAX: usize = 41;

/// Writes an entry: its id, and its names and values in turn.
pub(super) fn reply_entry(reply: &mut ReplyBuffer, entry: &Entry<'_>) {
    reply.array(2);
    reply_id(reply, entry.id);
    reply.array(entry.field_count().saturating_mul(2));
    for (name, value) in entry.fields() {
        reply.bulk(name);
        reply.bulk(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_valkey_reads_them() {
        let id = |ms, seq| Some(Id { ms, seq });
        assert_eq!(parse(b"5", 7), id(5, 7));
        assert_eq!(parse(b"5-6", 7), id(5, 6));
        assert_eq!(parse(b"18446744073709551615-0", 0), id(u64::MAX, 0));
        assert_eq!(parse(b"+5-007", 0), id(5, 7));
        assert_eq!(parse(b" 5-\t6", 0), id(5, 6));
        assert_eq!(parse(b"5--01", 0), id(5, u64::MAX));
        assert_eq!(parse(b"5\0junk", 0), id(5, 0));
        for none in [&b""[..], b"-", b"+", b"a", b"5-", b"-5", b"5-a", b"5--1", b"18446744073709551616", b"5 ", b"5-*"]
        {
            assert_eq!(parse(none, 0), None, "{}", none.escape_ascii());
        }
        assert_eq!(parse(&[b'0'; 128], 0), None);
        assert_eq!((parse_any_seq(b"5-*"), parse_any_seq(b"5-1"), parse_any_seq(b"*")), (Some(5), None, None));
    }

    #[test]
    fn ids_are_written_in_full() {
        let mut reply = ReplyBuffer::new(proto::Protocol::Resp2);
        reply_id(&mut reply, Id::MAX);
        reply_id(&mut reply, Id { ms: 1, seq: 0 });
        let expected = b"$41\r\n18446744073709551615-18446744073709551615\r\n$3\r\n1-0\r\n";
        assert_eq!(reply.as_contiguous().unwrap(), expected);
    }
}
