//! What can go wrong with a tool, beyond the damage that it is there to find.

use checkpoint::CheckpointError;
use cmdlog::RecoverError;
use std::path::PathBuf;
use vfs::FsError;

/// Why a tool could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The operating system refused.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Manifest or snapshot files.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The command log.
    #[error(transparent)]
    Log(#[from] RecoverError),
    /// A dictionary that compressed values need.
    #[error(transparent)]
    Dictionary(#[from] codec::CodecError),
    /// A server has the directory.
    #[error("{}: in use by {}; stop that server first, or work on a copy; history and restore also read from the running server, by its address", path.display(), process(*pid))]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The server, if it has told.
        pid: Option<u32>,
    },
    /// Neither the name nor the first bytes are those of a file of ours.
    #[error("{}: not a manifest, a snapshot file, a dictionary or a segment of the command log", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The directory for new files has some already.
    #[error("{}: not empty; name a directory that is empty or missing", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The data does not lead to the moment asked for.
    #[error("{}: cannot go there: {why}", path.display())]
    NotReachable {
        /// The data directory.
        path: PathBuf,
        /// How far it leads.
        why: String,
    },
    /// A repair finds nothing to begin with.
    #[error("{}: cannot be repaired, and nothing was changed: {why}", path.display())]
    NotRepairable {
        /// The data directory.
        path: PathBuf,
        /// What is damaged, and what can be done.
        why: String,
    },
    /// A part of the log could not be copied.
    #[error(transparent)]
    Extract(#[from] cmdlog::ExtractError),
    /// What is left of the log could not be written.
    #[error(transparent)]
    Written(#[from] cmdlog::LogFailure),
    /// A block of a snapshot file whose checksum is right does not hold entries.
    #[error("{}: block at offset {offset}: {error}", path.display())]
    Block {
        /// The file.
        path: PathBuf,
        /// Where the block begins.
        offset: u64,
        /// What is wrong with it.
        error: cmdlog::DecodeError,
    },
    /// Output went nowhere.
    #[error("output: {0}")]
    Output(#[from] std::io::Error),
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// An error with its causes, in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = vfs::further_causes(error);
    [vec![error.to_string()], causes].concat().join(": ")
}
