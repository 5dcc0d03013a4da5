//! What is known of flushes.

use base::Lsn;
use parking_lot::{Condvar, Mutex};

/// What is known of flushes.
#[derive(Default)]
pub(crate) struct Flushing {
    pub(super) state: Mutex<FlushState>,
    /// Notified after each flush, and at the end.
    pub(super) stir: Condvar,
}

#[derive(Default)]
pub(super) struct FlushState {
    /// The position of the last flush that is durable.
    pub(super) flushed: Lsn,
    /// The position of the last cut.
    pub(super) cut: Lsn,
    /// When the last flush ended, by the monotonic clock.
    pub(super) ended_at_ns: Option<u64>,
    /// Counts flushes that are durable.
    pub(super) count: u64,
    /// Why the last one failed.
    pub(super) error: Option<String>,
    /// Failures in a row of flushes that begin anew.
    pub(super) failures: u32,
    /// Since when writes have waited for flushes that fail.
    pub(super) stuck_since_ns: Option<u64>,
    /// Bytes of copies of rows that the rows in use do not share.
    pub(super) retained_bytes: u64,
}
