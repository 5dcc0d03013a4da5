//! What all collections have in common: how they are found, and how they are changed.

use crate::TypeError;
use engine::{Effect, Encoding, Entry, Key, Keyspace, SharedBig, SharedBytes, Type, Value};
use value::{Big, Limits, Progress, Stored, zset};

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

/// [`edit`] whose outcome was made beforehand: `tree` is what `changes` make of what is stored. They may be left out where
/// nothing is recorded.
pub fn replace(ks: &mut dyn Keyspace, key: &Key<'_>, tree: &SharedBig, changes: &SharedBytes) {
    if !may_be_packed(tree, &ks.limits()) {
        return ks.apply(&Effect::Replace { key: *key, tree, changes });
    }
    if !changes.is_empty() {
        return edit(ks, key, tree.kind(), changes);
    }
    let (mut built, mut progress) = (Vec::new(), Some(Progress::default()));
    while let Some(from) = progress {
        progress = tree.write_changes(from, usize::MAX, &mut built);
    }
    edit(ks, key, tree.kind(), &built);
}

/// Whether so few elements are packed, if they are short enough: then changes have to find that out.
fn may_be_packed(tree: &SharedBig, limits: &Limits) -> bool {
    let (len, most) = match &**tree {
        Big::Set(set) => (set.len() as u64, limits.set_entries().max(limits.set_intset_entries())),
        Big::Zset(_) => (zset::View::of(Stored::Big(tree)).len(), limits.zset_entries()),
        Big::Hash(hash) => (hash.len() as u64, limits.hash_entries()),
        // By its bytes, which a tree alone does not tell.
        Big::List(_) => return true,
        Big::Stream(_) => return false,
    };
    i64::try_from(len).is_ok_and(|len| len <= most)
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
