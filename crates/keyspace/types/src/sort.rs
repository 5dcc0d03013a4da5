//! Elements of a list, a set or a sorted set in another order: SORT.
//!
//! ```text
//! elements --BY: a weight each, or other keys--> sorted --LIMIT--> some --GET: values of other keys--> reply
//! ```
//!
//! A pattern leads from an element to another key: its first `*` stands for the element, and what follows a later `->`
//! names a field of a hash there. Since these keys depend on the elements, all shards are locked.

use crate::collection::Made;
use crate::{Kept, TypeError, collection};
use base::integer::IntegerText;
use engine::{Effect, Encoding, Entry, Key, Keyspace, NotifyClass, SharedBig, Type, Value};
use std::cmp::Ordering;
use value::{Stored, hash, list, set, zset};

/// How to sort.
#[derive(Clone, Debug, Default)]
pub struct Sorting<'a> {
    /// Where weights come from. Without it the elements are their own weights; one without `*` leaves them as they are.
    pub by: Option<&'a [u8]>,
    /// Which of the sorted elements: the first, and how many. None is all; a negative first is 0, a negative number
    /// all.
    pub limit: Option<(i64, i64)>,
    /// What is shown of each element: values at these patterns, or, for `#`, the element. Nothing means the element.
    pub gets: Vec<&'a [u8]>,
    /// From the greatest to the least.
    pub descending: bool,
    /// By bytes, not by numbers.
    pub alphabetic: bool,
}

/// Receives each element or value; it may refuse, and then nothing has changed.
pub type Show<'s, E> = &'s mut dyn FnMut(Option<&[u8]>) -> Result<(), E>;

/// Shows the elements in order, or in place of each the values that `gets` asks for, `None` where there is none.
///
/// # Errors
/// [`TypeError::WrongType`] when the key holds something else, [`TypeError::NotSortable`] when a weight is no number,
/// [`TypeError::Fetch`], and what `show` gives.
pub fn sort<E: From<TypeError>>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    sorting: &Sorting<'_>,
    show: Show<'_, E>,
) -> Result<(), E> {
    for element in sorting.sorted(ks, key)? {
        if sorting.gets.is_empty() {
            show(Some(&element))?;
        }
        for pattern in &sorting.gets {
            let value = look_up(ks, pattern, &element)?;
            show(value.as_ref().map(|value| value.value().bytes()))?;
        }
    }
    Ok(())
}

/// Stores what [`sort`] would show as a list, whatever is under the key, and gives its length. Nothing removes the key.
///
/// # Errors
/// As [`sort`].
pub fn sort_and_store(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    sorting: &Sorting<'_>,
    to: &Key<'_>,
) -> Result<u64, TypeError> {
    let mut changes = ks.take_buffer();
    let mut len = 0u64;
    let mut sorting = sorting.clone();
    if sorting.keeps_order() && ks.peek(key)?.is_some_and(|entry| entry.kind == Type::Set) {
        // A set has no order, but the stored list must have one.
        sorting = Sorting { by: None, alphabetic: true, ..sorting };
    }
    sort::<TypeError>(ks, key, &sorting, &mut |value| {
        list::Change::Push { end: list::End::Tail, value: value.unwrap_or_default() }.put(&mut changes);
        len = len.saturating_add(1);
        Ok(())
    })?;
    let is_taken = ks.peek_head(to)?.is_some();
    if is_taken {
        ks.apply(&Effect::Delete { key: *to });
    }
    if len > 0 {
        collection::edit(ks, to, Type::List, &changes);
        ks.notify(NotifyClass::LIST, "sortstore", to);
    } else if is_taken {
        ks.notify(NotifyClass::GENERIC, "del", to);
    }
    ks.give_buffer(changes);
    Ok(len)
}

/// How to sort a tree by nothing but its elements, and to show nothing else: that can be done away from the keyspace.
#[derive(Clone, Debug)]
pub struct Alone {
    limit: Option<(i64, i64)>,
    /// How often each element is shown.
    shown: usize,
    descending: bool,
    alphabetic: bool,
    keeps_order: bool,
}

