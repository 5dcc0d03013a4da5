//! What can go wrong with durability as a whole.

use checkpoint::CheckpointError;
use cmdlog::{LogError, LogFailure, RecoverError};
use codec::CodecError;

/// Why the data directory cannot be used, a start fails, or a checkpoint does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DurabilityError {
    /// Checkpoint files, manifest, or the directory.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The log cannot be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log cannot be read.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The log cannot be made durable now.
    #[error("the command log is not durable up to the checkpoint: {0}")]
    Unsynced(#[from] LogFailure),
    /// The checkpoint has more databases than the store, or the log changes one that the store does not have.
    #[error(
        "the data has {found} databases and this server is configured for {configured}: set databases to {found} or more"
    )]
    Databases {
        /// In the checkpoint; or what the first such record of the log needs at least.
        found: usize,
        /// In the settings.
        configured: usize,
    },
    /// The log that the newest checkpoint needs is not there at all.
    #[error(
        "{}: the newest checkpoint is followed by the command log from LSN {from}, and no segment of it is there. Put the \
         files log-* back; or give up what came after the checkpoint: onggi restore --from DIR --to {from} --into NEWDIR",
        path.display()
    )]
    LogMissing {
        /// The data directory.
        path: std::path::PathBuf,
        /// From where it is needed.
        from: base::Lsn,
    },
    /// A dictionary is missing or damaged, or cannot be written.
    #[error(
        "a dictionary that compressed values need cannot be used: {0}. Put the file back, from a backup of this data directory \
         (it is the same in all of them, and its name is the hash of its contents), or begin from a backup as a whole: without \
         it these values cannot be read"
    )]
    Dictionary(#[from] CodecError),
    /// The server is ending.
    #[error(transparent)]
    Ended(#[from] crate::work::Ended),
    /// The checkpoint was taken, and no RDB file could be made of it.
    #[error("the checkpoint is taken, but no RDB file could be made of it: {0}")]
    Rdb(String),
    /// BGSAVE CANCEL.
    #[error("the checkpoint was cancelled")]
    Cancelled,
}

impl DurabilityError {
    /// Files of the data directory are damaged or missing: `onggi repair` can make the best of it.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Checkpoint(error) => error.is_damage(),
            Self::Recover(error) => error.is_damage(),
            Self::LogMissing { .. } => true,
            Self::Dictionary(error) => !matches!(error, CodecError::Fs(_)),
            _ => false,
        }
    }

    /// The device or a quota is full: trying again may work once space was freed.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Checkpoint(error) => error.is_out_of_space(),
            Self::Log(LogError::File { source }) => source.is_out_of_space(),
            _ => false,
        }
    }
}
