//! Parts of strings: GETRANGE, APPEND, SETRANGE. Only the part asked for is copied or written.

use crate::TypeError;
use crate::fields::Extras;
use crate::string::{self, string_value};
use engine::{Effect, Encoding, Key, Keyspace, NotifyClass, Value};

/// A stretch of `len` things as commands give it, both ends included, negative ones counted from the end (-1 is the
/// last). `None` when it is empty. An end before the beginning counts as the beginning.
pub fn resolve(start: i64, end: i64, len: u64) -> Option<(u64, u64)> {
    let resolve = |at: i64| match u64::try_from(at) {
        Ok(at) => at,
        Err(_) => len.saturating_sub(at.unsigned_abs()),
    };
    let (start, end) = (resolve(start), resolve(end).min(len.saturating_sub(1)));
    (start <= end && len > 0).then_some((start, end))
}

/// Whether both ends are counted from the end and the second comes first. Most commands, but not BITPOS, find such a
/// stretch empty even where both ends lie before the beginning.
pub fn is_crossed(start: i64, end: i64) -> bool {
    start < 0 && end < 0 && start > end
}

/// The bytes from `start` to `end` (see [`resolve`]); empty when the key is absent. A whole big value is shared.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn get<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>, start: i64, end: i64) -> Result<Value<'k>, TypeError> {
    let Some(value) = string::get(ks, key)? else { return Ok(Value::Bytes(&[])) };
    let bytes = value.bytes();
    let stretch = if is_crossed(start, end) { None } else { resolve(start, end, bytes.len() as u64) };
    Ok(match stretch {
        Some((0, end)) if end.saturating_add(1) == bytes.len() as u64 => value,
        Some((start, end)) => Value::Bytes(bytes.get(start as usize..=end as usize).unwrap_or_default()),
        None => Value::Bytes(&[]),
    })
}

/// Adds bytes at the end, or stores them when the key is absent; the expiration stays. Gives the length.
///
/// # Errors
/// [`TypeError::StringTooLong`] when it would exceed `limit` bytes, [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn append(ks: &mut dyn Keyspace, key: &Key<'_>, value: Value<'_>, limit: u64) -> Result<u64, TypeError> {
    let Some(entry) = ks.read_to_edit(key)? else {
        ks.apply(&Effect::Set { key: *key, value, encoding: Encoding::PLAIN, expire_at: None });
        ks.notify(NotifyClass::STRING, "append", key);
        return Ok(value.len() as u64);
    };
    let (old, extras) = (string_value(&entry)?, Extras::of(&entry));
    let (last, old) = (old.bytes().last().copied(), old.len() as u64);
    let len = end_of(old, value.len(), limit)?;
    match last {
        // For WATCH, adding nothing is a change all the same, which an empty splice would not be.
        Some(last) if value.len() == 0 => {
            ks.apply(&Effect::Splice { key: *key, offset: old.saturating_sub(1), bytes: &[last] });
        }
        None if value.len() == 0 => extras.store(ks, key, value, Encoding::EDITED),
        _ => ks.apply(&Effect::Splice { key: *key, offset: old, bytes: value.bytes() }),
    }
    ks.notify(NotifyClass::STRING, "append", key);
    Ok(len)
}

/// Overwrites bytes from `offset` on; the string grows, filled with zeros, as needed, and the expiration stays. No
/// bytes change nothing. Gives the length.
///
/// # Errors
/// [`TypeError::StringTooLong`] when it would exceed `limit` bytes, [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn set(ks: &mut dyn Keyspace, key: &Key<'_>, offset: u64, value: Value<'_>, limit: u64) -> Result<u64, TypeError> {
    let old = match ks.read_to_edit(key)? {
        None => None,
        Some(entry) => Some(string_value(&entry)?.len() as u64),
    };
    if value.len() == 0 {
        return Ok(old.unwrap_or(0));
    }
    let end = end_of(offset, value.len(), limit)?;
    write(ks, key, old.is_some(), offset, value);
    ks.notify(NotifyClass::STRING, "setrange", key);
    Ok(end.max(old.unwrap_or(0)))
}

/// Has a string of `len` bytes counted as edited, its bytes being left as they are.
pub(crate) fn mark_edited(ks: &mut dyn Keyspace, key: &Key<'_>, len: u64, encoding: Encoding) {
    if encoding != Encoding::EDITED {
        ks.apply(&Effect::Splice { key: *key, offset: len, bytes: &[] });
    }
}

/// Where `len` bytes from `offset` on end.
fn end_of(offset: u64, len: usize, limit: u64) -> Result<u64, TypeError> {
    offset.checked_add(len as u64).filter(|end| *end <= limit).ok_or(TypeError::StringTooLong)
}

/// Overwrites a part of a string whose presence and type are known. An absent one grows out of an empty string, so that
/// the zeros before the offset are never written down.
pub(crate) fn write(ks: &mut dyn Keyspace, key: &Key<'_>, present: bool, offset: u64, value: Value<'_>) {
    if !present {
        let whole = if offset == 0 { value } else { Value::Bytes(&[]) };
        ks.apply(&Effect::Set { key: *key, value: whole, encoding: Encoding::EDITED, expire_at: None });
        if offset == 0 {
            return;
        }
    }
    ks.apply(&Effect::Splice { key: *key, offset, bytes: value.bytes() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_resolved_like_getrange() {
        for (start, end, len, expected) in [
            (0, -1, 3, Some((0, 2))),
            (1, 1, 3, Some((1, 1))),
            (-2, -1, 3, Some((1, 2))),
            (-1, -2, 3, None),
            (-100, -200, 3, Some((0, 0))),
            (5, 10, 3, None),
            (-100, 100, 3, Some((0, 2))),
            (-100, -50, 3, Some((0, 0))),
            (0, -100, 3, Some((0, 0))),
            (2, 1, 3, None),
            (0, 0, 0, None),
            (i64::MAX, -1, 3, None),
            (i64::MIN, i64::MAX, 3, Some((0, 2))),
            (i64::MIN, i64::MIN, 3, Some((0, 0))),
        ] {
            assert_eq!(resolve(start, end, len), expected, "{start} {end} of {len}");
        }
    }
}
