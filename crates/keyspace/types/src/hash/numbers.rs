//! Fields that are numbers. A field's time stays when it is counted up.

use super::{Cell, read_to_edit, set};
use crate::TypeError;
use crate::extended::Extended;
use base::integer::{IntegerText, parse_integer};
use engine::{Key, Keyspace, NotifyClass};

/// Adds to the integer in the field (0 when it is absent) and gives the sum.
///
/// # Errors
/// [`TypeError::FieldNotInteger`], [`TypeError::Overflow`], [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn increment(ks: &mut dyn Keyspace, key: &Key<'_>, field: &[u8], by: i64) -> Result<i64, TypeError> {
    let (old, expire_at) = match read_to_edit(ks, key)?.get(field) {
        None => (0, None),
        Some(cell) => (parse_integer(cell.value).ok_or(TypeError::FieldNotInteger)?, cell.expire_at),
    };
    let sum = old.checked_add(by).ok_or(TypeError::Overflow)?;
    let mut text = IntegerText::default();
    set(ks, key, Cell { field, value: text.format(sum), expire_at });
    ks.notify(NotifyClass::HASH, "hincrby", key);
    Ok(sum)
}

/// Adds to the number in the field (0 when it is absent) in extended precision and gives the text of the sum.
///
/// # Errors
/// [`TypeError::FieldNotFloat`], [`TypeError::NotFinite`], [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn increment_float(ks: &mut dyn Keyspace, key: &Key<'_>, field: &[u8], by: Extended) -> Result<String, TypeError> {
    let (old, expire_at) = match read_to_edit(ks, key)?.get(field) {
        None => (Extended::ZERO, None),
        Some(cell) => (Extended::parse(cell.value).ok_or(TypeError::FieldNotFloat)?, cell.expire_at),
    };
    let sum = old.checked_add(by).filter(|sum| sum.is_finite()).ok_or(TypeError::NotFinite)?;
    let text = sum.to_text();
    set(ks, key, Cell { field, value: text.as_bytes(), expire_at });
    ks.notify(NotifyClass::HASH, "hincrbyfloat", key);
    Ok(text)
}
