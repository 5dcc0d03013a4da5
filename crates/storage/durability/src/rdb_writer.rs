//! What `rdb_file` needs of the rest of the server, and its figures.

use base::UnixMs;
use checkpoint::{DataDir, Manifest};
use rdb::Target;
use std::path::PathBuf;

/// Makes the file: a part of the server that knows the format.
pub trait WriteRdb: Send + Sync {
    /// Makes an RDB file of the manifest's newest checkpoint, in the place of the one before. Blocks for as long as it
    /// takes, and looks often whether it is cancelled.
    ///
    /// # Errors
    /// Why there is no file, in a sentence without a code word; the one before is still there.
    fn write(
        &self,
        dir: &DataDir,
        manifest: &Manifest,
        target: Target,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<RdbWritten, String>;
}

/// A file that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdbWritten {
    /// Where it is.
    pub path: PathBuf,
    /// Keys in it.
    pub keys: u64,
    /// Keys that are not, since RDB files have no form for them.
    pub formless: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// The figures of INFO about RDB files.
#[derive(Clone, Debug, Default)]
pub struct RdbFigures {
    /// Files made since the start.
    pub count: u64,
    /// Why the last one could not be made; `None` when it could.
    pub last_error: Option<String>,
    /// When the last one was made.
    pub last_ms: Option<UnixMs>,
    /// Keys and bytes of the last one.
    pub last_keys: u64,
    /// See `last_keys`.
    pub last_bytes: u64,
}
