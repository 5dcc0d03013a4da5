//! Sets: distinct byte strings.
//!
//! ```text
//! integers only, few:        one buffer, sorted              (intset)    --.
//! few and short:             one buffer, in order of coming  (listpack)  --+--> a tree, by keyed hash  (hashtable)
//! few bytes, not all short:  one buffer, in order of coming  (hashtable) --'
//! ```
//!
//! In brackets what OBJECT ENCODING calls them, which is what Valkey has for a set with this history. Sets grow from
//! one form to the next and do not go back, except where [`Change::Clear`] lets them.

mod big;
mod change;
mod integers;
mod leaf;
mod strings;
#[cfg(test)]
mod tests;
mod view;

pub use big::Big;
pub use change::Change;
pub use leaf::Leaf;
pub use view::{Iter, Member, View};

use crate::limits::PACKED_LONG_BYTES_MAX;
use crate::{Encoding, Left, Limits, Resize, Slot};
use base::integer::{IntegerText, parse_integer};
use integers::Integers;
use strings::Strings;

/// Packed strings.
pub const STRINGS: Encoding = Encoding::PACKED;
/// Packed integers.
pub const INTEGERS: Encoding = Encoding(1);
/// Packed strings, of which one is or was longer than packed ones are to be.
pub const LONG_STRINGS: Encoding = Encoding::PACKED_LONG;

/// A form that a set can have, the smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Integers,
    Strings,
    Tree,
}

/// See [`crate::apply`].
pub fn apply(slot: &mut Slot<'_>, changes: &[u8]) -> Left {
    let (mut rest, mut expected) = (changes, 1);
    while !rest.is_empty() {
        let Some(change) = Change::take(&mut rest) else { panic!("these are no changes of a set") };
        match change {
            Change::Add(member) => add(slot, member, expected),
            Change::Remove(member) => remove(slot, member),
            Change::Clear => slot.shrink(Vec::new(), STRINGS),
            Change::Strings => take_form(slot, Form::Strings),
            Change::Expect(members) => {
                expected = members;
                expect(slot, members);
            }
        }
    }
    Left::of(View::of(slot.encoding, slot.stored()).len() as u64)
}

/// Whether the bytes are a packed set of this encoding, with a member at least: what every edit is to leave.
#[cfg(test)]
fn validate(encoding: Encoding, packed: &[u8]) -> bool {
    match encoding {
        STRINGS => strings::is_valid(packed),
        LONG_STRINGS => strings::is_valid(packed) && packed.len() <= PACKED_LONG_BYTES_MAX,
        INTEGERS => integers::is_valid(packed),
        _ => false,
    }
}

/// Nothing is stored yet, and no change has said in which form it is to be.
fn is_new(slot: &mut Slot<'_>) -> bool {
    slot.encoding == STRINGS && slot.packed().is_some_and(|packed| packed.is_empty())
}

fn add(slot: &mut Slot<'_>, member: &[u8], expected: u64) {
    let integer = if slot.encoding == Encoding::BIG { None } else { parse_integer(member) };
    if is_new(slot) {
        let form = first_form(slot.limits, integer.is_some(), expected);
        take_form(slot, form);
    }
    if slot.encoding == INTEGERS {
        match integer {
            Some(integer) => return add_integer(slot, integer),
            None => leave_integers(slot),
        }
    }
    if slot.encoding != Encoding::BIG && !add_packed(slot, member) {
        take_form(slot, Form::Tree);
    }
    if let Some(big) = tree(slot) {
        big.add(member);
    }
}

/// The form of a set that begins with a member, of as many as are expected.
fn first_form(limits: &Limits, is_integer: bool, expected: u64) -> Form {
    if is_integer && !exceeds(expected, limits.set_intset_entries()) {
        Form::Integers
    } else if !exceeds(expected, limits.set_entries()) {
        Form::Strings
    } else {
        Form::Tree
    }
}

