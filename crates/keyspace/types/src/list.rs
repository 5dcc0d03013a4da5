//! Lists.

use crate::TypeError;
use crate::collection::{self, Made, Maker, change, read, read_to_edit};
use engine::{Effect, Encoding, Entry, Key, Keyspace, Known, NotifyClass, SharedBig, Type};
use std::ops::Range;
use value::Stored;
use value::list::{Backward, Change, Forward, View};

pub use value::list::End;

/// The elements of a reply, in its order.
#[derive(Clone, Debug)]
pub enum Elements<'a> {
    /// From the head on.
    Forward(std::iter::Take<Forward<'a>>),
    /// From the tail on.
    Backward(std::iter::Take<Backward<'a>>),
}

impl<'a> Elements<'a> {
    /// The first `count` from an end.
    fn from_end(view: View<'a>, end: End, count: u64) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        match end {
            End::Head => Self::Forward(view.forward(0).take(count)),
            End::Tail => Self::Backward(view.backward(u64::MAX).take(count)),
        }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Self::Forward(elements) => elements.next(),
            Self::Backward(elements) => elements.next(),
        }
    }
}

/// The list in an entry; `None` when there is no entry.
///
/// # Errors
/// Another type.
#[inline]
pub fn of_entry<'k>(entry: Option<&Entry<'k>>) -> Result<Option<View<'k>>, TypeError> {
    Ok(collection::of_entry(entry, Type::List)?.map(|(encoding, stored)| View::of(encoding, stored)))
}

/// The list under the key, as a client's read; `None` when it is absent.
///
/// # Errors
/// Another type, or a fetch.
pub fn view<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<View<'k>>, TypeError> {
    Ok(read(ks, key, Type::List)?.map(|(encoding, stored)| View::of(encoding, stored)))
}

/// The list under the key, for a command that then changes it.
fn view_to_edit<'k>(ks: &'k mut dyn Keyspace, key: &Key<'_>) -> Result<Option<View<'k>>, TypeError> {
    Ok(read_to_edit(ks, key, Type::List)?.map(|(encoding, stored)| View::of(encoding, stored)))
}

/// Elements of the list under the key; 0 when it is absent.
///
/// # Errors
/// Another type, or a fetch.
pub fn len(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<u64, TypeError> {
    Ok(view(ks, key)?.map_or(0, |list| list.len()))
}

/// Adds values at an end, one after the other, and returns the new length. With `only_existing` an absent key stays
/// absent, and its length is 0.
///
/// # Errors
/// Another type, or a fetch.
pub fn push<'v>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    end: End,
    values: impl Iterator<Item = &'v [u8]>,
    only_existing: bool,
) -> Result<u64, TypeError> {
    let (mut changes, mut pushed) = (ks.take_buffer(), 0u64);
    for value in values {
        Change::Push { end, value }.put(&mut changes);
        pushed = pushed.saturating_add(1);
    }
    let before = push_changes(ks, key, &changes, only_existing);
    ks.give_buffer(changes);
    let Some(before) = before? else { return Ok(0) };
    tell_push(ks, key, end);
    Ok(before.saturating_add(pushed))
}

/// Makes changes that add elements, and gives the length before; `None` when there is no list and there is to be none.
fn push_changes(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    changes: &[u8],
    only_existing: bool,
) -> Result<Option<u64>, TypeError> {
    if let Ok(edited) = ks.edit(key, Type::List, changes, Known::Nothing) {
        return Ok(Some(edited.before));
    }
    let before = match view_to_edit(ks, key)? {
        Some(list) => list.len(),
        None if only_existing => return Ok(None),
        None => 0,
    };
    collection::edit(ks, key, Type::List, changes);
    Ok(Some(before))
}

