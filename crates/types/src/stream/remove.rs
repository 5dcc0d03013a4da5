//! XTRIM, XDEL and XSETID.

use super::{Change, Id, Stream, Trim, change, notify, read_to_edit};
use crate::TypeError;
use engine::{Key, Keyspace};
use value::Limits;
use value::stream::{Added, Ids};

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
    /// It removes whole nodes only (`~`), and not more entries than this in all: 0 is no limit, `None` is the usual one.
    Rough(Option<u64>),
}

/// Entries that approximate trimming removes at most, unless told: these many nodes, within these borders.
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
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| stream.entry(*id).is_some());
    if !ids.is_empty() {
        let mut buffer = Vec::new();
        let deleted = Ids::collect(ids.iter().copied(), &mut buffer);
        change(ks, key, |out| Change::Delete { ids: deleted }.put(out));
        notify(ks, key, "xdel");
    }
    Ok(ids.len() as u64)
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

/// Sets the id that new entries are above and, if given, how many were ever added and the highest id deleted (0-0 counts as
/// not given).
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
