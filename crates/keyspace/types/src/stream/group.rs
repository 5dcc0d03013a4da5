//! XGROUP and XACK.

use super::{Change, Id, Stream, change, notify, read_to_edit};
use crate::TypeError;
use engine::{Key, Keyspace};
use value::stream::Ids;

/// Where a group begins to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupStart {
    /// After the last id of the stream (`$`).
    End,
    /// After this id.
    After(Id),
}

impl GroupStart {
    fn id(self, stream: Option<&Stream>) -> Id {
        match self {
            Self::End => stream.map_or(Id::MIN, Stream::last_id),
            Self::After(id) => id,
        }
    }
}

/// What came of [`create_group`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateGroup {
    /// It is there now.
    Created,
    /// It was there already.
    Exists,
    /// There is no stream.
    NoStream,
}

/// Creates a group, and the stream if `makes_stream`. `entries_read` is how many entries were ever added up to `start`,
/// if that is known.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn create_group(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    group: &[u8],
    start: GroupStart,
    makes_stream: bool,
    entries_read: Option<u64>,
) -> Result<CreateGroup, TypeError> {
    let stream = read_to_edit(ks, key)?;
    match stream {
        None if !makes_stream => return Ok(CreateGroup::NoStream),
        Some(stream) if stream.group(group).is_some() => return Ok(CreateGroup::Exists),
        _ => {}
    }
    let last = start.id(stream);
    let is_new = stream.is_none();
    change(ks, key, |out| {
        if is_new {
            // For WATCH, creating the stream is a change; creating a group alone is not.
            Change::Trim { count: 0 }.put(out);
        }
        Change::SetGroup { group, last, read: entries_read }.put(out);
    });
    notify(ks, key, "xgroup-create");
    Ok(CreateGroup::Created)
}

/// Moves a group. False when it is not there.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn set_group(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    group: &[u8],
    start: GroupStart,
    entries_read: Option<u64>,
) -> Result<bool, TypeError> {
    let stream = read_to_edit(ks, key)?;
    let last = start.id(stream);
    if stream.and_then(|stream| stream.group(group)).is_none() {
        return Ok(false);
    }
    change(ks, key, |out| Change::SetGroup { group, last, read: entries_read }.put(out));
    notify(ks, key, "xgroup-setid");
    Ok(true)
}

/// Removes a group. False when it is not there.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn destroy_group(ks: &mut dyn Keyspace, key: &Key<'_>, group: &[u8]) -> Result<bool, TypeError> {
    let is_there = read_to_edit(ks, key)?.is_some_and(|stream| stream.group(group).is_some());
    if is_there {
        change(ks, key, |out| Change::DestroyGroup { group }.put(out));
        notify(ks, key, "xgroup-destroy");
    }
    Ok(is_there)
}

/// Makes a consumer of a group that exists. False when it was there.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn create_consumer(ks: &mut dyn Keyspace, key: &Key<'_>, group: &[u8], consumer: &[u8]) -> Result<bool, TypeError> {
    let found = read_to_edit(ks, key)?.and_then(|stream| stream.group(group));
    let is_new = found.is_some_and(|group| group.consumer(consumer).is_none());
    if is_new {
        let seen = ks.now();
        change(ks, key, |out| Change::SetConsumer { group, consumer, seen, active: None }.put(out));
        notify(ks, key, "xgroup-createconsumer");
    }
    Ok(is_new)
}

/// Removes a consumer, and gives how many entries were pending for it.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn delete_consumer(ks: &mut dyn Keyspace, key: &Key<'_>, group: &[u8], consumer: &[u8]) -> Result<u64, TypeError> {
    let found = read_to_edit(ks, key)?.and_then(|stream| stream.group(group)?.consumer(consumer));
    let Some(pending) = found.map(|consumer| consumer.pending_count()) else { return Ok(0) };
    change(ks, key, |out| Change::DeleteConsumer { group, consumer }.put(out));
    notify(ks, key, "xgroup-delconsumer");
    Ok(pending)
}

/// Acknowledges entries. Gives how many were pending.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn acknowledge(ks: &mut dyn Keyspace, key: &Key<'_>, group: &[u8], mut ids: Vec<Id>) -> Result<u64, TypeError> {
    let Some(found) = read_to_edit(ks, key)?.and_then(|stream| stream.group(group)) else { return Ok(0) };
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| found.pending_entry(*id).is_some());
    if !ids.is_empty() {
        let mut buffer = Vec::new();
        let acknowledged = Ids::collect(ids.iter().copied(), &mut buffer);
        change(ks, key, |out| Change::Acknowledge { group, ids: acknowledged }.put(out));
    }
    Ok(ids.len() as u64)
}
