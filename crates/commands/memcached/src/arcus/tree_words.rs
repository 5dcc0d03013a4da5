//! Keys, eflags and queries of b+trees: from the words of a request, and into those of a reply.

use proto::ReplyBuffer;
use proto::memcached::arcus::tree_grammar as words;
use types::attributed::{BitOperator, Bkey, ByteKey, Comparison, EflagUpdate, Element, Filter, Query, Range};

const LINE_END: &[u8] = b"\r\n";

/// Bytes that the parser has found short enough.
pub fn bytes_of(bytes: &[u8]) -> ByteKey {
    ByteKey::new(bytes).unwrap_or_default()
}

/// A key.
pub fn bkey_of(bkey: &words::Bkey) -> Bkey {
    match bkey {
        words::Bkey::Number(number) => Bkey::Number(*number),
        words::Bkey::Bytes(bytes) => Bkey::Bytes(bytes_of(bytes)),
    }
}

fn operator_of(operator: words::BitOperator) -> BitOperator {
    match operator {
        words::BitOperator::And => BitOperator::And,
        words::BitOperator::Or => BitOperator::Or,
        words::BitOperator::Xor => BitOperator::Xor,
    }
}

fn filter_of(filter: &words::Filter) -> Filter {
    let comparison = match filter.comparison {
        words::Comparison::Equal => Comparison::Equal,
        words::Comparison::NotEqual => Comparison::NotEqual,
        words::Comparison::Less => Comparison::Less,
        words::Comparison::AtMost => Comparison::AtMost,
        words::Comparison::Greater => Comparison::Greater,
        words::Comparison::AtLeast => Comparison::AtLeast,
    };
    let combined = filter.combined.as_ref().map(|(operator, with)| (operator_of(*operator), bytes_of(with)));
    let values = filter.values.iter().map(|value| bytes_of(value)).collect();
    Filter { offset: filter.offset, combined, comparison, values }
}

/// A query.
pub fn query_of(query: &words::Query) -> Query {
    Query {
        range: Range { from: bkey_of(&query.range.0), to: bkey_of(&query.range.1) },
        filter: query.filter.as_ref().map(filter_of),
        offset: query.offset,
        count: query.count,
    }
}

/// What an update does with the eflag.
pub fn update_of(update: &words::EflagUpdate) -> EflagUpdate {
    match update {
        words::EflagUpdate::Keep => EflagUpdate::Keep,
        words::EflagUpdate::Set(eflag) => EflagUpdate::Set(bytes_of(eflag)),
        words::EflagUpdate::Combine(offset, operator, with) => {
            EflagUpdate::Combine(*offset, operator_of(*operator), bytes_of(with))
        }
    }
}

/// `0x` and hexadecimal digits.
fn put_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |bits: u8| DIGITS.get(usize::from(bits)).copied().unwrap_or_default();
    out.extend_from_slice(b"0x");
    out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    // Most lengths: shorter than a call.
    if number < 100 {
        let (tens, ones) = (number / 10, number % 10);
        if tens > 0 {
            out.push(b'0'.saturating_add(tens as u8));
        }
        return out.push(b'0'.saturating_add(ones as u8));
    }
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn put_bkey(out: &mut Vec<u8>, bkey: &Bkey) {
    match bkey {
        Bkey::Number(number) => put_number(out, *number),
        Bkey::Bytes(bytes) => put_hex(out, bytes.bytes()),
    }
}

/// A key as replies show it.
pub fn bkey_text(bkey: &Bkey) -> String {
    let mut text = Vec::new();
    put_bkey(&mut text, bkey);
    String::from_utf8(text).unwrap_or_default()
}

/// Room for a key, an eflag and a length, with what is between them.
const ELEMENT_ROOM: usize = 2 * (2 + 2 * ByteKey::BYTES_MAX) + 16;

/// Adds `words bkey [eflag] bytes data` as a line.
#[inline]
pub fn put_element(out: &mut Vec<u8>, words: &[&[u8]], element: &Element<'_>) {
    for word in words {
        out.extend_from_slice(word);
        out.push(b' ');
    }
    out.reserve(element.data.len().saturating_add(ELEMENT_ROOM));
    put_bkey(out, &element.bkey);
    if !element.eflag.is_empty() {
        out.push(b' ');
        put_hex(out, element.eflag);
    }
    out.push(b' ');
    put_number(out, element.data.len() as u64);
    out.push(b' ');
    out.extend_from_slice(element.data);
    out.extend_from_slice(LINE_END);
}

/// The line `VALUE flags count` before elements that are still to come.
pub struct Head {
    at: usize,
    end: usize,
    count: u64,
}

impl Head {
    /// Appends it for the number that is expected.
    pub fn put(out: &mut Vec<u8>, flags: u32, count: u64) -> Self {
        let at = out.len();
        put_head(out, flags, count);
        Self { at, end: out.len(), count }
    }

    /// Has it say the number that there are; without elements it goes.
    pub fn correct(&self, out: &mut Vec<u8>, flags: u32, count: u64) {
        if count > 0 && count == self.count {
            return;
        }
        let mut head = Vec::new();
        if count > 0 {
            put_head(&mut head, flags, count);
        }
        out.splice(self.at..self.end, head);
    }
}

fn put_head(out: &mut Vec<u8>, flags: u32, count: u64) {
    out.extend_from_slice(b"VALUE ");
    put_number(out, u64::from(flags));
    out.push(b' ');
    put_number(out, count);
    out.extend_from_slice(LINE_END);
}

/// Lines of elements, whose number is known at their end.
pub struct Lines {
    head: Vec<u8>,
    bytes: Vec<u8>,
}

impl Lines {
    /// Room for a line with a number as its key, and data of twenty bytes.
    const LINE_BYTES: usize = 48;
    /// The most lines that room is made for before they come.
    const ROOM_LINES_MAX: u64 = 64;

    /// None; this many are expected, or 0 for an unknown number.
    pub fn with_room_for(count: u64) -> Self {
        let lines = if count == 0 { Self::ROOM_LINES_MAX } else { count.min(Self::ROOM_LINES_MAX) };
        let room = usize::try_from(lines).unwrap_or(0).saturating_mul(Self::LINE_BYTES);
        Self { head: Vec::new(), bytes: Vec::with_capacity(room) }
    }

    /// Adds an element.
    #[inline]
    pub fn push(&mut self, element: &Element<'_>) {
        put_element(&mut self.bytes, &[], element);
    }

    /// Bytes that they take.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Puts `VALUE flags count` before them.
    pub fn finish(&mut self, flags: u32, count: u64) {
        put_head(&mut self.head, flags, count);
    }

    /// Answers with them.
    pub fn reply(self, reply: &mut ReplyBuffer) {
        reply.raw(&self.head);
        reply.raw_shared(self.bytes);
    }
}

/// Adds a line of words.
pub fn put_line(out: &mut Vec<u8>, words: &[&[u8]]) {
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word);
    }
    out.extend_from_slice(LINE_END);
}

/// `words bkey [eflag] bytes data`
pub fn element_line(reply: &mut ReplyBuffer, words: &[&[u8]], element: &Element<'_>) {
    reply.raw_with(|out| put_element(out, words, element));
}
