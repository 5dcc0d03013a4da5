//! An edit of a collection, wherever that lies: the changes, and what they are applied with.

use base::UnixMs;
use base::hash::KeyHasher;
use engine::{Encoding, Left, SharedBig, Type};
use value::{Body, Buffer, Limits, Slot};

/// Changes to be applied.
pub struct Edit<'e> {
    /// The collection's type.
    pub kind: Type,
    /// One encoded change or more.
    pub changes: &'e [u8],
    /// Up to where a collection is packed.
    pub limits: &'e Limits,
    /// For trees ordered by hash.
    pub hasher: &'e KeyHasher,
}

/// What became of the value.
pub enum EditedBody {
    /// It is the tree, or in the vector, that it was given.
    InPlace,
    /// It is packed where it was stored, with this many bytes.
    Stored(usize),
    /// It was packed, and is this tree now.
    Big(SharedBig),
    /// It was a tree, and is packed now.
    Packed(Vec<u8>),
}

/// What an edit leaves.
pub struct Outcome {
    /// The value.
    pub body: EditedBody,
    /// Its encoding.
    pub encoding: Encoding,
    /// Its elements.
    pub left: Left,
    /// See [`EditedEntry::first_due`].
    pub first_due: [Option<UnixMs>; 2],
}

/// What an edit makes of an entry.
pub struct EditedEntry {
    /// Its handle from now on, unless no element is left: it is to be destroyed then.
    pub handle: u32,
    /// What is left of it.
    pub left: Left,
    /// The earliest time at which one of its elements was due before, and is now; `None` when none has a time.
    pub first_due: [Option<UnixMs>; 2],
}

impl Edit<'_> {
    /// Applies the changes.
    #[inline]
    pub fn apply(&self, body: Body<'_>, encoding: Encoding) -> Outcome {
        let mut slot = Slot { body, encoding, limits: self.limits, hasher: self.hasher };
        // Only fields of hashes have times: for others nothing is looked at.
        let has_times = self.kind == Type::Hash;
        let first_due =
            |slot: &Slot<'_>| if has_times { value::first_due(self.kind, slot.encoding, slot.stored()) } else { None };
        let before = first_due(&slot);
        let left = value::apply(self.kind, &mut slot, self.changes);
        let after = first_due(&slot);
        let Slot { body, encoding, .. } = slot;
        let body = match body {
            Body::Packed(Buffer::Stored { len, .. }) => EditedBody::Stored(len),
            Body::Packed(Buffer::Made(bytes)) => EditedBody::Packed(bytes),
            Body::Packed(Buffer::Lent(_)) | Body::Big(_) => EditedBody::InPlace,
            Body::Grown(big) => EditedBody::Big(big),
        };
        Outcome { body, encoding, left, first_due: [before, after] }
    }
}
