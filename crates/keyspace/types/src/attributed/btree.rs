//! B+trees: elements by key, with eflags and a bound.

use super::{Added, Attributes, Found, New, Overflow, Removal, Taken, add, read, read_to_edit, remove};
use crate::TypeError;
use base::integer::parse_integer;
use engine::{Effect, Key, Keyspace, NotifyClass, Type};
use std::ops;
use value::btree::{Backward, Bkey, ByteKey, Change, Element, Forward, View};

/// Operations on the b+tree under a key.
pub struct Btree<'k>(pub &'k Key<'k>);

/// Keys from one to another, the second of which may be the smaller one: then elements come in descending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Where it begins.
    pub from: Bkey,
    /// Where it ends.
    pub to: Bkey,
}

impl Range {
    /// Whether elements come in descending order.
    pub fn is_descending(&self) -> bool {
        self.from > self.to
    }
}

/// What came of adding or changing an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// As in other collections.
    Added(Added),
    /// The keys are of another kind.
    OtherKind,
    /// The update does not fit the eflag that is there.
    EflagMismatch,
    /// The data is not a number.
    NotNumeric,
}

/// An element that was dropped at the bound, to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// Its key.
    pub bkey: Bkey,
    /// Its eflag.
    pub eflag: Vec<u8>,
    /// Its data.
    pub data: Vec<u8>,
    /// Flags of the collection.
    pub flags: u32,
}

/// How an update changes an eflag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EflagUpdate {
    /// It stays.
    Keep,
    /// It is these bytes; none to remove it.
    Set(ByteKey),
    /// The bytes from an offset on are combined with these.
    Combine(u8, BitOperator, ByteKey),
}

/// How bytes are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOperator {
    /// Both.
    And,
    /// Any.
    Or,
    /// One alone.
    Xor,
}

impl BitOperator {
    fn apply(self, left: u8, right: u8) -> u8 {
        match self {
            Self::And => left & right,
            Self::Or => left | right,
            Self::Xor => left ^ right,
        }
    }
}

impl EflagUpdate {
    /// The eflag after the update; `None` when there is none that the update fits.
    fn apply(&self, eflag: &[u8]) -> Option<ByteKey> {
        match self {
            Self::Keep => ByteKey::new(eflag),
            Self::Set(eflag) => Some(*eflag),
            Self::Combine(offset, operator, bytes) => {
                let mut changed = eflag.to_vec();
                let end = usize::from(*offset).saturating_add(bytes.bytes().len());
                let part = changed.get_mut(usize::from(*offset)..end)?;
                part.iter_mut().zip(bytes.bytes()).for_each(|(byte, with)| *byte = operator.apply(*byte, *with));
                ByteKey::new(&changed)
            }
        }
    }
}

/// How bytes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Equal to one of them.
    Equal,
    /// Equal to none.
    NotEqual,
    /// Less.
    Less,
    /// Less or equal.
    AtMost,
    /// Greater.
    Greater,
    /// Greater or equal.
    AtLeast,
}

/// A condition on eflags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Where in the eflag.
    pub offset: u8,
    /// What its bytes are combined with before they are compared.
    pub combined: Option<(BitOperator, ByteKey)>,
    /// How they are compared.
    pub comparison: Comparison,
    /// With what: values of one length.
    pub values: Vec<ByteKey>,
}

impl Filter {
    /// Whether an element with this eflag is meant. One that is too short is not equal to anything.
    pub fn holds(&self, eflag: &[u8]) -> bool {
        let len = self.values.first().map_or(0, |value| value.bytes().len());
        let from = usize::from(self.offset);
        let Some(part) = eflag.get(from..from.saturating_add(len)) else {
            return self.comparison == Comparison::NotEqual;
        };
        let mut bytes = part.to_vec();
        if let Some((operator, with)) = &self.combined {
            bytes.iter_mut().zip(with.bytes()).for_each(|(byte, with)| *byte = operator.apply(*byte, *with));
        }
        let compare = |holds: fn(std::cmp::Ordering) -> bool| {
            self.values.first().is_some_and(|value| holds(bytes.as_slice().cmp(value.bytes())))
        };
        match self.comparison {
            Comparison::Equal => self.values.iter().any(|value| value.bytes() == bytes),
            Comparison::NotEqual => self.values.iter().all(|value| value.bytes() != bytes),
            Comparison::Less => compare(std::cmp::Ordering::is_lt),
            Comparison::AtMost => compare(std::cmp::Ordering::is_le),
            Comparison::Greater => compare(std::cmp::Ordering::is_gt),
            Comparison::AtLeast => compare(std::cmp::Ordering::is_ge),
        }
    }
}

