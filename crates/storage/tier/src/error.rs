//! What can go wrong with a tier.

use crate::format::VERSION;
use std::path::PathBuf;

/// Why a tier cannot be opened, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TierError {
    /// The operating system's error.
    #[error(transparent)]
    File(#[from] vfs::FsError),
    /// The directory has no tier, and there should be one.
    #[error(
        "tier directory {} has no TIER file, but the data directory has values on a tier: mount its device, or \
         pass the right directory with --tier-dir", path.display()
    )]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has another tier.
    #[error(
        "tier directory {} belongs to another data directory: pass an empty directory, or the right one, with \
         --tier-dir",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// A newer program wrote it.
    #[error(
        "{} has version {version}; this program reads version {VERSION}: use a newer program", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// Its identity cannot be read.
    #[error("{} is damaged: {what}; restore it from a backup", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// A record is not what was appended.
    #[error("tier segment {segment}, offset {offset}: {what}; only this value is lost: delete or overwrite its key")]
    Damaged {
        /// The segment.
        segment: u32,
        /// The offset of the record, in bytes.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// Persistent memory is wanted, and the file system does not grant it.
    #[error(
        "tier-medium dax: the file system of {} does not map persistent memory (MAP_SYNC); mount it with DAX on a \
         pmem device, or pass --tier-medium auto, shared or file", path.display()
    )]
    NoDax {
        /// The directory.
        path: PathBuf,
    },
    /// An earlier sync failed.
    #[error(
        "the tier could not be synced ({why}); it takes no more values, and no checkpoint can be made: restart the \
         server"
    )]
    Unsynced {
        /// The first failure.
        why: String,
    },
}

impl From<TierError> for std::io::Error {
    fn from(error: TierError) -> Self {
        Self::other(error)
    }
}
