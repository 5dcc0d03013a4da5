//! The form in which values are to be, and whether one has it.

use super::queue::LONG_LEN_MAX;
use super::{Compression, Settings};
use crate::store::Store;
use codec::stored::{Form, Stored};
use codec::{CodecError, DictionaryNumber, Lease};
use engine::{Encoding, Entry, ExtFields, Key, Type, Value};
use std::collections::BTreeSet;
use types::decoder::COLLECTION_LEN_MAX;

/// Longer strings and leaves are not for workers, which would be kept for longer than a slice (`long`).
pub(super) const LEN_MAX: usize = 32 << 10;

const _: () = assert!(COLLECTION_LEN_MAX <= LEN_MAX, "only strings and leaves are for the thread of long values");

/// A value with its form, apart from its engine.
pub(super) fn shown_alone<'a>(key: &Key<'a>, kind: Type, encoding: Encoding, value: Value<'a>) -> Entry<'a> {
    Entry { key: key.bytes, kind, encoding, value, expire_at: None, stamp: 0, fields: ExtFields::NONE }
}

/// The form in which values are to be.
pub(super) struct Wanted {
    pub(super) settings: Settings,
    /// Those in use, in a pass that looks at all values.
    pub(super) dictionaries: BTreeSet<DictionaryNumber>,
}

impl Wanted {
    /// As in a pass over all values that begins now.
    pub(super) fn now(compression: &Compression) -> Self {
        Self { settings: compression.settings(), dictionaries: compression.dictionaries_in_use() }
    }

    /// Whether a stored form differs from the wanted one, judged by the form alone.
    pub(super) fn is_other(&self, form: Form) -> bool {
        form.codec() != self.settings.codec.name()
            || !self.dictionaries.is_empty()
                && form.dictionary().is_none_or(|number| !self.dictionaries.contains(&number))
    }

    /// Whether an entry's form may differ from the wanted one, judged by the entry alone.
    pub(super) fn may_change(&self, entry: &Entry<'_>) -> bool {
        if entry.is_away() {
            return false;
        }
        if entry.is_compressed() {
            return Stored::parse(entry.value.bytes()).is_ok_and(|stored| self.is_other(stored.form));
        }
        let (len, len_max) = match entry.value {
            Value::Big(tree) if types::decoder::may_tree_be_compressed(tree) => {
                (tree.content_bytes(), COLLECTION_LEN_MAX)
            }
            Value::Big(_) => return false,
            value if entry.kind == Type::String => (value.len(), LONG_LEN_MAX),
            value => (value.len(), COLLECTION_LEN_MAX),
        };
        len <= len_max && self.settings.takes_len(len)
    }
}

/// Whether an entry of another form has another one than its class is to have.
pub(super) fn may_leave(store: &Store, key: &Key<'_>, entry: &Entry<'_>) -> bool {
    let compression = &store.compression;
    match entry.is_compressed().then(|| Stored::parse(entry.value.bytes())) {
        Some(Ok(stored)) => {
            stored.form.codec() != compression.settings().codec.name()
                || !compression.is_choice(key, stored.form.dictionary())
        }
        _ => true,
    }
}

/// Keeps the dictionary of a compressed entry, if it has one.
pub(super) fn lease(store: &Store, entry: &Entry<'_>) -> Result<Option<Lease>, CodecError> {
    let stored = entry.is_compressed().then(|| Stored::parse(entry.value.bytes())).transpose()?;
    let number = stored.and_then(|stored| stored.form.dictionary());
    number.map(|number| store.compression.dictionaries.lease(number)).transpose()
}
