//! A file as a stream of bytes.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use vfs::{File, FileSystem, FsError, OpenOptions};

/// Reads a file to its end.
pub struct Source {
    file: Arc<dyn File>,
    at: u64,
}

impl Source {
    /// Opens a file at an offset. Returns its length, too.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(fs: &dyn FileSystem, path: &Path, offset: u64) -> Result<(Self, u64), FsError> {
        let file = fs.open(path, OpenOptions::read())?;
        let len = file.len()?;
        Ok((Self { file, at: offset }, len))
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at).map_err(into_io)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn into_io(error: FsError) -> io::Error {
    if error.is_interrupted() { io::ErrorKind::Interrupted.into() } else { io::Error::other(error) }
}
