//! What is stored under a key: type, encoding, value bytes, expiration, access stamp.

use crate::ExtFields;
use base::UnixMs;
use std::sync::Arc;
use value::Stored;

pub use value::{Encoding, Left, SharedBig, Type};

/// Bytes of a big value, shared between the store, replies in flight and a running checkpoint.
pub type SharedBytes = Arc<Vec<u8>>;

/// A stored value: bytes inside the entry; or, when they are many, in an allocation of their own that can be shared; or
/// a collection that is a tree.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Bytes to copy.
    Bytes(&'a [u8]),
    /// Bytes to share. A holder takes a reference; a writer copies first if others hold one.
    Shared(&'a SharedBytes),
    /// A tree to share, in the same way. Its encoding is [`Encoding::BIG`].
    Big(&'a SharedBig),
}

impl<'a> Value<'a> {
    /// The bytes of a string or a packed collection, wherever they are; of one that is compressed, its stored form. A
    /// tree has none.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Shared(shared) => shared,
            Self::Big(_) => &[],
        }
    }

    /// The collection.
    #[inline]
    pub fn stored(self) -> Stored<'a> {
        match self {
            Self::Bytes(bytes) => Stored::Packed(bytes),
            Self::Shared(shared) => Stored::Packed(shared),
            Self::Big(big) => Stored::Big(big),
        }
    }

    /// Length in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "an empty value is nothing special")]
    pub fn len(self) -> usize {
        self.bytes().len()
    }
}

/// One stored entry, borrowed from its engine.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The key it is stored under.
    pub key: &'a [u8],
    /// Its type.
    pub kind: Type,
    /// How `value` is encoded.
    pub encoding: Encoding,
    /// The stored form of the value.
    pub value: Value<'a>,
    /// When it expires; `None` means never.
    pub expire_at: Option<UnixMs>,
    /// When it was last used, as the engine keeps it (20 bits): see `Engine::idle_seconds` and `Engine::frequency`.
    pub stamp: u32,
    /// Its optional fields.
    pub fields: ExtFields<'a>,
}

/// What a read on the fast path finds.
#[derive(Clone, Copy)]
pub enum Seen<'a> {
    /// The entry, with its value; `None` when there is none.
    Entry(Option<&'a Entry<'a>>),
    /// An entry whose value is away, and can be copied without I/O from where it is.
    Away(&'a Away<'a>),
}

/// A value that is away, to be copied once: from where it is to where it is to be.
#[derive(Clone, Copy)]
pub struct Away<'a> {
    /// Its type.
    pub kind: Type,
    /// Its length, in the form it is stored in.
    pub len: usize,
    /// Appends it. False when it cannot be read so, or is compressed; the vector is anything longer then.
    pub append_to: &'a dyn Fn(&mut Vec<u8>) -> bool,
}

/// An entry to be stored.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    /// Its type.
    pub kind: Type,
    /// How `value` is encoded.
    pub encoding: Encoding,
    /// The stored form of the value.
    pub value: Value<'a>,
    /// When it expires; `None` means never.
    pub expire_at: Option<UnixMs>,
    /// Its optional fields.
    pub fields: ExtFields<'a>,
}

impl<'a> Entry<'a> {
    /// Whether it is stored compressed, so that its bytes are not those of the string, nor of the collection.
    #[inline]
    pub fn is_compressed(&self) -> bool {
        self.encoding.is_compressed()
    }

    /// Whether its value lies on a tier, and nothing of it is in memory: it has to be fetched before it is used.
    #[inline]
    pub fn is_away(&self) -> bool {
        self.encoding.0 == Encoding::AWAY.0 && matches!(self.value, Value::Bytes([]))
    }

    /// Whether it is never evicted: it has the sticky mark, and no expiration.
    #[inline]
    pub fn is_sticky(&self) -> bool {
        self.fields.is_sticky() && self.expire_at.is_none()
    }

    /// The entry as an empty string, for an entry whose value cannot be read.
    pub fn without_value(&self) -> Self {
        Self { kind: Type::String, encoding: Encoding::PLAIN, value: Value::Bytes(&[]), ..*self }
    }

    /// Whether it counts as absent at `now`.
    #[inline]
    pub fn is_expired(&self, now: UnixMs) -> bool {
        self.expire_at.is_some_and(|at| at <= now)
    }

    /// The earliest time at which an element of the collection is due; `None` when none has a time. None that is
    /// compressed has.
    #[inline]
    pub fn first_due(&self) -> Option<UnixMs> {
        value::first_due(self.kind, self.encoding, self.value.stored())
    }

    /// Bytes of the key and of the value's content: of a string its bytes, of a collection its elements in their
    /// compact form (see [`value::Big::content_bytes`]). Constant time.
    pub fn content_bytes(&self) -> usize {
        self.key.len()
            + match self.value {
                Value::Big(big) => big.content_bytes(),
                value => value.len(),
            }
    }

    /// What it takes to store the same again, under this or another key.
    pub fn as_new(&self) -> NewEntry<'a> {
        let Self { kind, encoding, value, expire_at, fields, .. } = *self;
        NewEntry { kind, encoding, value, expire_at, fields }
    }
}

impl<'a> NewEntry<'a> {
    /// The entry as it would be read under a key, with the lowest stamp.
    pub fn as_entry(&self, key: &'a [u8]) -> Entry<'a> {
        let Self { kind, encoding, value, expire_at, fields } = *self;
        Entry { key, kind, encoding, value, expire_at, stamp: 0, fields }
    }
}
