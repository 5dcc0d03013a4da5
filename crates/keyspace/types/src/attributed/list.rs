//! Lists with a bound.

use super::{Added, Found, New, Overflow, Removal, Taken, add, read, read_to_edit, remove};
use crate::TypeError;
use engine::{Key, Keyspace, NotifyClass, Type};
use std::ops::Range;
use value::list::{Change, End, View};

/// Operations on the list under a key.
pub struct List<'k>(pub &'k Key<'k>);

/// Elements of a list, in the order in which they were asked for.
pub struct Span<'a> {
    list: View<'a>,
    places: Range<u64>,
    is_backward: bool,
    /// Flags of the list.
    pub flags: u32,
}

impl<'a> Span<'a> {
    /// How many.
    pub fn count(&self) -> u64 {
        self.places.end.saturating_sub(self.places.start)
    }

    /// Visits them.
    pub fn each(&self, mut visit: impl FnMut(&'a [u8])) {
        let count = usize::try_from(self.count()).unwrap_or(usize::MAX);
        match self.is_backward {
            false => self.list.forward(self.places.start).take(count).for_each(&mut visit),
            true => self.list.backward(self.places.end.saturating_sub(1)).take(count).for_each(&mut visit),
        }
    }
}

fn view<'k>(found: &Found<'k>) -> View<'k> {
    View::of(found.encoding, found.stored)
}

/// Where an element is to be added to a list of `len` elements, what is dropped before that, or why it is not added.
fn place(len: u64, index: i32, overflow: Overflow, max: u64) -> Result<(u64, Option<End>), Added> {
    let back = u64::from(index.unsigned_abs());
    let at = match u64::try_from(index) {
        Ok(index) if index <= len && index < max => index,
        Err(_) if back <= len.saturating_add(1) && back <= max => len.saturating_add(1).saturating_sub(back),
        _ => return Err(Added::OutOfRange),
    };
    if len < max {
        return Ok((at, None));
    }
    let dropped = match (overflow, index) {
        (Overflow::Error, _) => return Err(Added::Overflowed),
        (_, 0) => End::Tail,
        (_, -1) => End::Head,
        (Overflow::HeadTrim, _) => End::Head,
        _ => End::Tail,
    };
    Ok((if dropped == End::Head { at.saturating_sub(1) } else { at }, Some(dropped)))
}

/// The places from one index to another of a list of `len` elements, and whether they run backwards; `None` when both
/// are beyond the same end.
fn places(len: u64, (from, to): (i32, i32)) -> Option<(Range<u64>, bool)> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let from_head = |index: i32| if index < 0 { len.saturating_add(i64::from(index)) } else { i64::from(index) };
    let (from, to) = (from_head(from), from_head(to));
    if len == 0 || (from < 0 && to < 0) || (from >= len && to >= len) {
        return None;
    }
    let within = |index: i64| index.clamp(0, len.saturating_sub(1)) as u64;
    let (from, to) = (within(from), within(to));
    Some((from.min(to)..from.max(to).saturating_add(1), from > to))
}

impl List<'_> {
    /// Adds an element that gets this index. `allowed` gives the most elements of a list that names no number.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn insert(
        &self,
        ks: &mut dyn Keyspace,
        index: i32,
        value: &[u8],
        new: Option<&New>,
        allowed: impl FnOnce() -> u32,
    ) -> Result<Added, TypeError> {
        let (len, attributes, new) = match (read_to_edit(ks, self.0, Type::List)?, new) {
            (Some(found), _) => (view(&found).len(), found.attributes, None),
            (None, Some(new)) => (0, new.attributes, Some(new)),
            (None, None) => return Ok(Added::NoKey),
        };
        let (index, dropped) = match place(len, index, attributes.overflow, u64::from(attributes.count_max(allowed))) {
            Ok(place) => place,
            Err(added) => return Ok(added),
        };
        let mut changes = ks.take_buffer();
        if let Some(end) = dropped {
            Change::Pop { end, count: 1 }.put(&mut changes);
        }
        let len = len.saturating_sub(u64::from(dropped.is_some()));
        let (change, event) = match index {
            0 => (Change::Push { end: End::Head, value }, "lpush"),
            _ if index == len => (Change::Push { end: End::Tail, value }, "rpush"),
            _ => (Change::Insert { index, value }, "linsert"),
        };
        change.put(&mut changes);
        let added = add(ks, self.0, Type::List, new, &changes);
        ks.give_buffer(changes);
        ks.notify(NotifyClass::LIST, event, self.0);
        Ok(added)
    }

    /// Shows the elements in a range of indexes, and removes them if they are to go.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn take(
        &self,
        ks: &mut dyn Keyspace,
        range: (i32, i32),
        (removal, is_read): (Removal, bool),
        show: impl FnOnce(&Span<'_>),
    ) -> Result<Taken, TypeError> {
        let found = if is_read { read(ks, self.0, Type::List)? } else { read_to_edit(ks, self.0, Type::List)? };
        let Some(found) = found else { return Ok(Taken::NoKey) };
        if is_read && !found.attributes.is_readable {
            return Ok(Taken::Unreadable);
        }
        let list = view(&found);
        let len = list.len();
        let Some((places, is_backward)) = places(len, range) else { return Ok(Taken::NoElements) };
        let (index, span) = (places.start, Span { list, places, is_backward, flags: found.flags });
        let count = span.count();
        show(&span);
        let mut changes = ks.take_buffer();
        Change::Remove { index, count }.put(&mut changes);
        let event = (NotifyClass::LIST, "ltrim");
        let taken = remove(ks, self.0, (Type::List, event), (removal, count == len), &changes);
        ks.give_buffer(changes);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_clipped() {
        for (range, expected) in [
            ((0, 0), Some((0..1, false))),
            ((-1, -2), Some((3..5, true))),
            ((6, -3), Some((2..5, true))),
            ((-100, 1), Some((0..2, false))),
            ((6, 8), None),
            ((-9, -6), None),
            ((-1, 0), Some((0..5, true))),
        ] {
            assert_eq!(places(5, range), expected, "{range:?}");
        }
        assert_eq!(places(0, (0, -1)), None);
    }

    #[test]
    fn a_full_list_drops_the_other_end() {
        let trim = Overflow::TailTrim;
        for (len, index, overflow, expected) in [
            (0, 0, trim, Ok((0, None))),
            (0, -1, trim, Ok((0, None))),
            (2, -3, trim, Ok((0, None))),
            (2, 3, trim, Err(Added::OutOfRange)),
            (2, -4, trim, Err(Added::OutOfRange)),
            (3, 0, trim, Ok((0, Some(End::Tail)))),
            (3, -1, trim, Ok((2, Some(End::Head)))),
            (3, 1, trim, Ok((1, Some(End::Tail)))),
            (3, 1, Overflow::HeadTrim, Ok((0, Some(End::Head)))),
            (3, 3, trim, Err(Added::OutOfRange)),
            (3, 0, Overflow::Error, Err(Added::Overflowed)),
        ] {
            assert_eq!(place(len, index, overflow, 3), expected, "{len} {index} {overflow:?}");
        }
    }
}
