//! Keys, eflags and queries of b+trees: from the words of a request, and into those of a reply.

use proto::ReplyBuffer;
use proto::memcached::arcus::tree_grammar as words;
use std::io::Write;
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
    // Into memory, which takes all.
    let _ = write!(out, "{number}");
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

/// Adds `words bkey [eflag] bytes data` as a line.
pub fn put_element(out: &mut Vec<u8>, words: &[&[u8]], element: &Element<'_>) {
    for word in words {
        out.extend_from_slice(word);
        out.push(b' ');
    }
    put_bkey(out, &element.bkey);
    if !element.eflag.is_empty() {
        out.push(b' ');
        put_hex(out, element.eflag);
    }
    out.push(b' ');
    put_number(out, element.data.len() as u64);
    put_line(out, &[b"", element.data]);
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

/// Answers with these lines.
pub fn reply_lines(reply: &mut ReplyBuffer, lines: &[u8]) {
    if let Some(lines) = lines.strip_suffix(LINE_END) {
        reply.raw_line(lines);
    }
}

/// `words bkey [eflag] bytes data`
pub fn element_line(reply: &mut ReplyBuffer, words: &[&[u8]], element: &Element<'_>) {
    let mut line = Vec::with_capacity(element.data.len().saturating_add(64));
    put_element(&mut line, words, element);
    reply_lines(reply, &line);
}
