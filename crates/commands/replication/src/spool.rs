//! What was received of a stream and is not applied yet: a file between the thread that receives and the one that
//! applies.

use parking_lot::{Condvar, Mutex};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vfs::{File, FileSystem, FsError, OpenOptions};

/// A file that is empty again is made short when it has this length.
const SHORTEN_AT: u64 = 64 << 20;

/// The file, and how far each side is.
pub struct Spool {
    file: Arc<dyn File>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    written: u64,
    read: u64,
    is_ended: bool,
}

impl Spool {
    /// An empty one, in place of what is there.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(fs: &dyn FileSystem, path: &Path) -> Result<Self, FsError> {
        let file = fs.open(path, OpenOptions::write().create().truncate())?;
        Ok(Self { file, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Adds bytes. Only one thread adds.
    ///
    /// # Errors
    /// The file takes no more.
    pub fn append(&self, bytes: &[u8]) -> Result<(), FsError> {
        let mut state = self.state.lock();
        if state.read == state.written && state.written >= SHORTEN_AT {
            self.file.set_len(0)?;
            (state.read, state.written) = (0, 0);
        }
        let at = state.written;
        // The reader reads what is before that place.
        drop(state);
        self.file.write_all_at(bytes, at)?;
        self.state.lock().written = at + bytes.len() as u64;
        self.changed.notify_all();
        Ok(())
    }

    /// Nothing more comes.
    pub fn end(&self) {
        self.state.lock().is_ended = true;
        self.changed.notify_all();
    }

    /// Waits until there is something to read, or the end, for at most this time; whether there is.
    pub fn wait(&self, time: Duration) -> bool {
        let mut state = self.state.lock();
        let deadline = Instant::now() + time;
        while state.read == state.written && !state.is_ended {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.read < state.written || state.is_ended
    }

    /// Bytes that were not read yet.
    pub fn waiting(&self) -> u64 {
        let state = self.state.lock();
        state.written - state.read
    }
}

/// Reads a spool in order. A read blocks until there is something; it gives 0 at the end.
pub struct SpoolReader(Arc<Spool>);

impl SpoolReader {
    /// The only reader.
    pub fn new(spool: Arc<Spool>) -> Self {
        Self(spool)
    }
}

impl Read for SpoolReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.0.state.lock();
        while state.read == state.written && !state.is_ended {
            self.0.changed.wait(&mut state);
        }
        let left = usize::try_from(state.written - state.read).unwrap_or(usize::MAX).min(buffer.len());
        let room = buffer.get_mut(..left).unwrap_or_default();
        if !room.is_empty() {
            self.0.file.read_exact_at(room, state.read).map_err(io::Error::other)?;
            state.read += left as u64;
        }
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use vfs::SimFs;

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let spool = Arc::new(Spool::create(&SimFs::new(1), Path::new("/spool")).unwrap());
        let writer = thread::spawn({
            let spool = Arc::clone(&spool);
            move || {
                for number in 0..10_000_u32 {
                    spool.append(&number.to_le_bytes()).unwrap();
                }
                spool.end();
            }
        });
        let mut all = Vec::new();
        SpoolReader::new(Arc::clone(&spool)).read_to_end(&mut all).unwrap();
        writer.join().unwrap();
        assert!(all.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).eq(0..10_000));
        assert_eq!(spool.waiting(), 0);
    }

    #[test]
    fn an_empty_file_becomes_short() {
        let spool = Arc::new(Spool::create(&SimFs::new(1), Path::new("/spool")).unwrap());
        let mut reader = SpoolReader::new(Arc::clone(&spool));
        let piece = vec![7; (SHORTEN_AT / 4) as usize];
        let mut out = vec![0; piece.len()];
        for _ in 0..6 {
            spool.append(&piece).unwrap();
            reader.read_exact(&mut out).unwrap();
            assert_eq!(out, piece);
        }
        assert_eq!(spool.file.len().unwrap(), 2 * piece.len() as u64);
    }
}
