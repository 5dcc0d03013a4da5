//! What changes carry several of: fields, ids, claims. Each is a count and that many encoded elements.

use super::Id;
use crate::wire::{put_string, take_string};
use base::{UnixMs, varint};

/// The fields of an entry, names and values in turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fields<'a> {
    count: u64,
    strings: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Writes `count` pairs of names and values, in turn, as [`Fields::put`] does. There is at least one pair.
    pub(super) fn put_strings<'s>(count: u64, strings: impl Iterator<Item = &'s [u8]>, out: &mut Vec<u8>) {
        varint::put(out, count);
        strings.for_each(|string| put_string(out, string));
    }

    /// Bytes of these names and values, with their lengths.
    pub(super) fn bytes_of<'s>(strings: impl Iterator<Item = &'s [u8]>) -> usize {
        strings.map(|string| varint::len(string.len() as u64) + string.len()).sum()
    }

    /// How many pairs of a name and a value.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Names and values with their lengths, in turn.
    pub(super) fn strings(&self) -> &'a [u8] {
        self.strings
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        varint::put(out, self.count);
        out.extend_from_slice(self.strings);
    }

    pub(super) fn take(from: &mut &'a [u8]) -> Option<Self> {
        let count = varint::take(from)?;
        let strings = elements(from, count.checked_mul(2).filter(|strings| *strings > 0)?, take_string)?;
        Some(Self { count, strings })
    }
}

/// Ids, in any order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ids<'a> {
    count: u64,
    ids: &'a [u8],
}

impl<'a> Ids<'a> {
    /// Writes ids into an empty buffer.
    pub fn collect(ids: impl IntoIterator<Item = Id>, buffer: &'a mut Vec<u8>) -> Self {
        let count = ids.into_iter().map(|id| id.put(buffer)).count();
        Self { count: count as u64, ids: buffer }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Id> + use<'a> {
        let mut rest = self.ids;
        std::iter::from_fn(move || Id::take(&mut rest))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        varint::put(out, self.count);
        out.extend_from_slice(self.ids);
    }

    pub(super) fn take(from: &mut &'a [u8]) -> Option<Self> {
        let count = varint::take(from)?;
        Some(Self { count, ids: elements(from, count, Id::take)? })
    }
}

/// That a consumer was given an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The entry.
    pub id: Id,
    /// When it was given last.
    pub delivered: UnixMs,
    /// How often it was given.
    pub deliveries: u64,
}

impl Claim {
    fn put(&self, out: &mut Vec<u8>) {
        self.id.put(out);
        varint::put(out, varint::zigzag(self.delivered));
        varint::put(out, self.deliveries);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self {
            id: Id::take(from)?,
            delivered: varint::unzigzag(varint::take(from)?),
            deliveries: varint::take(from)?,
        })
    }
}

/// Claims, in any order of ids.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claims<'a> {
    count: u64,
    claims: &'a [u8],
}

impl<'a> Claims<'a> {
    /// Writes claims into an empty buffer.
    pub fn collect(claims: impl IntoIterator<Item = Claim>, buffer: &'a mut Vec<u8>) -> Self {
        let count = claims.into_iter().map(|claim| claim.put(buffer)).count();
        Self { count: count as u64, claims: buffer }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Claim> + use<'a> {
        let mut rest = self.claims;
        std::iter::from_fn(move || Claim::take(&mut rest))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        varint::put(out, self.count);
        out.extend_from_slice(self.claims);
    }

    pub(super) fn take(from: &mut &'a [u8]) -> Option<Self> {
        let count = varint::take(from)?;
        Some(Self { count, claims: elements(from, count, Claim::take)? })
    }
}

/// Takes the bytes of `count` elements.
fn elements<'a, E>(
    from: &mut &'a [u8],
    count: u64,
    mut take: impl FnMut(&mut &'a [u8]) -> Option<E>,
) -> Option<&'a [u8]> {
    let all = *from;
    for _ in 0..count {
        take(from)?;
    }
    all.get(..all.len() - from.len())
}
