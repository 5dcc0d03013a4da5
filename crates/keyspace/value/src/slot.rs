//! The place of a collection while it is edited, and how it is read.

use crate::{Big, Buffer, Encoding, Limits, SharedBig, Type, btree, hash, list, set, stream, zset};
use base::UnixMs;
use base::hash::KeyHasher;

/// A stored collection, for reading.
#[derive(Clone, Copy, Debug)]
pub enum Stored<'a> {
    /// In one buffer, as its type and encoding pack it.
    Packed(&'a [u8]),
    /// In a tree.
    Big(&'a Big),
}

/// A stored collection, for changing. It may leave in another form than it came.
#[derive(Debug)]
pub enum Body<'e> {
    /// In one buffer; empty when nothing was stored. [`Buffer::Made`] when it was a tree.
    Packed(Buffer<'e>),
    /// In a tree whose root is not shared; chunks may be.
    Big(&'e mut Big),
    /// It was packed and has outgrown that. No other holder exists yet.
    Grown(SharedBig),
}

/// What an edit works on.
#[derive(Debug)]
pub struct Slot<'e> {
    /// The value.
    pub body: Body<'e>,
    /// Its encoding: [`Encoding::BIG`] if and only if `body` is a tree.
    pub encoding: Encoding,
    /// Up to where it may be packed.
    pub limits: &'e Limits,
    /// For trees ordered by hash: keyed by secrets of the process. The same for the life of a value.
    pub hasher: &'e KeyHasher,
}

impl<'e> Slot<'e> {
    /// The collection, for reading in between.
    #[inline]
    pub fn stored(&self) -> Stored<'_> {
        match &self.body {
            Body::Packed(bytes) => Stored::Packed(bytes),
            Body::Big(big) => Stored::Big(big),
            Body::Grown(big) => Stored::Big(big),
        }
    }

    /// The buffer, while it is packed.
    #[inline]
    pub fn packed(&mut self) -> Option<&mut Buffer<'e>> {
        match &mut self.body {
            Body::Packed(bytes) => Some(bytes),
            Body::Big(_) | Body::Grown(_) => None,
        }
    }

    /// The tree, when it is one.
    #[inline]
    pub fn big(&mut self) -> Option<&mut Big> {
        match &mut self.body {
            Body::Packed(_) => None,
            Body::Big(big) => Some(big),
            Body::Grown(big) => Some(SharedBig::make_mut(big)),
        }
    }

    /// The packed collection becomes this tree.
    pub fn grow(&mut self, big: Big) {
        self.body = Body::Grown(SharedBig::new(big));
        self.encoding = Encoding::BIG;
    }

    /// The tree becomes this packed collection.
    pub fn shrink(&mut self, packed: Vec<u8>, encoding: Encoding) {
        self.body = Body::Packed(Buffer::Made(packed));
        self.encoding = encoding;
    }
}

/// What changes leave of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// No element, so that the key is to go: never of a stream.
    Nothing,
    /// Elements whose number is not at hand, like those of a packed list, or a stream.
    Some,
    /// The number of elements: 0 only of a collection that stays without any, since it has attributes.
    Elements(u64),
}

impl Left {
    /// The number of elements.
    #[inline]
    pub(crate) fn of(len: u64) -> Self {
        if len == 0 { Self::Nothing } else { Self::Elements(len) }
    }

    /// Whether the key stays.
    #[inline]
    pub fn is_any(self) -> bool {
        self != Self::Nothing
    }
}

/// Applies encoded changes, in order, and returns what they leave.
///
/// # Panics
/// When the bytes are no changes of this type; the reader must have checked them with [`check_changes`].
pub fn apply(kind: Type, slot: &mut Slot<'_>, changes: &[u8]) -> Left {
    match kind {
        Type::String => unreachable!("a string is no collection"),
        Type::List => list::apply(slot, changes),
        Type::Set => set::apply(slot, changes),
        Type::Zset => zset::apply(slot, changes),
        Type::Hash => hash::apply(slot, changes),
        Type::Stream => stream::apply(slot, changes),
        Type::Btree => btree::apply(slot, changes),
    }
}

/// Elements of a collection, of a stream its entries, those that are due included.
#[inline]
pub fn len(kind: Type, encoding: Encoding, stored: Stored<'_>) -> u64 {
    match kind {
        Type::String => unreachable!("a string is no collection"),
        Type::List => list::View::of(encoding, stored).len(),
        Type::Set => set::View::of(encoding, stored).len() as u64,
        Type::Zset => zset::View::of(stored).len(),
        Type::Hash => hash::View::of(encoding, stored).len() as u64,
        Type::Stream => stream::Big::of(stored).len(),
        Type::Btree => btree::View::of(stored).len(),
    }
}

/// The earliest time at which an element is due; `None` when none has a time, as in all collections but hashes, and in
/// those that are stored compressed.
#[inline]
pub fn first_due(kind: Type, encoding: Encoding, stored: Stored<'_>) -> Option<UnixMs> {
    if kind == Type::Hash && !encoding.is_compressed() { hash::View::of(encoding, stored).first_due() } else { None }
}

/// Whether these bytes are changes of this type, each in its only form.
pub fn check_changes(kind: Type, changes: &[u8]) -> bool {
    match kind {
        Type::String => false,
        Type::List => all::<list::Change<'_>>(changes, list::Change::take),
        Type::Set => all::<set::Change<'_>>(changes, set::Change::take),
        Type::Zset => all::<zset::Change<'_>>(changes, zset::Change::take),
        Type::Hash => all::<hash::Change<'_>>(changes, hash::Change::take),
        Type::Stream => all::<stream::Change<'_>>(changes, stream::Change::take),
        Type::Btree => all::<btree::Change<'_>>(changes, btree::Change::take),
    }
}

fn all<'a, C>(mut rest: &'a [u8], take: impl Fn(&mut &'a [u8]) -> Option<C>) -> bool {
    while !rest.is_empty() {
        if take(&mut rest).is_none() {
            return false;
        }
    }
    true
}
