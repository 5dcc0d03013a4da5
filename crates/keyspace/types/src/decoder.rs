//! Decompressed values, as the commands see them. The value decompressed last is kept until something changes, so a
//! command that reads a value twice, or reads and then edits it, decompresses it once.
//!
//! A string is its bytes, and a packed collection its packed bytes. A tree is rebuilt from its changes, in the order of
//! its store's trees, so that a walk over its elements can continue.
//!
//! Format of what is stored: docs/formats/stored-value.md.

use base::hash::KeyHasher;
use codec::stored::Stored;
use codec::{Dictionaries, Reader, Workspace};
use engine::{Encoding, Engine, Entry, Key, SharedBig, Type, Value};
use std::sync::Arc;
use value::{Big, Limits};

/// Memory for a decompressed value, and for its key, that is kept from command to command.
const BYTES_KEPT_MAX: usize = 1 << 20;

/// What it takes to read the values of a store, besides what is stored.
#[derive(Clone, Copy)]
pub struct Source<'s> {
    /// The dictionaries that values need.
    pub dictionaries: &'s Arc<Dictionaries>,
    /// Orders the trees of the store.
    pub hasher: &'s KeyHasher,
    /// How big the parts of trees are.
    pub limits: &'s Limits,
}

/// Whose value was decompressed: that of the decoder's key.
struct Of {
    space: base::KeyspaceId,
    /// The access stamp it had before a command used it; `None` when none did.
    used: Option<u32>,
}

/// Decompresses values. One for each worker.
#[derive(Default)]
pub struct Decoder {
    workspace: Workspace,
    reader: Reader,
    /// The bytes decompressed last.
    bytes: Vec<u8>,
    /// The tree that these bytes build, if they are its changes.
    tree: Option<SharedBig>,
    /// Whose value it is.
    of: Option<Of>,
    /// Its key; without a value, only the buffer is kept.
    key: Vec<u8>,
    /// Values decompressed.
    count: u64,
}

impl Decoder {
    /// The entry with its value decompressed, unless it is so already. `source` is of its store, here and below.
    ///
    /// # Panics
    /// When what is stored cannot be read: it was checked when it came, so that memory is damaged, or the program is
    /// wrong.
    pub fn show<'a>(&'a mut self, source: Source<'_>, entry: Entry<'a>) -> Entry<'a> {
        if !entry.is_compressed() {
            return entry;
        }
        self.of = None;
        self.decompress(source, &entry);
        self.shown(entry)
    }

    /// [`Decoder::show`] of the entry under this key, which is kept until [`Decoder::forget`]. Takes the entry to be
    /// compressed. `is_used` says that it counts as an access.
    ///
    /// # Panics
    /// As [`Decoder::show`].
    #[cold]
    pub fn show_and_keep<'a>(
        &'a mut self,
        source: Source<'_>,
        key: &Key<'_>,
        entry: Entry<'a>,
        is_used: bool,
    ) -> Entry<'a> {
        self.decompress_once(source, key, &entry);
        if is_used && let Some(of) = &mut self.of {
            of.used.get_or_insert(entry.stamp);
        }
        self.shown(entry)
    }

    fn shown<'a>(&'a self, entry: Entry<'a>) -> Entry<'a> {
        Entry { encoding: entry.encoding.decompressed(), value: self.value(), ..entry }
    }

    /// What was decompressed last.
    fn value(&self) -> Value<'_> {
        self.tree.as_ref().map_or(Value::Bytes(&self.bytes), Value::Big)
    }

    /// Has the compressed value under the key stored as it is.
    ///
    /// # Panics
    /// As [`Decoder::show`]; and when nothing is stored there.
    pub fn decompress_in_place<E: Engine + ?Sized>(&mut self, source: Source<'_>, engine: &mut E, key: &Key<'_>) {
        let Ok(Some(entry)) = engine.read(key, false) else {
            panic!("a value that is not stored was to be decompressed")
        };
        let encoding = entry.encoding.decompressed();
        self.decompress_once(source, key, &entry);
        engine.recode(key, encoding, self.value());
        // Otherwise the next edit would have to copy the tree, because the decoder still holds a reference.
        self.forget();
    }

    /// Whether a value is kept.
    #[inline]
    pub fn keeps(&self) -> bool {
        self.of.is_some()
    }

    /// The value that is kept, if a command has used it: the stamp it had before that, where it is, and what it is.
    pub fn used(&self) -> Option<(u32, base::KeyspaceId, &[u8], Value<'_>)> {
        self.of.as_ref().and_then(|of| Some((of.used?, of.space, &*self.key, self.value())))
    }

    /// What is stored has changed, or may have: called before a command looks at anything, and after each change.
    #[inline]
    pub fn forget(&mut self) {
        self.of = None;
        self.tree = None;
    }

    /// How many values were decompressed since the last call.
    pub fn take_count(&mut self) -> u64 {
        std::mem::take(&mut self.count)
    }

    fn decompress_once(&mut self, source: Source<'_>, key: &Key<'_>, entry: &Entry<'_>) {
        if self.of.as_ref().is_some_and(|of| of.space == key.space && self.key == key.bytes) {
            return;
        }
        self.decompress(source, entry);
        self.key.clear();
        self.key.shrink_to(BYTES_KEPT_MAX);
        self.key.extend_from_slice(key.bytes);
        self.of = Some(Of { space: key.space, used: None });
    }

    fn decompress(&mut self, source: Source<'_>, entry: &Entry<'_>) {
        self.reader.follow(source.dictionaries);
        self.bytes.clear();
        self.bytes.shrink_to(BYTES_KEPT_MAX);
        self.tree = None;
        self.count = self.count.saturating_add(1);
        let done = Stored::parse(entry.value.bytes()).and_then(|stored| {
            self.bytes.reserve(stored.len.saturating_add(codec::ROOM));
            self.workspace.decode_parsed(&stored, &mut self.reader, &mut self.bytes)
        });
        if let Err(error) = done {
            panic!("a compressed value in memory cannot be read: {error}");
        }
        if entry.encoding.decompressed() == Encoding::BIG {
            let tree = Big::build(entry.kind, &self.bytes, source.limits, source.hasher);
            self.tree = Some(SharedBig::new(tree));
        }
    }
}

