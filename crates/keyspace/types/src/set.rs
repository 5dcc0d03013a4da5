//! Sets: members added, removed, moved, asked for.

mod algebra;
mod popping;
mod random;
mod steps;

pub use algebra::{Combination, Operation, store, store_made};
pub use popping::{Popped, Popping};
pub(crate) use random::choose;
pub use random::{generator, pop, pop_all, pop_made, pop_one, random, random_repeating};
pub use steps::Steps;

use crate::{TypeError, collection};
use engine::{Encoding, Entry, Key, Keyspace, NotifyClass, Type};
use value::Stored;
use value::set::{Change, View};

pub use value::set::Member;

fn view((encoding, stored): (Encoding, Stored<'_>)) -> View<'_> {
    View::of(encoding, stored)
}

/// The set in an entry; `None` when there is no entry.
///
/// # Errors
/// [`TypeError::WrongType`].
#[inline]
pub fn of_entry<'k>(entry: Option<&Entry<'k>>) -> Result<Option<View<'k>>, TypeError> {
    Ok(collection::of_entry(entry, Type::Set)?.map(view))
}

/// The set under the key; `None` when it is absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
#[inline]
pub fn read<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<View<'k>>, TypeError> {
    Ok(collection::read(ks, key, Type::Set)?.map(view))
}

#[inline]
fn read_to_edit<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<View<'k>>, TypeError> {
    Ok(collection::read_to_edit(ks, key, Type::Set)?.map(view))
}

/// Adds members and gives how many were new.
///
/// # Errors
/// As [`read`].
pub fn add<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    members: impl ExactSizeIterator<Item = &'a [u8]>,
) -> Result<u64, TypeError> {
    let given = members.len() as u64;
    let mut changes = ks.take_buffer();
    let set = read_to_edit(ks, key)?;
    let old_len = set.map_or(0, |set| set.len() as u64);
    let mut new = 0u64;
    for member in members.filter(|member| set.is_none_or(|set| !set.contains(member))) {
        if new == 0 && given > 1 {
            Change::Expect(given).put(&mut changes);
        }
        Change::Add(member).put(&mut changes);
        new = new.saturating_add(1);
    }
    collection::edit(ks, key, Type::Set, &changes);
    ks.give_buffer(changes);
    if new > 1 {
        // A member may have been given twice.
        new = peek_len(ks, key)?.saturating_sub(old_len);
    }
    if new > 0 {
        ks.notify(NotifyClass::SET, "sadd", key);
    }
    Ok(new)
}

/// Removes members and gives how many were there. With the last one the key goes.
///
/// # Errors
/// As [`read`].
pub fn remove<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    members: impl Iterator<Item = &'a [u8]>,
) -> Result<u64, TypeError> {
    let mut changes = ks.take_buffer();
    let Some(set) = read_to_edit(ks, key)? else { return Ok(0) };
    let old_len = set.len() as u64;
    let mut found = 0u64;
    for member in members.filter(|member| set.contains(member)) {
        Change::Remove(member).put(&mut changes);
        found = found.saturating_add(1);
    }
    collection::edit(ks, key, Type::Set, &changes);
    ks.give_buffer(changes);
    let new_len = match found {
        0 | 1 => old_len.saturating_sub(found),
        // A member may have been given twice.
        _ => peek_len(ks, key)?,
    };
    let removed = old_len.saturating_sub(new_len);
    if removed > 0 {
        notify_removal(ks, "srem", key, new_len);
    }
    Ok(removed)
}

/// Moves a member to another set. False when it was not in the first; the other may have had it already.
///
/// # Errors
/// As [`read`], of either set.
pub fn move_member(ks: &mut dyn Keyspace, from: &Key<'_>, to: &Key<'_>, member: &[u8]) -> Result<bool, TypeError> {
    let Some(source) = read_to_edit(ks, from)? else { return Ok(false) };
    let (is_there, left) = (source.contains(member), source.len().saturating_sub(1) as u64);
    let is_new = read_to_edit(ks, to)?.is_none_or(|set| !set.contains(member));
    if !is_there || from.bytes == to.bytes {
        return Ok(is_there);
    }
    collection::change(ks, from, Type::Set, |changes| Change::Remove(member).put(changes));
    notify_removal(ks, "srem", from, left);
    if is_new {
        collection::change(ks, to, Type::Set, |changes| Change::Add(member).put(changes));
        ks.notify(NotifyClass::SET, "sadd", to);
    }
    Ok(true)
}

/// The length of a set that was read before.
fn peek_len(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<u64, TypeError> {
    let Some(entry) = ks.peek_value(key)? else { return Ok(0) };
    Ok(view(collection::stored(&entry, Type::Set)?).len() as u64)
}

fn notify_removal(ks: &mut dyn Keyspace, event: &'static str, key: &Key<'_>, left: u64) {
    ks.notify(NotifyClass::SET, event, key);
    // A set with attributes stays.
    if left == 0 && matches!(ks.peek_head(key), Ok(None)) {
        ks.notify(NotifyClass::GENERIC, "del", key);
    }
}