/// Takes up to `count` elements off an end. Before that, `show` receives their number, and the elements in the order in
/// which they go. `None` when the key is absent.
///
/// # Errors
/// Another type, or a fetch.
pub fn pop<R>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    end: End,
    count: u64,
    show: impl FnOnce(u64, Elements<'_>) -> R,
) -> Result<Option<R>, TypeError> {
    let Some(list) = view_to_edit(ks, key)? else { return Ok(None) };
    // There is one at least: counting all of a packed list takes about as long as taking one off.
    let count = if count > 1 { count.min(list.len()) } else { count };
    let shown = show(count, Elements::from_end(list, end, count));
    if count > 0 {
        pop_many(ks, key, end, count);
    }
    Ok(Some(shown))
}

/// Takes `count` elements, at most all, off an end of a list that was read before.
pub fn pop_many(ks: &mut dyn Keyspace, key: &Key<'_>, end: End, count: u64) {
    let mut changes = ks.take_buffer();
    Change::Pop { end, count }.put(&mut changes);
    let edited = ks.edit(key, Type::List, &changes, Known::Read);
    ks.give_buffer(changes);
    tell_removal(
        ks,
        key,
        if end == End::Head { "lpop" } else { "rpop" },
        edited.is_ok_and(|edited| !edited.left.is_any()),
    );
}

/// Moves the element at one end of a list to an end of another or of the same. Before that, `show` receives the
/// element. `None` when the source is absent.
///
/// # Errors
/// Another type, or a fetch.
pub fn move_element<R>(
    ks: &mut dyn Keyspace,
    (from, from_end): (&Key<'_>, End),
    (to, to_end): (&Key<'_>, End),
    show: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>, TypeError> {
    let mut moved = ks.take_buffer();
    let taken = take_end(ks, from, from_end, &mut moved);
    // The destination matters only when there is something for it.
    let checked = match taken {
        Ok(Some(len)) => view_to_edit(ks, to).map(|_| Some(len)),
        nothing => nothing,
    };
    let shown = checked.map(|len| {
        let len = len?;
        let shown = show(&moved);
        let (pop, push) = (Change::Pop { end: from_end, count: 1 }, Change::Push { end: to_end, value: &moved });
        if from.bytes == to.bytes {
            change(ks, from, Type::List, |changes| {
                pop.put(changes);
                push.put(changes);
            });
        } else {
            change(ks, to, Type::List, |changes| push.put(changes));
            change(ks, from, Type::List, |changes| pop.put(changes));
        }
        tell_push(ks, to, to_end);
        let is_gone = len == 1 && from.bytes != to.bytes;
        tell_removal(ks, from, if from_end == End::Head { "lpop" } else { "rpop" }, is_gone);
        Some(shown)
    });
    ks.give_buffer(moved);
    shown
}

/// Copies the element at an end, and gives the length of its list; `None` when there is none.
fn take_end(ks: &mut dyn Keyspace, key: &Key<'_>, end: End, into: &mut Vec<u8>) -> Result<Option<u64>, TypeError> {
    let Some(list) = view_to_edit(ks, key)? else { return Ok(None) };
    let element = if end == End::Head { list.first() } else { list.last() };
    into.extend_from_slice(element.unwrap_or_default());
    Ok(Some(list.len()))
}

/// The element at an index, from the tail if that is negative; `None` where there is none.
pub fn element<'a>(list: &View<'a>, index: i64) -> Option<&'a [u8]> {
    list.get(place(list, index)?)
}

/// What came of [`set`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOutcome {
    /// The element was replaced.
    Done,
    /// There is no such key.
    NoKey,
    /// There is no such element.
    OutOfRange,
}

/// Replaces the element at an index.
///
/// # Errors
/// Another type, or a fetch.
pub fn set(ks: &mut dyn Keyspace, key: &Key<'_>, index: i64, value: &[u8]) -> Result<SetOutcome, TypeError> {
    let Some(list) = view_to_edit(ks, key)? else { return Ok(SetOutcome::NoKey) };
    let Some(index) = place(&list, index) else { return Ok(SetOutcome::OutOfRange) };
    change(ks, key, Type::List, |changes| Change::Set { index, value }.put(changes));
    ks.notify(NotifyClass::LIST, "lset", key);
    Ok(SetOutcome::Done)
}