impl Alone {
    /// `None` when values of other keys are needed.
    pub fn of(sorting: &Sorting<'_>) -> Option<Self> {
        let keeps_order = sorting.keeps_order();
        let is_alone = (sorting.by.is_none() || keeps_order) && sorting.gets.iter().all(|pattern| *pattern == b"#");
        let (limit, descending, alphabetic) = (sorting.limit, sorting.descending, sorting.alphabetic);
        let shown = sorting.gets.len().max(1);
        is_alone.then_some(Self { limit, shown, descending, alphabetic, keeps_order })
    }

    /// The elements in order, as a list.
    ///
    /// # Errors
    /// [`TypeError::NotSortable`], [`TypeError::WrongType`].
    pub fn sorted(mut self, tree: &SharedBig, is_stored: bool) -> Result<list::Big, TypeError> {
        if is_stored && self.keeps_order && tree.kind() == Type::Set {
            (self.keeps_order, self.alphabetic) = (false, true);
        }
        let Self { limit, descending, alphabetic, keeps_order, .. } = self;
        let by = keeps_order.then_some(&b"-"[..]);
        let sorting = Sorting { by, limit, gets: Vec::new(), descending, alphabetic };
        let elements = sorting.elements(tree.kind(), Encoding::BIG, Stored::Big(tree))?;
        let elements = sorting.in_order(elements, |element| sorting.weight_of(Some(Kept::from(element.to_vec()))))?;
        let mut list = list::Big::default();
        for element in elements {
            (0..self.shown).for_each(|_| list.push(list::End::Tail, &element));
        }
        Ok(list)
    }
}

/// [`sort_and_store`] of what was sorted beforehand.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn store_sorted(ks: &mut dyn Keyspace, to: &Key<'_>, sorted: Option<&Made>) -> Result<(), TypeError> {
    let is_taken = ks.peek_head(to)?.is_some();
    if is_taken {
        ks.apply(&Effect::Delete { key: *to });
    }
    match sorted {
        Some(sorted) => {
            sorted.store(ks, to);
            ks.notify(NotifyClass::LIST, "sortstore", to);
        }
        None if is_taken => ks.notify(NotifyClass::GENERIC, "del", to),
        None => {}
    }
    Ok(())
}

/// What an element is compared by.
enum Weight {
    Number(f64),
    Bytes(Option<Kept>),
}

impl Sorting<'_> {
    /// Whether the elements stay in the order they have.
    fn keeps_order(&self) -> bool {
        self.by.is_some_and(|pattern| !has_place(pattern))
    }

    /// The elements asked for, in order.
    fn sorted(&self, ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<Vec<Vec<u8>>, TypeError> {
        let elements = match ks.read(key)? {
            Some(Entry { kind, encoding, value, .. }) => self.elements(kind, encoding, value.stored())?,
            None => Vec::new(),
        };
        self.in_order(elements, |element| self.weight(ks, element))
    }

    fn in_order(
        &self,
        elements: Vec<Vec<u8>>,
        mut weight: impl FnMut(&[u8]) -> Result<Weight, TypeError>,
    ) -> Result<Vec<Vec<u8>>, TypeError> {
        if self.keeps_order() {
            return Ok(self.limited(elements));
        }
        let mut weighted = Vec::with_capacity(elements.len());
        for element in elements {
            weighted.push((weight(&element)?, element));
        }
        weighted.sort_by(|(a, element_a), (b, element_b)| {
            let order = compare(a, b).then_with(|| match self.by {
                // By bytes, equal weights leave elements in the order they have.
                Some(_) if self.alphabetic => Ordering::Equal,
                _ => element_a.cmp(element_b),
            });
            if self.descending { order.reverse() } else { order }
        });
        Ok(self.limited(weighted.into_iter().map(|(_, element)| element).collect()))
    }

    /// All elements, in the order they have, or the other way round if they are to be shown so.
    fn elements(&self, kind: Type, encoding: Encoding, stored: Stored<'_>) -> Result<Vec<Vec<u8>>, TypeError> {
        let mut elements: Vec<Vec<u8>> = match kind {
            Type::List => list::View::of(encoding, stored).forward(0).map(<[u8]>::to_vec).collect(),
            Type::Zset => zset::View::of(stored).forward(0).map(|entry| entry.member.to_vec()).collect(),
            Type::Set => {
                let mut room = IntegerText::default();
                set::View::of(encoding, stored).iter().map(|member| member.bytes(&mut room).to_vec()).collect()
            }
            Type::String | Type::Hash | Type::Stream | Type::Btree => return Err(TypeError::WrongType),
        };
        if self.keeps_order() && self.descending && kind != Type::Set {
            elements.reverse();
        }
        Ok(elements)
    }

    fn limited(&self, mut elements: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        if let Some((first, count)) = self.limit {
            let first = usize::try_from(first).unwrap_or(0).min(elements.len());
            elements.drain(..first);
            elements.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        }
        elements
    }

    fn weight(&self, ks: &mut dyn Keyspace, element: &[u8]) -> Result<Weight, TypeError> {
        let found = match self.by {
            Some(pattern) => look_up(ks, pattern, element)?,
            None => Some(Kept::from(element.to_vec())),
        };
        self.weight_of(found)
    }

    fn weight_of(&self, found: Option<Kept>) -> Result<Weight, TypeError> {
        if self.alphabetic {
            return Ok(Weight::Bytes(found));
        }
        let Some(found) = found else { return Ok(Weight::Number(0.0)) };
        parse_weight(found.value().bytes()).map(Weight::Number).ok_or(TypeError::NotSortable)
    }
}

