//! Elements one after the other: key, length and bytes of the eflag, length and bytes of the data.

use super::{Bkey, ByteKey, Element};
use crate::wire::{put_string, take_byte, take_string};
use std::cmp::Ordering;

impl<'a> Element<'a> {
    /// Appends it.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        self.bkey.put(out);
        out.push(self.eflag.len() as u8);
        out.extend_from_slice(self.eflag);
        put_string(out, self.data);
    }

    /// Takes what [`Self::put`] appended.
    #[inline]
    pub(super) fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let bkey = Bkey::take(rest)?;
        let len = usize::from(take_byte(rest)?);
        let (eflag, tail) = rest.split_at_checked(len).filter(|_| len <= ByteKey::BYTES_MAX)?;
        *rest = tail;
        Some(Self { bkey, eflag, data: take_string(rest)? })
    }

    /// Its bytes.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Bkey::ENCODED_MAX + self.eflag.len() + self.data.len() + 6);
        self.put(&mut out);
        out
    }
}

/// Walks a run forward.
#[derive(Clone, Debug)]
pub(super) struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Entries<'a> {
    /// From offset `at` on, where an element begins.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Where the next element begins.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Passes `count` elements.
    pub(super) fn skip(mut self, count: usize) -> Self {
        for _ in 0..count {
            self.next();
        }
        self
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        let mut rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let element = Element::take(&mut rest)?;
        self.at = self.bytes.len() - rest.len();
        Some(element)
    }
}

/// Whether bytes are whole elements, one at least.
pub(super) fn are_entries(mut bytes: &[u8]) -> bool {
    let has_any = !bytes.is_empty();
    while !bytes.is_empty() {
        if Element::take(&mut bytes).is_none() {
            return false;
        }
    }
    has_any
}

/// Where an element is in a run, or belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Elements before it.
    pub(super) index: usize,
    /// Bytes before it.
    pub(super) at: usize,
    /// Bytes it takes; 0 when it is not there.
    pub(super) length: usize,
}

/// Finds the place of the element with this key.
#[inline]
pub(super) fn find(bytes: &[u8], bkey: &Bkey) -> Place {
    let mut entries = Entries::new(bytes, 0);
    let mut index = 0;
    loop {
        let at = entries.at();
        match entries.next().map_or(Ordering::Greater, |other| other.bkey.cmp(bkey)) {
            Ordering::Less => index += 1,
            Ordering::Equal => return Place { index, at, length: entries.at() - at },
            Ordering::Greater => return Place { index, at, length: 0 },
        }
    }
}
