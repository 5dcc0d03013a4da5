//! A key whose hash and slot are computed once, when its command is parsed.

use base::hash::KeyHasher;
use base::slot::slot_of;
use base::{KeyspaceId, SlotId};

/// A key of one keyspace, with everything the way to its entry needs.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key as the client sent it; any bytes, empty included.
    pub bytes: &'a [u8],
    /// Its keyed hash: the place inside the shard.
    pub hash: u64,
    /// Its cluster slot: the shard.
    pub slot: SlotId,
    /// The logical database it belongs to.
    pub space: KeyspaceId,
}

impl<'a> Key<'a> {
    /// Hashes the bytes.
    #[inline]
    pub fn new(hasher: &KeyHasher, space: KeyspaceId, bytes: &'a [u8]) -> Self {
        Self { bytes, hash: hasher.hash(bytes), slot: slot_of(bytes), space }
    }

    /// The same key in another keyspace: same slot, hash and shard.
    #[inline]
    pub fn in_space(self, space: KeyspaceId) -> Self {
        Self { space, ..self }
    }
}
