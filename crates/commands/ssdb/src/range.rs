//! Ranges of names and fields: `(start, end]` in the order of bytes, from the first or from the last.

use crate::arguments::limit;
use command::{Args, Stop};
use engine::Names;
use std::ops::Bound;

/// Items that may wait to be sorted, beyond twice the limit.
const UNSORTED_MAX: usize = 1024;

/// A range. An end that is empty is none.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// Not in the range.
    start: &'a [u8],
    /// In the range.
    end: &'a [u8],
    /// Whether it goes from high to low.
    pub is_reversed: bool,
    /// The most that is given.
    pub limit: usize,
}

impl<'a> Range<'a> {
    /// All, in order.
    pub const ALL: Range<'static> = Range { start: b"", end: b"", is_reversed: false, limit: usize::MAX };

    /// Start, end and limit in the arguments from `first` on.
    pub fn parse(args: &Args<'a>, first: usize, is_reversed: bool) -> Result<Self, Stop> {
        let bytes = |after: usize| args.bytes(first.saturating_add(after)).unwrap_or_default();
        let limit = limit(args, first.saturating_add(2))?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(Self { start: bytes(0), end: bytes(1), is_reversed, limit })
    }

    /// Its ends.
    pub fn ends(&self) -> (&'a [u8], &'a [u8]) {
        (self.start, self.end)
    }

    /// The same order and limit without ends.
    pub fn without_ends(&self) -> Range<'static> {
        Range { is_reversed: self.is_reversed, limit: self.limit, ..Range::ALL }
    }

    /// The same order and limit with these ends.
    pub fn between<'b>(&self, start: &'b [u8], end: &'b [u8]) -> Range<'b> {
        Range { start, end, is_reversed: self.is_reversed, limit: self.limit }
    }

    /// The same names for a database that keeps them in order.
    pub fn names(&self) -> Names {
        let end = |name: &'a [u8], bound: fn(&'a [u8]) -> Bound<&'a [u8]>| match name.is_empty() {
            true => Bound::Unbounded,
            false => bound(name),
        };
        let (start, end) = (end(self.start, Bound::Excluded), end(self.end, Bound::Included));
        match self.is_reversed {
            false => Names::new(start, end, false),
            true => Names::new(end, start, true),
        }
    }

    /// Whether it is in the range.
    pub fn contains(&self, name: &[u8]) -> bool {
        let (start, end) = (self.start, self.end);
        match self.is_reversed {
            false => (start.is_empty() || name > start) && (end.is_empty() || name <= end),
            true => (start.is_empty() || name < start) && (end.is_empty() || name >= end),
        }
    }
}

/// The first of many items in an order, at most as many as a limit says. It keeps about twice as many.
#[derive(Debug)]
pub struct First<T> {
    limit: usize,
    is_reversed: bool,
    items: Vec<T>,
    /// Whether the first `limit` items are sorted, so that the last of them is the bar for others.
    is_full: bool,
}

impl<T: Ord> First<T> {
    /// Nothing yet.
    pub fn new(limit: usize, is_reversed: bool) -> Self {
        Self { limit, is_reversed, items: Vec::new(), is_full: false }
    }

    /// Whether the item would be among the first, as far as that is known.
    pub fn wants<Q: Ord + ?Sized>(&self, item: &Q) -> bool
    where
        T: std::borrow::Borrow<Q>,
    {
        let Some(last) = self.limit.checked_sub(1) else { return false };
        let bar = self.items.get(last).filter(|_| self.is_full);
        bar.is_none_or(|bar| if self.is_reversed { item > bar.borrow() } else { item < bar.borrow() })
    }

    /// Adds an item that it [`wants`](Self::wants).
    pub fn push(&mut self, item: T) {
        self.items.push(item);
        if self.items.len() >= self.limit.saturating_mul(2).saturating_add(UNSORTED_MAX) {
            self.cut();
        }
    }

    /// Keeps the first alone, in order, once each.
    pub fn cut(&mut self) {
        match self.is_reversed {
            false => self.items.sort_unstable(),
            true => self.items.sort_unstable_by(|one, other| other.cmp(one)),
        }
        self.items.dedup();
        self.items.truncate(self.limit);
        self.is_full = self.items.len() == self.limit;
    }

    /// What is kept, perhaps more than the first, and in any order.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The first, in order.
    pub fn into_first(mut self) -> Vec<T> {
        self.cut();
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_left_out_and_the_end_is_not() {
        let range = |start, end, is_reversed| Range { start, end, is_reversed, limit: 1 };
        for (start, end, is_reversed, expected) in [
            (&b"b"[..], &b"d"[..], false, &[false, false, true, true, false][..]),
            (b"", b"b", false, &[true, true, false, false, false]),
            (b"d", b"b", true, &[false, true, true, false, false]),
            (b"", b"", true, &[true; 5]),
            (b"d", b"b", false, &[false; 5]),
        ] {
            let found: Vec<bool> =
                [b"a", b"b", b"c", b"d", b"e"].map(|name| range(start, end, is_reversed).contains(name)).to_vec();
            assert_eq!(found, expected, "{} {} {is_reversed}", start.escape_ascii(), end.escape_ascii());
        }
    }

    /// Against sorting all of them.
    #[test]
    fn the_first_are_kept() {
        let names: Vec<Vec<u8>> =
            (0u32..5000).map(|n| (n.wrapping_mul(2_654_435_761) % 3000).to_string().into()).collect();
        for is_reversed in [false, true] {
            for limit in [0, 1, 7, 2000, usize::MAX] {
                let mut first = First::<Vec<u8>>::new(limit, is_reversed);
                for name in &names {
                    if first.wants(&name[..]) {
                        first.push(name.clone());
                    }
                }
                assert!(first.items().len() <= limit.saturating_mul(2).saturating_add(UNSORTED_MAX));
                let mut all = names.clone();
                all.sort();
                all.dedup();
                if is_reversed {
                    all.reverse();
                }
                all.truncate(limit);
                assert_eq!(first.into_first(), all, "{limit} {is_reversed}");
            }
        }
    }
}