fn add_integer(slot: &mut Slot<'_>, member: i64) {
    let limit = slot.limits.set_intset_entries();
    let Some(packed) = slot.packed() else { return };
    if integers::add(packed, member) && exceeds(Integers::of(packed).len() as u64, limit) {
        take_form(slot, Form::Tree);
    }
}

/// Brings packed integers into a form that may hold something else besides.
fn leave_integers(slot: &mut Slot<'_>) {
    let limits = slot.limits;
    let Some(packed) = slot.packed() else { return };
    let integers = Integers::of(packed);
    if exceeds(integers.len() as u64 + 1, limits.set_entries()) {
        return take_form(slot, Form::Tree);
    }
    let longest = integers.ends().map(|end| IntegerText::default().format(end).len()).max().unwrap_or(0);
    take_form(slot, Form::Strings);
    if exceeds(longest as u64, limits.set_value()) {
        slot.encoding = LONG_STRINGS;
    }
}

/// Adds to packed strings. False when the member, which is not there, does not fit.
fn add_packed(slot: &mut Slot<'_>, member: &[u8]) -> bool {
    let limits = slot.limits;
    let is_long = slot.encoding == LONG_STRINGS || exceeds(member.len() as u64, limits.set_value());
    let Some(packed) = slot.packed() else { return false };
    let strings = Strings::of(packed);
    if strings.contains(member) {
        return true;
    }
    let fits = !exceeds(strings.len() as u64 + 1, limits.set_entries())
        && (!is_long || packed.len() + strings::pushed_len_max(member) <= PACKED_LONG_BYTES_MAX);
    if fits {
        strings::push(packed, member);
        if is_long {
            slot.encoding = LONG_STRINGS;
        }
    }
    fits
}

fn remove(slot: &mut Slot<'_>, member: &[u8]) {
    let is_integers = slot.encoding == INTEGERS;
    match slot.packed() {
        Some(packed) if is_integers => {
            if let Some(integer) = parse_integer(member) {
                integers::remove(packed, integer);
            }
        }
        Some(packed) => strings::remove(packed, member),
        None => {
            if let Some(big) = tree(slot) {
                big.remove(member);
            }
        }
    }
}

/// A packed set that could not have begun with this many members becomes a tree.
fn expect(slot: &mut Slot<'_>, members: u64) {
    let limit = match slot.encoding {
        INTEGERS => slot.limits.set_intset_entries(),
        STRINGS | LONG_STRINGS => slot.limits.set_entries(),
        _ => return,
    };
    if !is_new(slot) && exceeds(members, limit) {
        take_form(slot, Form::Tree);
    }
}

/// Brings the set into this form, unless its form is a greater one.
fn take_form(slot: &mut Slot<'_>, form: Form) {
    let (is_new, has_integers) = (is_new(slot), slot.encoding == INTEGERS);
    let Some(packed) = slot.packed() else { return };
    match form {
        Form::Integers if is_new => slot.encoding = INTEGERS,
        Form::Strings if is_new => strings::make_empty(packed),
        Form::Strings if has_integers => {
            let mut strings = Vec::new();
            strings::make_empty(&mut strings);
            let mut text = IntegerText::default();
            Integers::of(packed).iter().for_each(|member| strings::push(&mut strings, text.format(member)));
            packed.resize_to(strings.len());
            packed.copy_from_slice(&strings);
            slot.encoding = STRINGS;
        }
        Form::Integers | Form::Strings => {}
        Form::Tree => {
            let mut big = Big::new(slot.hasher);
            let mut text = IntegerText::default();
            View::of(slot.encoding, slot.stored()).iter().for_each(|member| big.add(member.bytes(&mut text)));
            slot.grow(crate::Big::Set(big));
        }
    }
}

fn tree<'s>(slot: &'s mut Slot<'_>) -> Option<&'s mut Big> {
    match slot.big()? {
        crate::Big::Set(big) => Some(big),
        _ => unreachable!("a set is stored as a set"),
    }
}

fn exceeds(number: u64, limit: i64) -> bool {
    i64::try_from(number).map_or(true, |number| number > limit)
}
