//! XTRIM, XDEL and XSETID.

use super::{Change, Id, Stream, Trim, change, notify, read_to_edit};
use crate::TypeError;
use crate::collection::{Made, Maker};
use engine::{Key, Keyspace, SharedBig, Type};
use value::stream::{Added, Ids};
use value::{Limits, Stored};

/// What trimming is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimming {
    /// What it leaves.
    pub trim: Trim,
    /// How close it comes to that.
    pub precision: Precision,
}

/// How close trimming comes to what it is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// It leaves exactly that.
    Exact,
    /// It removes whole nodes only (`~`), and at most this many entries: 0 is no limit, `None` is the usual one.
    Rough(Option<u64>),
}

/// The default limit of approximate trimming: this many nodes, within these bounds.
const NODES_AT_MOST: i64 = 100;
const NODES_WITHOUT_ENTRIES_MAX: u64 = 10_000;
const ENTRIES_AT_MOST: u64 = 1_000_000;

impl Trimming {
    /// How many entries it removes at most; `None` for no limit.
    fn most(self, limits: &Limits) -> Option<u64> {
        match self.precision {
            Precision::Exact | Precision::Rough(Some(0)) => None,
            Precision::Rough(Some(most)) => Some(most),
            Precision::Rough(None) => {
                let most = limits.stream_node_entries().saturating_mul(NODES_AT_MOST);
                let most = u64::try_from(most).ok().filter(|most| *most > 0).unwrap_or(NODES_WITHOUT_ENTRIES_MAX);
                Some(most.min(ENTRIES_AT_MOST))
            }
        }
    }

    /// How many entries it removes, once `added` is there.
    pub(super) fn count(self, stream: &Stream, added: Option<Added>, limits: &Limits) -> u64 {
        match self.precision {
            Precision::Exact => stream.trimmed_exactly(self.trim, added),
            Precision::Rough(_) => stream.trimmed_roughly(self.trim, self.most(limits), added, limits),
        }
    }
}

/// More entries than these, or entries of more nodes, are removed from a copy, which then takes the stream's place.
const ENTRIES_AT_ONCE: u64 = 10_000;
const NODES_AT_ONCE: usize = 128;

impl Trimming {
    /// Whether the number of entries makes it take long.
    pub fn is_long(self, stream: &Stream, limits: &Limits) -> bool {
        if self.most(limits).is_some_and(|most| most <= ENTRIES_AT_ONCE) {
            return false;
        }
        match self.trim {
            Trim::MaxLength(max) => stream.len().saturating_sub(max) > ENTRIES_AT_ONCE,
            Trim::MinId(min) => stream.count_some(Id::MIN, min, NODES_AT_ONCE).1.is_some_and(|next| next < min),
        }
    }

    /// Whether it ends when it has removed this many, however many are left to remove.
    pub fn is_limited(self, limits: &Limits) -> bool {
        self.most(limits).is_some()
    }
}

/// A stream without its first entries.
#[derive(Debug)]
pub struct Trimmed {
    count: u64,
    made: Made,
}

impl Trimmed {
    /// Makes it.
    pub fn of(maker: &Maker, tree: &SharedBig, trimming: Trimming) -> Self {
        let count = trimming.count(Stream::of(Stored::Big(tree)), None, maker.limits());
        let mut changes = Vec::new();
        Change::Trim { count }.put(&mut changes);
        Self { count, made: maker.make(Type::Stream, Some(tree), changes) }
    }

    /// Stores it under the key, which has the whole of it, without a notification. Returns how many entries went.
    pub(super) fn store(&self, ks: &mut dyn Keyspace, key: &Key<'_>) -> u64 {
        if self.count > 0 {
            self.made.store(ks, key);
        }
        self.count
    }
}

/// [`trim`] that was made beforehand.
pub fn store_trimmed(ks: &mut dyn Keyspace, key: &Key<'_>, trimmed: &Trimmed) -> u64 {
    let count = trimmed.store(ks, key);
    if count > 0 {
        notify(ks, key, "xtrim");
    }
    count
}

/// Removes the first entries. Gives how many; 0 when the key is absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn trim(ks: &mut dyn Keyspace, key: &Key<'_>, trimming: Trimming) -> Result<u64, TypeError> {
    let limits = ks.limits();
    let count = read_to_edit(ks, key)?.map_or(0, |stream| trimming.count(stream, None, &limits));
    if count > 0 {
        change(ks, key, |out| Change::Trim { count }.put(out));
        notify(ks, key, "xtrim");
    }
    Ok(count)
}

/// Removes entries. Gives how many were there.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn delete(ks: &mut dyn Keyspace, key: &Key<'_>, mut ids: Vec<Id>) -> Result<u64, TypeError> {
    let Some(stream) = read_to_edit(ks, key)? else { return Ok(0) };
    let deletion = deletion(stream, &mut ids);
    if !ids.is_empty() {
        change(ks, key, |out| out.extend_from_slice(&deletion));
        notify(ks, key, "xdel");
    }
    Ok(ids.len() as u64)
}

/// The change that removes these entries. Of the ids those are left that are there, each once.
fn deletion(stream: &Stream, ids: &mut Vec<Id>) -> Vec<u8> {
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| stream.entry(*id).is_some());
    let (mut buffer, mut changes) = (Vec::new(), Vec::new());
    Change::Delete { ids: Ids::collect(ids.iter().copied(), &mut buffer) }.put(&mut changes);
    changes
}

/// A stream without some of its entries.
#[derive(Debug)]
pub struct Deleted {
    count: u64,
    made: Made,
}

impl Deleted {
    /// Fewer entries are better removed at once.
    pub const ENTRIES_MIN: usize = 256;

    /// Makes it.
    pub fn of(maker: &Maker, tree: &SharedBig, mut ids: Vec<Id>) -> Self {
        let deletion = deletion(Stream::of(Stored::Big(tree)), &mut ids);
        Self { count: ids.len() as u64, made: maker.make(Type::Stream, Some(tree), deletion) }
    }
}

/// [`delete`] that was made beforehand.
pub fn store_deleted(ks: &mut dyn Keyspace, key: &Key<'_>, deleted: &Deleted) -> u64 {
    if deleted.count > 0 {
        deleted.made.store(ks, key);
        notify(ks, key, "xdel");
    }
    deleted.count
}

/// What came of [`set_id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetId {
    /// It is set.
    Done,
    /// There is no stream.
    Absent,
    /// The id is below the highest that was deleted.
    BelowDeleted,
    /// The id is below that of an entry.
    BelowEntry,
    /// There are more entries than were to have been added.
    AddedBelowLength,
}

/// Sets the id that new entries are above and, if given, how many were ever added and the highest id deleted (0-0
/// counts as not given).
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn set_id(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    last: Id,
    added: Option<u64>,
    deleted: Id,
) -> Result<SetId, TypeError> {
    let Some(stream) = read_to_edit(ks, key)? else { return Ok(SetId::Absent) };
    if last < stream.max_deleted_id() {
        return Ok(SetId::BelowDeleted);
    }
    if stream.last_entry().is_some_and(|entry| last < entry.id) {
        return Ok(SetId::BelowEntry);
    }
    if added.is_some_and(|added| stream.len() > added) {
        return Ok(SetId::AddedBelowLength);
    }
    let added = added.unwrap_or(stream.entries_added());
    let deleted = if deleted == Id::MIN { stream.max_deleted_id() } else { deleted };
    change(ks, key, |out| Change::SetId { last, added, deleted }.put(out));
    notify(ks, key, "xsetid");
    Ok(SetId::Done)
}
