//! Which files an `include` means.

use base::glob;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use vfs::FileSystem;

/// More directories than this are not searched for one pattern.
const DIRECTORIES_MAX: usize = 256;

/// Whether the path is a pattern.
pub(crate) fn is_pattern(path: &[u8]) -> bool {
    path.iter().any(|byte| b"*?[".contains(byte))
}

/// The paths that match, in ascending order; none is fine, so that an empty directory of fragments can be included. A
/// leading dot matches only itself. `None` when the pattern is so wide that too many directories would be searched.
pub(crate) fn expand(fs: &dyn FileSystem, pattern: &Path) -> Option<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    let mut directories: usize = 0;
    for component in pattern.components() {
        let name = component.as_os_str().as_bytes();
        if !matches!(component, Component::Normal(_)) || !is_pattern(name) {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        }
        directories = directories.saturating_add(found.len());
        if directories > DIRECTORIES_MAX {
            return None;
        }
        found = found.iter().flat_map(|directory| matching_names(fs, directory, name)).collect();
    }
    found.retain(|path| fs.exists(path).unwrap_or(true));
    Some(found)
}

fn matching_names(fs: &dyn FileSystem, directory: &Path, pattern: &[u8]) -> Vec<PathBuf> {
    let listed = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    // What cannot be listed has no matches, as for glob(3).
    let entries = fs.read_dir(listed).unwrap_or_default();
    entries
        .iter()
        .map(|entry| entry.name.as_os_str())
        .filter(|name| !name.as_bytes().starts_with(b".") || pattern.starts_with(b"."))
        .filter(|name| glob::matches(pattern, name.as_bytes()))
        .map(|name| directory.join(name))
        .collect()
}
