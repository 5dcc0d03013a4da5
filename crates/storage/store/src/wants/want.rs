//! A row that a command lacks.

use base::{KeyspaceId, ShardId};
use engine::{Key, Rows, Ticket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use value::cold::Cold;

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
    /// It is no row of a key but a leaf of a tree, which is read without a lock and stays while this is held.
    pub leaf: Option<Cold>,
}

/// Tickets of leaves. No row has them: rows are those of a shard.
static LEAF_TICKETS: AtomicU64 = AtomicU64::new(0);

/// The shard in wants of leaves, which no shard is asked for.
pub(super) const NO_SHARD: ShardId = ShardId(u16::MAX);

impl Want {
    /// What an error and the log say when the row cannot be read.
    pub fn unreadable(&self, error: &dyn std::fmt::Display) -> String {
        let shown = &self.key[..self.key.len().min(SHOWN_BYTES)];
        let rest = if shown.len() < self.key.len() { "..." } else { "" };
        format!("the row of key '{}{rest}' cannot be read: {error}", shown.escape_ascii())
    }

    /// A leaf that a command lacks.
    pub fn of_leaf(leaf: Cold) -> Self {
        let ticket = Ticket(LEAF_TICKETS.fetch_add(1, Ordering::Relaxed));
        Self { ticket, leaf: Some(leaf), ..Self::of_nothing() }
    }

    /// Nothing, for a command that looks at its wants when it has run.
    pub(super) fn of_nothing() -> Self {
        Self {
            shard: NO_SHARD,
            space: KeyspaceId(0),
            hash: 0,
            key: Arc::default(),
            ticket: Ticket(0),
            rows: None,
            is_loaded: false,
            leaf: None,
        }
    }

    /// Whether reading brings it: rows of some engines of tests arrive without a read.
    pub fn is_read(&self) -> bool {
        self.rows.is_some() || self.leaf.is_some()
    }

    /// Finds what is wanted: a row, none, or a leaf, which then is in memory. Waits for a device.
    ///
    /// # Errors
    /// When it cannot be read: the text for the client.
    pub fn read(&self) -> Result<Option<Vec<u8>>, String> {
        if let Some(leaf) = &self.leaf {
            let read = leaf.fetch().map_err(|error| unreadable_leaf(&error));
            return read.map(|()| None);
        }
        let Some(rows) = &self.rows else { return Ok(None) };
        let mut row = Vec::new();
        let is_there = rows.get(&self.key, &mut row).map_err(|error| self.unreadable(&error))?;
        Ok(is_there.then_some(row))
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key { bytes: &self.key, hash: self.hash, slot: base::slot::slot_of(&self.key), space: self.space }
    }
}

/// What an error and the log say when a leaf cannot be read.
pub fn unreadable_leaf(error: &dyn std::fmt::Display) -> String {
    format!("a part of a collection cannot be read: {error}")
}

impl std::fmt::Debug for Want {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = String::from_utf8_lossy(&self.key);
        write!(f, "Want({key:?} of {} in {}, {:?})", self.space, self.shard, self.ticket)
    }
}
