//! The address space of all shards of a store.

use crate::arena::Arena;
use crate::classes::GRANULE_BYTES;
use std::sync::Arc;

/// For the entries of a shard: as much as 32-bit handles reach, or less where the system sets limits.
const ENTRY_REGION_BYTES: &[usize] = &[GRANULE_BYTES << 32, 4 << 30, 1 << 30, 256 << 20, 64 << 20, 2 << 20];

/// For the tables of a shard: enough for as many entries as that region holds.
const TABLE_REGION_BYTES: &[usize] = &[8 << 30, 2 << 30, 512 << 20, 128 << 20, 32 << 20, 2 << 20];

/// Address space that engines of one store share, so that their pages can share huge pages.
pub struct MemoryArena {
    pub(crate) entries: Arc<Arena>,
    pub(crate) tables: Arc<Arena>,
}

impl MemoryArena {
    /// Address space for `shard_count` shards. Takes no memory.
    ///
    /// # Panics
    /// When the system grants not even the smallest piece.
    pub fn reserve(shard_count: usize) -> Self {
        let reserve = |sizes| Arena::reserve(shard_count, sizes).expect("the system grants address space");
        Self { entries: reserve(ENTRY_REGION_BYTES), tables: reserve(TABLE_REGION_BYTES) }
    }

    /// Whether [`MemoryArena::merge_one`] has something to do.
    #[inline]
    pub fn has_ready(&self) -> bool {
        self.tables.has_ready() || self.entries.has_ready()
    }

    /// Merges the small pages of one huge page that has been filled, those of tables first, which all commands read;
    /// false when there is none. Copies 2 MiB, in one to two milliseconds; to be called without a shard's lock.
    pub fn merge_one(&self) -> bool {
        (self.tables.has_ready() && self.tables.merge_one()) || (self.entries.has_ready() && self.entries.merge_one())
    }
}
