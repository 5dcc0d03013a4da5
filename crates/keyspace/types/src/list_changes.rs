//! Changes of lists that both a command and the maker of a collection need.

use engine::{Encoding, SharedBig};
use value::Stored;
use value::list::{Change, End, View};

/// The changes that put a packed list in the place of this one.
pub(crate) fn changes_to(from: &SharedBig, packed: &[u8]) -> Vec<u8> {
    let (count, mut changes) = (View::of(Encoding::BIG, Stored::Big(from)).len(), Vec::new());
    Change::Pop { end: End::Head, count }.put(&mut changes);
    let list = View::of(Encoding::PACKED, Stored::Packed(packed));
    list.forward(0).for_each(|value| Change::Push { end: End::Tail, value }.put(&mut changes));
    changes
}
