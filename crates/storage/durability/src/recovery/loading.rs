//! How far a start has come.

use crate::work::Ended;
use base::UnixMs;
use checkpoint::LoadProgress;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a start has come.
#[derive(Default)]
pub(crate) struct Loading {
    pub(super) since_ms: Mutex<Option<UnixMs>>,
    pub(super) set: LoadProgress,
    pub(super) log_done: AtomicU64,
    pub(super) log_total: AtomicU64,
}

impl Loading {
    pub(super) fn start(&self, now: UnixMs) {
        *self.since_ms.lock() = Some(now);
    }

    pub fn end(&self) {
        *self.since_ms.lock() = None;
    }

    /// The server is to end: the loader gives up soon.
    pub fn cancel(&self) {
        self.set.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub fn go_on(&self) -> Result<(), Ended> {
        if self.set.is_cancelled.load(Ordering::Relaxed) { Err(Ended) } else { Ok(()) }
    }
}