/// What came of [`insert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    /// The length now.
    Done(u64),
    /// There is no such key.
    NoKey,
    /// The list has no such element.
    NoPivot,
}

/// The first element that is equal to `pivot`.
pub fn find(list: &View<'_>, pivot: &[u8]) -> Option<u64> {
    list.forward(0).position(|element| element == pivot).map(|at| at as u64)
}

/// Adds an element before or after the pivot, which `find` finds.
///
/// # Errors
/// Another type, or a fetch.
pub fn insert(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    find: impl FnOnce(&View<'_>) -> Option<u64>,
    is_behind: bool,
    value: &[u8],
) -> Result<InsertOutcome, TypeError> {
    let Some(list) = view_to_edit(ks, key)? else { return Ok(InsertOutcome::NoKey) };
    let Some(at) = find(&list) else { return Ok(InsertOutcome::NoPivot) };
    let (len, index) = (list.len(), at.saturating_add(u64::from(is_behind)));
    change(ks, key, Type::List, |changes| Change::Insert { index, value }.put(changes));
    ks.notify(NotifyClass::LIST, "linsert", key);
    Ok(InsertOutcome::Done(len.saturating_add(1)))
}

/// The places from `start` to `stop`, both included, of a list read by a client; none when there is no list.
///
/// # Errors
/// Another type, or a fetch.
pub fn range(ks: &mut dyn Keyspace, key: &Key<'_>, (start, stop): (i64, i64)) -> Result<Range<u64>, TypeError> {
    Ok(view(ks, key)?.map_or(0..0, |list| places(list.len(), start, stop)))
}

/// Removes all elements but those from `start` to `stop`, both included.
///
/// # Errors
/// Another type, or a fetch.
pub fn trim(ks: &mut dyn Keyspace, key: &Key<'_>, (start, stop): (i64, i64)) -> Result<(), TypeError> {
    let Some(list) = view_to_edit(ks, key)? else { return Ok(()) };
    let len = list.len();
    let kept = places(len, start, stop);
    change(ks, key, Type::List, |changes| {
        for (end, count) in [(End::Tail, len.saturating_sub(kept.end)), (End::Head, kept.start.min(kept.end))] {
            if count > 0 {
                Change::Pop { end, count }.put(changes);
            }
        }
    });
    tell_removal(ks, key, "ltrim", kept.is_empty());
    Ok(())
}

/// Removes elements equal to `element`: the first `count`, the last `-count`, or all for 0. Gives how many.
///
/// # Errors
/// Another type, or a fetch.
pub fn remove(ks: &mut dyn Keyspace, key: &Key<'_>, count: i64, element: &[u8]) -> Result<u64, TypeError> {
    let mut changes = ks.take_buffer();
    let removed = view_to_edit(ks, key).map(|list| {
        let list = list?;
        let removed = put_removals(&list, count, element, &mut changes);
        Some((removed, removed == list.len()))
    });
    if let Ok(Some((removed, is_gone))) = removed
        && removed > 0
    {
        collection::edit(ks, key, Type::List, &changes);
        tell_removal(ks, key, "lrem", is_gone);
    }
    changes.clear();
    ks.give_buffer(changes);
    Ok(removed?.map_or(0, |(removed, _)| removed))
}

/// What [`remove`] makes of a tree.
#[derive(Debug)]
pub struct Removed {
    count: u64,
    /// What is left; `None` of nothing, or if nothing was removed.
    rest: Option<Made>,
}

impl Removed {
    /// Makes it.
    pub fn of(maker: &Maker, tree: &SharedBig, count: i64, element: &[u8]) -> Self {
        let (list, mut changes) = (View::of(Encoding::BIG, Stored::Big(tree)), Vec::new());
        let count = put_removals(&list, count, element, &mut changes);
        let is_part = count > 0 && count < list.len();
        Self { count, rest: is_part.then(|| maker.make(Type::List, Some(tree), changes)) }
    }

    /// Stores it under the key, which has that tree. Gives how many elements went.
    pub fn store(&self, ks: &mut dyn Keyspace, key: &Key<'_>) -> u64 {
        if self.count > 0 {
            match &self.rest {
                Some(rest) => rest.store(ks, key),
                None => ks.apply(&Effect::Delete { key: *key }),
            }
            tell_removal(ks, key, "lrem", self.rest.is_none());
        }
        self.count
    }
}

/// The changes that [`remove`] makes, and how many elements go.
fn put_removals(list: &View<'_>, count: i64, element: &[u8], changes: &mut Vec<u8>) -> u64 {
    let (len, limit) = (list.len(), if count == 0 { u64::MAX } else { count.unsigned_abs() });
    let mut removed = 0u64;
    if count < 0 {
        // From the tail on, so that earlier indexes stay as they are.
        for (index, other) in (0..len).rev().zip(list.backward(u64::MAX)) {
            if other == element {
                Change::Remove { index, count: 1 }.put(changes);
                removed = removed.saturating_add(1);
            }
            if removed == limit {
                break;
            }
        }
    } else {
        for (index, other) in (0..len).zip(list.forward(0)) {
            if other == element {
                // Those before it are gone by then.
                Change::Remove { index: index.saturating_sub(removed), count: 1 }.put(changes);
                removed = removed.saturating_add(1);
            }
            if removed == limit {
                break;
            }
        }
    }
    removed
}

/// Which matches [`positions`] is to find.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Matches to pass over before the first that counts.
    pub skip: u64,
    /// Whether the search begins at the tail.
    pub is_backward: bool,
    /// Matches at most; 0 for all.
    pub count: u64,
    /// Elements compared at most; 0 for all.
    pub compared_max: u64,
}

