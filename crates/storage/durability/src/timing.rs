//! Puts the mode of the log into force.
//!
//! M1. The mode and the window in force stand in one [`LogTiming`](cmdlog::LogTiming), which every log of the directory
//!     reads: one that runs, one that is being switched on, one that a start has not begun yet.
//! M2. The mode changes under all shard locks. In the same moment the store asks the log again whether replies wait, so
//!     no command sees the one without the other.
//! M3. A change is in force when `set_policy` returns `Ok`, or it has no effect at all. Nothing puts it into force
//!     later, so no late order can undo a newer setting.

use crate::error::ModeNotSet;
use crate::keeper::Durability;
use cmdlog::LogMode;
use std::time::{Duration, Instant};

impl Durability {
    /// Puts the mode into force (M2), if it is another one. Waits at most `patience` for the locks.
    pub(crate) fn put_mode(&self, mode: LogMode, patience: Duration) -> Result<(), ModeNotSet> {
        if self.timing.mode() == mode {
            return Ok(());
        }
        let deadline = Instant::now() + patience;
        loop {
            if let Some(mut all) = self.parts.store.try_lock_all() {
                self.timing.set_mode(mode);
                if let Some(log) = all.log() {
                    all.set_log(Some(log));
                }
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(ModeNotSet { waited: patience });
            }
            std::thread::yield_now();
        }
    }
}