/// Bytes of the string in an entry, whether it is compressed or not; of another type, those of its packed form.
pub fn string_len(entry: &Entry<'_>) -> usize {
    match entry.is_compressed() {
        false => entry.value.len(),
        true => Stored::parse(entry.value.bytes()).map_or(0, |stored| stored.len),
    }
}

/// Whether a value of this type may be stored compressed: a string that reads as an integer is not, so that OBJECT
/// ENCODING can name every compressed string without reading it.
pub fn may_be_compressed(kind: Type, value: &[u8]) -> bool {
    kind != Type::String || base::integer::parse_integer(value).is_none()
}

/// Packed bytes, or bytes of changes, of a collection that is stored compressed, at most: it bounds what it takes to
/// read one element of it.
pub const COLLECTION_LEN_MAX: usize = 32 << 10;

/// Memory of a tree, at most, as a multiple of its content. What groups of a stream have read is not content.
const TREE_TIMES_CONTENT: usize = 4;

/// Whether a tree may be stored compressed, as far as is known in constant time.
pub fn may_tree_be_compressed(tree: &Big) -> bool {
    tree.content_bytes() <= COLLECTION_LEN_MAX && tree.memory_bytes() <= COLLECTION_LEN_MAX * TREE_TIMES_CONTENT
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use codec::Method;
    use engine::model::ModelEngine;
    use engine::{ExtFields, Known, NewEntry};
    use value::{hash, list, set, stream, zset};

    struct Owned {
        dictionaries: Arc<Dictionaries>,
        hasher: KeyHasher,
        limits: Limits,
    }

    impl Default for Owned {
        fn default() -> Self {
            let hasher = KeyHasher::new(&mut Rng::new(1));
            Self { dictionaries: Arc::default(), hasher, limits: Limits::default() }
        }
    }

    impl Owned {
        fn source(&self) -> Source<'_> {
            Source { dictionaries: &self.dictionaries, hasher: &self.hasher, limits: &self.limits }
        }
    }

    /// Changes that make a collection of this type, of elements of this length.
    fn changes(kind: Type, len: usize) -> Vec<u8> {
        let mut changes = Vec::new();
        for number in 0..if len < 100 { 20 } else { 40u64 } {
            let element = format!("{number:0>len$}").into_bytes();
            match kind {
                Type::String => unreachable!("no collection"),
                Type::List => list::Change::Push { end: list::End::Tail, value: &element }.put(&mut changes),
                Type::Set => set::Change::Add(&element).put(&mut changes),
                Type::Zset => zset::Change::Add { score: 1.5, member: &element }.put(&mut changes),
                Type::Hash => {
                    hash::Change::Set { field: &element, value: &element, expire_at: None }.put(&mut changes);
                }
                Type::Btree => {
                    let bkey = value::btree::Bkey::Number(number);
                    let element = value::btree::Element { bkey, eflag: b"flag", data: &element };
                    value::btree::Change::Put(element).put(&mut changes);
                }
                Type::Stream => {
                    let id = stream::Id { ms: number + 1, seq: 0 };
                    stream::Change::put_add(&mut changes, id, 1, [&b"field"[..], &element].into_iter());
                }
            }
        }
        changes
    }

    /// A collection of each type, packed or a tree, is the same again, in the same form; and an edit that met it
    /// compressed works on it after that.
    #[test]
    fn collections_come_back_as_they_were() {
        let store = Owned::default();
        let (mut engine, mut decoder) =
            (ModelEngine::with_hasher(Rng::new(2), store.hasher.clone()), Decoder::default());
        let key = Key::new(&store.hasher, base::KeyspaceId(0), b"k");
        for (kind, len) in Type::ALL[1..].iter().flat_map(|kind| [8, 70, 400].map(|len| (*kind, len))) {
            let changes = changes(kind, len);
            assert!(engine.edit(&key, kind, &changes, Known::Read, false).is_ok());
            let before = engine.read_any(&key).unwrap().clone();
            let is_tree = before.encoding == Encoding::BIG;
            assert_eq!(is_tree, len == 400 || kind == Type::Stream, "{kind:?}");
            let (mut plain, mut stored) = (Vec::new(), Vec::new());
            match before.value.value() {
                Value::Big(big) => big.write_all_changes(&mut plain),
                packed => plain.extend_from_slice(packed.bytes()),
            }
            assert!(Workspace::new().encode(Method::Zstd(1), &plain, usize::MAX, &mut stored));
            let compressed = before.encoding.compressed();
            engine.recode(&key, compressed, Value::Bytes(&stored));
            let entry = engine.read(&key, false).unwrap().unwrap();
            assert_eq!(entry.first_due(), None);
            let shown = decoder.show(store.source(), entry);
            assert_eq!((shown.encoding, shown.kind), (before.encoding, kind));
            assert_eq!(engine::model::Stored::of(&shown), before, "{kind:?}");
            assert!(
                engine.edit(&key, kind, &changes, Known::Read, false).is_err(),
                "nothing is edited that is compressed"
            );
            decoder.decompress_in_place(store.source(), &mut engine, &key);
            assert_eq!(engine.read_any(&key), Some(&before), "{kind:?}");
            assert!(engine.edit(&key, kind, &changes, Known::Read, false).is_ok());
            let (value, fields) = (Value::Bytes(&stored), ExtFields::NONE);
            engine.write(&key, &NewEntry { kind, encoding: compressed, value, expire_at: None, fields });
            assert!(engine.remove(&key));
        }
    }

    /// A string is the same before and after, and its length is known without reading it.
    #[test]
    fn compressed_strings_are_shown_as_they_were() {
        let mut stored = Vec::new();
        assert!(Workspace::new().encode(Method::Lzf, &[b'x'; 300], usize::MAX, &mut stored));
        let encoding = Encoding::EDITED.compressed();
        let value = Value::Bytes(&stored);
        let (kind, expire_at, fields) = (Type::String, Some(5), ExtFields::NONE);
        let entry = Entry { key: b"k", kind, encoding, value, expire_at, stamp: 7, fields };
        assert_eq!(string_len(&entry), 300);
        let (mut decoder, store) = (Decoder::default(), Owned::default());
        let shown = decoder.show(store.source(), entry);
        assert_eq!((shown.value.bytes(), shown.encoding), (&[b'x'; 300][..], Encoding::EDITED));
        assert_eq!((shown.key, shown.expire_at, shown.stamp), (&b"k"[..], Some(5), 7));
        assert_eq!(decoder.take_count(), 1);
        let raw = Entry { encoding: Encoding::PLAIN, ..entry };
        assert_eq!(decoder.show(store.source(), raw).value.bytes(), stored);
        assert_eq!((decoder.take_count(), string_len(&raw)), (0, stored.len()));
    }
}
