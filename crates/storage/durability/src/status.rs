//! What INFO shows of durability.

use crate::policy::Cause;
use crate::rdb_writer::RdbFigures;
use base::{Lsn, UnixMs};
use cmdlog::{LogFailure, LogMode, LogStats};

/// All of it, at one moment.
#[derive(Clone, Debug)]
pub struct Status {
    /// The log; `None` while it is off.
    pub log: Option<LogStatus>,
    /// The log is being switched on, and does not count yet.
    pub is_switching_on: bool,
    /// The checkpoint being taken, or about to be.
    pub running: Option<Running>,
    /// A checkpoint waits for the running one.
    pub is_scheduled: bool,
    /// Changes since the cut of the last checkpoint.
    pub changes: u64,
    /// When the last checkpoint was made, or the server was started.
    pub last_save_ms: UnixMs,
    /// How long the last cut held all locks, in microseconds: no client was served meanwhile.
    pub stall_us: u64,
    /// Saves and rewrites, each by its own figures.
    pub saves: Figures,
    /// See `saves`.
    pub rewrites: Figures,
    /// What the start has loaded.
    pub load: LastLoad,
    /// Checkpoints on disk, and their bytes.
    pub sets: usize,
    /// See `sets`.
    pub set_bytes: u64,
    /// Since when every moment can be restored; `None` while none can.
    pub restorable_since_ms: Option<UnixMs>,
    /// RDB files made on request.
    pub rdb: RdbFigures,
}

impl Status {
    /// What can be restored, in words: `every moment since 2026-11-22 13:21:57 +09:00 (1 h 40 min)`.
    pub fn restorable(&self, now: UnixMs) -> String {
        let Some(since) = self.restorable_since_ms else { return "nothing yet".to_owned() };
        let shown = calendar::local(since, &calendar::system_zone());
        match self.log {
            Some(_) => format!("every moment since {shown} ({})", calendar::span(now.abs_diff(since))),
            None => format!("checkpoints alone, the last one of {shown} ({})", calendar::ago(since, now)),
        }
    }
}

/// Checkpoints of one kind.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// That succeeded.
    pub count: u64,
    /// That failed since one has succeeded.
    pub failures: u64,
    /// How long the last one took, in seconds; `None` before the first.
    pub last_seconds: Option<u64>,
    /// Extra memory of the last one at its most, in bytes.
    pub last_extra_bytes: u64,
}

/// The log.
#[derive(Clone, Debug)]
pub struct LogStatus {
    /// When it is made durable.
    pub mode: LogMode,
    /// The window of the asynchronous mode, in milliseconds.
    pub window_ms: u64,
    /// The position after the last record.
    pub end: Lsn,
    /// Up to here it is durable.
    pub durable: Lsn,
    /// Sizes and times.
    pub stats: LogStats,
    /// The failure it is in.
    pub failure: Option<LogFailure>,
    /// Bytes of the last checkpoint and of the log after it: what a start reads.
    pub current_size: u64,
    /// The same when that checkpoint was made.
    pub base_size: u64,
}

/// A checkpoint being taken.
#[derive(Clone, Debug)]
pub struct Running {
    /// Why.
    pub cause: Cause,
    /// Seconds it has taken so far.
    pub seconds: u64,
    /// Entries handed over, and entries there were at the cut.
    pub keys_done: u64,
    /// See `keys_done`.
    pub keys_total: u64,
    /// Extra memory in bytes, now and at its most.
    pub extra_bytes: u64,
    /// See `extra_bytes`.
    pub extra_bytes_max: u64,
}

/// What the start has loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastLoad {
    /// Entries of the checkpoint.
    pub keys: u64,
    /// Records of the log.
    pub records: u64,
    /// Milliseconds it took.
    pub ms: u64,
}
