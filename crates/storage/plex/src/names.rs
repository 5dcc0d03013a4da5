//! Durable names: syncs of the database's directory, one at a time, and what one that failed may have lost.
//!
//! A sync of a directory that fails may forget names that it should have saved, and the next one succeeds without them.
//! So after a failure, a file whose name was not durable before is taken for lost: files have ascending numbers, and
//! those below the next one at that moment are in doubt.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use vfs::{FileSystem, Op};

use crate::error::{Error, Result};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Names {
    lost: Mutex<Lost>,
    /// That of what is lost, to be read while a sync runs.
    lost_below: AtomicU64,
}

#[derive(Debug, Default)]
struct Lost {
    /// Names of files below this number were lost, unless they were durable before.
    below: u64,
    cause: Option<Arc<Error>>,
}

impl Lost {
    fn note<T>(&mut self, result: Result<T>, next_number: &AtomicU64) -> Result<T> {
        result.map_err(|error| match &error {
            Error::Fs(of_fs) if of_fs.op() == Op::SyncDir => {
                self.below = next_number.load(Ordering::Relaxed);
                let cause = Arc::new(error);
                self.cause = Some(cause.clone());
                Error::Suspended { cause }
            }
            _ => error,
        })
    }

    /// # Errors
    /// The failure that may have lost this file's name.
    fn check(&self, number: u64) -> Result<()> {
        match &self.cause {
            Some(cause) if number < self.below => Err(Error::Suspended { cause: cause.clone() }),
            _ => Ok(()),
        }
    }
}

impl Names {
    /// Makes the names of all files from `oldest` on durable.
    ///
    /// # Errors
    /// The file system's; or an earlier one, since which one of the names may be lost.
    pub fn sync(&self, fs: &dyn FileSystem, dir: &Path, oldest: u64, next_number: &AtomicU64) -> Result<()> {
        let mut lost = self.lost.lock();
        let synced = fs.sync_dir(dir).map_err(Error::from);
        self.note(&mut lost, synced, next_number)?;
        lost.check(oldest)
    }

    /// Does a change that makes names and syncs them itself, while no other thread syncs the directory.
    pub fn changing<T>(&self, next_number: &AtomicU64, change: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut lost = self.lost.lock();
        let changed = change();
        self.note(&mut lost, changed, next_number)
    }

    fn note<T>(&self, lost: &mut Lost, result: Result<T>, next_number: &AtomicU64) -> Result<T> {
        let noted = lost.note(result, next_number);
        self.lost_below.store(lost.below, Ordering::Release);
        noted
    }

    /// Whether the name of the file may be lost by a sync that has failed, if it was not durable before. Does not wait
    /// for one that runs.
    pub fn may_be_lost(&self, number: u64) -> bool {
        number < self.lost_below.load(Ordering::Acquire)
    }

    /// Whether the name of the file may be lost, if it was not durable before.
    ///
    /// # Errors
    /// The failure by which.
    pub fn check(&self, number: u64) -> Result<()> {
        self.lost.lock().check(number)
    }
}