/// Gives `found` the indexes, from the head, of elements equal to `element`.
pub fn positions(list: &View<'_>, element: &[u8], search: &Search, found: impl FnMut(u64)) {
    let all = |limit: u64| usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let compared = all(search.compared_max);
    let skip = usize::try_from(search.skip).unwrap_or(usize::MAX);
    let len = list.len();
    if search.is_backward {
        let places = (0..len).rev().zip(list.backward(u64::MAX)).take(compared);
        let matches = places.filter(|(_, other)| *other == element).skip(skip).take(all(search.count));
        matches.map(|(index, _)| index).for_each(found);
    } else {
        let places = (0..len).zip(list.forward(0)).take(compared);
        let matches = places.filter(|(_, other)| *other == element).skip(skip).take(all(search.count));
        matches.map(|(index, _)| index).for_each(found);
    }
}

/// The index from the head, of an element that is there.
fn place(list: &View<'_>, index: i64) -> Option<u64> {
    let len = list.len();
    match u64::try_from(index) {
        Ok(index) => Some(index).filter(|index| *index < len),
        Err(_) => len.checked_sub(index.unsigned_abs()),
    }
}

/// The indexes from `start` to `stop`, both included and from the tail if negative, of a list of `len` elements.
fn places(len: u64, start: i64, stop: i64) -> Range<u64> {
    let from_head = |index: i64| match u64::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => len.checked_sub(index.unsigned_abs()),
    };
    let end = from_head(stop).map_or(0, |stop| stop.saturating_add(1).min(len));
    from_head(start).unwrap_or(0).min(end)..end
}

fn tell_push(ks: &mut dyn Keyspace, key: &Key<'_>, end: End) {
    ks.notify(NotifyClass::LIST, if end == End::Head { "lpush" } else { "rpush" }, key);
}

fn tell_removal(ks: &mut dyn Keyspace, key: &Key<'_>, event: &'static str, is_gone: bool) {
    ks.notify(NotifyClass::LIST, event, key);
    // A list with attributes stays.
    if is_gone && matches!(ks.peek_head(key), Ok(None)) {
        ks.notify(NotifyClass::GENERIC, "del", key);
    }
}