/// Which elements are asked for.
#[derive(Clone, Debug)]
pub struct Query {
    /// By their keys.
    pub range: Range,
    /// By their eflags.
    pub filter: Option<Filter>,
    /// Matches to pass over.
    pub offset: u64,
    /// The most matches; 0 for all.
    pub count: u64,
}

impl Query {
    /// The most elements that an answer looks at, if the query says so: it names a number, and looks at no eflags.
    pub fn elements_max(&self) -> Option<u64> {
        (self.filter.is_none() && self.count > 0).then(|| self.offset.saturating_add(self.count))
    }
}

/// Elements that match a query, with their positions.
enum Walk<'a> {
    Up(Forward<'a>),
    Down(Backward<'a>),
}

impl<'a> Iterator for Walk<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        match self {
            Self::Up(elements) => elements.next(),
            Self::Down(elements) => elements.next(),
        }
    }
}

/// A b+tree that was found.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'k> {
    /// Its attributes.
    pub attributes: Attributes,
    /// Its flags.
    pub flags: u32,
    /// Its elements.
    pub view: View<'k>,
}

impl<'k> Tree<'k> {
    pub(super) fn of(found: &Found<'k>) -> Self {
        Self { attributes: found.attributes, flags: found.flags, view: View::of(found.stored) }
    }

    /// The tree in an entry.
    ///
    /// # Errors
    /// [`TypeError::WrongType`].
    pub fn of_entry(entry: &engine::Entry<'k>) -> Result<Self, TypeError> {
        Found::of(entry, Type::Btree).map(|found| Self::of(&found))
    }

    /// Whether keys of this kind may be in it.
    pub fn takes(&self, bkey: &Bkey) -> bool {
        let known = self.view.min().or(self.attributes.range);
        known.is_none_or(|known| known.is_like(bkey))
    }

    /// The elements of a range, with their positions, in its order.
    fn walk(&self, range: &Range) -> impl Iterator<Item = (u64, Element<'k>)> + use<'k> {
        let (start, is_there) = self.view.position(&range.from);
        let (to, is_descending) = (range.to, range.is_descending());
        let (elements, first) = match is_descending {
            false => (Walk::Up(self.view.forward(start)), start),
            true => {
                let last = if is_there { Some(start) } else { start.checked_sub(1) };
                let elements =
                    last.map_or(Walk::Up(self.view.forward(u64::MAX)), |at| Walk::Down(self.view.backward(at)));
                (elements, last.unwrap_or(0))
            }
        };
        let positions = (0u64..)
            .map(move |step| if is_descending { first.saturating_sub(step) } else { first.saturating_add(step) });
        positions.zip(elements).take_while(move |(_, element)| match is_descending {
            false => element.bkey <= to,
            true => element.bkey >= to,
        })
    }

    /// The elements that a query asks for, with their positions.
    pub fn select<'q>(&self, query: &'q Query) -> impl Iterator<Item = (u64, Element<'k>)> + use<'k, 'q> {
        let all = |count: u64| if count == 0 { usize::MAX } else { usize::try_from(count).unwrap_or(usize::MAX) };
        let holds = |element: &Element<'_>| query.filter.as_ref().is_none_or(|filter| filter.holds(element.eflag));
        let matches = self.walk(&query.range).filter(move |(_, element)| holds(element));
        matches.skip(usize::try_from(query.offset).unwrap_or(usize::MAX)).take(all(query.count))
    }

