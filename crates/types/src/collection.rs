//! What all collections have in common: how they are found, and how they are changed.

use crate::TypeError;
use engine::{Effect, Encoding, Entry, Key, Keyspace, Type, Value};
use value::{Progress, Stored};

/// The collection in an entry.
///
/// # Errors
/// [`TypeError::WrongType`] when the entry holds another type.
#[inline]
pub fn stored<'k>(entry: &Entry<'k>, kind: Type) -> Result<(Encoding, Stored<'k>), TypeError> {
    if entry.kind == kind { Ok((entry.encoding, entry.value.stored())) } else { Err(TypeError::WrongType) }
}

/// [`stored`] of an entry that may be absent.
///
/// # Errors
/// As there.
#[inline]
pub fn of_entry<'k>(entry: Option<&Entry<'k>>, kind: Type) -> Result<Option<(Encoding, Stored<'k>)>, TypeError> {
    entry.map(|entry| stored(entry, kind)).transpose()
}

/// The collection under the key, as a client's read; `None` when it is absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
#[inline]
pub fn read<'k>(
    ks: &'k mut dyn Keyspace,
    key: &Key<'_>,
    kind: Type,
) -> Result<Option<(Encoding, Stored<'k>)>, TypeError> {
    of_entry(ks.read(key)?.as_ref(), kind)
}

/// [`read`] by a command that goes on to change the collection.
///
/// # Errors
/// As there.
#[inline]
pub fn read_to_edit<'k>(
    ks: &'k mut dyn Keyspace,
    key: &Key<'_>,
    kind: Type,
) -> Result<Option<(Encoding, Stored<'k>)>, TypeError> {
    of_entry(ks.read_to_edit(key)?.as_ref(), kind)
}

/// [`edit`] with the changes that `put` appends to an empty buffer, which costs no allocation.
#[inline]
pub fn change(ks: &mut dyn Keyspace, key: &Key<'_>, kind: Type, put: impl FnOnce(&mut Vec<u8>)) {
    let mut changes = ks.take_buffer();
    put(&mut changes);
    edit(ks, key, kind, &changes);
    ks.give_buffer(changes);
}

/// Changes the collection under the key, of which it was read before that it is of this type, or absent. No bytes are no
/// change.
#[inline]
pub fn edit(ks: &mut dyn Keyspace, key: &Key<'_>, kind: Type, changes: &[u8]) {
    if !changes.is_empty() {
        ks.apply(&Effect::Edit { key: *key, kind, changes });
    }
}

/// So much of a tree is held as changes while its saved form is measured.
const MEASURED_AT_ONCE_BYTES: usize = 64 << 10;

/// The bytes that a checkpoint holds of a collection: its buffer, or the changes that build the tree. Of a tree in time to its
/// size.
pub fn saved_len(value: Value<'_>) -> usize {
    let Value::Big(big) = value else { return value.len() };
    let (mut len, mut changes) = (0usize, Vec::new());
    let mut progress = Some(Progress::default());
    while let Some(from) = progress {
        progress = big.write_changes(from, MEASURED_AT_ONCE_BYTES, &mut changes);
        len = len.saturating_add(changes.len());
        changes.clear();
    }
    len
}
