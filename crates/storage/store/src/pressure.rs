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
use engine::WriteClass;
use std::sync::Arc;

pub use state::{FlushFailure, FlushPressure};

impl Store {
    /// Whether a write may run while flushes are behind (F2). Its database is looked up here, out of line: looked up
    /// where all writes pass, it took 13 instructions of each SET.
    ///
    /// # Errors
    /// Of a write to a database on disk that needs memory: [`Blocked::Refused`] when the log refuses it as well, or
    /// flushes have failed for too long (F1); [`Blocked::Log`] otherwise.
    #[cold]
    #[inline(never)]
    pub(crate) fn admit_by_flushes(&self, scratch: &mut Scratch, at: &At) -> Result<(), Blocked> {
        if at.writes == WriteClass::Frees || !self.is_on_disk(scratch.admitted_by.unwrap_or(at.db)) {
            return Ok(());
        }
        let by_log = self.log_of(scratch).is_some_and(|log| log.admit(at.worker, at.writes) == Admission::Refused);
        let is_refused = by_log || matches!(self.pressure.failure(), Some(FlushFailure::Refuse(_)));
        Err(if is_refused { Blocked::Refused } else { Blocked::Log })
    }

    /// What a write to a database does that needs a flush; `None` when the last flush has not failed, or the database
    /// is in memory.
    #[cold]
    pub fn flush_failure(&self, db: DbIndex) -> Option<FlushFailure> {
        self.pressure.failure().filter(|_| self.is_on_disk(db))
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
        if self.pressure.is_behind() { self.why_no_flush(db) } else { None }
    }

    /// Whether a database has its entries on disk.
    #[cold]
    pub fn is_on_disk(&self, db: DbIndex) -> bool {
        self.spaces.get(db).is_some_and(|space| self.pressure.is_on_disk(space))
    }
}