    /// Shows the elements that a query asks for, one after the other: [`Self::select`] in one loop, for replies.
    pub fn each(&self, query: &Query, mut show: impl FnMut(&Element<'k>)) {
        if query.filter.is_some() || query.range.is_descending() {
            return self.select(query).for_each(|(_, element)| show(&element));
        }
        let (from, mut left) = (&query.range.from, if query.count == 0 { u64::MAX } else { query.count });
        let elements = match query.offset {
            0 => self.view.forward_from(from),
            offset => self.view.forward(self.view.position(from).0.saturating_add(offset)),
        };
        elements.each_while(|element| {
            if element.bkey > query.range.to {
                return false;
            }
            show(element);
            left = left.saturating_sub(1);
            left > 0
        });
    }

    /// How many elements a query asks for: from the positions of its ends, unless it looks at eflags.
    pub fn count(&self, query: &Query) -> u64 {
        if query.filter.is_some() {
            return self.select(query).count() as u64;
        }
        let positions = self.positions(&query.range);
        positions.end.saturating_sub(positions.start)
    }

    /// Where the elements of a range are, in ascending order.
    pub(super) fn positions(&self, range: &Range) -> ops::Range<u64> {
        let (low, high) = (range.from.min(range.to), range.from.max(range.to));
        let start = self.view.position(&low).0;
        let (end, is_there) = self.view.position(&high);
        start..end.saturating_add(u64::from(is_there)).max(start)
    }

    /// Where the elements are that a query asks for which does not look at eflags.
    fn positions_asked(&self, query: &Query) -> ops::Range<u64> {
        let ops::Range { start, end } = self.positions(&query.range);
        let count = if query.count == 0 { u64::MAX } else { query.count };
        match query.range.is_descending() {
            false => {
                let start = start.saturating_add(query.offset).min(end);
                start..start.saturating_add(count).min(end)
            }
            true => {
                let end = end.saturating_sub(query.offset).max(start);
                end.saturating_sub(count).max(start)..end
            }
        }
    }

    /// Whether elements may be missing from a range since they were dropped at the bound.
    pub fn is_trimmed_in(&self, range: &Range) -> bool {
        if !self.attributes.is_trimmed {
            return false;
        }
        let (low, high) = (range.from.min(range.to), range.from.max(range.to));
        match self.attributes.overflow {
            Overflow::SmallestTrim => self.view.min().is_some_and(|min| low < min),
            Overflow::LargestTrim => self.view.max().is_some_and(|max| high > max),
            _ => false,
        }
    }

    /// Whether elements may be missing from the answer to a query which shows this many: not behind them, when they
    /// are as many as it asks for.
    pub fn is_trimmed_in_answer(&self, query: &Query, shown: u64) -> bool {
        match query.count > 0 && shown >= query.count {
            true => self.is_trimmed_at_start(&query.range),
            false => self.is_trimmed_in(&query.range),
        }
    }

    /// Whether the query passes over all that there is, whatever its keys are.
    pub fn is_passed_over(&self, query: &Query) -> bool {
        query.offset > 0 && query.offset >= self.view.len()
    }

    /// Whether the trimmed part touches the beginning of the range.
    pub fn is_trimmed_at_start(&self, range: &Range) -> bool {
        self.is_trimmed_in(&Range { from: range.from, to: range.from })
    }

    /// Elements without an order are none: the key of the last one before the trimmed part.
    pub fn edge(&self) -> Option<Bkey> {
        match self.attributes.overflow {
            Overflow::SmallestTrim => self.view.min(),
            Overflow::LargestTrim => self.view.max(),
            _ => None,
        }
    }
}

/// What came of a read or a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// As in other collections.
    Taken(Taken),
    /// The elements were shown; others may have been dropped at the bound.
    Trimmed,
    /// There are no such elements; there may have been some, which were dropped at the bound.
    OutOfRange,
    /// The keys are of another kind.
    OtherKind,
}

/// What makes room for an element.
struct Room {
    /// Elements that go before it is added: a position, and how many.
    removed: Option<(u64, u64)>,
    /// The collection has dropped elements at its bound from now on, or no more.
    is_trimmed: Option<bool>,
    /// The element is shown as dropped.
    is_shown: bool,
}

impl Room {
    const ENOUGH: Self = Self { removed: None, is_trimmed: None, is_shown: false };
}