fn compare(a: &Weight, b: &Weight) -> Ordering {
    match (a, b) {
        (Weight::Number(a), Weight::Number(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (Weight::Bytes(a), Weight::Bytes(b)) => {
            let (a, b) = (a.as_ref().map(Kept::value), b.as_ref().map(Kept::value));
            a.map(Value::bytes).cmp(&b.map(Value::bytes))
        }
        _ => Ordering::Equal,
    }
}

/// A weight: decimal, or infinite by name. `None` for anything else, and for numbers out of range.
fn parse_weight(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let is_named = text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'n'));
    (!number.is_nan() && (number.is_finite() || is_named)).then_some(number)
}

/// Whether a pattern has a place for the element.
pub fn has_place(pattern: &[u8]) -> bool {
    place(pattern).is_some()
}

/// Patterns end at a zero byte, as in C.
fn place(pattern: &[u8]) -> Option<usize> {
    pattern.iter().take_while(|byte| **byte != 0).position(|byte| *byte == b'*')
}

/// What the pattern leads to for this element.
fn look_up(ks: &mut dyn Keyspace, pattern: &[u8], element: &[u8]) -> Result<Option<Kept>, TypeError> {
    if pattern == b"#" {
        return Ok(Some(Kept::from(element.to_vec())));
    }
    let Some((before, [_, after @ ..])) = place(pattern).and_then(|place| pattern.split_at_checked(place)) else {
        return Ok(None);
    };
    let arrow = after.windows(2).position(|pair| pair == b"->").and_then(|arrow| after.split_at_checked(arrow));
    let (after, field) = match arrow {
        Some((after, [_, _, field @ ..])) if !field.is_empty() => (after, Some(field)),
        _ => (after, None),
    };
    let key = [before, element, after].concat();
    let (key, now) = (ks.key(&key), ks.now());
    let Some(entry) = ks.read(&key)? else { return Ok(None) };
    Ok(match (field, entry.kind) {
        (None, Type::String) => Some(Kept::new(entry.value)),
        (Some(field), Type::Hash) => {
            let cell = hash::View::of(entry.encoding, entry.value.stored()).get(field);
            cell.filter(|cell| !cell.is_due(now)).map(|cell| Kept::from(cell.value.to_vec()))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What SORT of Valkey 9.1.2 takes for a number.
    #[test]
    fn weights_are_numbers_as_valkey_reads_them() {
        for text in ["-inf", "inf", "Infinity", "+1", ".5", "5.", "1e5", "-0", "5e-324", "1e-400"] {
            assert!(parse_weight(text.as_bytes()).is_some(), "{text:?}");
        }
        for text in ["", " 1", "1 ", "0x10", "1e400", "nan", "1e", "1d", "-", "in", "1_0", "1\0"] {
            assert!(parse_weight(text.as_bytes()).is_none(), "{text:?}");
        }
    }
}
