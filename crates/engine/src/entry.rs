//! What is stored under a key: type, encoding, value bytes, expiration, access stamp.

use base::UnixMs;
use std::sync::Arc;

/// Bytes of a big value, shared between the store, replies in flight and a running checkpoint.
pub type SharedBytes = Arc<Vec<u8>>;

/// The type of a value, as TYPE names it. At most 15 exist, since entries keep it in four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Type {
    /// A byte string.
    String = 0,
}

impl Type {
    /// The name TYPE answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
        }
    }

    /// The type with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::String),
            _ => None,
        }
    }
}

/// How the value's bytes are to be read; its meaning depends on the type. At most 8 per type: entries keep three bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Encoding(pub u8);

impl Encoding {
    /// The bytes are the string.
    pub const PLAIN: Self = Self(0);
    /// The bytes are the string, and the last command edited them in place (APPEND, SETRANGE, SETBIT): OBJECT ENCODING
    /// calls that `raw` whatever its length.
    pub const EDITED: Self = Self(1);
    /// The bytes are the string, the text of a sum with a fraction (INCRBYFLOAT): OBJECT ENCODING never calls that `int`.
    pub const DECIMAL: Self = Self(2);
}

/// The stored bytes of a value: inside the entry, or, when big, in an allocation of their own that can be shared.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Bytes to copy.
    Bytes(&'a [u8]),
    /// Bytes to share. Whoever keeps them takes a reference; whoever changes them copies first if others hold one.
    Shared(&'a SharedBytes),
}

impl<'a> Value<'a> {
    /// The bytes, wherever they are.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Shared(shared) => shared,
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
}

impl<'a> Entry<'a> {
    /// Whether it counts as absent at `now`.
    #[inline]
    pub fn is_expired(&self, now: UnixMs) -> bool {
        self.expire_at.is_some_and(|at| at <= now)
    }

    /// What it takes to store the same again, under this or another key.
    pub fn as_new(&self) -> NewEntry<'a> {
        NewEntry { kind: self.kind, encoding: self.encoding, value: self.value, expire_at: self.expire_at }
    }
}
