//! The files of a tier that no server uses, for tools.

use crate::scan::Scan;
use crate::{TierError, TierId, identity, names};
use std::path::{Path, PathBuf};
use vfs::{FileSystem, OpenOptions};

/// The file that names the tier of a directory.
pub const ID_FILE: &str = identity::FILE;

/// The id of the tier in a directory; `None` when it has none.
///
/// # Errors
/// It cannot be read, or is damaged.
pub fn id_of(fs: &dyn FileSystem, dir: &Path) -> Result<Option<TierId>, TierError> {
    identity::read(fs, dir)
}

/// The name of a tier's directory within a copy of a data directory.
pub const COPY_DIR: &str = "tier";

/// Where the tier of a data directory is: within the directory, as in a copy that a tool has made and that may have
/// been moved, or where the manifest has `recorded` it.
///
/// # Errors
/// The file system's, or a damaged tier within the directory.
pub fn directory(fs: &dyn FileSystem, data_dir: &Path, id: TierId, recorded: &Path) -> Result<PathBuf, TierError> {
    let own = data_dir.join(COPY_DIR);
    let is_own = fs.exists(&own)? && id_of(fs, &own)? == Some(id);
    Ok(if is_own { own } else { recorded.to_owned() })
}

/// Makes an empty tier with this id in a directory, durably.
///
/// # Errors
/// The file system's.
pub fn create(fs: &dyn FileSystem, dir: &Path, id: TierId) -> Result<(), TierError> {
    vfs::create_dirs_synced(fs, dir)?;
    identity::write(fs, dir, id)
}

/// Where a segment lies.
pub fn segment_path(dir: &Path, segment: u32) -> PathBuf {
    dir.join(names::segment(segment))
}

/// The segments in a directory, by number, with their lengths.
///
/// # Errors
/// The file system's.
pub fn segments(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<(u32, u64)>, TierError> {
    let mut segments = Vec::new();
    for entry in fs.read_dir(dir)? {
        if let Some(number) = entry.name.to_str().and_then(names::segment_number) {
            segments.push((number, fs.metadata(&dir.join(&entry.name))?.len));
        }
    }
    segments.sort_unstable();
    Ok(segments)
}

/// All records of a segment's file.
///
/// # Errors
/// It cannot be read, or its header is damaged.
pub fn scan(fs: &dyn FileSystem, path: &Path) -> Result<Scan, TierError> {
    Scan::new(fs.open(path, OpenOptions::read())?, None)
}
