//! Entries one after the other: score, length, member. The packed form and the leaves by score are such runs, in order.

use super::{Entry, score};
use std::cmp::Ordering;

/// Most bytes of a length.
const LENGTH_MAX: usize = base::varint::MAX_LEN;

impl Entry<'_> {
    /// The order of a sorted set.
    #[inline]
    pub(super) fn order(&self, other: &Entry<'_>) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| self.member.cmp(other.member))
    }
}

/// What stands before the member of an entry.
pub(super) struct Head {
    bytes: [u8; score::MAX_LEN + LENGTH_MAX],
    length: usize,
}

impl Head {
    #[inline]
    pub(super) fn new(entry: &Entry<'_>) -> Self {
        let mut bytes = [0; score::MAX_LEN + LENGTH_MAX];
        let mut length = match bytes.first_chunk_mut() {
            Some(front) => score::write(entry.score, front),
            None => 0,
        };
        let mut rest = entry.member.len();
        while rest >= 0x80 {
            bytes[length] = rest as u8 | 0x80;
            rest >>= 7;
            length += 1;
        }
        bytes[length] = rest as u8;
        Self { bytes, length: length + 1 }
    }

    /// Bytes of the whole entry.
    #[inline]
    pub(super) fn entry_len(&self, entry: &Entry<'_>) -> usize {
        self.length + entry.member.len()
    }

    /// Writes the whole entry, which takes up all of `out`.
    #[inline]
    pub(super) fn write(&self, entry: &Entry<'_>, out: &mut [u8]) {
        let (head, member) = out.split_at_mut(self.length);
        head.copy_from_slice(&self.bytes[..self.length]);
        member.copy_from_slice(entry.member);
    }
}

/// Walks a run forward.
#[derive(Clone, Debug)]
pub(super) struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Entries<'a> {
    /// From offset `at` on, where an entry begins.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Where the next entry begins.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Passes `count` entries.
    pub(super) fn skip(mut self, count: usize) -> Self {
        for _ in 0..count {
            self.next();
        }
        self
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let (score, length) = score::read(rest)?;
        let mut rest = rest.get(length..)?;
        let left = rest.len();
        // Nearly all members are shorter than 128 bytes.
        let size = match rest.split_first() {
            Some((byte, tail)) if *byte < 0x80 => {
                rest = tail;
                usize::from(*byte)
            }
            _ => usize::try_from(base::varint::take(&mut rest)?).ok()?,
        };
        let member = rest.get(..size)?;
        self.at += length + (left - rest.len()) + size;
        Some(Entry { score, member })
    }
}

/// Whether bytes are whole entries, one at least.
pub(super) fn are_entries(mut bytes: &[u8]) -> bool {
    let has_any = !bytes.is_empty();
    while !bytes.is_empty() {
        if score::take(&mut bytes).is_none() || crate::wire::take_string(&mut bytes).is_none() {
            return false;
        }
    }
    has_any
}

/// Where an entry is in a run, or belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Entries before it.
    pub(super) index: usize,
    /// Bytes before it.
    pub(super) at: usize,
    /// Bytes it takes; 0 when it is not there.
    pub(super) length: usize,
}

/// Finds the place of `entry`.
#[inline]
pub(super) fn find(bytes: &[u8], entry: &Entry<'_>) -> Place {
    let mut entries = Entries::new(bytes, 0);
    let mut index = 0;
    loop {
        let at = entries.at();
        let order = entries.next().map_or(Ordering::Greater, |other| other.order(entry));
        match order {
            Ordering::Less => index += 1,
            Ordering::Equal => return Place { index, at, length: entries.at() - at },
            Ordering::Greater => return Place { index, at, length: 0 },
        }
    }
}

/// How many entries at the front satisfy `is_before`, which is true up to some point.
#[inline]
pub(super) fn count_before(bytes: &[u8], is_before: impl Fn(&Entry<'_>) -> bool) -> usize {
    Entries::new(bytes, 0).take_while(is_before).count()
}
