//! Where an element stands in a tree that is ordered by hash.

use base::hash::KeyHasher;

/// A place in the order, and a byte that distinguishes an element from its neighbours.
///
/// The place is 52 bits of a keyed hash, so that no client can crowd elements into one leaf, and so that a cursor of
/// HSCAN or SSCAN, which is a place, survives being read as a number with 53 bits of precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position(u64);

impl Position {
    const TAG_BITS: u32 = 12;

    /// The position of an element.
    #[inline]
    pub fn of(hasher: &KeyHasher, element: &[u8]) -> Self {
        Self(hasher.hash(element))
    }

    /// The place in the order. Elements may share one.
    #[inline]
    pub fn place(self) -> u64 {
        self.0 >> Self::TAG_BITS
    }

    /// All bits, to be stored with other things.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The position that had these [`Self::bits`].
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Bits that do not follow from the place.
    #[inline]
    pub fn tag(self) -> u8 {
        self.0 as u8
    }
}
