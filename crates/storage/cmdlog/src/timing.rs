//! When records become durable: the current mode and window, in one place for every log of a data directory.
//!
//! ```text
//! settings --set--> LogTiming <--read-- the running log, a log that is being switched on
//! ```
//!
//! T1. A log has no copy of mode and window. It reads the shared cell each time, so settings that change while a log is
//!     created apply to it too.
//! T2. A change wakes the threads of every log that reads the cell.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// When records become durable. Can be changed at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogMode {
    /// Within a time window, in the background (`appendfsync everysec`).
    Async,
    /// At once; replies wait for the sync (`appendfsync always`).
    Sync,
    /// Written within milliseconds and left to the operating system (`appendfsync no`). Only
    /// [`Log::sync`](crate::Log::sync) syncs.
    WrittenOnly,
}

/// The default window of [`LogTiming`], in milliseconds.
pub const WINDOW_MS: u64 = 1000;

/// A log that reads the cell.
pub(crate) trait TimingReader: Send + Sync {
    /// The mode or the window has changed.
    fn timing_changed(&self);
}

/// The current mode and window. The owner of the data directory writes it, its logs read it.
pub struct LogTiming {
    mode: AtomicU8,
    window_ms: AtomicU64,
    /// Logs to wake after a change (T2).
    readers: Mutex<Vec<Weak<dyn TimingReader>>>,
}

impl LogTiming {
    /// A mode, and a window in milliseconds (at least 1).
    pub fn new(mode: LogMode, window_ms: u64) -> Self {
        Self {
            mode: AtomicU8::new(mode as u8),
            window_ms: AtomicU64::new(window_ms.max(1)),
            readers: Mutex::new(Vec::new()),
        }
    }

    /// A cell of this mode with the default window.
    pub fn of(mode: LogMode) -> Arc<Self> {
        Arc::new(Self::new(mode, WINDOW_MS))
    }

    /// The current mode.
    #[inline]
    pub fn mode(&self) -> LogMode {
        match self.mode.load(Relaxed) {
            0 => LogMode::Async,
            1 => LogMode::Sync,
            _ => LogMode::WrittenOnly,
        }
    }

    /// Changes the mode. After a change from `Sync`, durability alone still releases the waiting replies.
    pub fn set_mode(&self, mode: LogMode) {
        self.mode.store(mode as u8, SeqCst);
        self.wake_readers();
    }

    /// The current window, in milliseconds.
    #[inline]
    pub fn window_ms(&self) -> u64 {
        self.window_ms.load(Relaxed)
    }

    /// Changes the window of `Async`, in milliseconds (at least 1).
    pub fn set_window_ms(&self, window_ms: u64) {
        self.window_ms.store(window_ms.max(1), SeqCst);
        self.wake_readers();
    }

    /// Registers a log that reads the cell.
    pub(crate) fn add_reader(&self, log: Weak<dyn TimingReader>) {
        let mut readers = self.readers.lock();
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(log);
    }

    fn wake_readers(&self) {
        // Outside the lock: waking takes locks of the logs.
        let readers: Vec<_> = self.readers.lock().iter().filter_map(Weak::upgrade).collect();
        readers.iter().for_each(|log| log.timing_changed());
    }
}

impl std::fmt::Debug for LogTiming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogTiming").field("mode", &self.mode()).field("window_ms", &self.window_ms()).finish()
    }
}
