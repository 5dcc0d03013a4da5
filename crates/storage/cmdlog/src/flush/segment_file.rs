//! Files of segments: made and removed.

use std::path::Path;
use std::sync::Arc;

use vfs::{AllocateLen, File, FileSystem, FsError, OpenOptions};

use super::out::BLOCK;
use crate::segment::Header;

/// The smallest preallocation to try when the disk has no room for a whole segment.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;

/// Removes a file if it exists.
pub(crate) fn remove(fs: &dyn FileSystem, path: &Path) -> Result<(), FsError> {
    match fs.remove_file(path) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Creates a segment's file with its header; returns it with the bytes it may grow to. Syncs nothing.
pub(crate) fn open_segment(
    fs: &dyn FileSystem,
    path: &Path,
    header: &Header,
    wanted: u64,
    least: u64,
) -> Result<(Arc<dyn File>, u64), FsError> {
    let file = fs.open(path, OpenOptions::write().create_new())?;
    let capacity = allocate(&*file, wanted, least)?;
    file.write_all_at(&header.encode(), 0)?;
    Ok((file, capacity))
}

/// Preallocates the wanted bytes, or halves them until the disk has room, down to a minimum.
fn allocate(file: &dyn File, wanted: u64, least: u64) -> Result<u64, FsError> {
    let mut bytes = wanted;
    loop {
        // The last block is written whole.
        match file.allocate(0, bytes.next_multiple_of(BLOCK as u64), AllocateLen::Extend) {
            Ok(()) => return Ok(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => return Ok(wanted),
            Err(error) if error.is_out_of_space() && bytes > least.max(SEGMENT_BYTES_MIN) => {
                bytes = (bytes / 2).max(least).max(SEGMENT_BYTES_MIN.min(wanted));
            }
            Err(error) => return Err(error),
        }
    }
}
