//! Strings as wholes: get, set, one or several at a time.

use crate::decoder::string_len;
use crate::{TypeError, encoding};
use base::UnixMs;
use engine::{Effect, Encoding, Entry, Key, Keyspace, NotifyClass, Type, Value};

pub use base::integer::{IntegerText, parse_integer};

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
    if entry.kind == Type::String { Ok(entry.value) } else { Err(TypeError::WrongType) }
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
    let mut old_expire_at = None;
    let looks = condition != Condition::Always || expiration == Expiration::Keep;
    if looks || encoding::depends_on_old(key.bytes, value.bytes()) {
        let old = condition.look(ks, key)?;
        if !condition.holds(old.as_ref())? {
            return Ok(SetOutcome::NotStored);
        }
        old_expire_at = old.and_then(|entry| entry.expire_at);
    }
    store(ks, key, value, expiration, old_expire_at)?;
    Ok(SetOutcome::Stored)
}

impl Condition<'_> {
    /// What is stored, as far as the condition is about it.
    fn look<'k>(self, ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<Entry<'k>>, TypeError> {
        Ok(if matches!(self, Self::IfEqual(_)) { ks.peek_value(key)? } else { ks.peek_head(key)? })
    }

    /// Whether it holds for the stored value.
    fn holds(self, old: Option<&Entry<'_>>) -> Result<bool, TypeError> {
        Ok(match (self, old) {
            (Self::Always, _) => true,
            (Self::IfAbsent, old) => old.is_none(),
            (Self::IfPresent, old) => old.is_some(),
            (Self::IfEqual(_), None) => false,
            (Self::IfEqual(expected), Some(entry)) => string_value(entry)?.bytes() == expected,
        })
    }
}

/// Stores a string whose condition holds; `kept` is the expiration that [`Expiration::Keep`] leaves.
#[inline]
fn store(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    value: Value<'_>,
    expiration: Expiration,
    old_expire_at: Option<UnixMs>,
) -> Result<(), TypeError> {
    let expire_at = match expiration {
        Expiration::Never => None,
        Expiration::Keep => old_expire_at,
        Expiration::At(at) if at <= ks.now() => {
            if ks.peek_head(key)?.is_some() {
                ks.apply(&Effect::Delete { key: *key });
                ks.notify(NotifyClass::EXPIRED, "expired", key);
            }
            return Ok(());
        }
        Expiration::At(at) => Some(at),
    };
    let is_raw = old_expire_at.is_some() && encoding::depends_on_old(key.bytes, value.bytes());
    let encoding = if is_raw { Encoding::EDITED } else { Encoding::PLAIN };
    ks.apply(&Effect::Set { key: *key, value, encoding, expire_at });
    ks.notify(NotifyClass::STRING, "set", key);
    if matches!(expiration, Expiration::At(_)) {
        ks.notify(NotifyClass::GENERIC, "expire", key);
    }
    Ok(())
}

/// Stores several strings, all or none; of equal keys the last one wins. The condition is about all keys together:
/// every one absent, or every one there.
///
/// # Errors
/// [`TypeError::WrongType`] (IFEQ), [`TypeError::Fetch`].
pub fn set_all<'a>(
    ks: &mut dyn Keyspace,
    pairs: impl Iterator<Item = (&'a [u8], Value<'a>)> + Clone,
    condition: Condition<'_>,
    expiration: Expiration,
) -> Result<SetOutcome, TypeError> {
    let mut old_expirations = Vec::new();
    // Storing without looking needs no old entry, except that one expiring in the past is removed.
    let looks = condition != Condition::Always
        || expiration != Expiration::Never
        || pairs.clone().any(|(key, value)| encoding::depends_on_old(key, value.bytes()));
    if looks {
        for (key, _) in pairs.clone() {
            let key = ks.key(key);
            let old = condition.look(ks, &key)?;
            if !condition.holds(old.as_ref())? {
                return Ok(SetOutcome::NotStored);
            }
            old_expirations.push(old.and_then(|entry| entry.expire_at));
        }
    }
    if matches!(expiration, Expiration::At(at) if at <= ks.now()) {
        store_expired(ks, pairs.map(|(key, _)| key))?;
        return Ok(SetOutcome::Stored);
    }
    for ((key, value), old_expire_at) in pairs.zip(old_expirations.into_iter().chain(std::iter::repeat(None))) {
        let key = ks.key(key);
        store(ks, &key, value, expiration, old_expire_at)?;
    }
    Ok(SetOutcome::Stored)
}

/// Stores several strings that have expired already: existing values go, with the notifications of a value that came
/// and went.
fn store_expired<'a>(ks: &mut dyn Keyspace, keys: impl Iterator<Item = &'a [u8]> + Clone) -> Result<(), TypeError> {
    for key in keys.clone() {
        let key = ks.key(key);
        match ks.peek_head(&key)?.is_some() {
            true => ks.apply(&Effect::Delete { key }),
            false => ks.notify(NotifyClass::NEW, "new", &key),
        }
        ks.notify(NotifyClass::STRING, "set", &key);
        ks.notify(NotifyClass::GENERIC, "expire", &key);
    }
    for key in keys {
        let key = ks.key(key);
        ks.notify(NotifyClass::EXPIRED, "expired", &key);
    }
    Ok(())
}

/// Removes the key if it holds a string with exactly these bytes. False when it is absent or another string.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn delete_if_equal(ks: &mut dyn Keyspace, key: &Key<'_>, expected: &[u8]) -> Result<bool, TypeError> {
    let equal = Condition::IfEqual(expected).holds(ks.peek_value(key)?.as_ref())?;
    if equal {
        ks.apply(&Effect::Delete { key: *key });
        ks.notify(NotifyClass::GENERIC, "del", key);
    }
    Ok(equal)
}

/// Bytes of the string; 0 when absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn len(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<usize, TypeError> {
    let entry = ks.read_stored(key)?;
    let len = entry.as_ref().map(|entry| string_value(entry).map(|_| string_len(entry))).transpose()?;
    count_read(ks, key, len.is_some());
    Ok(len.unwrap_or(0))
}

/// Counts a [`Keyspace::read_stored`] as [`Keyspace::read`] counts.
pub(crate) fn count_read(ks: &mut dyn Keyspace, key: &Key<'_>, found: bool) {
    ks.count_peek(found);
    if !found {
        ks.notify(NotifyClass::MISS, "keymiss", key);
    }
}