/// What makes room for one element more, or why it is not added.
fn room_for(tree: &Tree<'_>, bkey: &Bkey, allowed: impl FnOnce() -> u32) -> Result<Room, (Added, bool)> {
    let Some((min, max)) = tree.view.min().zip(tree.view.max()) else { return Ok(Room::ENOUGH) };
    let (len, overflow) = (tree.view.len(), tree.attributes.overflow);
    let (is_low, is_high) = match overflow {
        Overflow::SmallestTrim | Overflow::SmallestSilentTrim => (true, false),
        Overflow::LargestTrim | Overflow::LargestSilentTrim => (false, true),
        _ => (false, false),
    };
    let is_noted = matches!(overflow, Overflow::SmallestTrim | Overflow::LargestTrim);
    if let Some(spread) = &tree.attributes.range {
        if *bkey < min && max.minus(bkey).is_beyond(spread) {
            if !is_high {
                return Err((Added::OutOfRange, false));
            }
            // The largest elements leave the window.
            let kept = count_within(tree, |element| !element.minus(bkey).is_beyond(spread));
            let removed = Some((kept, len.saturating_sub(kept)));
            return Ok(Room { removed, is_trimmed: is_noted.then_some(false), is_shown: false });
        }
        if *bkey > max && bkey.minus(&min).is_beyond(spread) {
            if !is_low {
                return Err((Added::OutOfRange, false));
            }
            let gone = count_within(tree, |element| bkey.minus(element).is_beyond(spread));
            return Ok(Room { removed: Some((0, gone)), is_trimmed: is_noted.then_some(false), is_shown: false });
        }
    }
    if !tree.attributes.is_full(len, allowed) {
        return Ok(Room::ENOUGH);
    }
    let trimmed = is_noted.then_some(true);
    match () {
        () if is_low && *bkey < min => Err((Added::OutOfRange, is_noted)),
        () if is_high && *bkey > max => Err((Added::OutOfRange, is_noted)),
        () if is_low => Ok(Room { removed: Some((0, 1)), is_trimmed: trimmed, is_shown: true }),
        () if is_high => Ok(Room { removed: Some((len.saturating_sub(1), 1)), is_trimmed: trimmed, is_shown: true }),
        () => Err((Added::Overflowed, false)),
    }
}

/// How many elements at the front satisfy the condition on their keys, which is true up to some point.
fn count_within(tree: &Tree<'_>, holds: impl Fn(&Bkey) -> bool) -> u64 {
    let (mut low, mut high) = (0, tree.view.len());
    while low < high {
        let middle = low.midpoint(high);
        match tree.view.at(middle).is_some_and(|element| holds(&element.bkey)) {
            true => low = middle.saturating_add(1),
            false => high = middle,
        }
    }
    low
}

/// What may be there before an element is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upsert {
    /// No such element.
    No,
    /// Anything.
    Yes,
}

pub(super) const BOP: NotifyClass = NotifyClass::GENERIC;
pub(super) const EVENT: (Type, (NotifyClass, &str)) = (Type::Btree, (BOP, "bop"));

