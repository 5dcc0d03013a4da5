//! The script that runs, as other workers see it: whether it keeps them waiting, and that it is to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A script that runs longer than this is busy: requests of others are refused, and SCRIPT KILL is the way out.
pub const BUSY_AFTER: Duration = Duration::from_millis(5000);

/// What requests are answered while a script is busy.
pub const BUSY: &str = "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";

/// The state of the script that runs. The worker that runs it writes it, except for the order to end.
#[derive(Debug, Default)]
pub struct Running {
    is_running: AtomicBool,
    has_written: AtomicBool,
    is_killed: AtomicBool,
}

/// Why a script cannot be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unkillable {
    /// None runs.
    NotBusy,
    /// It has changed entries, and half of its changes must not be the end.
    HasWritten,
}

impl Running {
    /// A script begins.
    pub fn begin(&self) {
        self.has_written.store(false, Ordering::Relaxed);
        self.is_killed.store(false, Ordering::Relaxed);
        self.is_running.store(true, Ordering::Release);
    }

    /// It has ended.
    pub fn end(&self) {
        self.is_running.store(false, Ordering::Release);
    }

    /// It has run a command that may change entries.
    pub fn wrote(&self) {
        self.has_written.store(true, Ordering::Release);
    }

    /// Whether it is to end.
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Acquire)
    }

    /// Has it end.
    ///
    /// # Errors
    /// See [`Unkillable`].
    pub fn kill(&self) -> Result<(), Unkillable> {
        if !self.is_running.load(Ordering::Acquire) {
            return Err(Unkillable::NotBusy);
        }
        if self.has_written.load(Ordering::Acquire) {
            return Err(Unkillable::HasWritten);
        }
        self.is_killed.store(true, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_has_written_is_not_ended() {
        let running = Running::default();
        assert_eq!(running.kill(), Err(Unkillable::NotBusy));
        running.begin();
        running.wrote();
        assert_eq!(running.kill(), Err(Unkillable::HasWritten));
        running.end();
        running.begin();
        assert_eq!(running.kill(), Ok(()));
        assert!(running.is_killed());
        running.end();
        running.begin();
        assert!(!running.is_killed(), "an order to end is for one script");
    }
}
