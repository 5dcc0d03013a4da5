//! What stands before all commands of a server: data that is still being loaded, and writes that are refused.
//!
//! Whoever runs commands looks at one word; only when something is set there do they ask for the rest.

use base::UnixMs;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

const LOADING: u8 = 1 << 0;
const WRITES_REFUSED: u8 = 1 << 1;
/// Not a reason to stop a command: whoever loads looks at it.
const CANCELLED: u8 = 1 << 2;
const BUSY: u8 = 1 << 3;

/// The gate of a store. Open at first.
#[derive(Default)]
pub struct Gate {
    bits: AtomicU8,
    refusal: RwLock<String>,
    since: AtomicI64,
    loaded_bytes: AtomicU64,
    total_bytes: AtomicU64,
}

/// How far loading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// When it began.
    pub since: UnixMs,
    /// Bytes of files read so far.
    pub loaded_bytes: u64,
    /// Bytes to be read; 0 while that is not known.
    pub total_bytes: u64,
}

impl Gate {
    /// Whether anything is to be asked of the other methods.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.bits.load(Ordering::Acquire) & (LOADING | WRITES_REFUSED | BUSY) == 0
    }

    /// Whether data is being loaded: no entry may be read or changed by commands, nothing expires and nothing is evicted.
    #[inline]
    pub fn is_loading(&self) -> bool {
        self.bits.load(Ordering::Acquire) & LOADING != 0
    }

    /// Closes the gate for loading; before the workers begin, or while all they do is answer that they are loading.
    pub fn begin_loading(&self, now: UnixMs) {
        self.since.store(now, Ordering::Relaxed);
        self.loaded_bytes.store(0, Ordering::Relaxed);
        self.total_bytes.store(0, Ordering::Relaxed);
        self.bits.fetch_or(LOADING, Ordering::Release);
    }

    /// So many bytes are to be loaded altogether.
    pub fn set_total_bytes(&self, bytes: u64) {
        self.total_bytes.store(bytes, Ordering::Relaxed);
    }

    /// So many bytes more were loaded.
    pub fn add_loaded_bytes(&self, bytes: u64) {
        self.loaded_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// All is loaded: commands may run.
    pub fn end_loading(&self) {
        // Release: a worker that sees it sees what was loaded, whose locks it takes besides.
        self.bits.fetch_and(!LOADING, Ordering::Release);
    }

    /// The server is to end: who loads gives up soon.
    pub fn cancel_loading(&self) {
        self.bits.fetch_or(CANCELLED, Ordering::Release);
    }

    /// Whether who loads is to give up.
    pub fn is_cancelled(&self) -> bool {
        self.bits.load(Ordering::Acquire) & CANCELLED != 0
    }

    /// How far loading has come; `None` when nothing is being loaded.
    pub fn progress(&self) -> Option<LoadProgress> {
        self.is_loading().then(|| LoadProgress {
            since: self.since.load(Ordering::Relaxed),
            loaded_bytes: self.loaded_bytes.load(Ordering::Relaxed),
            total_bytes: self.total_bytes.load(Ordering::Relaxed),
        })
    }

    /// Refuses commands that may change entries, with this error: its code and text, without the leading `-`.
    pub fn refuse_writes(&self, error: impl Into<String>) {
        *self.refusal.write().unwrap_or_else(PoisonError::into_inner) = error.into();
        self.bits.fetch_or(WRITES_REFUSED, Ordering::Release);
    }

    /// Says whether a script runs past its time, so that requests of others are refused.
    pub fn set_busy(&self, is_busy: bool) {
        match is_busy {
            true => self.bits.fetch_or(BUSY, Ordering::Release),
            false => self.bits.fetch_and(!BUSY, Ordering::Release),
        };
    }

    /// Whether a script keeps others waiting.
    pub fn is_busy(&self) -> bool {
        self.bits.load(Ordering::Acquire) & BUSY != 0
    }

    /// Lets them run again.
    pub fn allow_writes(&self) {
        self.bits.fetch_and(!WRITES_REFUSED, Ordering::Release);
    }

    /// The error with which writes are refused; `None` when they are not.
    pub fn refusal(&self) -> Option<String> {
        let is_refused = self.bits.load(Ordering::Acquire) & WRITES_REFUSED != 0;
        is_refused.then(|| self.refusal.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_and_refusals_come_and_go_by_themselves() {
        let gate = Gate::default();
        assert!(gate.is_open() && gate.progress().is_none() && gate.refusal().is_none());
        gate.begin_loading(5);
        gate.set_total_bytes(100);
        gate.add_loaded_bytes(30);
        gate.add_loaded_bytes(10);
        assert_eq!(gate.progress(), Some(LoadProgress { since: 5, loaded_bytes: 40, total_bytes: 100 }));
        gate.refuse_writes("MISCONF no disk");
        gate.end_loading();
        assert!(!gate.is_open() && !gate.is_loading());
        assert_eq!(gate.refusal().as_deref(), Some("MISCONF no disk"));
        gate.allow_writes();
        gate.set_busy(true);
        assert!(gate.is_busy() && !gate.is_open() && !gate.is_loading());
        gate.set_busy(false);
        gate.cancel_loading();
        assert!(gate.is_cancelled());
        assert!(gate.is_open() && gate.refusal().is_none());
    }
}
