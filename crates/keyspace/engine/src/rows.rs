//! Rows that are not in memory: what an engine asks of the store that holds them, and how it identifies a read of one.
//!
//! ```text
//! read -> Fetch, want -> Ticket --(no lock held)--> Rows::get --> install(ticket, row) --> the command runs again
//!                           '-- the key is written meanwhile: the ticket is void, and install does nothing
//! ```
//!
//! W1. A ticket is void once its key is written. A row that was read before the write is never installed.
//! W2. A row that is wanted stays in memory until every command that wanted it has released it.
//! W3. A second command that wants a row that is being read gets the same ticket, so one read serves all.

use crate::{Entry, Key, Names, RowName};
use base::{Rng, UnixMs};
use std::io;
use std::sync::Arc;
use value::cold::{Cold, Keeper};

/// Names one read of a row. The engine of a shard gives each number once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Where to read a row, and the identity of that read.
#[derive(Clone)]
pub struct Wanted {
    /// Names the read.
    pub ticket: Ticket,
    /// Holds the row. `None`: the row arrives without a read, and the command is retried from time to time.
    pub rows: Option<Arc<dyn Rows>>,
}

/// What a read without I/O has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// The row.
    Row,
    /// There is no such row.
    Absent,
    /// The answer needs a read that may wait for a device.
    NeedsIo,
}

/// The rows of one keyspace of one shard, as of the last flush that was installed.
pub trait Rows: Send + Sync {
    /// False only when there is no such row. Looks at memory alone.
    fn may_have(&self, key: &Key<'_>) -> bool;

    /// Appends the row to `row` if that takes no I/O.
    fn try_get(&self, key: &[u8], row: &mut Vec<u8>) -> Got;

    /// Appends the row to `row`. False when there is none. May wait for a device, so no worker calls it while it
    /// serves.
    ///
    /// # Errors
    /// When the row cannot be read, or what was read is damaged.
    fn get(&self, key: &[u8], row: &mut Vec<u8>) -> io::Result<bool>;

    /// Visits some rows, key and row, from a position on, and says where the next begin. Position 0 begins, and all are
    /// below [`POSITION_END`]. A row that is there throughout a walk is visited once.
    fn scan(&self, from: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Option<u64>;

    /// Appends some key and its row, each about equally likely. False when there is none.
    fn random(&self, rng: &mut Rng, key: &mut Vec<u8>, row: &mut Vec<u8>) -> bool;

    /// Gives keys of rows that are expired at `now`, until `visit` says false. Looks at memory alone, and gives a key
    /// once: one that is not deleted is given again after a while.
    fn due(&self, _now: UnixMs, _visit: &mut dyn FnMut(&[u8]) -> bool) {}

    /// Visits the names of a range in order, those of all shards, until `visit` says false. May wait for a device.
    ///
    /// # Errors
    /// When rows cannot be read, or are in no order.
    fn names(&self, _range: &Names, _visit: &mut dyn FnMut(RowName<'_>) -> bool) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the rows are in no order"))
    }

    /// Keeps a name, and gives a number for it below [`POSITION_END`].
    fn position_of(&self, _name: &[u8]) -> u64 {
        0
    }

    /// The name that has this number, or one before it.
    fn name_at(&self, _position: u64) -> Vec<u8> {
        Vec::new()
    }

    /// Where leaves of trees may be rows of their own; `None` where they may not.
    fn leaves(&self) -> Option<Arc<dyn LeafStore>> {
        None
    }
}

/// Stores leaves of trees as rows of their own, which the rows of keys refer to ([`value::absent`]).
pub trait LeafStore: Send + Sync {
    /// What reads such leaves.
    fn keeper(&self) -> Arc<dyn Keeper>;

    /// Stores a leaf of these bytes. It can be read at once; it is durable when a row that refers to it is. `None` when
    /// it cannot be stored. Takes no I/O.
    fn put(&self, bytes: &[u8]) -> Option<Cold>;

    /// Bytes of leaves whose memory comes back with a flush.
    fn unflushed_bytes(&self) -> usize;

    /// Bytes of copies that are in memory.
    fn kept_bytes(&self) -> usize;
}

/// Positions of [`Rows::scan`] are below this.
pub const POSITION_END: u64 = 1 << 47;

/// What there is of entries. Differences of such counts may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries.
    pub len: i64,
    /// Those that expire.
    pub expiring: i64,
    /// Those with elements that have a time.
    pub timed: i64,
}

impl Counts {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        let (len, expiring) = (self.len + other.len, self.expiring + other.expiring);
        Self { len, expiring, timed: self.timed + other.timed }
    }

    /// This without the other.
    pub fn minus(self, other: Self) -> Self {
        let Self { len, expiring, timed } = other;
        self.plus(Self { len: -len, expiring: -expiring, timed: -timed })
    }

    /// The counts of one entry.
    pub fn of(entry: &Entry<'_>) -> Self {
        let timed = entry.kind == crate::Type::Hash && !entry.is_compressed() && entry.first_due().is_some();
        Self { len: 1, expiring: i64::from(entry.expire_at.is_some()), timed: i64::from(timed) }
    }
}

/// Takes what a flush writes: for each key that has changed since the flush before, what it was at the cut.
pub trait RowSink: Send {
    /// All rows of earlier flushes are void. Comes first, if at all.
    fn clear(&mut self);

    /// The key had this entry. Called under the shard's lock: no I/O, no waiting.
    fn store(&mut self, entry: &Entry<'_>);

    /// The key had none.
    fn remove(&mut self, key: &[u8]);
}

/// How far a flush has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushProgress {
    /// There is more to walk.
    More,
    /// The sink has everything.
    Done,
    /// The keyspace was cleared: what the sink has is not to be installed.
    Void,
}
