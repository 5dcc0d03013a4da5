//! The slot of `position`.

use std::sync::{PoisonError, RwLock};

/// The position as it is now, as text; empty without one.
#[derive(Default)]
pub struct PositionSlot(RwLock<Vec<u8>>);

impl PositionSlot {
    /// The text of the last [`Effect::Position`](engine::Effect::Position); empty without one.
    pub fn get(&self) -> Vec<u8> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Applies [`Effect::Position`](engine::Effect::Position). Under all locks, or during a load.
    pub(crate) fn set(&self, text: &[u8]) {
        let mut now = self.0.write().unwrap_or_else(PoisonError::into_inner);
        now.clear();
        now.extend_from_slice(text);
    }
}
