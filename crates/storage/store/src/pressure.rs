//! What writers and flushes of databases on disk say to each other.
//!
//! ```text
//! writer: over the memory budget, and nothing clean to drop --is_wanted--> flush
//! flush:  unflushed changes are at their limit ------------is_behind----> writer: waits, others continue
//! flush:  cannot write rows -------------------------------is_failing----> writer: refused for want of memory
//! ```
//!
//! F1. A writer never waits for a flush that has failed: a write that needs its memory is refused until one succeeds.
//! F2. Writes to databases in memory look at one flag, which is down for them.

use crate::store::Store;
use base::{DbIndex, KeyspaceId};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// See the module.
#[derive(Debug, Default)]
pub struct FlushPressure {
    is_behind: AtomicBool,
    is_wanted: AtomicBool,
    is_failing: AtomicBool,
    /// Memory of the store of rows, which counts against the budget.
    row_store_bytes: AtomicU64,
    /// Keyspaces that are backed by rows.
    spaces: RwLock<Vec<KeyspaceId>>,
}

impl FlushPressure {
    /// Sets whether writes to databases on disk wait, because unflushed changes are at their limit.
    pub fn set_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
    }

    /// Says whether the last flush has failed (F1).
    pub fn set_failing(&self, is_failing: bool) {
        self.is_failing.store(is_failing, Ordering::Relaxed);
    }

    /// Whether the last flush has failed.
    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Whether a writer has asked for a flush since the last call.
    pub fn take_wanted(&self) -> bool {
        self.is_wanted.swap(false, Ordering::Relaxed)
    }

    /// Says how much memory the store of rows has.
    pub fn set_row_store_bytes(&self, bytes: u64) {
        self.row_store_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Memory of the store of rows.
    pub fn row_store_bytes(&self) -> u64 {
        self.row_store_bytes.load(Ordering::Relaxed)
    }

    /// The keyspaces that are backed by rows.
    pub fn spaces(&self) -> Vec<KeyspaceId> {
        self.spaces.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a keyspace is backed by rows.
    pub fn is_on_disk(&self, space: KeyspaceId) -> bool {
        self.spaces.read().unwrap_or_else(PoisonError::into_inner).contains(&space)
    }

    /// Notes a keyspace that is backed by rows.
    pub(crate) fn add(&self, space: KeyspaceId) {
        self.spaces.write().unwrap_or_else(PoisonError::into_inner).push(space);
    }

    /// Asks for a flush. False when that is of no use (F1).
    pub fn want(&self) -> bool {
        self.is_wanted.store(true, Ordering::Relaxed);
        !self.is_failing()
    }
}

impl Store {
    /// Whether a write has to wait for a flush (F2).
    #[inline]
    pub(crate) fn waits_for_flush(&self, db: DbIndex) -> bool {
        self.pressure.is_behind.load(Ordering::Relaxed) && self.is_on_disk(db)
    }

    /// Whether a database has its entries on disk.
    #[cold]
    pub fn is_on_disk(&self, db: DbIndex) -> bool {
        self.spaces.get(db).is_some_and(|space| self.pressure.is_on_disk(space))
    }
}
