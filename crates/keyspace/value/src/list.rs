//! Lists: sequences of byte strings.
//!
//! A small one is one packed buffer (`packed`), a big one a tree of such buffers, found by position ([`Big`]). Where a
//! list goes from one form to the other is where Valkey's goes from a listpack to a quicklist and back:
//! `list-max-listpack-size` and what a listpack of the same elements would take (`listpack`).

mod big;
mod change;
mod leaf;
mod listpack;
mod packed;
#[cfg(test)]
mod tests;
mod view;

pub use big::Big;
pub use change::{Change, End};
pub(crate) use leaf::Leaf;
pub use view::{Backward, Forward, View};

use crate::{Body, Encoding, Left, Slot, Stored};
use listpack::Limit;

/// Whether these bytes are a packed list: what every edit is to leave.
#[cfg(test)]
fn validate(encoding: Encoding, bytes: &[u8]) -> bool {
    encoding == Encoding::PACKED && packed::is_valid(bytes)
}

/// See [`crate::apply`].
#[inline]
pub fn apply(slot: &mut Slot<'_>, changes: &[u8]) -> Left {
    push_one(slot, changes).unwrap_or_else(|| apply_all(slot, changes))
}

/// The fast path of nearly all changes: one more element at an end, where the list surely keeps its form. `None`, with
/// nothing done, for others.
#[inline]
fn push_one(slot: &mut Slot<'_>, mut rest: &[u8]) -> Option<Left> {
    let bytes = rest.len();
    let Some(Change::Push { end, value }) = Change::take(&mut rest) else { return None };
    match &mut slot.body {
        _ if !rest.is_empty() => None,
        Body::Packed(packed) if Limit::of(slot.limits.list_size()).surely_holds(packed.len(), bytes) => {
            packed::push(packed, end, value);
            Some(Left::Some)
        }
        Body::Big(crate::Big::List(big)) => {
            big.push(end, value);
            Some(Left::Elements(big.len()))
        }
        _ => None,
    }
}

fn apply_all(slot: &mut Slot<'_>, changes: &[u8]) -> Left {
    let limit = Limit::of(slot.limits.list_size());
    if let Some(bytes) = slot.packed()
        && outgrows(bytes, changes, limit)
    {
        let big = Big::of(bytes.to_vec());
        slot.grow(crate::Big::List(big));
    }
    let mut removes = false;
    for change in decoded(changes) {
        removes |= matches!(change, Change::Pop { .. } | Change::Remove { .. } | Change::Set { .. });
        match slot.packed() {
            Some(bytes) => packed::apply(bytes, &change),
            None => list_of(slot).apply(&change),
        }
    }
    if removes
        && let Stored::Big(crate::Big::List(big)) = slot.stored()
        && let Some(packed) = big.packed_within(limit)
    {
        slot.shrink(packed, Encoding::PACKED);
    }
    match slot.stored() {
        Stored::Packed([]) => Left::Nothing,
        Stored::Packed(_) => Left::Some,
        Stored::Big(_) => Left::of(list_of(slot).len()),
    }
}

fn list_of<'s>(slot: &'s mut Slot<'_>) -> &'s mut Big {
    match slot.big() {
        Some(crate::Big::List(big)) => big,
        _ => unreachable!("the slot of a list holds a list"),
    }
}

/// The changes in these bytes, which were checked where they were read.
fn decoded(mut changes: &[u8]) -> impl Iterator<Item = Change<'_>> {
    std::iter::from_fn(move || {
        let more = !changes.is_empty();
        more.then(|| Change::take(&mut changes).expect("changes are checked before they are applied"))
    })
}

/// Whether the changes add something, and the list would be too big for its packed form if all additions came first.
/// Valkey estimates this before it pushes, by the plain bytes of the new elements.
fn outgrows(packed: &[u8], changes: &[u8], limit: Limit) -> bool {
    if limit.surely_holds(packed.len(), changes.len()) {
        return false;
    }
    let (mut bytes, mut added) = (0, 0);
    for change in decoded(changes) {
        if let Change::Push { value, .. } | Change::Insert { value, .. } | Change::Set { value, .. } = change {
            bytes += value.len() as u64;
            added += 1;
        }
    }
    let elements = || packed::elements(packed).len() as u64 + added;
    added > 0 && limit.is_exceeded(listpack::EMPTY_BYTES + packed::listpack_bytes(packed) + bytes, elements)
}
