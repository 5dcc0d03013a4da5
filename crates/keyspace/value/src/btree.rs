//! B+trees as ARCUS has them: elements with a key, an optional flag of bytes (*eflag*) and data, in the order of their
//! keys.
//!
//! Packed, the elements follow each other in order, after their number. A big one is one tree of runs, counted, so that
//! a position is found in logarithmic time.
//!
//! A1. Keys of one collection are all numbers or all byte strings: the types layer sees to that. Here numbers precede
//!     byte strings, so that any keys have an order.
//! A2. The packed form is canonical: equal collections have equal bytes.
//!
//! Formats: docs/formats/collections.md.

mod big;
mod change;
mod entry;
mod key;
mod packed;
#[cfg(test)]
mod tests;
mod view;

pub use big::{Big, Run};
pub use change::Change;
pub use key::{Bkey, ByteKey};
pub use view::{Backward, Forward, View};

use crate::{Left, Slot};

/// A key and what is stored with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Element<'a> {
    /// Where it stands.
    pub bkey: Bkey,
    /// Bytes that requests filter by; none for no eflag.
    pub eflag: &'a [u8],
    /// Its data.
    pub data: &'a [u8],
}

/// See [`crate::apply`].
///
/// # Panics
/// When the bytes are no changes.
pub fn apply(slot: &mut Slot<'_>, mut changes: &[u8]) -> Left {
    while !changes.is_empty() {
        let change = Change::take(&mut changes).unwrap_or_else(|| panic!("changes of a b+tree, checked before"));
        apply_one(slot, &change);
    }
    Left::of(View::of(slot.stored()).len())
}

fn apply_one(slot: &mut Slot<'_>, change: &Change<'_>) {
    if let Some(bytes) = slot.packed() {
        if packed::fits(bytes, change) {
            return packed::apply(bytes, change);
        }
        let big = Big::unpack(bytes);
        slot.grow(crate::Big::Btree(big));
    }
    match slot.big() {
        Some(crate::Big::Btree(big)) => big.apply(change),
        _ => unreachable!("another type's tree"),
    }
}
