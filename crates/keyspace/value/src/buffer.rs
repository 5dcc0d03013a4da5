//! The bytes of a packed collection while it is edited.
//!
//! Most edits change few bytes and the length by little, and a stored collection mostly has spare room after it. So it
//! is edited in place; once it outgrows the room, it moves to a vector.

use std::ops::{Deref, DerefMut, Range};

/// Bytes whose number can be changed.
pub trait Resize: DerefMut<Target = [u8]> {
    /// Truncates or extends to `len`; new bytes are unspecified.
    fn resize_to(&mut self, len: usize);

    /// Replaces the bytes of a range by `len` others, and returns the place to write them; until then it is
    /// unspecified.
    #[inline]
    fn refit(&mut self, range: Range<usize>, len: usize) -> &mut [u8] {
        let (old, new_end) = (self.len(), range.start + len);
        if len > range.len() {
            self.resize_to(old + (len - range.len()));
        }
        if new_end != range.end {
            self.copy_within(range.end..old, new_end);
        }
        if len < range.len() {
            self.resize_to(old - (range.len() - len));
        }
        &mut self[range.start..new_end]
    }

    /// Appends `len` bytes, and returns the place to write them.
    #[inline]
    fn extend_by(&mut self, len: usize) -> &mut [u8] {
        let end = self.len();
        self.resize_to(end + len);
        &mut self[end..]
    }
}

impl Resize for Vec<u8> {
    /// With room for an eighth more unless they are many: doubling would leave half of it unused.
    #[inline]
    fn resize_to(&mut self, len: usize) {
        const SLACK_MAX: usize = 256;
        if self.capacity() < len {
            self.reserve_exact(len - self.len() + (len / 8).min(SLACK_MAX));
        }
        self.resize(len, 0);
    }
}

/// See the module.
#[derive(Debug)]
pub enum Buffer<'e> {
    /// Where they are stored.
    Stored {
        /// The place, with the room after it.
        room: &'e mut [u8],
        /// How many they are.
        len: usize,
        /// Where they move to, empty until then.
        spare: &'e mut Vec<u8>,
    },
    /// In a vector of the caller.
    Lent(&'e mut Vec<u8>),
    /// In a vector that the edit has made.
    Made(Vec<u8>),
}

impl Buffer<'_> {
    /// Moves to the vector.
    #[inline(never)]
    fn outgrow(&mut self) -> &mut Vec<u8> {
        if let Self::Stored { .. } = self
            && let Self::Stored { room, len, spare } = std::mem::replace(self, Self::Made(Vec::new()))
        {
            spare.clear();
            spare.extend_from_slice(&room[..len]);
            *self = Self::Lent(spare);
        }
        match self {
            Self::Lent(bytes) => bytes,
            Self::Made(bytes) => bytes,
            Self::Stored { .. } => unreachable!("it has just moved"),
        }
    }
}

impl<'e> From<&'e mut Vec<u8>> for Buffer<'e> {
    fn from(bytes: &'e mut Vec<u8>) -> Self {
        Self::Lent(bytes)
    }
}

impl Deref for Buffer<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Stored { room, len, .. } => &room[..*len],
            Self::Lent(bytes) => bytes,
            Self::Made(bytes) => bytes,
        }
    }
}

impl DerefMut for Buffer<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Stored { room, len, .. } => &mut room[..*len],
            Self::Lent(bytes) => bytes,
            Self::Made(bytes) => bytes,
        }
    }
}

impl Resize for Buffer<'_> {
    #[inline]
    fn resize_to(&mut self, to: usize) {
        match self {
            Self::Stored { room, len, .. } if to <= room.len() => *len = to,
            _ => self.outgrow().resize_to(to),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Big, Body, Encoding, Limits, Slot, Type};
    use base::hash::KeyHasher;

    /// Applies changes as an engine does: to a tree where it is, to packed bytes where they are stored, with more or
    /// less room after them. Returns whether something is left.
    pub(crate) fn apply_stored(
        kind: Type,
        (packed, big, encoding): (&mut Vec<u8>, &mut Option<Big>, &mut Encoding),
        (limits, hasher): (&Limits, &KeyHasher),
        changes: &[u8],
    ) -> bool {
        let len = packed.len();
        let (mut room, mut spare) = (packed.clone(), Vec::new());
        room.resize(len + len * 7 % 40, 0xEE);
        let body = match big {
            Some(big) => Body::Big(big),
            None => Body::Packed(Buffer::Stored { room: &mut room, len, spare: &mut spare }),
        };
        let mut slot = Slot { body, encoding: *encoding, limits, hasher };
        let left = crate::apply(kind, &mut slot, changes);
        *encoding = slot.encoding;
        match slot.body {
            Body::Packed(after) => (*packed, *big) = (after.to_vec(), None),
            Body::Grown(grown) => *big = Some(Big::clone(&grown)),
            Body::Big(_) => {}
        }
        left.is_any()
    }

    /// Bytes are the same in a vector and in a place that they outgrow, and the bytes after the place stay.
    #[test]
    fn a_place_is_outgrown() {
        let (mut place, mut spare, mut vector) = (*b"abcdefgh--", Vec::new(), b"abcdef".to_vec());
        let (room, behind) = place.split_at_mut(8);
        let mut buffer = Buffer::Stored { room, len: 6, spare: &mut spare };
        for (range, with) in [(0..1, "xy"), (3..5, ""), (1..1, "zzz"), (2..2, "longer"), (0..9, "")] {
            buffer.refit(range.clone(), with.len()).copy_from_slice(with.as_bytes());
            vector.splice(range, with.bytes());
            assert_eq!(*buffer, *vector);
        }
        buffer.extend_by(2).copy_from_slice(b"!!");
        assert_eq!(buffer[vector.len()..], *b"!!");
        assert!(matches!(buffer, Buffer::Lent(_)) && behind == b"--");
    }
}
