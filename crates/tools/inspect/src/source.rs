//! A data directory to read from: of a stopped server, or of a running one that keeps its files in place.

use crate::decode::lock;
use crate::error::ToolError;
use base::Lsn;
use checkpoint::DataDir;
use std::path::Path;
use std::sync::Arc;
use vfs::FileSystem;

/// The place of the data.
#[derive(Clone, Copy, Debug)]
pub enum Source<'s> {
    /// A directory that no server uses. It stays locked during the work.
    Stopped(&'s Path),
    /// The directory of a server that holds its files (BACKUP HOLD) during the work.
    Running {
        /// The directory.
        dir: &'s Path,
        /// The durable position of its log when the hold began; `None` if the log is off.
        durable: Option<Lsn>,
    },
}

impl Source<'_> {
    /// The directory.
    pub fn path(&self) -> &Path {
        match self {
            Self::Stopped(dir) | Self::Running { dir, .. } => dir,
        }
    }

    /// The log may be read up to here; later records are still being written. `None`: to its end.
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
