//! Errors of the files in a data directory.

use std::path::PathBuf;
use vfs::FsError;

/// Every error of this crate. Damage, a newer format, a missing file and a failing disk are distinct.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The operating system's error; the source names operation, file and reason.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Bytes of a file are not those that were written.
    #[error("{}: damaged at offset {offset}: {what}; lost: {lost}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first byte of the damaged part.
        offset: u64,
        /// What is wrong with it.
        what: String,
        /// What cannot be read as a result.
        lost: String,
    },
    /// A newer program wrote the file. Nothing was changed.
    #[error(
        "{}: format version {version} is newer than the newest this program knows ({known}); nothing was changed",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// The file has a part that only a newer program can use. Nothing was changed.
    #[error(
        "{}: it names {what}, which this version cannot use; nothing was changed; start a newer version",
        path.display()
    )]
    Reserved {
        /// The file.
        path: PathBuf,
        /// What it names.
        what: &'static str,
    },
    /// Data files exist without a manifest that says which of them count.
    #[error(
        "{}: MANIFEST is missing, but {found} is there; put the MANIFEST back, run `onggi repair {}`, or move the \
         files away to begin empty",
        path.display(),
        path.display()
    )]
    ManifestMissing {
        /// The data directory.
        path: PathBuf,
        /// One of the data files.
        found: String,
    },
    /// A file in the manifest does not exist.
    #[error("{}: the manifest names this file, and it is missing; lost: {lost}", path.display())]
    FileMissing {
        /// The file.
        path: PathBuf,
        /// What cannot be read as a result.
        lost: String,
    },
    /// The device has too little free space for a checkpoint of the expected size.
    #[error("{}: a checkpoint needs about {needed} bytes and {available} are free", path.display())]
    NoSpace {
        /// The data directory.
        path: PathBuf,
        /// Bytes expected to be written.
        needed: u64,
        /// Bytes free on the device.
        available: u64,
    },
    /// The checkpoint was aborted.
    #[error("the checkpoint was given up")]
    Aborted,
    /// The operating system could not start a thread.
    #[error("no thread for the checkpoint: {0}")]
    Thread(std::io::Error),
    /// [`LoadProgress::is_cancelled`](crate::LoadProgress::is_cancelled).
    #[error("loading was given up")]
    LoadCancelled,
}

impl CheckpointError {
    /// Whether bytes were changed or files are missing. After any other error the data may still be whole.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::FileMissing { .. } | Self::ManifestMissing { .. })
    }

    /// The device or a quota is full: a retry may succeed once space is free.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Fs(error) => error.is_out_of_space(),
            Self::NoSpace { .. } => true,
            _ => false,
        }
    }
}
