//! What the words of a b+tree command say.

use super::super::{parse_signed, parse_unsigned};
use super::grammar::split_range;

/// The most bytes of a key or an eflag.
pub const BYTES_MAX: usize = 31;

/// The most values that a filter compares with.
const VALUES_MAX: usize = 100;

/// The key of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bkey {
    /// Decimal.
    Number(u64),
    /// Hexadecimal: 1 to 31 bytes.
    Bytes(Vec<u8>),
}

/// `0x` and an even number of hexadecimal digits: 1 to 31 bytes.
pub fn parse_hex(word: &[u8]) -> Option<Vec<u8>> {
    let digits = word.strip_prefix(b"0x")?;
    let is_whole = digits.len().is_multiple_of(2) && (1..=BYTES_MAX).contains(&(digits.len() / 2));
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = digits.chunks_exact(2).map(|pair| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    if is_whole { pairs.collect() } else { None }
}

/// A decimal or hexadecimal key.
pub fn parse_bkey(word: &[u8]) -> Option<Bkey> {
    match word.starts_with(b"0x") {
        true => parse_hex(word).map(Bkey::Bytes),
        false => parse_unsigned(word).map(Bkey::Number),
    }
}

/// `bkey` or `from..to`, both of one kind.
pub fn parse_range(word: &[u8]) -> Option<(Bkey, Bkey)> {
    let Some((from, to)) = split_range(word) else { return parse_bkey(word).map(|bkey| (bkey.clone(), bkey)) };
    let (from, to) = (parse_bkey(from)?, parse_bkey(to)?);
    let are_alike = matches!((&from, &to), (Bkey::Number(_), Bkey::Number(_)) | (Bkey::Bytes(_), Bkey::Bytes(_)));
    are_alike.then_some((from, to))
}

/// A word between two strings of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOperator {
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
}

impl BitOperator {
    fn parse(word: &[u8]) -> Option<Self> {
        match word {
            b"&" => Some(Self::And),
            b"|" => Some(Self::Or),
            b"^" => Some(Self::Xor),
            _ => None,
        }
    }
}

/// A word that compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `EQ`
    Equal,
    /// `NE`
    NotEqual,
    /// `LT`
    Less,
    /// `LE`
    AtMost,
    /// `GT`
    Greater,
    /// `GE`
    AtLeast,
}

impl Comparison {
    fn parse(word: &[u8]) -> Option<Self> {
        match word {
            b"EQ" => Some(Self::Equal),
            b"NE" => Some(Self::NotEqual),
            b"LT" => Some(Self::Less),
            b"LE" => Some(Self::AtMost),
            b"GT" => Some(Self::Greater),
            b"GE" => Some(Self::AtLeast),
            _ => None,
        }
    }
}

/// `offset [operator value] comparison values`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Where in the eflag.
    pub offset: u8,
    /// What its bytes are combined with first.
    pub combined: Option<(BitOperator, Vec<u8>)>,
    /// How they are compared.
    pub comparison: Comparison,
    /// With what: values of one length.
    pub values: Vec<Vec<u8>>,
}

/// The filter at the front of these words, if there is one, and the words after it. `None` when it is wrong.
pub fn take_filter<'w, 'a>(words: &'w [&'a [u8]]) -> Option<(Option<Filter>, &'w [&'a [u8]])> {
    if !words.get(2).is_some_and(|word| word.starts_with(b"0x")) {
        return Some((None, words));
    }
    let offset = parse_offset(words.first()?)?;
    let (combined, rest) = match BitOperator::parse(words.get(1)?) {
        Some(operator) => (Some((operator, parse_hex(words.get(2)?)?)), words.get(3..)?),
        None => (None, words.get(1..)?),
    };
    let [comparison, values, behind @ ..] = rest else { return None };
    let comparison = Comparison::parse(comparison)?;
    let values: Vec<Vec<u8>> = values.split(|byte| *byte == b',').map(parse_hex).collect::<Option<_>>()?;
    let len = values.first()?.len();
    let takes_many = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    let is_right = values.iter().all(|value| value.len() == len)
        && values.len() <= if takes_many { VALUES_MAX } else { 1 }
        && usize::from(offset).saturating_add(len) <= BYTES_MAX
        && combined.as_ref().is_none_or(|(_, with)| with.len() == len);
    is_right.then_some((Some(Filter { offset, combined, comparison, values }), behind))
}

fn parse_offset(word: &[u8]) -> Option<u8> {
    parse_unsigned(word).and_then(|offset| u8::try_from(offset).ok()).filter(|offset| usize::from(*offset) < BYTES_MAX)
}

/// What an update does with the eflag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EflagUpdate {
    /// Nothing.
    Keep,
    /// It is this; no bytes to remove it.
    Set(Vec<u8>),
    /// Its bytes from an offset on are combined with these.
    Combine(u8, BitOperator, Vec<u8>),
}

/// `[[offset operator] value]`
pub fn parse_eflag_update(words: &[&[u8]]) -> Option<EflagUpdate> {
    match words {
        [] => Some(EflagUpdate::Keep),
        [b"0"] => Some(EflagUpdate::Set(Vec::new())),
        [value] => parse_hex(value).map(EflagUpdate::Set),
        [offset, operator, value] => {
            let (offset, value) = (parse_offset(offset)?, parse_hex(value)?);
            let is_right = usize::from(offset).saturating_add(value.len()) <= BYTES_MAX;
            is_right.then_some(EflagUpdate::Combine(offset, BitOperator::parse(operator)?, value))
        }
        _ => None,
    }
}

