//! What can go wrong with durability as a whole.

use checkpoint::CheckpointError;
use cmdlog::{LogError, LogFailure, RecoverError};
use codec::CodecError;
use std::time::Duration;

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
    /// The rows of databases on disk cannot be opened or written.
    #[error("the rows of databases on disk: {0}")]
    Rows(#[from] disk::DiskError),
    /// A checkpoint cannot have the rows of databases on disk.
    #[error(
        "a checkpoint needs the rows of databases on disk, and these cannot be flushed: {why}. It is taken when a flush has succeeded"
    )]
    RowsBehind {
        /// Why not.
        why: String,
    },
    /// The settings give a database in memory, which has entries, another engine.
    #[error(
        "database {number} is in memory and has {keys} keys, and the settings give it engine disk: the engine of a database is \
         fixed once it has been written to. Set database {number} engine memory; copy its keys to a database on disk (COPY key \
         key DB n), or empty it (FLUSHDB), and start again with the new setting"
    )]
    EngineFixed {
        /// The database.
        number: u32,
        /// Its keys.
        keys: u64,
    },
    /// The settings keep a database in memory that is on disk.
    #[error(
        "database {number} is on disk in this data directory, and the settings keep it in memory: the engine of a database is \
         fixed once it has been written to. Start with --database '{number} engine disk'"
    )]
    EngineMissing {
        /// The database.
        number: u32,
    },
    /// Databases are on disk, and the settings have no log.
    #[error("databases of this data directory are on disk, which needs the command log: set appendonly yes")]
    RowsWithoutLog,
    /// Rows that the manifest does not name.
    #[error(
        "{}: it has rows of database {number}, which MANIFEST does not name: it may be of another data directory. Move it away, \
         or put back the MANIFEST that belongs to it",
        path.display()
    )]
    RowsLeft {
        /// The directory of rows.
        path: std::path::PathBuf,
        /// The database.
        number: u32,
    },
    /// Rows have changes that the log has not.
    #[error(
        "the rows of databases on disk hold all changes up to LSN {rows}, and the command log ends at LSN {end}: segments of it \
         are missing. Put the files log-* back, or begin from a backup"
    )]
    LogBehindRows {
        /// The rows' position.
        rows: base::Lsn,
        /// The log's end.
        end: base::Lsn,
    },
    /// The tier cannot be opened or synced.
    #[error(transparent)]
    Tier(#[from] tier::TierError),
    /// No thread can be had.
    #[error("no thread to write the tier: {error}; raise the limit of threads of this user")]
    TierThread {
        /// Why.
        error: std::io::Error,
    },
    /// Values are on a tier, and the settings have none.
    #[error(
        "values of this data directory are on the tier in {}: start with --tier-dir {}", path.display(), path.display()
    )]
    TierNeeded {
        /// The directory of the tier at the last start.
        path: std::path::PathBuf,
    },
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
            Self::LogMissing { .. } | Self::LogBehindRows { .. } => true,
            Self::Dictionary(error) => !matches!(error, CodecError::Fs(_)),
            _ => false,
        }
    }

    /// The device or a quota is full: trying again may work once space was freed.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Checkpoint(error) => error.is_out_of_space(),
            Self::Log(LogError::File { source }) => source.is_out_of_space(),
            Self::Rows(error) => error.is_out_of_space(),
            Self::Tier(tier::TierError::File(error)) => error.is_out_of_space(),
            _ => false,
        }
    }
}

/// The mode of the log was not changed: commands held locks for the whole time that was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("other commands held the keyspace for {} ms", waited.as_millis())]
pub struct ModeNotSet {
    /// How long the locks were waited for.
    pub waited: Duration,
}
