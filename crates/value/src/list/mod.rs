//! Lists: sequences of byte strings.

mod change;
mod listpack;
pub mod packed;

pub use change::{Change, End};

use crate::{Progress, Slot};

/// See [`crate::apply`].
pub fn apply(_slot: &mut Slot<'_>, _changes: &[u8]) -> bool {
    unreachable!("there are no changes yet")
}

/// The tree.
#[derive(Clone, Debug)]
pub struct Big {}

impl Big {
    /// See [`crate::Big::memory_bytes`].
    pub fn memory_bytes(&self) -> usize {
        0
    }

    /// See [`crate::Big::write_changes`].
    pub fn write_changes(&self, _from: Progress, _budget: usize, _out: &mut Vec<u8>) -> Option<Progress> {
        None
    }
}
