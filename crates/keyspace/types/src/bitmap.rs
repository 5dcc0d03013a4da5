//! Strings as bits: the first bit is the highest one of the first byte.

use crate::kept::Kept;
use crate::string::{self, string_value};
use crate::{TypeError, bits, range};
use engine::{Effect, Encoding, Key, Keyspace, NotifyClass, Value};

/// A stretch of a string, both ends included, negative ones counted from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first.
    pub start: i64,
    /// The last.
    pub end: i64,
    /// Whether the ends are bits, not bytes.
    pub bits: bool,
}

impl Stretch {
    /// All of a string.
    pub const ALL: Self = Self { start: 0, end: -1, bits: false };

    /// First and last bit in a string of `len` bytes; `None` when it is empty.
    fn resolve(self, len: usize) -> Option<(u64, u64)> {
        let bits = (len as u64).saturating_mul(8);
        if self.bits {
            return range::resolve(self.start, self.end, bits);
        }
        let (start, end) = range::resolve(self.start, self.end, len as u64)?;
        Some((start.saturating_mul(8), end.saturating_mul(8).saturating_add(7)))
    }
}

/// The bit at `offset`; clear beyond the end and when the key is absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn bit(ks: &mut dyn Keyspace, key: &Key<'_>, offset: u64) -> Result<bool, TypeError> {
    let byte = string::get(ks, key)?.map_or(0, |value| byte_at(value.bytes(), offset));
    Ok(byte & mask(offset) != 0)
}

/// Sets or clears the bit at `offset`; the string grows to hold it, filled with zeros, and its expiration stays. Gives
/// the bit that was there. A bit that is as asked for already is no change.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn set_bit(ks: &mut dyn Keyspace, key: &Key<'_>, offset: u64, bit: bool) -> Result<bool, TypeError> {
    let (len, old, encoding) = match ks.read_to_edit(key)? {
        None => (None, 0, Encoding::EDITED),
        Some(entry) => {
            let value = string_value(&entry)?;
            (Some(value.len() as u64), byte_at(value.bytes(), offset), entry.encoding)
        }
    };
    let new = if bit { old | mask(offset) } else { old & !mask(offset) };
    match len {
        Some(len) if new == old && offset / 8 < len => range::mark_edited(ks, key, len, encoding),
        _ => {
            range::write(ks, key, len.is_some(), offset / 8, Value::Bytes(&[new]));
            ks.notify(NotifyClass::STRING, "setbit", key);
        }
    }
    Ok(old & mask(offset) != 0)
}

fn byte_at(bytes: &[u8], offset: u64) -> u8 {
    usize::try_from(offset / 8).ok().and_then(|at| bytes.get(at)).copied().unwrap_or(0)
}

fn mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// How many bits of the stretch are set; 0 when the key is absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn count(ks: &mut dyn Keyspace, key: &Key<'_>, stretch: Stretch) -> Result<u64, TypeError> {
    let Some(value) = string::get(ks, key)? else { return Ok(0) };
    let bytes = value.bytes();
    if range::is_crossed(stretch.start, stretch.end) {
        return Ok(0);
    }
    let Some((start, end)) = stretch.resolve(bytes.len()) else { return Ok(0) };
    let span = span(bytes, start, end);
    Ok(bits::count(span.bytes).saturating_sub(bits::count(&span.outside())))
}

/// The first bit of the stretch that is `bit`. `None` when there is none. When `bit` is clear and `open` is true, the
/// zeros that follow the string count: the answer is then the position after its end.
///
/// An absent key is all zeros.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn position(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    bit: bool,
    stretch: Stretch,
    open: bool,
) -> Result<Option<u64>, TypeError> {
    let Some(value) = string::get(ks, key)? else { return Ok((!bit).then_some(0)) };
    let bytes = value.bytes();
    let Some((start, end)) = stretch.resolve(bytes.len()) else { return Ok(None) };
    let span = span(bytes, start, end);
    let first = start & !7;
    let found = first_bit(&span, bit).map(|at| first.saturating_add(at));
    let behind = (bytes.len() as u64).saturating_mul(8);
    Ok(found.or_else(|| (!bit && open).then_some(behind)))
}

/// Whole bytes that hold a stretch of bits, and which bits of the first and the last are not of it.
struct Span<'a> {
    bytes: &'a [u8],
    /// Bits of the first byte before the stretch.
    before: u8,
    /// Bits of the last byte after it.
    behind: u8,
}

fn span(bytes: &[u8], start: u64, end: u64) -> Span<'_> {
    let bytes = bytes.get((start / 8) as usize..=(end / 8) as usize).unwrap_or_default();
    Span { bytes, before: !(0xFF >> (start % 8)), behind: 0x7F >> (end % 8) }
}

impl Span<'_> {
    /// The bits of the outer bytes that are not of the stretch.
    fn outside(&self) -> [u8; 2] {
        let (first, last) = (self.bytes.first(), self.bytes.last());
        [first.map_or(0, |byte| byte & self.before), last.map_or(0, |byte| byte & self.behind)]
    }
}

