//! Keys, eflags and queries of b+trees: from the words of a request, and into those of a reply.

use proto::ReplyBuffer;
use proto::memcached::arcus::tree_grammar as words;
use types::attributed::{BitOperator, Bkey, ByteKey, Comparison, EflagUpdate, Element, Filter, Query, Range};

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
fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::from("0x"), |text, byte| text + &format!("{byte:02X}"))
}

/// A key as replies show it.
pub fn bkey_text(bkey: &Bkey) -> String {
    match bkey {
        Bkey::Number(number) => number.to_string(),
        Bkey::Bytes(bytes) => hex_text(bytes.bytes()),
    }
}

/// `words bkey [eflag] bytes data`
pub fn element_line(reply: &mut ReplyBuffer, words: &[&[u8]], element: &Element<'_>) {
    let (bkey, eflag) = (bkey_text(&element.bkey), hex_text(element.eflag));
    let mut all = words.to_vec();
    all.push(bkey.as_bytes());
    if !element.eflag.is_empty() {
        all.push(eflag.as_bytes());
    }
    reply.words_line(&all, Some(element.data.len()), element.data);
}
