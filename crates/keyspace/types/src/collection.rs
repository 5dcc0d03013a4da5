//! What all collections have in common: how they are found, and how they are changed.

use crate::TypeError;
use base::hash::KeyHasher;
use engine::{Effect, Encoding, Entry, Key, Keyspace, SharedBig, SharedBytes, Type, Value};
use std::sync::Arc;
use value::{Big, Body, Buffer, Limits, Progress, Slot, Stored, reaper, zset};

/// The collection in an entry.
///
/// # Errors
/// [`TypeError::WrongType`] when the entry holds another type.
#[inline]
pub fn stored<'k>(entry: &Entry<'k>, kind: Type) -> Result<(Encoding, Stored<'k>), TypeError> {
    if entry.kind == kind { Ok((entry.encoding, entry.value.stored())) } else { Err(TypeError::WrongType) }
}

/// [`stored`] of an entry that may be absent. A collection without elements, which only one with attributes can be, is
/// like an absent one to the operations of its type.
///
/// # Errors
/// As there.
#[inline]
pub fn of_entry<'k>(entry: Option<&Entry<'k>>, kind: Type) -> Result<Option<(Encoding, Stored<'k>)>, TypeError> {
    let Some(entry) = entry else { return Ok(None) };
    let collection = stored(entry, kind)?;
    Ok(if matches!(collection.1, Stored::Packed([])) { None } else { Some(collection) })
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

/// [`read`] by a command that then changes the collection.
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

/// Changes the collection under the key, which the caller has read to be of this type, or absent. Empty `changes`
/// change nothing.
#[inline]
pub fn edit(ks: &mut dyn Keyspace, key: &Key<'_>, kind: Type, changes: &[u8]) {
    if !changes.is_empty() {
        ks.apply(&Effect::Edit { key: *key, kind, changes });
    }
}

/// [`edit`] with a result made beforehand: `tree` is what `changes` make of the stored value. `changes` may be left out
/// if nothing is recorded.
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

/// What makes collections out of changes, away from the keyspace.
#[derive(Clone, Debug)]
pub struct Maker {
    limits: Arc<Limits>,
    hasher: KeyHasher,
}

/// A collection that was made away from the keyspace, and the changes that lead to it.
#[derive(Debug)]
pub struct Made {
    /// The prepared tree; `None` for packed results, which the changes make in no time.
    tree: Option<SharedBig>,
    changes: SharedBytes,
    kind: Type,
}

impl Maker {
    /// For this keyspace, with its settings of now.
    pub fn of(ks: &dyn Keyspace) -> Self {
        Self { limits: ks.limits(), hasher: ks.hasher().clone() }
    }

    /// Up to where collections are packed.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Makes these changes of a collection, or of nothing.
    pub fn make(&self, kind: Type, from: Option<&SharedBig>, changes: Vec<u8>) -> Made {
        let mut big = from.map(|from| Big::clone(from));
        let (body, encoding) = match &mut big {
            Some(big) => (Body::Big(big), Encoding::BIG),
            None => (Body::Packed(Buffer::Made(Vec::new())), Encoding::PACKED),
        };
        let mut slot = Slot { body, encoding, limits: &self.limits, hasher: &self.hasher };
        value::apply(kind, &mut slot, &changes);
        let (grown, packed) = match slot.body {
            Body::Grown(grown) => (Some(grown), None),
            Body::Packed(packed) => (None, Some(packed.to_vec())),
            Body::Big(_) => (None, None),
        };
        let changes = match (&packed, from, kind) {
            // Few elements are left: recording them is faster than recording millions of removals.
            (Some(packed), Some(from), Type::List) => crate::list_changes::changes_to(from, packed),
            _ => changes,
        };
        let tree = grown.or_else(|| big.filter(|_| packed.is_none()).map(SharedBig::new));
        Made { tree, changes: SharedBytes::new(changes), kind }
    }
}

impl Made {
    /// A tree that is stored under no key, and the changes that build it.
    pub fn of_tree(tree: Big) -> Self {
        let (mut changes, mut progress) = (Vec::new(), Some(Progress::default()));
        while let Some(from) = progress {
            progress = tree.write_changes(from, usize::MAX, &mut changes);
        }
        Self { kind: tree.kind(), tree: Some(SharedBig::new(tree)), changes: SharedBytes::new(changes) }
    }

    /// The tree, and the changes that lead to it; `None` for packed results.
    pub fn tree(&self) -> Option<(&SharedBig, &SharedBytes)> {
        self.tree.as_ref().map(|tree| (tree, &self.changes))
    }

    /// Stores it under the key, which holds what it was made of.
    pub fn store(&self, ks: &mut dyn Keyspace, key: &Key<'_>) {
        match &self.tree {
            Some(tree) => replace(ks, key, tree, &self.changes),
            None => edit(ks, key, self.kind, &self.changes),
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        reaper::free_bytes(std::mem::take(&mut self.changes));
    }
}

/// Whether this many elements are packed, if they are short enough: then the changes must find that out.
pub(crate) fn may_be_packed(tree: &SharedBig, limits: &Limits) -> bool {
    let (len, most) = match &**tree {
        Big::Set(set) => (set.len() as u64, limits.set_entries().max(limits.set_intset_entries())),
        Big::Zset(_) => (zset::View::of(Stored::Big(tree)).len(), limits.zset_entries()),
        Big::Hash(hash) => (hash.len() as u64, limits.hash_entries()),
        Big::List(list) => return list.may_be_packed(limits),
        Big::Stream(_) => return false,
        Big::Btree(tree) => return tree.may_be_packed(),
    };
    i64::try_from(len).is_ok_and(|len| len <= most)
}

/// At most this much of a tree is held as changes while its saved form is measured.
const MEASURED_AT_ONCE_BYTES: usize = 64 << 10;

/// The bytes that a checkpoint holds of a collection: its buffer, or the changes that build the tree. Takes time
/// proportional to a tree's size.
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
