//! Short sequences over the two traits that are easy to get wrong.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::{FsError, Op, Result};
use crate::file_system::{FileSystem, OpenOptions};

/// The suffix of the file that [`replace_file`] prepares.
pub const REPLACEMENT_SUFFIX: &str = ".new";

/// Creates the file at `path` or replaces its contents. At any moment, and after any crash, the path has all of the old
/// contents or all of the new. After `Ok` it has the new contents, durably.
///
/// Writes a temporary file, syncs it, renames it, and syncs the directory (Pillai et al., OSDI 2014). A leftover of an
/// earlier crash is removed first, never overwritten: its pages may be affected by a failed sync. Two callers must not
/// use one path concurrently. The new file has mode 0600; a symbolic link at `path` is replaced itself.
///
/// # Errors
/// An error of any step. The old contents remain, unless the sync of the directory failed ([`Op::SyncDir`]): then the
/// new contents are visible, and which of the two survives a power cut is unknown.
pub fn replace_file(fs: &dyn FileSystem, path: &Path, contents: &[u8]) -> Result<()> {
    let beside = replacement_path(path);
    match fs.remove_file(&beside) {
        Err(error) if !error.is_not_found() => return Err(error),
        _ => {}
    }
    if let Err(error) = write_and_rename(fs, &beside, path, contents) {
        // Report the first error; a leftover is harmless.
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

/// Creates a directory and its missing parents, and makes their names durable, each before the next one is created in
/// it. So every existing directory has a durable name, except for the deepest: a process may have been killed before it
/// synced that name. So its name is synced again.
///
/// # Errors
/// An error of any step; directories created until then stay.
pub fn create_dirs_synced(fs: &dyn FileSystem, path: &Path) -> Result<()> {
    let mut missing = Vec::new();
    for dir in path.ancestors().filter(|dir| dir.file_name().is_some()) {
        if fs.exists(dir)? {
            match fs.sync_dir(parent(dir)) {
                // The directory belongs to another user, who is responsible for its name.
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
    // Nothing is left to create, unless the path names a file.
    fs.create_dir_all(path)
}

/// All bytes of a file that is expected to be small.
///
/// # Errors
/// Besides the errors of opening and reading: `FileTooLarge` for a file of more than `len_max` bytes, which is not
/// read.
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
