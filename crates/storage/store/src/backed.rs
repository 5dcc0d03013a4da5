//! Backed keyspaces: how rows are attached, how a flush passes through the shards, how clean entries leave memory, and
//! how a walk visits entries that only rows hold.
//!
//! ```text
//! spill:  leaves of large collections that have changed become rows, one shard's lock at a time
//! cut:    all locks at once -> the flush takes each shard's list of changed keys, and a new one begins -> unlock
//! walk:   one shard's lock at a time, some keys, unlock; a command that changes a key meanwhile hands it over first
//! store:  without locks, all rows of all shards become durable and visible at once
//! end:    one shard's lock at a time: what was stored is clean
//! ```

use crate::log::AllLocked;
use crate::shard::ShardEngine;
use crate::store::Store;
use base::{KeyspaceId, ShardId};
use engine::{Counts, FlushProgress, RowSink, Rows};
use engine_mem::SpillPlace;
use std::sync::Arc;

impl AllLocked<'_> {
    /// Begins a flush of the present moment, of these keyspaces, with a sink for each in every shard.
    ///
    /// # Panics
    /// When one of them is not backed by rows, or is being flushed.
    pub fn begin_flush(
        &mut self,
        spaces: &[KeyspaceId],
        mut sink: impl FnMut(ShardId, KeyspaceId) -> Box<dyn RowSink>,
    ) {
        for (shard, id) in self.held.iter_mut().zip(self.store.shard_ids()) {
            let ShardEngine::Memory(engine) = &mut shard.engine else { panic!("only the memory engine is backed") };
            spaces.iter().for_each(|space| engine.begin_flush(*space, sink(id, *space)));
        }
    }
}

impl Store {
    /// Backs an empty keyspace with rows, while nothing else runs. `rows` gives the rows of each shard, and their
    /// counts. `is_ordered`: with its names in order, as the rows are.
    ///
    /// # Panics
    /// When the keyspace has entries, or the engine is another than the memory engine.
    pub fn back(&self, space: KeyspaceId, is_ordered: bool, mut rows: impl FnMut(ShardId) -> (Arc<dyn Rows>, Counts)) {
        for id in self.shard_ids() {
            let mut held = self.lock_patiently(id);
            let ShardEngine::Memory(engine) = &mut held.engine else { panic!("only the memory engine is backed") };
            let (rows, stored) = rows(id);
            if let Some(leaves) = rows.leaves() {
                self.pressure.count_leaves(leaves);
            }
            engine.back(space, rows, stored, self.compression.keeper());
            if is_ordered {
                engine.keep_order(space);
            }
            self.unlock_one(held);
        }
        self.pressure.add(space);
    }

    /// Before a flush: has changed leaves of large collections of a shard become rows, a step. See
    /// [`engine_mem::MemEngine::spill_changed`].
    pub fn spill_changed(&self, shard: ShardId, space: KeyspaceId, from: SpillPlace) -> Option<SpillPlace> {
        let is_short = self.is_half_full();
        self.with_memory(shard, |engine| engine.spill_changed(space, from, is_short)).flatten()
    }

    /// Gives the running flush up to `budget` further keys of a shard.
    pub fn walk_flush(&self, shard: ShardId, space: KeyspaceId, budget: usize) -> FlushProgress {
        self.with_memory(shard, |engine| engine.walk_flush(space, budget)).unwrap_or(FlushProgress::Done)
    }

    /// Ends the flush in a shard, whose rows are now `installed`, or which is given up; and gives its sink back.
    pub fn end_flush(&self, shard: ShardId, space: KeyspaceId, installed: Option<Counts>) -> Option<Box<dyn RowSink>> {
        self.with_memory(shard, |engine| engine.end_flush(space, installed)).flatten()
    }

    /// Drops about `bytes` bytes of clean entries of a shard. Returns how many bytes it dropped: fewer when there are
    /// no more.
    pub fn drop_clean(&self, shard: ShardId, space: KeyspaceId, bytes: usize) -> usize {
        self.with_memory(shard, |engine| engine.drop_clean(space, bytes)).unwrap_or(0)
    }

    fn with_memory<R>(&self, shard: ShardId, run: impl FnOnce(&mut engine_mem::MemEngine) -> R) -> Option<R> {
        let mut held = self.lock_patiently(shard);
        let result = match &mut held.engine {
            ShardEngine::Memory(engine) => Some(run(engine)),
            ShardEngine::Other(_) => None,
        };
        self.notices.look_for_leaves(&held.engine);
        self.unlock_one(held);
        result
    }
}