/// Whether the first word of an insert after its key is an eflag.
pub fn has_eflag(words: &[&[u8]]) -> bool {
    words.first().is_some_and(|word| word.starts_with(b"0x"))
}

/// `asc` or `desc`: whether it is the latter.
pub fn parse_order(word: &[u8]) -> Option<bool> {
    match word {
        b"asc" => Some(false),
        b"desc" => Some(true),
        _ => None,
    }
}

/// `range [filter] [[offset] count]`, of which what follows is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Keys from the first to the second.
    pub range: (Bkey, Bkey),
    /// A condition on eflags.
    pub filter: Option<Filter>,
    /// Matches to pass over.
    pub offset: u64,
    /// The most matches; 0 for all.
    pub count: u64,
}

/// The query at the front of these words, with at most `numbers_max` numbers after its filter, and the words after it.
pub fn take_query<'w, 'a>(words: &'w [&'a [u8]], numbers_max: usize) -> Option<(Query, &'w [&'a [u8]])> {
    let (range, rest) = words.split_first()?;
    let range = parse_range(range)?;
    let (filter, mut rest) = take_filter(rest)?;
    // A number alone is the count.
    let (mut offset, mut count) = (0, 0);
    for _ in 0..numbers_max {
        if let Some((word, behind)) = rest.split_first()
            && word.first().is_some_and(u8::is_ascii_digit)
        {
            (offset, count, rest) = (count, parse_count(word)?, behind);
        }
    }
    Some((Query { range, filter, offset, count }, rest))
}

/// A count or an offset.
pub fn parse_count(word: &[u8]) -> Option<u64> {
    parse_unsigned(word).filter(|count| *count <= u64::from(u32::MAX))
}

/// `delta` of `incr` and `decr`: 1 at least.
pub fn parse_delta(word: &[u8]) -> Option<u64> {
    parse_unsigned(word).filter(|delta| *delta > 0)
}

/// A position, or two of them: from and to.
pub fn parse_positions(word: &[u8]) -> Option<(u64, u64)> {
    let position = |word: &[u8]| {
        parse_signed(word).and_then(|position| u64::try_from(position).ok()).filter(|at| *at <= i32::MAX as u64)
    };
    match split_range(word) {
        Some((from, to)) => Some((position(from)?, position(to)?)),
        None => position(word).map(|at| (at, at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&[u8]> {
        text.split(' ').map(str::as_bytes).collect()
    }

    #[test]
    fn keys_are_decimal_or_hexadecimal() {
        assert_eq!(parse_bkey(b"18446744073709551615"), Some(Bkey::Number(u64::MAX)));
        assert_eq!(parse_bkey(b"0x00aF"), Some(Bkey::Bytes(vec![0, 0xaf])));
        for word in [&b"0x"[..], b"0x1", b"0xgg", b"-1", b"1.5", b"", &[&b"0x"[..], &[b'0'; 64]].concat()] {
            assert_eq!(parse_bkey(word), None, "{word:?}");
        }
        assert_eq!(parse_range(b"1..0x00"), None);
        assert_eq!(parse_range(b"5..1"), Some((Bkey::Number(5), Bkey::Number(1))));
    }

    #[test]
    fn filters_are_found_by_their_third_word() {
        let query = |text: &str| {
            let words = words(text);
            take_query(&words, 2).map(|(query, rest)| (query.filter.is_some(), query.offset, query.count, rest.len()))
        };
        for (text, expected) in [
            ("1..5", Some((false, 0, 0, 0))),
            ("1..5 7 delete", Some((false, 0, 7, 1))),
            ("1..5 2 7", Some((false, 2, 7, 0))),
            ("1..5 0 EQ 0x01", Some((true, 0, 0, 0))),
            ("1..5 0 & 0xff EQ 0x01,0x02 3 4 drop", Some((true, 3, 4, 1))),
            ("1..5 0 EQ 0x01,0x0203", None),
            ("1..5 0 LT 0x01,0x02", None),
            ("1..5 31 EQ 0x01", None),
            ("1..5 30 EQ 0x0102", None),
            ("1..5 0 & 0xffff EQ 0x01", None),
            ("1..5 0 eq 0x01", None),
        ] {
            assert_eq!(query(text), expected, "{text}");
        }
    }

    #[test]
    fn updates_of_eflags() {
        let update = |text: &str| parse_eflag_update(&words(text));
        assert_eq!(parse_eflag_update(&[]), Some(EflagUpdate::Keep));
        assert_eq!(update("0"), Some(EflagUpdate::Set(Vec::new())));
        assert_eq!(update("0x0a"), Some(EflagUpdate::Set(vec![10])));
        assert_eq!(update("1 | 0x0a"), Some(EflagUpdate::Combine(1, BitOperator::Or, vec![10])));
        assert_eq!(update("1 0x0a"), None);
        assert_eq!(update("30 | 0x0a0b"), None);
    }
}
