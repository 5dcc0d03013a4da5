//! Which tables have their file open: a limited number of descriptors, whatever the number of tables.
//!
//! A table opens its file again when it is read. Files are closed in the order of a clock: those that were read since
//! the hand last passed stay open. A file in use is not closed.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use vfs::{File, FileSystem, FsError, OpenOptions};

use crate::error::Result;

/// The limit where the system's is not known: half of the usual 1,024.
const UNKNOWN_MAX: usize = 512;

/// Open files of all tables of a database.
pub(crate) struct OpenFiles {
    max: usize,
    /// Those that are open, and some that are closed or gone by now.
    clock: Mutex<VecDeque<Weak<TableFile>>>,
}

impl OpenFiles {
    pub fn new(max: usize) -> Self {
        Self { max: max.max(1), clock: Mutex::default() }
    }

    /// Closes files until there is room for one more, or only files in use are left; all that can be closed with `all`.
    fn make_room(&self, all: bool) {
        let mut clock = self.clock.lock();
        let keep = if all { 0 } else { self.max - 1 };
        for _ in 0..2 * clock.len() {
            if clock.len() <= keep {
                return;
            }
            let Some(file) = clock.pop_front().and_then(|file| file.upgrade()) else { continue };
            if (file.was_used.swap(false, Ordering::Relaxed) && !all) || !file.close() {
                clock.push_back(Arc::downgrade(&file));
            }
        }
    }

    fn note(&self, file: &Arc<TableFile>) {
        self.clock.lock().push_back(Arc::downgrade(file));
    }
}

/// Half of the descriptors that this process may have, by the limit of the system.
pub(crate) fn default_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    soft.map_or(UNKNOWN_MAX, |soft| soft.parse().map_or(usize::MAX, |soft: usize| (soft / 2).max(1)))
}

/// The file of a table.
pub(crate) struct TableFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    how: OpenOptions,
    /// Boundary of transfers, in bytes: above 1 past the page cache. Known once the file was open.
    alignment: AtomicUsize,
    file: RwLock<Option<Arc<dyn File>>>,
    was_used: AtomicBool,
}

impl TableFile {
    /// Opens the file, and closes others if there are too many.
    pub fn open(fs: &Arc<dyn FileSystem>, path: PathBuf, how: OpenOptions, files: &OpenFiles) -> Result<Arc<Self>> {
        let opened = Self::closed(fs, path, how);
        opened.with(files, |_| Ok(()))?;
        Ok(opened)
    }

    /// The same for a file that is opened when it is first needed.
    pub fn closed(fs: &Arc<dyn FileSystem>, path: PathBuf, how: OpenOptions) -> Arc<Self> {
        let (alignment, file, was_used) = (AtomicUsize::new(1), RwLock::new(None), AtomicBool::new(true));
        Arc::new(Self { fs: fs.clone(), path, how, alignment, file, was_used })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn alignment(&self) -> usize {
        self.alignment.load(Ordering::Relaxed)
    }

    /// Does something with the file, which is opened again if it was closed.
    pub fn with<T>(self: &Arc<Self>, files: &OpenFiles, work: impl FnOnce(&dyn File) -> Result<T>) -> Result<T> {
        loop {
            let file = self.file.read();
            if let Some(file) = &*file {
                if !self.was_used.load(Ordering::Relaxed) {
                    self.was_used.store(true, Ordering::Relaxed);
                }
                return work(&**file);
            }
            drop(file);
            let opened = open(&*self.fs, &self.path, self.how, files)?;
            self.alignment.store(opened.alignment(), Ordering::Relaxed);
            let mut file = self.file.write();
            let was_closed = file.is_none();
            *file = Some(opened);
            drop(file);
            if was_closed {
                files.note(self);
            }
        }
    }

    /// Closes the file; `false` while it is in use.
    fn close(&self) -> bool {
        match self.file.try_write() {
            Some(mut file) => {
                *file = None;
                true
            }
            None => false,
        }
    }
}

/// Opens a file. If the process has no descriptor left, all files that are not in use are closed first.
fn open(
    fs: &dyn FileSystem,
    path: &Path,
    how: OpenOptions,
    files: &OpenFiles,
) -> std::result::Result<Arc<dyn File>, FsError> {
    files.make_room(false);
    match fs.open(path, how) {
        Err(error) if error.is_out_of_resources() => {
            files.make_room(true);
            fs.open(path, how)
        }
        other => other,
    }
}
