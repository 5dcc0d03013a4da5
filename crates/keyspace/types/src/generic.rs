//! Operations on keys of any type: delete, expire, rename, copy, move.

use crate::decoder::string_len;
use crate::fields::Extras;
use crate::kept::Kept;
use crate::{TypeError, encoding, string};
use base::{KeyspaceId, UnixMs};
use engine::{Effect, Encoding, Key, Keyspace, NotifyClass, Type};

/// Removes the key. False when it was absent.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn delete(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<bool, TypeError> {
    if ks.peek_head(key)?.is_none() {
        return Ok(false);
    }
    ks.apply(&Effect::Delete { key: *key });
    ks.notify(NotifyClass::GENERIC, "del", key);
    Ok(true)
}

/// Removes several keys and gives how many were there.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn delete_all<'a>(ks: &mut dyn Keyspace, keys: impl Iterator<Item = &'a [u8]> + Clone) -> Result<u64, TypeError> {
    // Every row is in memory before the first is removed (T2).
    for key in keys.clone() {
        let key = ks.key(key);
        ks.peek_head(&key)?;
    }
    let mut removed = 0u64;
    for key in keys {
        let key = ks.key(key);
        removed = removed.saturating_add(u64::from(delete(ks, &key)?));
    }
    Ok(removed)
}

/// How many of the keys are there; one that is named twice counts twice.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn count<'a>(ks: &mut dyn Keyspace, keys: impl Iterator<Item = &'a [u8]>) -> Result<u64, TypeError> {
    let mut found = 0u64;
    for key in keys {
        let key = ks.key(key);
        let is_there = ks.peek_head(&key)?.is_some();
        ks.count_peek(is_there);
        if !is_there {
            ks.notify(NotifyClass::MISS, "keymiss", &key);
        }
        found = found.saturating_add(u64::from(is_there));
    }
    Ok(found)
}

/// [`count`], and each key found counts as used.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn touch<'a>(ks: &mut dyn Keyspace, keys: impl Iterator<Item = &'a [u8]>) -> Result<u64, TypeError> {
    let mut found = 0u64;
    for key in keys {
        let key = ks.key(key);
        let is_there = ks.read_stored(&key)?.is_some();
        string::count_read(ks, &key, is_there);
        found = found.saturating_add(u64::from(is_there));
    }
    Ok(found)
}

/// The type of the stored value; `None` when absent.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn kind(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<Option<Type>, TypeError> {
    let kind = ks.peek_head(key)?.map(|entry| entry.kind);
    ks.count_peek(kind.is_some());
    if kind.is_none() {
        ks.notify(NotifyClass::MISS, "keymiss", key);
    }
    Ok(kind)
}

/// When a key expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// There is no such key.
    Absent,
    /// It stays.
    Never,
    /// Then.
    At(UnixMs),
}

/// When the key expires.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn expiry(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<Expiry, TypeError> {
    let expiry = match ks.peek_head(key)? {
        None => Expiry::Absent,
        Some(entry) => entry.expire_at.map_or(Expiry::Never, Expiry::At),
    };
    ks.count_peek(expiry != Expiry::Absent);
    if expiry == Expiry::Absent {
        ks.notify(NotifyClass::MISS, "keymiss", key);
    }
    Ok(expiry)
}

/// Whether an expiration is set only under a condition (EXPIRE's options).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireCondition {
    /// Only if it has none.
    pub if_none: bool,
    /// Only if it has one.
    pub if_some: bool,
    /// Only if later than the present one; no expiration counts as infinitely late.
    pub if_later: bool,
    /// Only if earlier than the present one.
    pub if_earlier: bool,
}

impl ExpireCondition {
    /// Whether the expiration may become `at` where `present` is what there is.
    pub(crate) fn allows(self, present: Option<UnixMs>, at: UnixMs) -> bool {
        !(self.if_none && present.is_some()
            || self.if_some && present.is_none()
            || self.if_later && present.is_none_or(|present| at <= present)
            || self.if_earlier && present.is_some_and(|present| at >= present))
    }
}

/// Sets when the key expires; a time in the past removes it. False when the key is absent or the condition does not
/// hold.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn expire_at(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    at: UnixMs,
    condition: ExpireCondition,
) -> Result<bool, TypeError> {
    let now = ks.now();
    let Some(entry) = ks.peek_head(key)? else { return Ok(false) };
    if !condition.allows(entry.expire_at, at) {
        return Ok(false);
    }
    if at <= now {
        ks.apply(&Effect::Delete { key: *key });
        ks.notify(NotifyClass::EXPIRED, "expired", key);
    } else {
        ks.apply(&Effect::Expire { key: *key, at });
        ks.notify(NotifyClass::GENERIC, "expire", key);
    }
    Ok(true)
}

