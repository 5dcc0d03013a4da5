//! Strings that are numbers: INCR and its relatives.

use crate::TypeError;
use crate::extended::Extended;
use crate::string::string_value;
use base::integer::{IntegerText, parse_integer};
use engine::{Effect, Encoding, Key, Keyspace, NotifyClass, Value};

/// Adds to the integer under the key (0 when absent) and gives the sum; the expiration stays.
///
/// # Errors
/// [`TypeError::NotInteger`], [`TypeError::Overflow`], [`TypeError::WrongType`], [`TypeError::Fetch`].
#[inline]
pub fn increment(ks: &mut dyn Keyspace, key: &Key<'_>, by: i64) -> Result<i64, TypeError> {
    let (old, expire_at) = match ks.read_to_edit(key)? {
        None => (0, None),
        Some(entry) => (parse_integer(string_value(&entry)?.bytes()).ok_or(TypeError::NotInteger)?, entry.expire_at),
    };
    let sum = old.checked_add(by).ok_or(TypeError::Overflow)?;
    let mut digits = IntegerText::default();
    let text = digits.format(sum);
    ks.apply(&Effect::Set { key: *key, value: Value::Bytes(text), encoding: Encoding::PLAIN, expire_at });
    ks.notify(NotifyClass::STRING, "incrby", key);
    Ok(sum)
}

/// Adds to the number under the key (0 when absent) in extended precision and gives the text of the sum; the expiration
/// stays.
///
/// # Errors
/// [`TypeError::WrongType`] first; [`TypeError::NotFloat`] for either number, [`TypeError::NotFinite`],
/// [`TypeError::Fetch`].
pub fn increment_float(ks: &mut dyn Keyspace, key: &Key<'_>, by: &[u8]) -> Result<String, TypeError> {
    let (old, expire_at) = match ks.read_to_edit(key)? {
        None => (Extended::ZERO, None),
        Some(entry) => {
            let old = Extended::parse(string_value(&entry)?.bytes()).ok_or(TypeError::NotFloat)?;
            (old, entry.expire_at)
        }
    };
    let by = Extended::parse(by).ok_or(TypeError::NotFloat)?;
    let sum = old.checked_add(by).filter(|sum| sum.is_finite()).ok_or(TypeError::NotFinite)?;
    let text = sum.to_text();
    let value = Value::Bytes(text.as_bytes());
    ks.apply(&Effect::Set { key: *key, value, encoding: Encoding::DECIMAL, expire_at });
    ks.notify(NotifyClass::STRING, "incrbyfloat", key);
    Ok(text)
}
