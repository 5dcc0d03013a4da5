//! The settings of a log, and the interface through which it reports events.

use std::path::PathBuf;
use std::sync::Arc;

use base::{HistoryId, Lsn};

use crate::error::LogFailure;
use crate::recovery::LogEnd;
use crate::segment::Parent;
use crate::timing::{LogMode, LogTiming};

/// What to do when a file cannot be written or synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSyncError {
    /// Continue in a new file, filled from memory, as soon as that works. Writes are refused until then.
    Rotate,
    /// Call [`LogWake::stop`], which should end the process, and never write again.
    Stop,
}

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The data directory, which exists.
    pub dir: PathBuf,
    /// When records become durable. In `Async`, a power cut loses at most the window while the disk keeps up. Writes
    /// wait once the oldest unsynced record is twice as old.
    pub timing: Arc<LogTiming>,
    /// Size of a segment, preallocated. A bigger record gets a bigger segment.
    pub segment_bytes: u64,
    /// Number of workers that append, numbered from 0.
    pub workers: usize,
    /// Memory for records that are not durable yet; at least 256 KiB for each worker.
    pub ring_bytes: usize,
    /// What to do after a failure.
    pub on_sync_error: OnSyncError,
}

/// The default of [`LogOptions::segment_bytes`].
pub const SEGMENT_BYTES: u64 = 64 << 20;
/// The default of [`LogOptions::ring_bytes`].
pub const RING_BYTES: usize = 16 << 20;

impl LogOptions {
    /// The defaults for a directory and a number of workers: async, 1 s, 64 MiB segments, 16 MiB of memory.
    pub fn new(dir: impl Into<PathBuf>, workers: usize) -> Self {
        Self {
            dir: dir.into(),
            timing: LogTiming::of(LogMode::Async),
            segment_bytes: SEGMENT_BYTES,
            workers,
            ring_bytes: RING_BYTES,
            on_sync_error: OnSyncError::Rotate,
        }
    }
}

/// Where a log begins.
#[derive(Clone, Debug)]
pub struct LogStart {
    pub(crate) history: HistoryId,
    pub(crate) parent: Option<Parent>,
    pub(crate) first: Lsn,
    /// The result of recovery, if the log continues from there.
    pub(crate) after: Option<LogEnd>,
}

impl LogStart {
    /// A history without a predecessor, in a directory without segments at or beyond `first`.
    pub fn fresh(history: HistoryId, first: Lsn) -> Self {
        Self { history, parent: None, first, after: None }
    }

    /// Continues where recovery stopped. The old history continues if it was ended in order ([`LogEnd::clean`]).
    /// Otherwise `new_history` begins, with the old one as its parent. If the old one has no frame, its parent becomes
    /// the parent: its only segment lies where the new one will, so no file would connect the two.
    pub fn after(end: LogEnd, new_history: HistoryId) -> Self {
        let (history, parent) = match end.history {
            Some(old) if end.clean => (old, end.parent),
            Some(_) if end.parent.is_some_and(|parent| parent.lsn == end.end_lsn) => (new_history, end.parent),
            Some(old) => (new_history, Some(Parent { history: old, lsn: end.end_lsn })),
            None => (new_history, None),
        };
        Self { history, parent, first: end.end_lsn, after: Some(end) }
    }

    /// The history that the log will write.
    pub fn history(&self) -> HistoryId {
        self.history
    }

    /// The history before it, if any.
    pub fn parent(&self) -> Option<Parent> {
        self.parent
    }

    /// Where it begins.
    pub fn first_lsn(&self) -> Lsn {
        self.first
    }
}

/// Receives the log's events. The log's threads call it while they hold locks of the log: implementations must not call
/// back into the log, and must return soon.
pub trait LogWake: Send + Sync {
    /// The worker's wait is over ([`Log::wait_for`](crate::Log::wait_for), or an [`Admission::Wait`]): it checks again.
    fn wake(&self, worker: usize);

    /// The log has failed, or still fails for another reason.
    fn failed(&self, failure: &LogFailure) {
        let _ = failure;
    }

    /// The failure has ended and nothing was lost.
    fn healthy(&self) {}

    /// [`OnSyncError::Stop`] is set and the log has failed, or a thread of the log has died of a bug. The process must
    /// end without touching the data directory.
    fn stop(&self, failure: &LogFailure) {
        let _ = failure;
    }
}

/// Ignores every event.
impl LogWake for () {
    fn wake(&self, _: usize) {}
}

/// Whether a command may make its first change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Yes, with one record.
    Go,
    /// The log lags; it wakes the worker once.
    Wait,
    /// The log has failed: [`Log::health`](crate::Log::health) has the reason.
    Refused,
}
