//! Streams: entries, and the groups that consume them.
//!
//! A stream is read as [`value::stream::Big`], its only form. Operations that change one take the intent and return the
//! outcome; those that also return entries hand them over one by one, in stream order.

mod add;
mod claim;
mod deliver;
mod group;
mod lag;
mod remove;

pub use add::{Draft, NewId, add};
pub use claim::{AutoClaim, AutoClaimed, ClaimOptions, Claimant, auto_claim, claim};
pub use deliver::{Delivery, Position, Reader, deliver, has_more};
pub use group::{
    CreateGroup, GroupStart, acknowledge, create_consumer, create_group, delete_consumer, destroy_group, set_group,
};
pub use lag::lag;
pub use remove::{Deleted, Precision, SetId, Trimmed, Trimming, delete, set_id, store_deleted, store_trimmed, trim};
pub use value::stream::{Big as Stream, Change, Consumer, Entry, Group, Id, Pending, Trim};

use crate::{TypeError, collection};
use engine::{Key, Keyspace, NotifyClass, Type};

/// The stream under the key, as a client's read; `None` when it is absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn read<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<&'k Stream>, TypeError> {
    Ok(collection::read(ks, key, Type::Stream)?.map(|(_, stored)| Stream::of(stored)))
}

/// The stream under a key that this command has read already.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn read_again<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<&'k Stream>, TypeError> {
    read_to_edit(ks, key)
}

/// Whether there is a stream under the key, for a command that then changes it.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn exists(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<bool, TypeError> {
    Ok(read_to_edit(ks, key)?.is_some())
}

/// Whether there is a group of this name, as a client's read.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn has_group(ks: &mut dyn Keyspace, key: &Key<'_>, group: &[u8]) -> Result<bool, TypeError> {
    Ok(read(ks, key)?.is_some_and(|stream| stream.group(group).is_some()))
}

/// [`has_group`] for a command that then changes the stream.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn has_group_to_edit(ks: &mut dyn Keyspace, key: &Key<'_>, group: &[u8]) -> Result<bool, TypeError> {
    Ok(read_to_edit(ks, key)?.is_some_and(|stream| stream.group(group).is_some()))
}

/// [`read`] by a command that then changes the stream.
fn read_to_edit<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<&'k Stream>, TypeError> {
    Ok(collection::read_to_edit(ks, key, Type::Stream)?.map(|(_, stored)| Stream::of(stored)))
}

/// Changes the stream under the key, or makes one.
fn change(ks: &mut dyn Keyspace, key: &Key<'_>, put: impl FnOnce(&mut Vec<u8>)) {
    collection::change(ks, key, Type::Stream, put);
}

fn notify(ks: &mut dyn Keyspace, key: &Key<'_>, event: &'static str) {
    ks.notify(NotifyClass::STREAM, event, key);
}
