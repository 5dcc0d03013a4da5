//! Sorted sets: members by score and then by bytes. Geo stores its places in them.
//!
//! A range of any kind becomes a range of ranks first ([`Range::ranks`]). A counted tree finds both ends of it without
//! walking; reading, counting and removing start there.

mod add;
mod combine;
mod copy;
mod random;
mod range;
mod remove;
mod score;
mod steps;

pub use add::{Added, Only, Rule, Toward, add, increment};
pub use combine::{Aggregate, Operand, Sources, difference, intersection, intersection_len, union};
pub use copy::Copying;
pub use random::{Draw, random};
pub use range::{LexEnd, Limit, Range, ScoreEnd};
pub use remove::{End, Removing, pop, remove, remove_all, remove_range, remove_ranks_made};
pub use score::{parse_score, parse_score_end};
pub use steps::{Operation, Steps};
pub use value::zset::{Entry, View};

use crate::{TypeError, collection};
use engine::{Effect, Encoding, Key, Keyspace, NotifyClass, SharedBig, SharedBytes, Type};
use value::Stored;
use value::zset::Change;

/// The sorted set in an entry; `None` when there is no entry.
///
/// # Errors
/// [`TypeError::WrongType`].
#[inline]
pub fn of_entry<'k>(entry: Option<&engine::Entry<'k>>) -> Result<Option<View<'k>>, TypeError> {
    Ok(collection::of_entry(entry, Type::Zset)?.map(|(_, stored)| View::of(stored)))
}

/// The sorted set under the key, as a client's read; `None` when it is absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn read<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<View<'k>>, TypeError> {
    Ok(collection::read(ks, key, Type::Zset)?.map(|(_, stored)| View::of(stored)))
}

/// [`read`], with the set's encoding: a packed set with long members is one that Valkey does not pack.
///
/// # Errors
/// As there.
pub fn read_encoded<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<(Encoding, View<'k>)>, TypeError> {
    Ok(collection::read(ks, key, Type::Zset)?.map(|(encoding, stored)| (encoding, View::of(stored))))
}

/// [`read`] by a command that then changes the set.
///
/// # Errors
/// As there.
pub fn read_to_edit<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<View<'k>>, TypeError> {
    Ok(collection::read_to_edit(ks, key, Type::Zset)?.map(|(_, stored)| View::of(stored)))
}

/// Entries of a set that is being made: members are distinct, the order does not matter.
pub type NewSet = Vec<(f64, Vec<u8>)>;

/// Stores these entries under the key, replacing its value, and notifies of `event`; no entries remove the key. The
/// caller has read the key, whatever its type. Returns the number of entries.
pub fn store(ks: &mut dyn Keyspace, key: &Key<'_>, is_there: bool, entries: &NewSet, event: &'static str) -> u64 {
    if is_there {
        ks.apply(&Effect::Delete { key: *key });
    }
    if entries.is_empty() {
        if is_there {
            ks.notify(NotifyClass::GENERIC, "del", key);
        }
        return 0;
    }
    collection::change(ks, key, Type::Zset, |changes| {
        entries.iter().for_each(|(score, member)| Change::Add { score: *score, member }.put(changes));
    });
    ks.notify(NotifyClass::ZSET, event, key);
    entries.len() as u64
}

/// [`store`] of entries that were made to a tree beforehand, with the changes that build it.
pub fn store_made(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    is_there: bool,
    (tree, changes): (&SharedBig, &SharedBytes),
    event: &'static str,
) -> u64 {
    let len = View::of(Stored::Big(tree)).len();
    if len == 0 {
        return store(ks, key, is_there, &NewSet::new(), event);
    }
    if is_there {
        ks.apply(&Effect::Delete { key: *key });
    }
    collection::replace(ks, key, tree, changes);
    ks.notify(NotifyClass::ZSET, event, key);
    len
}

/// Whether there is anything under the key that [`store`] is to replace.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn is_there(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<bool, TypeError> {
    Ok(ks.peek_head(key)?.is_some())
}

/// Applies changes and notifies of them, and of the key's end if they empty it.
fn change(ks: &mut dyn Keyspace, key: &Key<'_>, event: &'static str, is_last: bool, put: impl FnOnce(&mut Vec<u8>)) {
    collection::change(ks, key, Type::Zset, put);
    ks.notify(NotifyClass::ZSET, event, key);
    if is_last {
        ks.notify(NotifyClass::GENERIC, "del", key);
    }
}
