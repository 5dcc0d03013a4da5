//! Sorted sets: distinct byte strings ordered by score and then by bytes.
//!
//! Packed, the entries follow each other in order, after their number. A big set is two trees: one keeps the entries in
//! order, the other by the hash of the member. The second finds a score in one descent, and walks a set in an order
//! that no change of score disturbs (ZSCAN). A set of few bytes is packed even if a member is long, but has the name of
//! a big one ([`Encoding::PACKED_LONG`]).
//!
//! Z1. Scores are never NaN and never negative zero, which equals zero but has another text.
//! Z2. The packed form is canonical: equal sets with equal histories of limits have equal bytes.
//!
//! Formats: docs/formats/collections.md.

mod big;
mod change;
mod entry;
mod packed;
mod score;
#[cfg(test)]
mod tests;
mod view;

pub use big::{Big, Members, Removal, Run};
pub use change::Change;
#[cfg(test)]
use packed::validate;
pub use view::{Backward, Forward, View};

use crate::{Encoding, Left, Slot};

/// A member and its score.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Entry<'a> {
    /// Where it stands.
    pub score: f64,
    /// What it is.
    pub member: &'a [u8],
}

/// See [`crate::apply`].
///
/// # Panics
/// When the bytes are no changes.
pub fn apply(slot: &mut Slot<'_>, mut changes: &[u8]) -> Left {
    while !changes.is_empty() {
        let change = Change::take(&mut changes).unwrap_or_else(|| panic!("changes of a sorted set, checked before"));
        apply_one(slot, &change);
    }
    Left::of(View::of(slot.stored()).len())
}

fn apply_one(slot: &mut Slot<'_>, change: &Change<'_>) {
    let (limits, hasher) = (slot.limits, slot.hasher);
    let is_long = slot.encoding == Encoding::PACKED_LONG || packed::is_long(change, limits);
    if let Some(bytes) = slot.packed() {
        if packed::fits(bytes, change, is_long, limits) {
            packed::apply(bytes, change);
            slot.encoding = if is_long { Encoding::PACKED_LONG } else { Encoding::PACKED };
            return;
        }
        let big = Big::unpack(bytes, hasher);
        slot.grow(crate::Big::Zset(big));
    }
    match slot.big() {
        Some(crate::Big::Zset(big)) => big.apply(change),
        _ => unreachable!("another type's tree"),
    }
}
