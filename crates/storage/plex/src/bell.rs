//! Rung when something happens that others may wait for: a full memtable, a flush, a merge, tables that scans come to
//! often, the close.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Counts how often it was rung, so that no thread waits for what has happened already.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<u64>,
    waiting: Condvar,
}

impl Bell {
    /// Wakes every waiting thread; returns how often it was rung by now.
    pub fn ring(&self) -> u64 {
        let mut rung = self.rung.lock();
        *rung += 1;
        self.waiting.notify_all();
        *rung
    }

    /// How often it was rung.
    pub fn count(&self) -> u64 {
        *self.rung.lock()
    }

    /// Waits until it was rung more often than `seen`; how often by then.
    pub fn wait(&self, seen: u64) -> u64 {
        let mut rung = self.rung.lock();
        while *rung == seen {
            self.waiting.wait(&mut rung);
        }
        *rung
    }

    /// As [`wait`](Self::wait), but not for longer than this.
    pub fn wait_for(&self, seen: u64, longest: Duration) -> u64 {
        let mut rung = self.rung.lock();
        self.waiting.wait_while_for(&mut rung, |rung| *rung == seen, longest);
        *rung
    }
}
