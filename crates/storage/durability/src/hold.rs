//! A hold on the files of the data directory, while a backup copies them.
//!
//! H1. While a hold is in force, no file that a manifest named when it began is removed. Files that checkpoints make
//!     obsolete meanwhile are removed by the first one after the hold.
//! H2. Taking a hold and removing files exclude each other: a backup that takes a hold and then reads the manifest
//!     finds all files that it names, until the hold is over.
//! H3. A hold expires, since the client that asked for it may be gone.

use base::UnixMs;
use parking_lot::{Mutex, MutexGuard};

/// Until when files stay; 0 without a hold.
#[derive(Default)]
pub(crate) struct FileHold(Mutex<UnixMs>);

/// Files are being removed at this moment; it takes a few milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeingRemoved;

impl FileHold {
    /// Holds all files until a time, or longer if another hold does.
    pub fn hold(&self, until: UnixMs) -> Result<(), BeingRemoved> {
        let mut held = self.0.try_lock().ok_or(BeingRemoved)?;
        *held = until.max(*held);
        Ok(())
    }

    /// The files are no longer needed.
    pub fn release(&self) -> Result<(), BeingRemoved> {
        *self.0.try_lock().ok_or(BeingRemoved)? = 0;
        Ok(())
    }

    /// The right to remove files, for as long as it is kept; `None` while they are held.
    pub fn removing(&self, now: UnixMs) -> Option<MutexGuard<'_, UnixMs>> {
        Some(self.0.lock()).filter(|until| **until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_and_removals_exclude_each_other() {
        let files = FileHold::default();
        let removing = files.removing(5).expect("nobody holds them");
        assert_eq!((files.hold(10), files.release()), (Err(BeingRemoved), Err(BeingRemoved)));
        drop(removing);
        files.hold(10).unwrap();
        files.hold(7).unwrap();
        assert!(files.removing(9).is_none() && files.removing(10).is_some(), "it ends by itself, and not earlier");
        files.hold(20).unwrap();
        files.release().unwrap();
        assert!(files.removing(11).is_some());
    }
}
