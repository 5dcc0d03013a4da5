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

pub(crate) mod state;

use crate::commit::Blocked;
use crate::record_sink::Admission;
use crate::store::Store;
use crate::txn::{At, Scratch};
use base::DbIndex;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use state::{FlushFailure, FlushPressure};

impl Store {
    /// Whether a write to a database has to wait for a flush (F2).
    #[inline]
    pub(crate) fn waits_for_flush(&self, db: impl FnOnce() -> DbIndex) -> bool {
        self.pressure.is_behind.load(Ordering::Relaxed) && self.is_on_disk(db())
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
        if self.waits_for_flush(|| db) { self.why_no_flush(db) } else { None }
    }

    /// Whether a database has its entries on disk.
    #[cold]
    pub fn is_on_disk(&self, db: DbIndex) -> bool {
        self.spaces.get(db).is_some_and(|space| self.pressure.is_on_disk(space))
    }
}
