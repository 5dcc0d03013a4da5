//! Strings that are numbers: INCR and its relatives.

use crate::TypeError;
use crate::extended::Extended;
use crate::fields::Extras;
use crate::string::string_value;
use base::integer::{IntegerText, parse_integer};
use engine::{Encoding, Key, Keyspace, NotifyClass, Value};

/// Adds to the integer under the key (0 when absent) and gives the sum; expiration and optional fields
/// stay.
///
/// # Errors
/// [`TypeError::NotInteger`], [`TypeError::Overflow`], [`TypeError::WrongType`], [`TypeError::Fetch`].
#[inline]
pub fn increment(ks: &mut dyn Keyspace, key: &Key<'_>, by: i64) -> Result<i64, TypeError> {
    let (old, extras) = match ks.read_to_edit(key)? {
        None => (0, Extras::default()),
        Some(entry) => {
            let old = parse_integer(string_value(&entry)?.bytes()).ok_or(TypeError::NotInteger)?;
            (old, Extras::of(&entry))
        }
    };
    let sum = old.checked_add(by).ok_or(TypeError::Overflow)?;
    let mut digits = IntegerText::default();
    let text = digits.format(sum);
    extras.store(ks, key, Value::Bytes(text), Encoding::PLAIN);
    ks.notify(NotifyClass::STRING, "incrby", key);
    Ok(sum)
}

/// Adds to the number under the key (0 when absent) in extended precision and gives the text of the sum; expiration
/// and optional fields stay.
///
/// # Errors
/// [`TypeError::WrongType`] first; [`TypeError::NotFloat`] for either number, [`TypeError::NotFinite`],
/// [`TypeError::Fetch`].
pub fn increment_float(ks: &mut dyn Keyspace, key: &Key<'_>, by: &[u8]) -> Result<String, TypeError> {
    let (old, extras) = match ks.read_to_edit(key)? {
        None => (Extended::ZERO, Extras::default()),
        Some(entry) => {
            let old = Extended::parse(string_value(&entry)?.bytes()).ok_or(TypeError::NotFloat)?;
            (old, Extras::of(&entry))
        }
    };
    let by = Extended::parse(by).ok_or(TypeError::NotFloat)?;
    let sum = old.checked_add(by).filter(|sum| sum.is_finite()).ok_or(TypeError::NotFinite)?;
    let text = sum.to_text();
    extras.store(ks, key, Value::Bytes(text.as_bytes()), Encoding::DECIMAL);
    ks.notify(NotifyClass::STRING, "incrbyfloat", key);
    Ok(text)
}
