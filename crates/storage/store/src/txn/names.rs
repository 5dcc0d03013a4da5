//! Names in order, over all shards.

use super::Txn;
use crate::locking::HeldShards;
use crate::scan::{cursor_of, position_of};
use crate::shard::Shard;
use base::{KeyspaceId, ShardId};
use engine::{ChangedNames, Engine, Names, Rows};
use std::sync::Arc;

impl Txn<'_> {
    /// See [`engine::Keyspace::changed_names`]. A command that holds one lock, or none, takes each for its part alone,
    /// the one that it holds opened first.
    pub(super) fn changed_names_in(&mut self, space: KeyspaceId, range: &Names, limit: usize) -> Option<ChangedNames> {
        // Without order, no lock is opened.
        self.ordered_rows(space)?;
        let (now, mut changed) = (self.now, ChangedNames::default());
        let mut look = |txn: &Self, shard: &mut Shard, id: ShardId| {
            txn.look_over(shard);
            shard.engine.set_time(now);
            shard.engine.changed_names(space, id, range, limit, &mut changed);
        };
        let mut held = std::mem::take(&mut self.held);
        if held.are_all(self.store.shard_ids().len()) {
            self.store.shard_ids().for_each(|id| look(self, held.get(id), id));
            self.held = held;
            return Some(changed);
        }
        let before = if let HeldShards::One(id, _) = &held { Some(*id) } else { None };
        self.store.unlock(held);
        for id in self.store.shard_ids() {
            let mut shard = self.store.lock_patiently(id);
            look(self, &mut shard, id);
            self.store.unlock_one(shard);
        }
        if let Some(id) = before {
            let mut shard = self.store.lock_patiently(id);
            shard.engine.set_time(now);
            self.held = HeldShards::One(id, shard);
        }
        Some(changed)
    }

    /// See [`engine::Keyspace::cursor_at`].
    pub(super) fn cursor_of_name(&mut self, space: KeyspaceId, name: &[u8]) -> Option<u64> {
        self.ordered_rows(space).map(|rows| cursor_of(rows.position_of(name)))
    }

    /// See [`engine::Keyspace::name_at`].
    pub(super) fn name_of_cursor(&mut self, space: KeyspaceId, cursor: u64) -> Option<Vec<u8>> {
        let rows = self.ordered_rows(space)?;
        Some(if cursor == 0 { Vec::new() } else { rows.name_at(position_of(cursor)) })
    }

    /// The rows of a keyspace that keeps its names in order: those of the first shard, which such cursors name.
    fn ordered_rows(&mut self, space: KeyspaceId) -> Option<Arc<dyn Rows>> {
        let rows_of = |shard: &mut Shard| shard.engine.ordered_rows(space).cloned();
        match &mut self.held {
            HeldShards::None => self.store.each_shard(rows_of).next().flatten(),
            held => held.iter_mut().next().and_then(rows_of),
        }
    }
}
