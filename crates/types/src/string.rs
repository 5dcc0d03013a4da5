//! Strings: bytes that may also read as an integer.

use crate::TypeError;
use base::UnixMs;
use engine::{Effect, Encoding, Entry, Key, Keyspace, Type, Value};

/// When SET stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition<'a> {
    /// Always.
    #[default]
    Always,
    /// Only if the key is absent (NX).
    IfAbsent,
    /// Only if the key is there (XX).
    IfPresent,
    /// Only if the key holds a string with exactly these bytes (IFEQ).
    IfEqual(&'a [u8]),
}

/// What SET does with the expiration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiration {
    /// The new value never expires.
    #[default]
    Never,
    /// The expiration that is there stays (KEEPTTL).
    Keep,
    /// Expires then; a time in the past stores nothing and removes what was there.
    At(UnixMs),
}

/// Whether SET stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOutcome {
    /// The value is stored (or, expiring in the past, stored and gone).
    Stored,
    /// The condition did not hold; nothing changed.
    NotStored,
}

/// The string under the key; `None` when absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
#[inline]
pub fn get<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<Value<'k>>, TypeError> {
    match ks.read(key)? {
        None => Ok(None),
        Some(entry) => string_value(&entry).map(Some),
    }
}

/// The value of an entry that has to be a string.
///
/// # Errors
/// [`TypeError::WrongType`].
#[inline]
pub fn string_value<'k>(entry: &Entry<'k>) -> Result<Value<'k>, TypeError> {
    match entry.kind {
        Type::String => Ok(entry.value),
    }
}

/// Stores a string. Reads the old entry only if something depends on it.
///
/// # Errors
/// [`TypeError::WrongType`] when compared (IFEQ) with another type, [`TypeError::Fetch`].
#[inline]
pub fn set(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    value: Value<'_>,
    condition: Condition<'_>,
    expiration: Expiration,
) -> Result<SetOutcome, TypeError> {
    let mut expire_at = None;
    if condition != Condition::Always || expiration == Expiration::Keep {
        let old = ks.peek(key)?;
        let holds = match condition {
            Condition::Always => true,
            Condition::IfAbsent => old.is_none(),
            Condition::IfPresent => old.is_some(),
            Condition::IfEqual(expected) => match &old {
                Some(entry) => string_value(entry)?.bytes() == expected,
                None => false,
            },
        };
        if !holds {
            return Ok(SetOutcome::NotStored);
        }
        if expiration == Expiration::Keep {
            expire_at = old.and_then(|entry| entry.expire_at);
        }
    }
    if let Expiration::At(at) = expiration {
        if at <= ks.now() {
            crate::generic::delete(ks, key)?;
            return Ok(SetOutcome::Stored);
        }
        expire_at = Some(at);
    }
    ks.apply(&Effect::Set { key: *key, value, encoding: Encoding::PLAIN, expire_at });
    Ok(SetOutcome::Stored)
}

/// Adds to the integer under the key (0 when absent) and gives the sum; the expiration stays.
///
/// # Errors
/// [`TypeError::NotInteger`], [`TypeError::Overflow`], [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn increment(ks: &mut dyn Keyspace, key: &Key<'_>, by: i64) -> Result<i64, TypeError> {
    let (old, expire_at) = match ks.read(key)? {
        None => (0, None),
        Some(entry) => (parse_integer(string_value(&entry)?.bytes()).ok_or(TypeError::NotInteger)?, entry.expire_at),
    };
    let sum = old.checked_add(by).ok_or(TypeError::Overflow)?;
    let mut digits = IntegerText::default();
    let text = digits.format(sum);
    ks.apply(&Effect::Set { key: *key, value: Value::Bytes(text), encoding: Encoding::PLAIN, expire_at });
    Ok(sum)
}

/// A decimal 64-bit integer written the one canonical way: no plus, no leading zeros, no spaces, no `-0`.
#[inline]
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude = 0u64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    // Nineteen digits stay below 2^64, so nothing has wrapped; `0 - 2^63` is the one value without a positive twin.
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Room for the text of any 64-bit integer.
#[derive(Default)]
pub struct IntegerText([u8; 20]);

impl IntegerText {
    /// The canonical text of the number.
    #[inline]
    pub fn format(&mut self, number: i64) -> &[u8] {
        let mut at = self.0.len();
        let mut magnitude = number.unsigned_abs();
        loop {
            at -= 1;
            self.0[at] = b'0' + (magnitude % 10) as u8;
            magnitude /= 10;
            if magnitude == 0 {
                break;
            }
        }
        if number < 0 {
            at -= 1;
            self.0[at] = b'-';
        }
        &self.0[at..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_canonical() {
        for number in [0, 1, -1, 10, i64::MAX, i64::MIN, i64::MIN + 1, 1_000_000_007] {
            let mut text = IntegerText::default();
            assert_eq!(text.format(number), number.to_string().as_bytes());
            assert_eq!(parse_integer(number.to_string().as_bytes()), Some(number));
        }
        for text in [
            "",
            "-",
            "-0",
            "+1",
            "01",
            " 1",
            "1 ",
            "1a",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
        ] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
    }
}
