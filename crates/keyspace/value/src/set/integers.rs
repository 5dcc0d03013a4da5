//! The packed form of a set of integers: in ascending order, all of one width.
//!
//! ```text
//! width (1, 2, 4 or 8) | member, little-endian, two's complement | member | ...
//! ```
//!
//! The width is that of the widest member there has been. Format: docs/formats/collections.md.

use crate::Resize;

/// A packed set of integers, for reading.
#[derive(Clone, Copy, Debug)]
pub struct Integers<'a> {
    width: usize,
    members: &'a [u8],
}

impl<'a> Integers<'a> {
    /// No bytes are no members.
    #[inline]
    pub fn of(packed: &'a [u8]) -> Self {
        match packed.split_first() {
            None => Self { width: 1, members: &[] },
            Some((&width, members)) => Self { width: usize::from(width), members },
        }
    }

    /// How many.
    #[inline]
    pub fn len(self) -> usize {
        // A shift: the width is a power of two, and a division takes longer than the rest of a lookup.
        self.members.len() >> self.width.trailing_zeros()
    }

    /// The member at this place of the order, which is less than [`Integers::len`].
    #[inline]
    pub fn at(self, index: usize) -> i64 {
        let at = index * self.width;
        let bytes = &self.members[at..at + self.width];
        match *bytes {
            [a] => i64::from(a as i8),
            [a, b] => i64::from(i16::from_le_bytes([a, b])),
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => unreachable!("integers are 1, 2, 4 or 8 bytes wide"),
        }
    }

    /// Where the member stands, or where it would.
    #[inline]
    pub fn find(self, member: i64) -> Result<usize, usize> {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            match self.at(middle).cmp(&member) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    /// The least and the greatest.
    pub fn ends(self) -> impl Iterator<Item = i64> + use<'a> {
        let ends = (self.len() > 0).then(|| [self.at(0), self.at(self.len() - 1)]);
        ends.into_iter().flatten()
    }

    /// All of them, ascending.
    pub fn iter(self) -> impl Iterator<Item = i64> + use<'a> {
        (0..self.len()).map(move |index| self.at(index))
    }
}

/// Adds the member unless it is there. Whether it did.
pub fn add(packed: &mut impl Resize, member: i64) -> bool {
    let Err(index) = Integers::of(packed).find(member) else { return false };
    let needed = width_of(member);
    match packed.first() {
        None => packed.extend_by(1)[0] = needed,
        Some(&width) if width < needed => widen(packed, needed),
        Some(_) => {}
    }
    let width = usize::from(packed[0]);
    let at = 1 + index * width;
    packed.refit(at..at, width).copy_from_slice(&member.to_le_bytes()[..width]);
    true
}

/// Removes the member if it is there.
pub fn remove(packed: &mut impl Resize, member: i64) {
    let integers = Integers::of(packed);
    let (Ok(index), width) = (integers.find(member), integers.width) else { return };
    let at = 1 + index * width;
    packed.refit(at..at + width, 0);
}

/// Whether the bytes are a packed set of integers with a member at least.
#[cfg(test)]
pub fn is_valid(packed: &[u8]) -> bool {
    let Some((&width, members)) = packed.split_first() else { return false };
    let whole =
        matches!(width, 1 | 2 | 4 | 8) && !members.is_empty() && members.len().is_multiple_of(usize::from(width));
    whole && Integers::of(packed).iter().is_sorted_by(|a, b| a < b)
}

fn width_of(member: i64) -> u8 {
    if i8::try_from(member).is_ok() {
        1
    } else if i16::try_from(member).is_ok() {
        2
    } else if i32::try_from(member).is_ok() {
        4
    } else {
        8
    }
}

fn widen(packed: &mut impl Resize, width: u8) {
    let old = Integers::of(packed);
    let mut wider = Vec::with_capacity(1 + (old.len() + 1) * usize::from(width));
    wider.push(width);
    for member in old.iter() {
        wider.extend_from_slice(&member.to_le_bytes()[..usize::from(width)]);
    }
    let len = packed.len();
    packed.refit(0..len, wider.len()).copy_from_slice(&wider);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_as_wide_as_the_widest_was() {
        let mut packed = Vec::new();
        for (member, width) in [(5, 1), (-128, 1), (128, 2), (7, 2), (-32769, 4), (i64::MAX, 8), (i64::MIN, 8)] {
            assert!(add(&mut packed, member));
            assert!(!add(&mut packed, member));
            assert_eq!(packed[0], width);
        }
        let all: Vec<i64> = Integers::of(&packed).iter().collect();
        assert_eq!(all, [i64::MIN, -32769, -128, 5, 7, 128, i64::MAX]);
        all.into_iter().for_each(|member| remove(&mut packed, member));
        remove(&mut packed, 1);
        assert_eq!(packed, [8]);
        assert_eq!(Integers::of(&packed).len(), 0);
    }

    #[test]
    fn only_sorted_members_of_a_known_width_are_valid() {
        for (packed, valid) in [
            (&[][..], false),
            (&[1], false),
            (&[1, 255, 0, 1], true),
            (&[1, 0, 255], false),
            (&[1, 3, 3], false),
            (&[2, 1, 0, 2], false),
            (&[2, 1, 0, 2, 0], true),
            (&[3, 1, 0, 2], false),
            (&[0, 1], false),
        ] {
            assert_eq!(is_valid(packed), valid, "{packed:?}");
        }
    }
}
