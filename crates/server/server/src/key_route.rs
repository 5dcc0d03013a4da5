//! Which keyspace, shard and slot the key of a request belongs to.

use base::{KeyspaceId, ShardId, SlotId};
use command::Args;
use command::Row;
use engine::Key;

/// Where a key belongs: a [`Key`] without its bytes.
#[derive(Clone, Copy)]
pub struct KeyRoute {
    /// Its keyed hash.
    pub hash: u64,
    /// Its cluster slot.
    pub slot: SlotId,
    /// Its shard.
    pub shard: ShardId,
    /// Its keyspace when it was hashed.
    pub space: KeyspaceId,
}

impl KeyRoute {
    /// The first key of the request it was made for.
    #[inline]
    pub(crate) fn key<'a>(&self, args: &Args<'a>, row: &Row) -> Key<'a> {
        let bytes = args.bytes(row.first_key.into()).unwrap_or_default();
        Key { bytes, hash: self.hash, slot: self.slot, space: self.space }
    }
}
