//! Hashes: fields and their values. A field can have a time at which it is due.
//!
//! ```text
//! few and short, no times:   one buffer, in order of coming   (listpack)  --.
//! few and short, with times: one buffer, in order of coming   (hashtable) --+--> a tree, by keyed hash  (hashtable)
//! few bytes, not all short:  one buffer, in order of coming   (hashtable) --'
//! ```
//!
//! In brackets what OBJECT ENCODING calls them, which is what Valkey has for a hash with this history. Hashes grow from
//! one form to the next and do not go back.
//!
//! A field that is due stays until a change removes it. Readers leave it out: what a hash holds depends on changes
//! alone (V1).

mod big;
mod cell;
mod change;
mod deadlines;
mod leaf;
mod packed;
#[cfg(test)]
mod tests;
mod view;

pub use big::Big;
pub use cell::Cell;
pub use change::Change;
pub(crate) use leaf::Leaf;
pub use view::{Iter, View};

use crate::limits::PACKED_LONG_BYTES_MAX;
use crate::{Encoding, Left, Slot};
use base::UnixMs;

/// Packed, and no field ever had a time.
pub const UNTIMED: Encoding = Encoding::PACKED;
/// Packed, and fields have or had a time.
pub const TIMED: Encoding = Encoding(1);
/// Packed, no field ever had a time, and a field or value is or was longer than packed ones are to be.
pub const LONG: Encoding = Encoding::PACKED_LONG;

/// See [`crate::apply`].
pub fn apply(slot: &mut Slot<'_>, changes: &[u8]) -> Left {
    let mut rest = changes;
    while !rest.is_empty() {
        let Some(change) = Change::take(&mut rest) else { panic!("these are no changes of a hash") };
        match change {
            Change::Set { field, value, expire_at } => set(slot, &Cell { field, value, expire_at }),
            Change::Delete(field) => remove(slot, field),
            Change::Expire { field, expire_at } => expire(slot, field, expire_at),
            Change::Expect(fields) => {
                if exceeds(fields, slot.limits.hash_entries()) {
                    become_tree(slot);
                }
            }
        }
    }
    Left::of(View::of(slot.encoding, slot.stored()).len() as u64)
}

/// Whether the bytes are a packed hash of this encoding, with a field at least: what every edit is to leave.
#[cfg(test)]
fn validate(encoding: Encoding, packed: &[u8]) -> bool {
    match encoding {
        UNTIMED => packed::is_valid(packed, false),
        LONG => packed::is_valid(packed, false) && packed.len() <= PACKED_LONG_BYTES_MAX,
        TIMED => packed::is_valid(packed, true),
        _ => false,
    }
}

fn set(slot: &mut Slot<'_>, cell: &Cell<'_>) {
    let (limits, encoding) = (slot.limits, slot.encoding);
    if let Some(hash) = slot.packed() {
        let longest = cell.field.len().max(cell.value.len());
        let is_long = encoding == LONG || exceeds(longest as u64, limits.hash_value());
        let bytes_max = if is_long { PACKED_LONG_BYTES_MAX } else { usize::MAX };
        if packed::set(hash, cell, bytes_max, |fields| !exceeds(fields as u64, limits.hash_entries())) {
            slot.encoding = match encoding {
                _ if cell.expire_at.is_some() => TIMED,
                UNTIMED if is_long => LONG,
                encoding => encoding,
            };
            return;
        }
        become_tree(slot);
    }
    if let Some(big) = tree(slot) {
        big.set(cell);
    }
}

fn remove(slot: &mut Slot<'_>, field: &[u8]) {
    match slot.packed() {
        Some(hash) => packed::remove(hash, field),
        None => {
            if let Some(big) = tree(slot) {
                big.remove(field);
            }
        }
    }
}

fn expire(slot: &mut Slot<'_>, field: &[u8], expire_at: Option<UnixMs>) {
    match slot.packed() {
        Some(hash) => {
            if packed::expire(hash, field, expire_at) && expire_at.is_some() {
                slot.encoding = TIMED;
            }
        }
        None => {
            if let Some(big) = tree(slot) {
                big.expire(field, expire_at);
            }
        }
    }
}

/// Brings a packed hash into the form of a tree.
fn become_tree(slot: &mut Slot<'_>) {
    let mut big = Big::new(slot.hasher);
    let Some(hash) = slot.packed() else { return };
    packed::Packed::of(hash).cells().for_each(|cell| big.set(&cell));
    slot.grow(crate::Big::Hash(big));
}

fn tree<'s>(slot: &'s mut Slot<'_>) -> Option<&'s mut Big> {
    match slot.big()? {
        crate::Big::Hash(big) => Some(big),
        _ => wrong_type(),
    }
}

fn wrong_type() -> ! {
    unreachable!("a hash is stored as a hash")
}

fn exceeds(number: u64, limit: i64) -> bool {
    i64::try_from(number).map_or(true, |number| number > limit)
}
