//! What writers and background threads change, each under its lock.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::key::Seqno;
use crate::log::{Before, WalWriter};
use crate::version::manifest::Manifest;

/// What the holder of the write lock changes.
pub(super) struct Writer {
    /// `None` with [`Wal::Off`](crate::Wal::Off).
    pub wal: Option<WalWriter>,
    pub log_state: LogState,
    /// What the log continues from, where the open had no room to begin it.
    pub before: Option<Before>,
    pub next_seqno: Seqno,
    /// The largest position of the external log that was written since the open; 0 for none.
    pub last_lsn: u64,
    /// Older log files that memtables still need: number and length.
    pub old_wals: Vec<(u64, u64)>,
    /// Key spaces that are being dropped, or are gone: a writer may have looked for them before.
    pub dropping: BTreeSet<u32>,
}

impl Writer {
    pub fn wal_file_bytes(&self) -> u64 {
        self.wal.as_ref().map_or(0, WalWriter::len) + self.old_wals.iter().map(|(_, len)| len).sum::<u64>()
    }
}

/// The manifest, and what of it a later one must repeat.
pub(super) struct LiveManifest {
    /// `None` for a database that is read only, and while the open has found no room for it.
    pub file: Option<Manifest>,
    /// As in [`VersionEdit::wal`](crate::version::VersionEdit::wal).
    pub wal: (u64, bool),
    /// After a failure it is unknown what the manifest that counts says, or which one that is; nothing more is
    /// appended. With the files that are not needed once another manifest counts.
    pub in_doubt: Option<Vec<PathBuf>>,
}

/// What of the log is known to be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogState {
    /// All that was synced, and the rest with the operating system.
    Sound,
    /// A sync failed: of what was written since the one before, nothing is known.
    InDoubt,
    /// As before, but the log begins anew, and what is in doubt waits to be flushed.
    Replaced,
}