impl Btree<'_> {
    /// Adds an element. Gives also the element that was dropped for it. `allowed` gives the most elements of a tree
    /// that names no number.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn insert(
        &self,
        ks: &mut dyn Keyspace,
        element: &Element<'_>,
        upsert: Upsert,
        new: Option<&New>,
        allowed: impl FnOnce() -> u32,
    ) -> Result<(Put, Option<Trimmed>), TypeError> {
        let found = read_to_edit(ks, self.0, Type::Btree)?;
        let Some(found) = found else {
            let Some(new) = new else { return Ok((Put::Added(Added::NoKey), None)) };
            let mut changes = ks.take_buffer();
            Change::Put(*element).put(&mut changes);
            let added = add(ks, self.0, Type::Btree, Some(new), &changes);
            ks.give_buffer(changes);
            ks.notify(BOP, "bop", self.0);
            return Ok((Put::Added(added), None));
        };
        let (tree, mut changes) = (Tree::of(&found), Vec::new());
        if !tree.takes(&element.bkey) {
            return Ok((Put::OtherKind, None));
        }
        let is_there = tree.view.get(&element.bkey).is_some();
        if is_there {
            if upsert == Upsert::No {
                return Ok((Put::Added(Added::Exists), None));
            }
            Change::Put(*element).put(&mut changes);
            self.edit(ks, &changes);
            return Ok((Put::Added(Added::Replaced), None));
        }
        let (room, attributes) = (room_for(&tree, &element.bkey, allowed), tree.attributes);
        let room = match room {
            Ok(room) => room,
            Err((added, is_noted)) => {
                if is_noted {
                    self.note_trimmed(ks, attributes, true)?;
                }
                return Ok((Put::Added(added), None));
            }
        };
        let trimmed = room.removed.filter(|_| room.is_shown).and_then(|(at, _)| tree.view.at(at)).map(|gone| Trimmed {
            bkey: gone.bkey,
            eflag: gone.eflag.to_vec(),
            data: gone.data.to_vec(),
            flags: tree.flags,
        });
        // The element first: a collection that loses all others stays the same collection.
        if let Some((start, count)) = room.removed {
            let is_before = tree.view.position(&element.bkey).0 <= start;
            Change::Put(*element).put(&mut changes);
            Change::RemoveRange { start: start.saturating_add(u64::from(is_before)), count }.put(&mut changes);
        } else {
            Change::Put(*element).put(&mut changes);
        }
        if let Some(is_trimmed) = room.is_trimmed {
            self.note_trimmed(ks, attributes, is_trimmed)?;
        }
        self.edit(ks, &changes);
        Ok((Put::Added(Added::Stored), trimmed))
    }

    /// Notes that elements were dropped at the bound, or that none are missing.
    fn note_trimmed(&self, ks: &mut dyn Keyspace, attributes: Attributes, is_trimmed: bool) -> Result<(), TypeError> {
        if attributes.is_trimmed != is_trimmed {
            super::set_attributes(ks, self.0, &Attributes { is_trimmed, ..attributes })?;
        }
        Ok(())
    }

    fn edit(&self, ks: &mut dyn Keyspace, changes: &[u8]) {
        ks.apply(&Effect::Edit { key: *self.0, kind: Type::Btree, changes });
        ks.notify(BOP, "bop", self.0);
    }

    /// Changes an element: its eflag, and its data if there is some.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn update(
        &self,
        ks: &mut dyn Keyspace,
        bkey: &Bkey,
        eflag: EflagUpdate,
        data: Option<&[u8]>,
    ) -> Result<Put, TypeError> {
        let Some(found) = read_to_edit(ks, self.0, Type::Btree)? else { return Ok(Put::Added(Added::NoKey)) };
        let tree = Tree::of(&found);
        if !tree.takes(bkey) {
            return Ok(Put::OtherKind);
        }
        let Some(element) = tree.view.get(bkey) else { return Ok(Put::Added(Added::Absent)) };
        let Some(eflag) = eflag.apply(element.eflag) else { return Ok(Put::EflagMismatch) };
        let (mut changes, data) = (Vec::new(), data.unwrap_or(element.data));
        Change::Put(Element { bkey: *bkey, eflag: eflag.bytes(), data }).put(&mut changes);
        self.edit(ks, &changes);
        Ok(Put::Added(Added::Replaced))
    }

    /// Adds to the number that is the data of an element, or takes away from it. Without such an element `initial` is
    /// stored, if given, and `allowed` is as for [`Self::insert`]. Gives the number now.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn add(
        &self,
        ks: &mut dyn Keyspace,
        bkey: &Bkey,
        next: impl FnOnce(u64) -> u64,
        initial: Option<(u64, ByteKey)>,
        allowed: impl FnOnce() -> u32,
    ) -> Result<Result<u64, Put>, TypeError> {
        let Some(found) = read_to_edit(ks, self.0, Type::Btree)? else { return Ok(Err(Put::Added(Added::NoKey))) };
        let tree = Tree::of(&found);
        if !tree.takes(bkey) {
            return Ok(Err(Put::OtherKind));
        }
        let Some(element) = tree.view.get(bkey) else {
            let Some((number, eflag)) = initial else { return Ok(Err(Put::Added(Added::Absent))) };
            let text = number.to_string();
            let element = Element { bkey: *bkey, eflag: eflag.bytes(), data: text.as_bytes() };
            return Ok(match self.insert(ks, &element, Upsert::No, None, allowed)? {
                (Put::Added(Added::Stored), _) => Ok(number),
                (other, _) => Err(other),
            });
        };
        let Some(number) = parse_number(element.data) else { return Ok(Err(Put::NotNumeric)) };
        let (number, mut changes) = (next(number), Vec::new());
        Change::Put(Element { data: number.to_string().as_bytes(), ..element }).put(&mut changes);
        self.edit(ks, &changes);
        Ok(Ok(number))
    }

    /// Gives `show` the tree, as a client's read.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn read<R>(
        &self,
        ks: &mut dyn Keyspace,
        show: impl FnOnce(&Tree<'_>) -> R,
    ) -> Result<Result<R, Taken>, TypeError> {
        let Some(found) = read(ks, self.0, Type::Btree)? else { return Ok(Err(Taken::NoKey)) };
        if !found.attributes.is_readable {
            return Ok(Err(Taken::Unreadable));
        }
        Ok(Ok(show(&Tree::of(&found))))
    }

    /// Shows the elements that a query asks for, and removes them if they are to go.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn take(
        &self,
        ks: &mut dyn Keyspace,
        query: &Query,
        (removal, is_read): (Removal, bool),
        show: impl FnOnce(u32, &[Element<'_>]),
    ) -> Result<Answer, TypeError> {
        let found = if is_read { read(ks, self.0, Type::Btree)? } else { read_to_edit(ks, self.0, Type::Btree)? };
        let Some(found) = found else { return Ok(Answer::Taken(Taken::NoKey)) };
        if is_read && !found.attributes.is_readable {
            return Ok(Answer::Taken(Taken::Unreadable));
        }
        let tree = Tree::of(&found);
        if tree.is_passed_over(query) {
            return Ok(Answer::Taken(Taken::NoElements));
        }
        if !tree.takes(&query.range.from) {
            return Ok(Answer::OtherKind);
        }
        if !is_read && query.filter.is_none() {
            // Their positions are enough.
            let asked = tree.positions_asked(query);
            let count = asked.end.saturating_sub(asked.start);
            if count == 0 {
                return Ok(Answer::Taken(Taken::NoElements));
            }
            let (is_all, mut changes) = (count == tree.view.len(), Vec::new());
            Change::RemoveRange { start: asked.start, count }.put(&mut changes);
            return Ok(Answer::Taken(remove(ks, self.0, EVENT, (removal, is_all), &changes)));
        }
        let (positions, elements): (Vec<u64>, Vec<Element<'_>>) = tree.select(query).unzip();
        let is_trimmed = is_read && tree.is_trimmed_in_answer(query, elements.len() as u64);
        if elements.is_empty() {
            return Ok(if is_trimmed { Answer::OutOfRange } else { Answer::Taken(Taken::NoElements) });
        }
        show(tree.flags, &elements);
        if removal == Removal::Keep {
            return Ok(if is_trimmed { Answer::Trimmed } else { Answer::Taken(Taken::Shown) });
        }
        let is_all = elements.len() as u64 == tree.view.len();
        let changes = removals(positions, &elements);
        Ok(Answer::Taken(remove(ks, self.0, EVENT, (removal, is_all), &changes)))
    }
}

/// The changes that remove these elements: by one range where they are neighbours.
fn removals(mut positions: Vec<u64>, elements: &[Element<'_>]) -> Vec<u8> {
    let mut changes = Vec::new();
    positions.sort_unstable();
    let count = positions.len() as u64;
    match (positions.first(), positions.last()) {
        (Some(&start), Some(&last)) if last.saturating_sub(start).saturating_add(1) == count => {
            Change::RemoveRange { start, count }.put(&mut changes);
        }
        _ => elements.iter().for_each(|element| Change::Remove(element.bkey).put(&mut changes)),
    }
    changes
}

/// The number that a text of digits is.
fn parse_number(text: &[u8]) -> Option<u64> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    match parse_integer(text) {
        Some(number) => u64::try_from(number).ok(),
        None => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}
