//! Effects: what a command changed, in a form that gives the same result whenever it is applied.

use crate::{Encoding, Key, SharedBig, SharedBytes, TaggedFields, Type, Value};
use base::{KeyspaceId, UnixMs};

/// One change. A command that changes something emits one or more; a transaction's effects form one record.
/// Times are absolute, values final. Each variant names the canonical Redis command it stands for.
// The tag is a byte of its own. Without this the compiler puts it into a field of the largest variant, from which every
// match takes more instructions.
#[repr(u8)]
#[derive(Clone, Copy, Debug)]
pub enum Effect<'a> {
    /// `SET key value [PXAT expire_at]`: stores a string; an expiration it had is gone unless given again.
    Set {
        /// Where.
        key: Key<'a>,
        /// The stored form.
        value: Value<'a>,
        /// How `value` is encoded.
        encoding: Encoding,
        /// When it expires.
        expire_at: Option<UnixMs>,
    },
    /// `SETRANGE key offset bytes`: overwrites a part of an existing string, zero-filled up to `offset`; expiration
    /// stays. APPEND is a splice at the old length. No bytes leave the value as it is, but counted as edited.
    Splice {
        /// Which string; it exists.
        key: Key<'a>,
        /// First byte to overwrite.
        offset: u64,
        /// The new bytes.
        bytes: &'a [u8],
    },
    /// `DEL key`, also what expiration and eviction leave in the log.
    Delete {
        /// Which entry.
        key: Key<'a>,
    },
    /// `PEXPIREAT key at`
    Expire {
        /// Which entry; it exists.
        key: Key<'a>,
        /// When it expires.
        at: UnixMs,
    },
    /// `PERSIST key`
    Persist {
        /// Which entry; it exists.
        key: Key<'a>,
    },
    /// `RENAME from to` inside one keyspace; what was at `to` is gone, the expiration moves along.
    Rename {
        /// Which entry; it exists.
        from: Key<'a>,
        /// Its new key.
        to: Key<'a>,
    },
    /// Stores a whole collection that is not a tree; what was there is gone. `DEL key` and then its elements, as
    /// commands of its type.
    Store {
        /// Where.
        key: Key<'a>,
        /// Which collection.
        kind: Type,
        /// How `value` is encoded.
        encoding: Encoding,
        /// The packed elements.
        value: Value<'a>,
        /// When it expires.
        expire_at: Option<UnixMs>,
    },
    /// [`Effect::Set`] or [`Effect::Store`] of an entry with optional fields; fields that it had are gone.
    StoreWith {
        /// Where.
        key: Key<'a>,
        /// Its type, [`Type::String`] included.
        kind: Type,
        /// How `value` is encoded.
        encoding: Encoding,
        /// The string, or the packed elements.
        value: Value<'a>,
        /// When it expires.
        expire_at: Option<UnixMs>,
        /// Its optional fields.
        fields: TaggedFields<'a>,
    },
    /// Replaces the optional fields of an entry, which keeps its value and expiration. Its residency stays.
    Meta {
        /// Which entry; it exists.
        key: Key<'a>,
        /// All fields that it has from now on.
        fields: TaggedFields<'a>,
    },
    /// Changes of one collection, which is made if it is absent and removed when no element is left; its expiration
    /// stays. What they are in terms of commands, each type says (`value::list::Change` and so on).
    Edit {
        /// Which collection: absent, or of this type.
        key: Key<'a>,
        /// Its type.
        kind: Type,
        /// One encoded change or more: see [`value::apply`].
        changes: &'a [u8],
    },
    /// Leaves of a tree as it was saved, some of them compressed, to append to the tree under the key. The tree is
    /// created if it is absent. Only checkpoints use this: see [`value::Big::write_leaves`].
    Leaves {
        /// Which collection: absent, or a tree of this type.
        key: Key<'a>,
        /// Its type.
        kind: Type,
        /// The leaves, checked by [`value::Big::check_leaves`].
        leaves: &'a [u8],
    },
    /// An [`Effect::Edit`] that was made beforehand: `tree` is what `changes` make of what is stored, or of nothing. It
    /// is recorded as that edit.
    Replace {
        /// Which collection: absent, or of the tree's type.
        key: Key<'a>,
        /// What is stored from now on; more than any packed form holds.
        tree: &'a SharedBig,
        /// The changes that lead there. May be empty where [`Keyspace::is_recorded`](crate::Keyspace::is_recorded) says
        /// no.
        changes: &'a SharedBytes,
    },
    /// `COPY from to REPLACE`, perhaps into another keyspace; the expiration is copied, a tree shared.
    Copy {
        /// Which entry; it exists.
        from: Key<'a>,
        /// The key of the copy.
        to: Key<'a>,
    },
    /// `FLUSHDB` of one keyspace.
    Clear {
        /// Which keyspace.
        space: KeyspaceId,
    },
    /// `SWAPDB`: the two keyspaces exchange their SELECT numbers.
    Swap {
        /// One.
        a: KeyspaceId,
        /// The other.
        b: KeyspaceId,
    },
    /// `FUNCTION LOAD REPLACE` of a library of functions or, with an empty text, `FUNCTION DELETE`. Libraries belong to
    /// no keyspace.
    Library {
        /// Its name, not empty.
        name: &'a [u8],
        /// Its text with the first line; empty when it is removed.
        code: &'a [u8],
    },
    /// Where a replica is in the stream of its primary, after the other effects of its record. No command stands for
    /// it.
    Position {
        /// The position as text; empty when there is none any more.
        text: &'a [u8],
    },
}

impl<'a> Effect<'a> {
    /// Visits [`Self::keys`], which takes less than to iterate over them.
    #[inline]
    pub fn each_key(&self, mut visit: impl FnMut(&Key<'a>)) {
        match self {
            Self::Edit { key, .. } | Self::Set { key, .. } => visit(key),
            _ => self.keys().for_each(visit),
        }
    }

    /// The keys whose entries it changes: none for a whole keyspace, a library or a position.
    #[inline]
    pub fn keys(&self) -> impl Iterator<Item = &Key<'a>> {
        let (first, second) = match self {
            Self::Set { key, .. }
            | Self::Splice { key, .. }
            | Self::Delete { key }
            | Self::Expire { key, .. }
            | Self::Persist { key }
            | Self::Store { key, .. }
            | Self::StoreWith { key, .. }
            | Self::Meta { key, .. }
            | Self::Edit { key, .. }
            | Self::Leaves { key, .. }
            | Self::Replace { key, .. }
            | Self::Copy { to: key, .. } => (Some(key), None),
            Self::Rename { from, to } => (Some(from), Some(to)),
            Self::Clear { .. } | Self::Swap { .. } | Self::Library { .. } | Self::Position { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }
}
