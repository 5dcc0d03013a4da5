//! What can go wrong, distinguished as far as a caller can act on it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs::{FsError, errno};

/// The result of every operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of the library. Corruption, wrong use, a full disk and a stopped database stay distinguishable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused. A second open of a directory that is in use is [`FsError::Locked`] in here, with the
    /// holder's process number.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Bytes on the medium are not those that were written.
    #[error("{}: offset {offset}: {what}", path.display())]
    Corruption {
        /// The damaged file.
        path: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// What was found, and what cannot be read because of it.
        what: String,
    },
    /// The file was written by a later release.
    #[error("{}: format version {found}; this release reads up to {supported}", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version known here.
        supported: u32,
    },
    /// A bug of this library, met before anything was changed on disk.
    #[error("a bug in plex: {0}")]
    Bug(String),
    /// A compaction filter panicked, or a flush or merge did. Nothing of it counts; writes stop until the next open.
    #[error("a flush or merge panicked, in the compaction filter or in plex: {0}")]
    Panicked(String),
    /// A background thread could not be started.
    #[error("a background thread could not be started")]
    Thread(#[source] std::io::Error),
    /// An argument outside its documented range.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
    /// Another write changed a key since the transaction began; nothing was written.
    #[error("key {} of key space {} was changed since the transaction began; run it again", key.escape_ascii(), space.0)]
    Conflict {
        /// The key space.
        space: crate::KeySpaceId,
        /// The first such key that was found.
        key: Vec<u8>,
    },
    /// This database, as it was made, cannot do this.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The database was opened by [`Db::open_read_only`](crate::Db::open_read_only).
    #[error("the database is open for reading only")]
    ReadOnly,
    /// The device was full in the middle of a change, or there was no free descriptor or memory. Reads work, and writes
    /// resume as soon as the cause has passed: the database need not be opened again.
    #[error("the database accepts no writes until the cause has passed: {cause}")]
    Suspended {
        /// The failure.
        #[source]
        cause: Arc<Error>,
    },
    /// An earlier write or sync failed in a way that leaves the state on disk unknown. Reads work; writes need a new
    /// open.
    #[error("the database accepts no more writes after an earlier failure: {cause}")]
    Stopped {
        /// The failure.
        #[source]
        cause: Arc<Error>,
    },
}

impl Error {
    pub(crate) fn corruption(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corruption { path: path.to_owned(), offset, what: what.into() }
    }

    /// The device is full: the operation may succeed after space was freed.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Fs(error) => error.is_out_of_space(),
            Self::Suspended { cause } | Self::Stopped { cause } => cause.is_out_of_space(),
            _ => false,
        }
    }

    /// The cause may pass without a new open: a full device, or no free descriptor or memory.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Fs(error) => error.is_out_of_space() || error.is_out_of_resources(),
            Self::Suspended { cause } | Self::Stopped { cause } => cause.may_pass(),
            _ => false,
        }
    }

    /// What the user can do about it, in a sentence to print after the message; `None` where nothing but the message
    /// helps.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Fs(error) => return hint_of(error),
            Self::Suspended { cause } => return cause.hint(),
            Self::Corruption { .. } => "`plex check DIR` names all damage, `plex repair DIR` saves what is sound",
            Self::NewerFormat { .. } => "open it with the release that wrote it, or a later one",
            Self::Stopped { .. } => "see to the cause, then open the database anew",
            Self::ReadOnly => "open it with Db::open to write",
            Self::Thread(_) => "raise the limit of processes (ulimit -u)",
            Self::Bug(_) | Self::Panicked(_) => "report this with the message; a new open reads what is on disk",
            Self::InvalidArgument(_) | Self::Conflict { .. } | Self::Unsupported(_) => return None,
        })
    }

    /// Whether the cause is damaged data.
    pub fn is_corruption(&self) -> bool {
        match self {
            Self::Corruption { .. } => true,
            Self::Suspended { cause } | Self::Stopped { cause } => cause.is_corruption(),
            _ => false,
        }
    }
}

fn hint_of(error: &FsError) -> Option<&'static str> {
    Some(match error {
        FsError::Locked { .. } => "close it there: one process at a time has a database open",
        _ if error.is_out_of_space() => "free space on the device: an open database then accepts writes again",
        _ if error.is_read_only() => "open it with Db::open_read_only, or mount the file system for writing",
        _ => match (error.raw_os_error(), error.kind()) {
            (Some(errno::EMFILE | errno::ENFILE), _) => {
                "raise the limit of open files (ulimit -n), or lower Options::open_files_max"
            }
            (Some(errno::ENOMEM), _) => "free memory, or lower Options::memtable_bytes and block_cache_bytes",
            (_, ErrorKind::PermissionDenied) => "run as the owner of the files, or give them to this user",
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::Op;

    /// What may pass or can be mended says how, also behind a failure that stopped writes.
    #[test]
    fn hints_say_what_to_do() {
        let of = |errno: i32| {
            let source = std::io::Error::from_raw_os_error(errno);
            Error::from(FsError::io(Op::Write, Path::new("/db/000007.sst"), source))
        };
        let has = |error: &Error, word: &str| error.hint().is_some_and(|hint| hint.contains(word));
        for (errno, word) in [
            (errno::EMFILE, "ulimit -n"),
            (errno::ENFILE, "ulimit -n"),
            (errno::ENOMEM, "memory"),
            (errno::ENOSPC, "free space"),
            (errno::EROFS, "open_read_only"),
            (errno::EACCES, "owner"),
        ] {
            assert!(has(&of(errno), word), "{errno}: {:?}", of(errno).hint());
            assert!(has(&Error::Suspended { cause: Arc::new(of(errno)) }, word));
        }
        assert_eq!(of(errno::EIO).hint(), None);
        assert!(has(&Error::Stopped { cause: Arc::new(of(errno::EIO)) }, "anew"));
        assert!(has(&FsError::Locked { path: Path::new("/db/LOCK").into(), pid: None }.into(), "close it"));
        assert!(has(&Error::corruption(Path::new("/db/000007.sst"), 0, "checksum"), "plex repair"));
    }
}
