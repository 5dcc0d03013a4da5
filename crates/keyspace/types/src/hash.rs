//! Hashes: fields and their values.
//!
//! A due field counts as absent from that moment on, in every read and every decision. The store's upkeep removes it
//! soon after, with the key when it was the last one.

mod numbers;
mod random;
mod times;

pub use numbers::{increment, increment_float};
pub use random::{distinct, pick, repeated};
pub use times::{
    Deadline, FieldCondition, KeyCondition, SetUntil, TimeChange, expire, get_and_delete, get_and_expire, persist,
    set_until,
};
pub use value::hash::Cell;

use crate::{TypeError, collection};
use base::UnixMs;
use engine::{Edited, Entry, Key, Keyspace, Known, Left, NotifyClass, Type};
use value::hash::{Change, Iter, UNTIMED, View};
use value::{Encoding, Stored};

/// From this many fields on, a command announces how many are coming.
const EXPECTED_MIN: usize = 64;

/// A hash as clients see it: without the fields that are due.
#[derive(Clone, Copy, Debug)]
pub struct Hash<'a> {
    view: View<'a>,
    now: UnixMs,
}

impl<'a> Hash<'a> {
    #[inline]
    pub(crate) fn of(stored: Option<(Encoding, Stored<'a>)>, now: UnixMs) -> Self {
        let (encoding, stored) = stored.unwrap_or((UNTIMED, Stored::Packed(&[])));
        Self { view: View::of(encoding, stored), now }
    }

    /// How many fields.
    #[inline]
    pub fn len(&self) -> usize {
        self.view.len().saturating_sub(self.view.count_due(self.now))
    }

    /// How many fields are stored, those that are due included.
    #[inline]
    pub fn stored_len(&self) -> usize {
        self.view.len()
    }

    /// Whether any field has a time.
    #[inline]
    fn has_times(&self) -> bool {
        self.view.first_due().is_some()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The field with its value.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Cell<'a>> {
        self.view.get(field).filter(|cell| !cell.is_due(self.now))
    }

    /// All fields with their values.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Cell<'a>> + use<'a> {
        let now = self.now;
        let cells: Iter<'a> = self.view.iter();
        cells.filter(move |cell| !cell.is_due(now))
    }

    /// One step of HSCAN: see [`View::scan`].
    pub fn scan(&self, cursor: u64, count: u64, visit: &mut dyn FnMut(Cell<'a>)) -> u64 {
        self.view.scan(cursor, count, &mut |cell| {
            if !cell.is_due(self.now) {
                visit(cell);
            }
        })
    }
}

/// The hash in an entry, without fields when there is no entry.
///
/// # Errors
/// [`TypeError::WrongType`].
#[inline]
pub fn of_entry<'k>(entry: Option<&Entry<'k>>, now: UnixMs) -> Result<Hash<'k>, TypeError> {
    Ok(Hash::of(collection::of_entry(entry, Type::Hash)?, now))
}

/// The hash under the key, without fields when the key is absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
#[inline]
pub fn read<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Hash<'k>, TypeError> {
    let now = ks.now();
    collection::read(ks, key, Type::Hash).map(|stored| Hash::of(stored, now))
}

/// [`read`] by a command that then changes the hash.
#[inline]
fn read_to_edit<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Hash<'k>, TypeError> {
    let now = ks.now();
    collection::read_to_edit(ks, key, Type::Hash).map(|stored| Hash::of(stored, now))
}

/// Sets fields, the last one of equal ones, which stay until they are deleted. Gives how many are new.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
#[inline]
pub fn set_all<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    pairs: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<usize, TypeError> {
    let mut changes = ks.take_buffer();
    if pairs.len() >= EXPECTED_MIN {
        Change::Expect(pairs.len() as u64).put(&mut changes);
    }
    for (field, value) in pairs {
        Change::Set { field, value, expire_at: None }.put(&mut changes);
    }
    let new = match ks.edit(key, Type::Hash, &changes, Known::Nothing) {
        Ok(Edited { before, left: Left::Elements(after) }) => Ok(after.saturating_sub(before) as usize),
        Ok(_) => unreachable!("fields were set, and an edit of a hash counts its fields"),
        Err(_) => set_seen(ks, key, &changes),
    };
    ks.give_buffer(changes);
    new
}

/// Makes changes that set fields, after a look. Gives how many are new.
fn set_seen(ks: &mut dyn Keyspace, key: &Key<'_>, changes: &[u8]) -> Result<usize, TypeError> {
    let hash = read_to_edit(ks, key)?;
    let (before, has_times) = (hash.len(), hash.has_times());
    let edited = ks.edit(key, Type::Hash, changes, Known::Read);
    ks.notify(NotifyClass::HASH, "hset", key);
    let after = match edited.map(|edited| edited.left) {
        // None of them is due.
        Ok(Left::Elements(len)) if !has_times => len as usize,
        _ => peek(ks, key)?.len(),
    };
    Ok(after.saturating_sub(before))
}

/// Sets a field unless it is there. False when it is.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn set_if_absent(ks: &mut dyn Keyspace, key: &Key<'_>, field: &[u8], value: &[u8]) -> Result<bool, TypeError> {
    let is_absent = read_to_edit(ks, key)?.get(field).is_none();
    if is_absent {
        set(ks, key, Cell { field, value, expire_at: None });
        ks.notify(NotifyClass::HASH, "hset", key);
    }
    Ok(is_absent)
}

/// Removes fields, with the key when none is left. Gives how many were there.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn delete_all<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    fields: impl Iterator<Item = &'a [u8]>,
) -> Result<usize, TypeError> {
    let mut changes = ks.take_buffer();
    let hash = read_to_edit(ks, key)?;
    let (before, has_times) = (hash.len(), hash.has_times());
    for field in fields {
        if hash.get(field).is_some() {
            Change::Delete(field).put(&mut changes);
        }
    }
    let deleted = if changes.is_empty() {
        0
    } else {
        let edited = ks.edit(key, Type::Hash, &changes, Known::Read);
        ks.notify(NotifyClass::HASH, "hdel", key);
        let after = match edited.map(|edited| edited.left) {
            Ok(Left::Nothing) => {
                ks.notify(NotifyClass::GENERIC, "del", key);
                0
            }
            // None of them is due.
            Ok(Left::Elements(len)) if !has_times => len as usize,
            _ => peek(ks, key)?.len(),
        };
        before.saturating_sub(after)
    };
    ks.give_buffer(changes);
    Ok(deleted)
}

/// The hash, read without counting as an access: for decisions before the command's own, between changes, or after
/// them.
///
/// # Errors
/// As of [`read`].
pub fn peek<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Hash<'k>, TypeError> {
    let now = ks.now();
    of_entry(ks.peek_value(key)?.as_ref(), now)
}

fn set(ks: &mut dyn Keyspace, key: &Key<'_>, cell: Cell<'_>) {
    collection::change(ks, key, Type::Hash, |changes| Change::from(cell).put(changes));
}

/// After a change that removed fields: notifies that the key is gone, if the last of them is.
fn notify_if_gone(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<(), TypeError> {
    if ks.peek_head(key)?.is_none() {
        ks.notify(NotifyClass::GENERIC, "del", key);
    }
    Ok(())
}
