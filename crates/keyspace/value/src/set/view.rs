//! A set, whatever its form, for reading.

use super::integers::Integers;
use super::strings::{self, Strings};
use super::{Big, INTEGERS, big};
use crate::{Encoding, Stored};
use base::integer::{IntegerText, parse_integer};

/// A stored set.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// Packed integers.
    Integers(Integers<'a>),
    /// Packed strings.
    Strings(Strings<'a>),
    /// A tree.
    Big(&'a Big),
}

/// One member: its bytes, or the integer they are the text of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Member<'a> {
    /// The bytes. They may be an integer's text as well.
    Text(&'a [u8]),
    /// The integer.
    Integer(i64),
}

impl Member<'_> {
    /// The member's bytes; `room` takes them when they have to be made.
    #[inline]
    pub fn bytes<'b>(&'b self, room: &'b mut IntegerText) -> &'b [u8] {
        match self {
            Self::Text(text) => text,
            Self::Integer(integer) => room.format(*integer),
        }
    }

    /// The same member in the one form that equal members share: an integer if it can be one.
    #[inline]
    pub fn canonical(self) -> Self {
        match self {
            Self::Text(text) => parse_integer(text).map_or(self, Self::Integer),
            Self::Integer(_) => self,
        }
    }
}

impl<'a> View<'a> {
    /// The set that is stored so.
    #[inline]
    pub fn of(encoding: Encoding, stored: Stored<'a>) -> Self {
        match stored {
            Stored::Packed(packed) if encoding == INTEGERS => Self::Integers(Integers::of(packed)),
            Stored::Packed(packed) => Self::Strings(Strings::of(packed)),
            Stored::Big(crate::Big::Set(big)) => Self::Big(big),
            Stored::Big(_) => unreachable!("a set is stored as a set"),
        }
    }

    /// How many members.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(integers) => integers.len(),
            Self::Strings(strings) => strings.len(),
            Self::Big(big) => big.len(),
        }
    }

    /// Whether there is none: true of no set under a key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the member is there.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        match self {
            Self::Integers(integers) => parse_integer(member).is_some_and(|integer| integers.find(integer).is_ok()),
            Self::Strings(strings) => strings.contains(member),
            Self::Big(big) => big.contains(member),
        }
    }

    /// Whether this member, of another set perhaps, is there.
    #[inline]
    pub fn contains_member(&self, member: Member<'_>) -> bool {
        match (self, member) {
            (Self::Integers(integers), Member::Integer(integer)) => integers.find(integer).is_ok(),
            _ => self.contains(member.bytes(&mut IntegerText::default())),
        }
    }

    /// The member at this place of the order of [`View::iter`]; `None` past the end. Logarithmic in a tree.
    pub fn at(&self, index: usize) -> Option<Member<'a>> {
        match *self {
            Self::Integers(integers) => (index < integers.len()).then(|| Member::Integer(integers.at(index))),
            Self::Strings(strings) => strings.iter().nth(index).map(Member::Text),
            Self::Big(big) => big.at(index).map(Member::Text),
        }
    }

    /// All members, in no order that means anything.
    pub fn iter(&self) -> Iter<'a> {
        self.iter_from(0)
    }

    /// The members from this place of that order on. Found as by [`View::at`].
    pub fn iter_from(&self, index: usize) -> Iter<'a> {
        match *self {
            Self::Integers(integers) => Iter::Integers { integers, next: index },
            Self::Strings(strings) => {
                let mut members = strings.iter();
                members.by_ref().take(index).for_each(drop);
                Iter::Strings(members)
            }
            Self::Big(big) => Iter::Big(big.iter_from(index)),
        }
    }

    /// A step of a walk: visits about `count` members from `cursor` on (0 starts) and gives the cursor of the next
    /// step: 0 when all were visited. A member that is there throughout a walk is visited at least once, whatever comes
    /// and goes meanwhile. A packed set is visited at once.
    pub fn scan(&self, cursor: u64, count: u64, visit: &mut dyn FnMut(Member<'a>)) -> u64 {
        match *self {
            Self::Big(big) => big.scan(cursor, count, &mut |member| visit(Member::Text(member))),
            _ => {
                self.iter().for_each(visit);
                0
            }
        }
    }
}

/// Over all members of a set.
#[derive(Clone, Debug)]
pub enum Iter<'a> {
    /// Packed integers.
    Integers {
        /// All of them.
        integers: Integers<'a>,
        /// The place of the next.
        next: usize,
    },
    /// Packed strings.
    Strings(strings::Iter<'a>),
    /// A tree.
    Big(big::Iter<'a>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = Member<'a>;

    #[inline]
    fn next(&mut self) -> Option<Member<'a>> {
        match self {
            Self::Integers { integers, next } => {
                let index = *next;
                *next += 1;
                (index < integers.len()).then(|| Member::Integer(integers.at(index)))
            }
            Self::Strings(strings) => strings.next().map(Member::Text),
            Self::Big(big) => big.next().map(Member::Text),
        }
    }
}
