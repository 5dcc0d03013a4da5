//! When fields are due: set, asked for, taken away.
//!
//! A command that names a field twice sees the second time what the first has left ([`edit_each`]).

use super::{Cell, Hash, notify_if_gone, peek, read_to_edit};
use crate::generic::ExpireCondition;
use crate::{TypeError, collection};
use base::UnixMs;
use engine::{Key, Keyspace, NotifyClass, Type};
use std::collections::HashSet;
use value::hash::Change;

/// What became of the time of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeChange {
    /// There is no such field.
    Absent,
    /// It has no time to be taken away.
    Timeless,
    /// The condition did not hold.
    Refused,
    /// It is set, or taken away.
    Done,
    /// The time is past: the field is deleted.
    Deleted,
}

/// What a field's time is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// As it is.
    Keep,
    /// None.
    Never,
    /// Then; a time that is past deletes the field.
    At(UnixMs),
}

/// Whether fields are set only if the key is there, or is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyCondition {
    /// Either way.
    #[default]
    Always,
    /// Only if the key is absent (NX).
    IfAbsent,
    /// Only if it is there (XX).
    IfPresent,
}

impl KeyCondition {
    /// Whether it is met.
    pub fn allows(self, is_there: bool) -> bool {
        match self {
            Self::Always => true,
            Self::IfAbsent => !is_there,
            Self::IfPresent => is_there,
        }
    }
}

/// Whether fields are set only if all of them are there, or none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldCondition {
    /// Either way.
    #[default]
    Always,
    /// Only if none of them is there (FNX).
    IfAbsent,
    /// Only if all are (FXX).
    IfPresent,
}

/// How fields are set ([`set_until`]).
#[derive(Clone, Copy, Debug)]
pub struct SetUntil {
    /// About the key.
    pub key: KeyCondition,
    /// About the fields.
    pub fields: FieldCondition,
    /// Their time.
    pub deadline: Deadline,
}

/// Sets when fields are due, and reports the outcome for each in turn.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn expire<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    fields: impl Iterator<Item = &'a [u8]>,
    at: UnixMs,
    condition: ExpireCondition,
    tell: &mut dyn FnMut(TimeChange),
) -> Result<(), TypeError> {
    let is_past = at <= ks.now();
    let changed = edit_each(ks, key, fields, &mut |cell, field, changes| {
        tell(match cell {
            None => TimeChange::Absent,
            Some(cell) if !condition.allows(cell.expire_at, at) => TimeChange::Refused,
            Some(_) if is_past => {
                Change::Delete(field).put(changes);
                TimeChange::Deleted
            }
            Some(_) => {
                Change::Expire { field, expire_at: Some(at) }.put(changes);
                TimeChange::Done
            }
        });
    })?;
    if changed {
        notify_deadline(ks, key, if is_past { "hexpired" } else { "hexpire" })?;
    }
    Ok(())
}

/// Removes the times of fields, and reports the outcome for each in turn.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn persist<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    fields: impl Iterator<Item = &'a [u8]>,
    tell: &mut dyn FnMut(TimeChange),
) -> Result<(), TypeError> {
    let changed = edit_each(ks, key, fields, &mut |cell, field, changes| {
        tell(match cell {
            None => TimeChange::Absent,
            Some(Cell { expire_at: None, .. }) => TimeChange::Timeless,
            Some(_) => {
                Change::Expire { field, expire_at: None }.put(changes);
                TimeChange::Done
            }
        });
    })?;
    if changed {
        ks.notify(NotifyClass::HASH, "hpersist", key);
    }
    Ok(())
}

/// Shows the value of each field in turn, and changes its time.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn get_and_expire<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    fields: impl Iterator<Item = &'a [u8]>,
    deadline: Deadline,
    show: &mut dyn FnMut(Option<&[u8]>),
) -> Result<(), TypeError> {
    let now = ks.now();
    let (event, is_past) = match deadline {
        Deadline::At(at) if at <= now => ("hexpired", true),
        Deadline::At(_) => ("hexpire", false),
        Deadline::Keep | Deadline::Never => ("hpersist", false),
    };
    let changed = edit_each(ks, key, fields, &mut |cell, field, changes| {
        show(cell.map(|cell| cell.value));
        let Some(cell) = cell else { return };
        match deadline {
            Deadline::Keep => {}
            Deadline::Never if cell.expire_at.is_none() => {}
            Deadline::Never => Change::Expire { field, expire_at: None }.put(changes),
            Deadline::At(_) if is_past => Change::Delete(field).put(changes),
            Deadline::At(at) => Change::Expire { field, expire_at: Some(at) }.put(changes),
        }
    })?;
    if changed {
        notify_deadline(ks, key, event)?;
    }
    Ok(())
}

