//! The changed keys of a backed keyspace in the order of their bytes, which its rows have, too.
//!
//! O1. The set has every key with a change that is not installed. It may have others, until they are tidied.
//! O2. A keyspace that keeps no order has no set, and pays for none.

use super::state::{Backed, Order};
use crate::mem_engine::MemEngine;
use base::{KeyspaceId, ShardId};
use engine::{ChangedNames, Names, Rows};
use std::sync::Arc;

impl MemEngine {
    /// Has a backed keyspace keep its changed keys in order, before any has changed.
    ///
    /// # Panics
    /// When the keyspace is not backed, or has changes.
    pub fn keep_order(&mut self, id: KeyspaceId) {
        let backed = self.backed_mut(id).expect("only the rows of a backed keyspace are in order");
        assert!(backed.changed_len() == 0, "changed keys would be missing");
        backed.order = Some(Order::new());
    }

    /// See [`engine::Engine::ordered_rows`].
    pub(crate) fn rows_in_order(&self, id: KeyspaceId) -> Option<&Arc<dyn Rows>> {
        self.backed(id).filter(|backed| backed.order.is_some()).map(|backed| &backed.rows)
    }

    /// See [`engine::Engine::changed_names`].
    pub(crate) fn changed_names_of(
        &self,
        id: KeyspaceId,
        shard: ShardId,
        (range, limit): (&Names, usize),
        changed: &mut ChangedNames,
    ) -> bool {
        let Some(backed) = self.backed(id) else { return false };
        let Backed { order: Some(order), rows, cleared, installed, .. } = backed else { return false };
        changed.set_rows(rows);
        if cleared > installed {
            changed.set_void(shard);
        }
        let mut given = 0usize;
        range.visit(order, |name| {
            if backed.is_changed(backed.state(name)) {
                let found = self.find_apart(&self.key_of(id, name)).map(|found| self.entries.entry(found.handle));
                changed.add(name, found.filter(|entry| !entry.is_expired(self.now)).map(|entry| entry.kind));
            }
            given += 1;
            if given == limit {
                changed.end_at(range, name);
            }
            given < limit
        });
        true
    }
}
