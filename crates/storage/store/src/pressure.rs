//! What writers and flushes of databases on disk say to each other.
//!
//! ```text
//! writer: over the memory budget, and nothing clean to drop --is_wanted--> flush
//! flush:  unflushed changes are at their limit ------------is_behind----> writer: waits, others continue
//! flush:  cannot write rows, and writers wait -------------failure-------> writer: waits a while, then is refused
//! ```
//!
//! F1. After a failed flush, writers that need one wait for a limited time, all together. Then they are refused until
//!     one succeeds. Others continue, up to the limit of unflushed changes.
//! F2. Writes to databases in memory look at one flag, which is down for them. They never wait for a failed flush.

use crate::commit::Blocked;
use crate::log::Admission;
use crate::store::Store;
use crate::txn::{At, Scratch};
use base::{DbIndex, KeyspaceId};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What a write that needs a flush does after one has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlushFailure {
    /// It waits: the next flush may succeed.
    Wait,
    /// It is refused, for this reason.
    Refuse(Arc<str>),
}

/// See the module.
#[derive(Debug, Default)]
pub struct FlushPressure {
    is_behind: AtomicBool,
    is_wanted: AtomicBool,
    is_failing: AtomicBool,
    is_refusing: AtomicBool,
    /// Why the last flush has failed, if it has.
    failure: RwLock<Option<Arc<str>>>,
    /// Memory of the store of rows, which counts against the budget.
    row_store_bytes: AtomicU64,
    /// Keyspaces that are backed by rows.
    spaces: RwLock<Vec<KeyspaceId>>,
}

impl FlushPressure {
    /// Sets whether writes to databases on disk wait, because unflushed changes are at their limit. Returns whether
    /// they did.
    pub fn set_behind(&self, is_behind: bool) -> bool {
        self.is_behind.swap(is_behind, Ordering::Relaxed)
    }

    /// Says why the last flush has failed, or that it succeeded (F1).
    pub fn set_failure(&self, why: Option<&str>) {
        *self.failure.write().unwrap_or_else(PoisonError::into_inner) = why.map(Arc::from);
        self.is_failing.store(why.is_some(), Ordering::Relaxed);
    }

    /// Sets whether writers that need a flush are refused and wait no longer (F1). Returns whether they were.
    pub fn set_refusing(&self, is_refusing: bool) -> bool {
        self.is_refusing.swap(is_refusing, Ordering::Relaxed)
    }

    /// What a write that needs a flush does; `None` when the last flush has not failed.
    pub fn failure(&self) -> Option<FlushFailure> {
        let why = self.failure.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(if self.is_refusing.load(Ordering::Relaxed) { FlushFailure::Refuse(why) } else { FlushFailure::Wait })
    }

    /// Whether the last flush has failed.
    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Whether a writer asks for a flush.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// The same, and forgets it.
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

    /// Asks for a flush. False when the last one has failed (F1).
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

    /// What a write to a database does that needs a flush; `None` when the last flush has not failed, or the database
    /// is in memory.
    #[cold]
    pub fn flush_failure(&self, db: DbIndex) -> Option<FlushFailure> {
        self.pressure.failure().filter(|_| self.is_on_disk(db))
    }

    /// Why a write that needs a flush cannot run now: [`Blocked::Refused`] when the log refuses it as well, or flushes
    /// have failed for too long (F1).
    #[cold]
    pub(crate) fn blocked_by_flush(&self, scratch: &mut Scratch, at: &At) -> Blocked {
        let by_log = self.log_of(scratch).is_some_and(|log| log.admit(at.worker, at.writes) == Admission::Refused);
        let is_refused = by_log || matches!(self.pressure.failure(), Some(FlushFailure::Refuse(_)));
        if is_refused { Blocked::Refused } else { Blocked::Log }
    }

    /// Why writes to a database that need a flush are refused (F1), if they are.
    #[cold]
    pub fn why_no_flush(&self, db: DbIndex) -> Option<Arc<str>> {
        match self.flush_failure(db) {
            Some(FlushFailure::Refuse(why)) => Some(why),
            _ => None,
        }
    }

    /// The same for a write of [`Blocked::Refused`], where the log is not the reason.
    #[cold]
    pub fn refusal_by_flush(&self, db: DbIndex) -> Option<Arc<str>> {
        if self.waits_for_flush(db) { self.why_no_flush(db) } else { None }
    }

    /// Whether a database has its entries on disk.
    #[cold]
    pub fn is_on_disk(&self, db: DbIndex) -> bool {
        self.spaces.get(db).is_some_and(|space| self.pressure.is_on_disk(space))
    }
}
