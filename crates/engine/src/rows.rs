//! Rows that are not in memory: what an engine asks of the store that holds them, and how a read of one is told apart.
//!
//! ```text
//! read -> Fetch, want -> Ticket --(no lock held)--> Rows::get --> install(ticket, row) --> the command runs again
//!                           '-- the key is written meanwhile: the ticket is void, and install does nothing
//! ```
//!
//! W1. A ticket is void once its key is written. A row that was read before the write is never installed.
//! W2. A row that is wanted stays in memory until everybody who wanted it has released it.
//! W3. Whoever wants a row that is being read gets the same ticket, so one read serves all.

use crate::Key;
use std::io;
use std::sync::Arc;

/// Names one read of a row. The engine of a shard gives each number once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// What a row can be read with, and what tells its read apart.
#[derive(Clone)]
pub struct Wanted {
    /// Names the read.
    pub ticket: Ticket,
    /// Holds the row. `None`: the row comes by itself, and the command is tried again from time to time.
    pub rows: Option<Arc<dyn Rows>>,
}

/// What a read without I/O has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// The row.
    Row,
    /// There is no such row.
    Absent,
    /// Only a read that may wait for a device can tell.
    NeedsIo,
}

/// The rows of one keyspace of one shard, as of the last flush that was installed.
pub trait Rows: Send + Sync {
    /// False only when there is no such row. Looks at memory alone.
    fn may_have(&self, key: &Key<'_>) -> bool;

    /// Appends the row to `row` if that takes no I/O.
    fn try_get(&self, key: &[u8], row: &mut Vec<u8>) -> Got;

    /// Appends the row to `row`. False when there is none. May wait for a device, so no worker calls it while it serves.
    ///
    /// # Errors
    /// When the row cannot be read, or what was read is damaged.
    fn get(&self, key: &[u8], row: &mut Vec<u8>) -> io::Result<bool>;
}
