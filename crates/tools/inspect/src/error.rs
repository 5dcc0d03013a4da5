//! Errors of the tools, beyond the damage that they search for.

use checkpoint::CheckpointError;
use cmdlog::RecoverError;
use std::path::PathBuf;
use vfs::FsError;

/// Why a tool failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The operating system's error.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// An error of the manifest or a snapshot file.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// An error of the command log.
    #[error(transparent)]
    Log(#[from] RecoverError),
    /// An error of a dictionary that compressed values need.
    #[error(transparent)]
    Dictionary(#[from] codec::CodecError),
    /// An error of the tier that has values.
    #[error(transparent)]
    Tier(#[from] tier::TierError),
    /// An error of the rows of databases on disk.
    #[error("{}: {error}", path.display())]
    Rows {
        /// Their directory.
        path: PathBuf,
        /// The error.
        error: Box<disk::DiskError>,
    },
    /// A server uses the directory.
    #[error(
        "{}: in use by {}; stop that server first, or work on a copy; history and restore also read from the running \
         server, by its address",
        path.display(),
        process(*pid)
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The server's process id, if it is known.
        pid: Option<u32>,
    },
    /// Neither the name nor the first bytes are those of an Onggi file.
    #[error("{}: not a manifest, a snapshot file, a dictionary, or a segment of the command log or a tier", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The target directory is not empty.
    #[error("{}: not empty; name a directory that is empty or missing", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The data does not reach the requested moment.
    #[error("{}: cannot go there: {why}", path.display())]
    NotReachable {
        /// The data directory.
        path: PathBuf,
        /// How far it reaches.
        why: String,
    },
    /// A repair has nothing to begin with.
    #[error("{}: cannot be repaired, and nothing was changed: {why}", path.display())]
    NotRepairable {
        /// The data directory.
        path: PathBuf,
        /// What is damaged, and the next step.
        why: String,
    },
    /// A part of the log could not be copied.
    #[error(transparent)]
    Extract(#[from] cmdlog::ExtractError),
    /// The remaining log could not be written.
    #[error(transparent)]
    Written(#[from] cmdlog::LogFailure),
    /// A block of a snapshot file has a valid checksum and does not hold entries.
    #[error("{}: block at offset {offset}: {error}", path.display())]
    Block {
        /// The file.
        path: PathBuf,
        /// The offset of the block.
        offset: u64,
        /// Its fault.
        error: cmdlog::DecodeError,
    },
    /// The output failed.
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
