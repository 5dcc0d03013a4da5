//! Errors of the command log.

use std::path::{Path, PathBuf};

use base::{Lsn, UnixMs};
use vfs::FsError;

/// The log could not be opened, or a change to its files failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A file or directory failed.
    #[error("command log: {source}")]
    File {
        /// The operation, the path and the cause.
        #[from]
        source: FsError,
    },
    /// Segments of another log are where this one would continue.
    #[error(
        "{}: the command log cannot begin at {first} while this file exists; recover it first, or move it away",
        path.display()
    )]
    Occupied {
        /// The file.
        path: PathBuf,
        /// Where the log should begin.
        first: Lsn,
    },
    /// The recovered tail changed, or can no longer be read.
    #[error("{}: the end of the command log, read before, reads differently now at offset {offset}", path.display())]
    Unstable {
        /// The file.
        path: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
    },
    /// The operating system could not start a thread.
    #[error("command log: cannot start a thread")]
    Thread {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// The failure the log is in. Nothing new becomes durable until it ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LogFailure {
    /// The file or directory.
    pub path: PathBuf,
    /// The operation that failed.
    pub op: &'static str,
    /// The operating system's error number, if it gave one.
    pub errno: Option<i32>,
    /// The device or the quota is full. Deletes continue, and free space ends the failure.
    pub disk_full: bool,
    /// Wall time of the first of the consecutive failures.
    pub since_ms: UnixMs,
    /// The whole failure as a sentence for people.
    pub message: String,
}

impl LogFailure {
    pub(crate) fn new(error: &FsError, since_ms: UnixMs) -> Self {
        let path: &Path = error.path();
        let reason = std::error::Error::source(error).map(|reason| format!(": {reason}")).unwrap_or_default();
        Self {
            path: path.to_path_buf(),
            op: error.op().as_str(),
            errno: error.raw_os_error(),
            disk_full: error.is_out_of_space(),
            since_ms,
            message: format!("{error}{reason}"),
        }
    }
}

/// Why the log cannot be read. Reading changes nothing; each error names the file and the next step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// A file or directory could not be read.
    #[error("command log: {source}")]
    File {
        /// The operation, the path and the cause.
        #[from]
        source: FsError,
    },
    /// Records that were durable are damaged or gone.
    #[error(
        "{}: command log damaged at offset {offset} (LSN {lsn}): records up to LSN {durable} were durable. \
         Put the file back from a copy, or give up what follows: `onggi restore --from DIR --to {lsn} --into NEWDIR`",
        path.display()
    )]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The LSN at that offset.
        lsn: Lsn,
        /// Everything before this LSN is known to have been durable.
        durable: Lsn,
    },
    /// A segment's header is unreadable, so the frames after it cannot be checked.
    #[error(
        "{}: header damaged (offset 0), and records follow it. Put the file back from a copy; `onggi check DIR` says \
         what can be read, and `onggi restore` brings back a moment before it",
        path.display()
    )]
    Header {
        /// The segment.
        path: PathBuf,
    },
    /// No segment holds the requested position, but later ones exist.
    #[error(
        "{}: the command log begins at LSN {first}, but is needed from LSN {wanted}: a segment is missing. Restore \
         it from a copy; `onggi check DIR` says what can be read",
        path.display()
    )]
    Missing {
        /// The oldest segment.
        path: PathBuf,
        /// Where it begins.
        first: Lsn,
        /// The requested LSN.
        wanted: Lsn,
    },
    /// A newer program wrote the file.
    #[error(
        "{}: written by a newer version (format {version}, this program reads {}); use that version",
        path.display(),
        crate::segment::VERSION
    )]
    Newer {
        /// The segment.
        path: PathBuf,
        /// Its format.
        version: u32,
    },
    /// The file is encrypted.
    #[error("{}: encrypted with key {id}, and this program has no keys", path.display())]
    Encrypted {
        /// The segment.
        path: PathBuf,
        /// The number of the key.
        id: u32,
    },
    /// The file is encrypted with a cipher that only a newer program supports.
    #[error("{}: encrypted with cipher {id}, which this program does not have; use a newer version", path.display())]
    Cipher {
        /// The segment.
        path: PathBuf,
        /// The number of the cipher.
        id: u32,
    },
    /// A frame of a kind that only a newer program knows.
    #[error(
        "{}: offset {offset}: a frame of kind {kind}, which this version does not know; use a newer one",
        path.display()
    )]
    UnknownKind {
        /// The segment.
        path: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The kind's number.
        kind: u8,
    },
    /// A whole record that could not be applied.
    #[error("{}: offset {offset} (LSN {lsn}): record not applied", path.display())]
    Apply {
        /// The segment.
        path: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// Where the record begins.
        lsn: Lsn,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl RecoverError {
    /// Whether durable records are damaged or missing. After any other error the log may still be whole.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Header { .. } | Self::Missing { .. } | Self::Apply { .. })
    }
}
