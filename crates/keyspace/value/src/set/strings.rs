//! The packed form of a small set of strings: one after the other, in the order they came.
//!
//! ```text
//! count | length, member | length, member | ...         count and lengths are varints
//! ```
//!
//! Format: docs/formats/collections.md.

use crate::{Resize, wire};
use base::varint;
use std::ops::Range;

/// A packed set of strings, for reading.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a> {
    count: usize,
    /// From the first length on.
    members: &'a [u8],
}

impl<'a> Strings<'a> {
    /// No bytes are no members.
    #[inline]
    pub fn of(packed: &'a [u8]) -> Self {
        let mut members = packed;
        let count = varint::take(&mut members).unwrap_or(0);
        Self { count: count as usize, members }
    }

    /// How many.
    #[inline]
    pub fn len(self) -> usize {
        self.count
    }

    /// Whether the member is there.
    #[inline]
    pub fn contains(self, member: &[u8]) -> bool {
        self.find(member).is_some()
    }

    /// All of them.
    #[inline]
    pub fn iter(self) -> Iter<'a> {
        Iter { rest: self.members }
    }

    /// The bytes from the member's length to its end, counted from the first length.
    #[inline]
    fn find(self, member: &[u8]) -> Option<Range<usize>> {
        // Members that begin alike are common; those that end alike are not.
        let end = member.last_chunk::<8>();
        let mut iter = self.iter();
        loop {
            let from = self.members.len() - iter.rest.len();
            let candidate = iter.next()?;
            if candidate.len() == member.len() && candidate.last_chunk() == end && candidate == member {
                return Some(from..self.members.len() - iter.rest.len());
            }
        }
    }
}

/// Over the members of a packed set of strings.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match *self.rest {
            [length @ 0..0x80, ref tail @ ..] => {
                let (member, rest) = tail.split_at_checked(usize::from(length))?;
                self.rest = rest;
                Some(member)
            }
            _ => wire::take_string(&mut self.rest),
        }
    }
}

/// Becomes a set without members that will be of strings.
pub fn make_empty(packed: &mut impl Resize) {
    packed.resize_to(1);
    packed[0] = 0;
}

/// Bytes that one member more takes, at most.
#[inline]
pub fn pushed_len_max(member: &[u8]) -> usize {
    /// The count may become longer.
    const COUNT_BYTES: usize = 1;
    COUNT_BYTES + varint::len(member.len() as u64) + member.len()
}

/// Adds the member, which is not there.
pub fn push(packed: &mut impl Resize, member: &[u8]) {
    let count = Strings::of(packed).len() + 1;
    set_count(packed, count);
    let place = packed.extend_by(varint::len(member.len() as u64) + member.len());
    let length = varint::write(place, member.len() as u64);
    place[length..].copy_from_slice(member);
}

/// Removes the member if it is there.
pub fn remove(packed: &mut impl Resize, member: &[u8]) {
    let strings = Strings::of(packed);
    let Some(found) = strings.find(member) else { return };
    let (count, start) = (strings.len() - 1, packed.len() - strings.members.len());
    packed.refit(start + found.start..start + found.end, 0);
    set_count(packed, count);
}

/// Whether the bytes are a packed set of strings with a member at least.
#[cfg(test)]
pub fn is_valid(packed: &[u8]) -> bool {
    let mut rest = packed;
    let Some(count) = varint::take(&mut rest).filter(|count| *count > 0) else { return false };
    let mut members = Vec::new();
    while !rest.is_empty() {
        let Some(member) = wire::take_string(&mut rest) else { return false };
        members.push(member);
    }
    let all = members.len();
    members.sort_unstable();
    members.dedup();
    count == all as u64 && members.len() == all
}

fn set_count(packed: &mut impl Resize, count: usize) {
    match packed.first_mut() {
        Some(first @ 0..0x80) if count < 0x80 => *first = count as u8,
        _ => {
            let old_len = packed.len() - Strings::of(packed).members.len();
            varint::write(packed.refit(0..old_len, varint::len(count as u64)), count as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count takes a second byte at 128 members, and so does a length.
    #[test]
    fn counts_and_lengths_of_two_bytes() {
        let member = |number: usize| format!("{number:>width$}", width = number).into_bytes();
        let mut packed = vec![0];
        for number in 1..=130 {
            push(&mut packed, &member(number));
            assert_eq!(Strings::of(&packed).len(), number);
            assert!(is_valid(&packed));
        }
        assert!(Strings::of(&packed).iter().eq((1..=130).map(member)));
        for number in 1..=130 {
            assert!(Strings::of(&packed).contains(&member(number)));
            remove(&mut packed, &member(number));
            assert!(!Strings::of(&packed).contains(&member(number)));
            assert_eq!(Strings::of(&packed).len(), 130 - number);
        }
        assert_eq!(packed, [0]);
    }

    #[test]
    fn only_counted_and_distinct_members_are_valid() {
        for (packed, valid) in [
            (&b""[..], false),
            (b"\0", false),
            (b"\x01\x01a", true),
            (b"\x01\0", true),
            (b"\x02\x01a", false),
            (b"\x02\x01a\x01a", false),
            (b"\x02\x01a\x01b", true),
            (b"\x01\x02a", false),
            (b"\x01\x81\0a", false),
        ] {
            assert_eq!(is_valid(packed), valid, "{packed:?}");
        }
    }
}
