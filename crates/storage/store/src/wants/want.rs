//! A row that a command lacks.

use base::{KeyspaceId, ShardId};
use engine::{Key, Rows, Ticket};
use std::sync::Arc;

/// Bytes of a key that a message shows.
const SHOWN_BYTES: usize = 64;

/// A row that a command lacks.
#[derive(Clone)]
pub struct Want {
    /// Where its key lives.
    pub shard: ShardId,
    /// The keyspace of the key.
    pub space: KeyspaceId,
    /// The hash of the key.
    pub hash: u64,
    /// The key.
    pub key: Arc<[u8]>,
    /// Names the read.
    pub ticket: Ticket,
    /// Holds the row. `None`: it arrives without a read, and the command is retried from time to time.
    pub rows: Option<Arc<dyn Rows>>,
    /// It was read under the locks, and stays until they are opened (`HeldShards::load`).
    pub is_loaded: bool,
}

impl Want {
    /// What an error and the log say when the row cannot be read.
    pub fn unreadable(&self, error: &dyn std::fmt::Display) -> String {
        let shown = &self.key[..self.key.len().min(SHOWN_BYTES)];
        let rest = if shown.len() < self.key.len() { "..." } else { "" };
        format!("the row of key '{}{rest}' cannot be read: {error}", shown.escape_ascii())
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key { bytes: &self.key, hash: self.hash, slot: base::slot::slot_of(&self.key), space: self.space }
    }
}

impl std::fmt::Debug for Want {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = String::from_utf8_lossy(&self.key);
        write!(f, "Want({key:?} of {} in {}, {:?})", self.space, self.shard, self.ticket)
    }
}
