//! A data directory to read from: of a stopped server, or of a running one that keeps its files in place.

use crate::decode::lock;
use crate::error::ToolError;
use base::Lsn;
use checkpoint::DataDir;
use std::path::Path;
use std::sync::Arc;
use vfs::FileSystem;

/// Where the data is.
#[derive(Clone, Copy, Debug)]
pub enum Source<'s> {
    /// In a directory that no server uses. It is locked meanwhile.
    Stopped(&'s Path),
    /// In the directory of a server that holds its files (BACKUP HOLD) until the work is done.
    Running {
        /// The directory.
        dir: &'s Path,
        /// How far its log was durable when the hold began; `None` where it is off.
        durable: Option<Lsn>,
    },
}

impl Source<'_> {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Stopped(dir) | Self::Running { dir, .. } => dir,
        }
    }

    /// The log may be read up to here: what comes after is still being written. `None`: to its end.
    pub(crate) fn limit(&self) -> Option<Lsn> {
        match self {
            Self::Stopped(_) => None,
            Self::Running { durable, .. } => *durable,
        }
    }

    /// # Errors
    /// As [`lock`].
    pub(crate) fn open(&self, fs: &Arc<dyn FileSystem>) -> Result<(DataDir, Option<vfs::FileLock>), ToolError> {
        match self {
            Self::Stopped(dir) => lock(fs, dir),
            Self::Running { dir, .. } => Ok((DataDir::open_to_look(Arc::clone(fs), dir), None)),
        }
    }
}