/// Shows the value of each field in turn, and deletes it; the key goes with the last one.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn get_and_delete<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    fields: impl Iterator<Item = &'a [u8]>,
    show: &mut dyn FnMut(Option<&[u8]>),
) -> Result<(), TypeError> {
    let changed = edit_each(ks, key, fields, &mut |cell, field, changes| {
        show(cell.map(|cell| cell.value));
        if cell.is_some() {
            Change::Delete(field).put(changes);
        }
    })?;
    if changed {
        notify_deadline(ks, key, "hdel")?;
    }
    Ok(())
}

/// Sets fields and their times, all or none. False when a condition does not hold.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn set_until<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
    how: SetUntil,
) -> Result<bool, TypeError> {
    let now = ks.now();
    let mut changes = ks.take_buffer();
    let stored = collection::read_to_edit(ks, key, Type::Hash)?;
    let (is_there, hash) = (stored.is_some(), Hash::of(stored, now));
    if !how.allows(is_there, &hash, pairs.clone().map(|(field, _)| field)) {
        ks.give_buffer(changes);
        return Ok(false);
    }
    let is_past = matches!(how.deadline, Deadline::At(at) if at <= now);
    for (field, value) in pairs {
        let expire_at = match how.deadline {
            Deadline::Never => None,
            Deadline::Keep => hash.get(field).and_then(|cell| cell.expire_at),
            Deadline::At(at) => Some(at),
        };
        if !is_past {
            Change::Set { field, value, expire_at }.put(&mut changes);
        } else if hash.get(field).is_some() {
            Change::Delete(field).put(&mut changes);
        }
    }
    collection::edit(ks, key, Type::Hash, &changes);
    ks.give_buffer(changes);
    ks.notify(NotifyClass::HASH, "hset", key);
    if let Deadline::At(_) = how.deadline {
        ks.notify(NotifyClass::HASH, "hexpire", key);
    }
    if is_past {
        notify_deadline(ks, key, "hexpired")?;
    }
    Ok(true)
}

impl SetUntil {
    fn allows<'a>(&self, is_there: bool, hash: &Hash<'_>, mut fields: impl Iterator<Item = &'a [u8]>) -> bool {
        self.key.allows(is_there)
            && match self.fields {
                FieldCondition::Always => true,
                FieldCondition::IfAbsent => fields.all(|field| hash.get(field).is_none()),
                FieldCondition::IfPresent => fields.all(|field| hash.get(field).is_some()),
            }
    }
}

/// Publishes an event of fields whose change may have removed the last one.
fn notify_deadline(ks: &mut dyn Keyspace, key: &Key<'_>, event: &'static str) -> Result<(), TypeError> {
    ks.notify(NotifyClass::HASH, event, key);
    notify_if_gone(ks, key)
}

/// Appends the decision about a field to the changes collected so far.
type Decide<'d> = dyn FnMut(Option<Cell<'_>>, &[u8], &mut Vec<u8>) + 'd;

/// Decides about each field in turn and applies the changes, all at once except where a changed field comes again: that
/// one is read as the change has left it. True when anything was changed.
fn edit_each<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    fields: impl Iterator<Item = &'a [u8]>,
    decide: &mut Decide<'_>,
) -> Result<bool, TypeError> {
    let mut fields = fields.peekable();
    let mut changed = false;
    let mut changes = ks.take_buffer();
    let mut touched = HashSet::new();
    let mut hash = read_to_edit(ks, key)?;
    while let Some(field) = fields.next() {
        let before = changes.len();
        decide(hash.get(field), field, &mut changes);
        let Some(next) = fields.peek() else { break };
        if changes.len() > before {
            touched.insert(field);
        }
        if touched.contains(next) {
            collection::edit(ks, key, Type::Hash, &changes);
            changed = true;
            changes.clear();
            touched.clear();
            hash = peek(ks, key)?;
        }
    }
    changed |= !changes.is_empty();
    collection::edit(ks, key, Type::Hash, &changes);
    ks.give_buffer(changes);
    Ok(changed)
}
