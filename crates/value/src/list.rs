//! Lists: sequences of byte strings.

use crate::{Progress, Slot};
use std::marker::PhantomData;

/// One change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// None yet.
    Nothing(PhantomData<&'a ()>),
}

impl<'a> Change<'a> {
    /// Appends its encoded form.
    pub fn put(&self, _out: &mut Vec<u8>) {}

    /// Takes one from the front; `None` when the bytes are no change in its only form.
    pub fn take(_from: &mut &'a [u8]) -> Option<Self> {
        None
    }
}

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
