//! Small sequences over the two traits that are easy to get wrong, written once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::{FsError, Op, Result};
use crate::file_system::{FileSystem, OpenOptions};

/// What [`replace_file`] appends to a path for the file it prepares.
pub const REPLACEMENT_SUFFIX: &str = ".new";

/// Gives the file at `path` new contents, or makes it: at any moment, and after any crash, the path holds all of the
/// old contents or all of the new. After `Ok` it is the new, for good.
///
/// Write beside, sync, rename over, sync the directory (Pillai et al., OSDI 2014). A leftover of an earlier crash is
/// removed first, never written over: its pages may remember a failed sync. Two callers at once must not use one path.
/// The new file has mode 0600, and a symbolic link at `path` is itself replaced.
///
/// # Errors
/// From any of the steps. The old contents stand, unless the error came from the directory's sync
/// ([`Op::SyncDir`]): then the new ones are visible and it is unknown which of the two a power cut leaves.
pub fn replace_file(fs: &dyn FileSystem, path: &Path, contents: &[u8]) -> Result<()> {
    let beside = replacement_path(path);
    match fs.remove_file(&beside) {
        Err(error) if !error.is_not_found() => return Err(error),
        _ => {}
    }
    if let Err(error) = write_and_rename(fs, &beside, path, contents) {
        // The first error is the one to report; a leftover does no harm.
        let _ = fs.remove_file(&beside);
        return Err(error);
    }
    fs.sync_dir(parent(path))
}

fn write_and_rename(fs: &dyn FileSystem, beside: &Path, path: &Path, contents: &[u8]) -> Result<()> {
    let file = fs.open(beside, OpenOptions::write().create_new())?;
    file.write_all_at(contents, 0)?;
    file.sync_all()?;
    fs.rename(beside, path)
}

fn replacement_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(REPLACEMENT_SUFFIX);
    name.into()
}

/// The directory that holds the last name of a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// Creates a directory with those above it that are missing, and makes their names durable: each before the next is
/// made in it. So whatever is found present has a durable name, except for the deepest, whose maker may have been
/// killed before its sync; that one is synced again.
///
/// # Errors
/// From any of the steps; directories made until then stay.
pub fn create_dirs_synced(fs: &dyn FileSystem, path: &Path) -> Result<()> {
    let mut missing = Vec::new();
    for dir in path.ancestors().filter(|dir| dir.file_name().is_some()) {
        if fs.exists(dir)? {
            match fs.sync_dir(parent(dir)) {
                // The directory belongs to another owner, and so does its name.
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {}
                synced => synced?,
            }
            break;
        }
        missing.push(dir);
    }
    for dir in missing.into_iter().rev() {
        fs.create_dir_all(dir)?;
        fs.sync_dir(parent(dir))?;
    }
    // Nothing is left to make, unless the path names a file.
    fs.create_dir_all(path)
}

/// All bytes of a file that is expected to be small.
///
/// # Errors
/// Besides those of opening and reading: `FileTooLarge` for a file of more than `len_max` bytes, which is not read.
pub fn read_file(fs: &dyn FileSystem, path: &Path, len_max: usize) -> Result<Vec<u8>> {
    let file = fs.open(path, OpenOptions::read())?;
    let len = file.len()?;
    if len > len_max as u64 {
        return Err(FsError::io(Op::Read, path, std::io::ErrorKind::FileTooLarge));
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
