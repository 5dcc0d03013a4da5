//! Copies of single files.

use crate::error::ToolError;
use std::path::Path;
use vfs::{FileSystem, OpenOptions};

/// Bytes per copy step.
const COPY_LEN: usize = 1 << 20;

/// Copies or links one file, and returns which of the two. A copy is synced.
pub(crate) fn copy(fs: &dyn FileSystem, from: &Path, to: &Path, links: bool) -> Result<&'static str, ToolError> {
    // Hard links do not work across file systems, and some file systems have none.
    if links && fs.hard_link(from, to).is_ok() {
        return Ok("linked");
    }
    let from = fs.open(from, OpenOptions::read())?;
    let to = fs.open(to, OpenOptions::write().create_new())?;
    let (mut buffer, mut at) = (vec![0; COPY_LEN], 0);
    loop {
        let read = match from.read_at(&mut buffer, at) {
            Err(error) if error.is_interrupted() => continue,
            read => read?,
        };
        if read == 0 {
            break;
        }
        to.write_all_at(buffer.get(..read).unwrap_or_default(), at)?;
        at += read as u64;
    }
    to.sync_all()?;
    Ok("copied")
}
