//! The libraries of functions of a store.
//!
//! They change under all locks, so a command that holds any lock sees one state of them, and a checkpoint's cut has the
//! state of its position.

use base::Lsn;
use engine::Libraries;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The libraries as they are now.
#[derive(Default)]
pub struct LibrarySlot {
    now: RwLock<Arc<Libraries>>,
    /// The position of the last record that changed them. Written under all locks.
    changed_at: AtomicU64,
}

impl LibrarySlot {
    /// The libraries. Replaced by others when they change: equal pointers mean equal libraries.
    pub fn get(&self) -> Arc<Libraries> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Up to where the log has to be durable before a reply may show them.
    pub(crate) fn changed_at(&self) -> Lsn {
        Lsn(self.changed_at.load(Ordering::Acquire))
    }

    /// Applies [`Effect::Library`](engine::Effect::Library). Under all locks, or during a load.
    pub(crate) fn apply(&self, name: &[u8], code: &[u8]) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut now).apply(name, code);
    }

    /// Notes the position of the record that changed them. Under all locks.
    pub(crate) fn set_changed_at(&self, lsn: Lsn) {
        self.changed_at.store(lsn.0, Ordering::Release);
    }
}