/// The first such bit of the stretch, counted from the first byte of the span.
fn first_bit(span: &Span<'_>, bit: bool) -> Option<u64> {
    // Bits outside are made such that they are not found.
    let (dull, hide) = if bit { (0x00, 0xFF) } else { (0xFF, 0x00) };
    let hidden = |byte: u8, outside: u8| if bit { byte & !outside } else { byte | outside };
    let (&first, rest) = span.bytes.split_first()?;
    let Some((&last, middle)) = rest.split_last() else {
        return place(hidden(hidden(first, span.before), span.behind), hide, 0);
    };
    let last_at = rest.len();
    place(hidden(first, span.before), hide, 0)
        .or_else(|| bits::first_other(middle, dull).and_then(|at| place(*middle.get(at)?, hide, at.saturating_add(1))))
        .or_else(|| place(hidden(last, span.behind), hide, last_at))
}

/// The first bit of a byte, at index `at`, that is set (clear, when `hide` is 0).
fn place(byte: u8, hide: u8, at: usize) -> Option<u64> {
    let sought = byte & hide | !byte & !hide;
    (sought != 0).then(|| (at as u64).saturating_mul(8).saturating_add(u64::from(sought.leading_zeros())))
}

/// What BITOP does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Set where all are set.
    And,
    /// Set where any is set.
    Or,
    /// Set where an odd number is set.
    Xor,
    /// Set where the one source is clear.
    Not,
}

/// Combines the sources, padding shorter and absent ones with zeros, and stores the result without an expiration; an
/// empty result removes the key. Returns the length of the result: that of the longest source.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn combine<'a>(
    ks: &mut dyn Keyspace,
    operation: Operation,
    to: &Key<'_>,
    mut sources: impl Iterator<Item = &'a [u8]>,
) -> Result<u64, TypeError> {
    let mut result = match sources.next() {
        Some(key) => source(ks, key)?.bytes().to_vec(),
        None => Vec::new(),
    };
    for key in sources {
        fold(operation, &mut result, source(ks, key)?.bytes());
    }
    if operation == Operation::Not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let len = result.len() as u64;
    if len > 0 {
        let result = Kept::from(result);
        ks.apply(&Effect::Set { key: *to, value: result.value(), encoding: Encoding::EDITED, expire_at: None });
        ks.notify(NotifyClass::STRING, "set", to);
    } else {
        crate::generic::delete(ks, to)?;
    }
    Ok(len)
}

/// A source's bytes; empty when absent.
fn source<'k>(ks: &'k mut dyn Keyspace, key: &[u8]) -> Result<Value<'k>, TypeError> {
    let key = ks.key(key);
    Ok(string::get(ks, &key)?.unwrap_or(Value::Bytes(&[])))
}

/// Brings a further source into the result.
fn fold(operation: Operation, result: &mut Vec<u8>, source: &[u8]) {
    let common = result.len().min(source.len());
    result.resize(result.len().max(source.len()), 0);
    let pairs = result.iter_mut().zip(source);
    match operation {
        Operation::And => {
            pairs.for_each(|(byte, other)| *byte &= other);
            result.iter_mut().skip(common).for_each(|byte| *byte = 0);
        }
        Operation::Or | Operation::Not => pairs.for_each(|(byte, other)| *byte |= other),
        Operation::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn bit_of(bytes: &[u8], at: u64) -> bool {
        byte_at(bytes, at) & mask(at) != 0
    }

    /// Counting and searching by words agree with looking at each bit, for every stretch of strings around word size.
    #[test]
    fn words_agree_with_bits() {
        let mut rng = Rng::new(3);
        for len in [1usize, 2, 7, 8, 9, 17, 30] {
            for fill in [0x00, 0xFF, 0x5A] {
                let mut bytes = vec![fill; len];
                bytes[rng.below(len as u64) as usize] = rng.next_u64() as u8;
                let bits = len as u64 * 8;
                for start in 0..bits {
                    for end in start..bits {
                        let span = span(&bytes, start, end);
                        let set = (start..=end).filter(|at| bit_of(&bytes, *at)).count() as u64;
                        assert_eq!(bits::count(span.bytes) - bits::count(&span.outside()), set);
                        for bit in [false, true] {
                            let expected = (start..=end).find(|at| bit_of(&bytes, *at) == bit);
                            let found = first_bit(&span, bit).map(|at| at + start / 8 * 8);
                            assert_eq!(found, expected, "{bit} in {start}..={end} of {bytes:x?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn folding_pads_with_zeros() {
        for (operation, expected) in
            [(Operation::And, &b"ab\0\0"[..]), (Operation::Or, b"abcd"), (Operation::Xor, b"\0\0cd")]
        {
            let mut result = b"ab".to_vec();
            fold(operation, &mut result, b"abcd");
            assert_eq!(result, expected);
            let mut result = b"abcd".to_vec();
            fold(operation, &mut result, b"ab");
            assert_eq!(result, expected);
        }
    }
}
