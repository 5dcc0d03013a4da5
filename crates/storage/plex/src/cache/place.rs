//! Where a block is in the cache, as its table remembers it.

use std::sync::atomic::{AtomicU32, Ordering};

/// The cell that had a block at the last access; kept by the block's table.
#[derive(Debug)]
pub(crate) struct Place(AtomicU32);

impl Place {
    /// None yet.
    pub fn new() -> Self {
        Self(AtomicU32::new(u32::MAX))
    }

    pub(super) fn cell(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set(&self, cell: usize) {
        self.0.store(cell as u32, Ordering::Relaxed);
    }
}