/// Makes the key stay. False when it is absent or would have stayed anyway.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn persist(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<bool, TypeError> {
    let expires = ks.peek_head(key)?.is_some_and(|entry| entry.expire_at.is_some());
    if expires {
        ks.apply(&Effect::Persist { key: *key });
        ks.notify(NotifyClass::GENERIC, "persist", key);
    }
    Ok(expires)
}

/// Whether a new place may be one that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfTaken {
    /// What is there is replaced.
    Replace,
    /// Nothing happens.
    Leave,
}

/// What became of an entry that was to get another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It has it.
    Done,
    /// There is no such entry.
    Absent,
    /// The new key is taken; nothing changed.
    Taken,
}

/// Gives the entry another key of the same keyspace; its expiration moves along. Its own key counts as taken, and
/// replacing it changes nothing.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn rename(ks: &mut dyn Keyspace, from: &Key<'_>, to: &Key<'_>, if_taken: IfTaken) -> Result<Moved, TypeError> {
    let Some(entry) = ks.peek(from)? else { return Ok(Moved::Absent) };
    let leaves_raw = entry.kind == Type::String && encoding::leaves_raw(&entry, to.bytes);
    let len = string_len(&entry) as u64;
    let taken = ks.peek_head(to)?.is_some();
    if taken && if_taken == IfTaken::Leave {
        return Ok(Moved::Taken);
    }
    if from.bytes != to.bytes {
        ks.apply(&Effect::Rename { from: *from, to: *to });
        if leaves_raw {
            ks.apply(&Effect::Splice { key: *to, offset: len, bytes: &[] });
        }
        ks.notify(NotifyClass::GENERIC, "rename_from", from);
        ks.notify(NotifyClass::GENERIC, "rename_to", to);
    }
    Ok(Moved::Done)
}

/// Stores the same entry, expiration included, under another key, perhaps of another keyspace.
///
/// # Errors
/// [`TypeError::SameKey`] when both are one, [`TypeError::Fetch`].
pub fn copy(ks: &mut dyn Keyspace, from: &Key<'_>, to: &Key<'_>, if_taken: IfTaken) -> Result<Moved, TypeError> {
    let copied = duplicate(ks, from, to, if_taken)?;
    ks.count_peek(copied != Moved::Absent);
    match copied {
        Moved::Done => ks.notify(NotifyClass::GENERIC, "copy_to", to),
        Moved::Absent => ks.notify(NotifyClass::MISS, "keymiss", from),
        Moved::Taken => {}
    }
    Ok(copied)
}

fn duplicate(ks: &mut dyn Keyspace, from: &Key<'_>, to: &Key<'_>, if_taken: IfTaken) -> Result<Moved, TypeError> {
    if from.space == to.space && from.bytes == to.bytes {
        return Err(TypeError::SameKey);
    }
    let Some(entry) = ks.read_stored(from)? else { return Ok(Moved::Absent) };
    let is_string = entry.kind == Type::String;
    let encoding = match is_string && encoding::leaves_raw(&entry, to.bytes) {
        true if entry.is_compressed() => Encoding::EDITED.compressed(),
        true => Encoding::EDITED,
        false => entry.encoding,
    };
    let value = if is_string { Kept::new(entry.value) } else { Kept::empty() };
    let extras = Extras::of(&entry);
    let taken = ks.peek_head(to)?.is_some();
    if taken && if_taken == IfTaken::Leave {
        return Ok(Moved::Taken);
    }
    match is_string {
        true => {
            extras.store(ks, to, value.value(), encoding);
            if taken {
                // What was there is gone, and this is another.
                ks.notify(NotifyClass::NEW, "new", to);
            }
        }
        false => ks.apply(&Effect::Copy { from: *from, to: *to }),
    }
    Ok(Moved::Done)
}

/// Moves the entry, expiration included, to the same key of another keyspace, unless that is taken.
///
/// # Errors
/// [`TypeError::SameKey`] when the keyspace is the key's own, [`TypeError::Fetch`].
pub fn move_to(ks: &mut dyn Keyspace, key: &Key<'_>, space: KeyspaceId) -> Result<Moved, TypeError> {
    let to = key.in_space(space);
    let moved = duplicate(ks, key, &to, IfTaken::Leave)?;
    if moved == Moved::Done {
        ks.apply(&Effect::Delete { key: *key });
        ks.notify(NotifyClass::GENERIC, "move_from", key);
        ks.notify(NotifyClass::GENERIC, "move_to", &to);
    }
    Ok(moved)
}
