//! Collections with attributes, as ARCUS has them: a bound of their number of elements, what happens at that bound, and
//! whether they may be read.
//!
//! A list, a set or a hash is one collection for all clients. Attributes are an optional field of its entry
//! ([`engine::fields`]). A collection without them has the defaults of its type. One that has them stays when its last
//! element goes, until it is deleted. The bounds hold for the operations here; those of Redis clients know none.
//!
//! docs/formats/entry-fields.md describes the bytes of the attributes.

mod attributes;
mod btree;
mod list;
mod map;
mod merge;
mod set;
mod snapshot;
mod taking;

pub use attributes::{Attributes, COUNT_DEFAULT, Overflow};
pub use btree::{
    Answer, BitOperator, Btree, Comparison, EflagUpdate, Filter, Put, Query, Range, Tree, Trimmed, Upsert,
};
pub use list::{List, Span};
pub use map::{Fields, Map, Store};
pub use merge::{Merge, MergeOutcome, Merged, Missed, Trees, merge};
pub use set::Set;
pub use snapshot::Snapshot;
pub use taking::Taking;
pub use value::btree::{Bkey, ByteKey, Element};

use crate::{TypeError, collection, fields};
use base::UnixMs;
use engine::{Effect, Encoding, Entry, Key, Keyspace, NotifyClass, Type, Value};
use value::Stored;

/// A collection to be made.
#[derive(Clone, Copy, Debug)]
pub struct New {
    /// Flags of the client, which the server only keeps.
    pub flags: u32,
    /// When it expires; `None` means never.
    pub expire_at: Option<UnixMs>,
    /// Whether it is never evicted.
    pub is_sticky: bool,
    /// Its attributes.
    pub attributes: Attributes,
}

/// What came of adding an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is there now.
    Stored,
    /// It is there now, in a collection that was made for it.
    Created,
    /// It has taken the place of another.
    Replaced,
    /// There is no such key.
    NoKey,
    /// There was such an element, which stays.
    Exists,
    /// There was no such element, and there is none.
    Absent,
    /// The collection is full.
    Overflowed,
    /// There is no such place.
    OutOfRange,
}

/// What is to become of elements that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// They stay.
    Keep,
    /// They go.
    Delete,
    /// They go, and the collection if none is left.
    Drop,
}

/// What came of looking at elements, or removing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// They were shown, and stay.
    Shown,
    /// They are gone.
    Deleted,
    /// They are gone with the collection.
    Dropped,
    /// There is no such key.
    NoKey,
    /// There are no such elements.
    NoElements,
    /// It may not be read.
    Unreadable,
}

/// A collection that was found, borrowed from the keyspace.
#[derive(Clone, Copy, Debug)]
pub struct Found<'k> {
    /// Its attributes.
    pub attributes: Attributes,
    /// Its flags.
    pub flags: u32,
    encoding: Encoding,
    stored: Stored<'k>,
}

impl<'k> Found<'k> {
    fn of(entry: &Entry<'k>, kind: Type) -> Result<Self, TypeError> {
        let (encoding, stored) = collection::stored(entry, kind)?;
        let (attributes, flags) = Attributes::of_entry(entry);
        Ok(Self { attributes, flags, encoding, stored })
    }
}

/// The collection under the key, as a client's read.
fn read<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>, kind: Type) -> Result<Option<Found<'k>>, TypeError> {
    ks.read(key)?.map(|entry| Found::of(&entry, kind)).transpose()
}

/// [`read`] by an operation that then changes the collection.
fn read_to_edit<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>, kind: Type) -> Result<Option<Found<'k>>, TypeError> {
    ks.read_to_edit(key)?.map(|entry| Found::of(&entry, kind)).transpose()
}

/// Makes a collection without elements. False when there is something under the key.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn create(ks: &mut dyn Keyspace, key: &Key<'_>, kind: Type, new: &New) -> Result<bool, TypeError> {
    let is_new = ks.peek_head(key)?.is_none();
    if is_new {
        put(ks, key, kind, new);
    }
    Ok(is_new)
}

fn put(ks: &mut dyn Keyspace, key: &Key<'_>, kind: Type, new: &New) {
    let attributes = new.attributes.encode();
    let fields =
        engine::Fields { flags: new.flags, is_sticky: new.is_sticky, attributes: &attributes, ..Default::default() }
            .pack();
    let (mut buffer, encoding, value) = (Vec::new(), Encoding::PACKED, Value::Bytes(&[]));
    let (expire_at, fields) = (new.expire_at, fields.get().tagged(&mut buffer));
    ks.apply(&Effect::StoreWith { key: *key, kind, encoding, value, expire_at, fields });
}

/// Adds to a collection that was found, or makes one first. The caller has seen that the changes fit.
fn add(ks: &mut dyn Keyspace, key: &Key<'_>, kind: Type, new: Option<&New>, changes: &[u8]) -> Added {
    let Some(new) = new else {
        collection::edit(ks, key, kind, changes);
        return Added::Stored;
    };
    // One that has expired already leaves nothing.
    if new.expire_at.is_none_or(|at| at > ks.now()) {
        put(ks, key, kind, new);
        collection::edit(ks, key, kind, changes);
    }
    Added::Created
}

/// Removes elements, all of them if `is_all`, of a collection that was found.
fn remove(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    (kind, event): (Type, (NotifyClass, &'static str)),
    (removal, is_all): (Removal, bool),
    changes: &[u8],
) -> Taken {
    if removal == Removal::Keep {
        return Taken::Shown;
    }
    if is_all && removal == Removal::Drop {
        ks.apply(&Effect::Delete { key: *key });
    } else {
        collection::edit(ks, key, kind, changes);
    }
    ks.notify(event.0, event.1, key);
    if is_all && matches!(ks.peek_head(key), Ok(None)) {
        ks.notify(NotifyClass::GENERIC, "del", key);
    }
    if is_all && removal == Removal::Drop { Taken::Dropped } else { Taken::Deleted }
}

/// Gives the entry under the key these attributes; its flags stay. False when there is none.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn set_attributes(ks: &mut dyn Keyspace, key: &Key<'_>, attributes: &Attributes) -> Result<bool, TypeError> {
    let Some(entry) = ks.peek(key)? else { return Ok(false) };
    let owned = entry.fields.to_owned();
    let attributes = attributes.encode();
    fields::replace(ks, key, &engine::Fields { attributes: &attributes, ..owned.get().get() })
}

/// Elements of the collection in the entry, which is not compressed.
pub fn len(entry: &Entry<'_>, now: UnixMs) -> Result<u64, TypeError> {
    Ok(match entry.kind {
        Type::Hash => crate::hash::of_entry(Some(entry), now)?.len() as u64,
        kind => value::len(kind, entry.encoding, entry.value.stored()),
    })
}
