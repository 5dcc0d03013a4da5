//! Copies of single files.

use crate::error::Result;
use crate::file_system::{FileSystem, OpenOptions};
use std::path::Path;

/// Bytes per copy step.
const COPY_LEN: usize = 1 << 20;

/// Copies a file to a name that does not exist yet. The copy is synced, its name is not.
///
/// # Errors
/// An error of any step; what was copied until then stays.
pub fn copy_file(fs: &dyn FileSystem, from: &Path, to: &Path) -> Result<()> {
    let from = fs.open(from, OpenOptions::read())?;
    let to = fs.open(to, OpenOptions::write().create_new())?;
    let (mut buffer, mut at) = (vec![0; COPY_LEN], 0);
    loop {
        let read = match from.read_at(&mut buffer, at) {
            Err(error) if error.is_interrupted() => continue,
            read => read?,
        };
        if read == 0 {
            return to.sync_all();
        }
        to.write_all_at(buffer.get(..read).unwrap_or_default(), at)?;
        at += read as u64;
    }
}

/// Gives a file a second name if `links` asks for it and the file system can, or else copies it. True when the two
/// names share the bytes. File systems have no links to other file systems, and some have none at all.
///
/// # Errors
/// See [`copy_file`].
pub fn link_or_copy(fs: &dyn FileSystem, from: &Path, to: &Path, links: bool) -> Result<bool> {
    if links && fs.hard_link(from, to).is_ok() {
        return Ok(true);
    }
    copy_file(fs, from, to)?;
    Ok(false)
}
