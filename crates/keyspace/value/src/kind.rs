//! Types of values and their encodings.

/// The type of a value, as TYPE names it. The numbers are Redis', which DEBUG DIGEST shows. At most 15 exist, since
/// entries keep it in four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Type {
    /// A byte string.
    String = 0,
    /// A sequence of byte strings.
    List = 1,
    /// Distinct byte strings.
    Set = 2,
    /// Distinct byte strings, ordered by score and then by bytes.
    Zset = 3,
    /// Fields and their values.
    Hash = 4,
    /// Entries by time, and the groups that consume them.
    Stream = 6,
    /// Elements with a flag of bytes, ordered by their keys: a type of ARCUS, which Redis does not have.
    Btree = 7,
}

impl Type {
    /// All of them.
    pub const ALL: [Self; 7] = [Self::String, Self::List, Self::Set, Self::Zset, Self::Hash, Self::Stream, Self::Btree];

    /// The name TYPE answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::List => "list",
            Self::Set => "set",
            Self::Zset => "zset",
            Self::Hash => "hash",
            Self::Stream => "stream",
            Self::Btree => "btree",
        }
    }

    /// The type with this number, if there is one.
    #[inline]
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::String),
            1 => Some(Self::List),
            2 => Some(Self::Set),
            3 => Some(Self::Zset),
            4 => Some(Self::Hash),
            6 => Some(Self::Stream),
            7 => Some(Self::Btree),
            _ => None,
        }
    }
}

/// How the value's bytes are to be read; its meaning depends on the type. At most 8 per type: entries keep three bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Encoding(pub u8);

impl Encoding {
    /// The bytes are the string.
    pub const PLAIN: Self = Self(0);
    /// The bytes are the string, and the last command edited them in place (APPEND, SETRANGE, SETBIT): OBJECT ENCODING
    /// calls that `raw` whatever its length.
    pub const EDITED: Self = Self(1);
    /// The bytes are the string: a sum with a fraction as text (INCRBYFLOAT), which OBJECT ENCODING never calls `int`.
    pub const DECIMAL: Self = Self(2);
    /// A collection whose elements are in one packed buffer, as its type packs them.
    pub const PACKED: Self = Self(0);
    /// A collection packed as in [`Self::PACKED`], with an element that is or was longer than `*-max-listpack-value`.
    /// OBJECT ENCODING names it like a tree.
    pub const PACKED_LONG: Self = Self(2);
    /// A collection that is a tree: a [`crate::Big`]. No string has it.
    pub const BIG: Self = Self(7);

    /// A value that lies on a tier: no bytes are stored, and the optional fields have the address. Counts as
    /// compressed, so that code which takes the bytes as they are leaves it alone. Only memory has it.
    pub const AWAY: Self = Self(COMPRESSED);

    /// From this number on encodings are those of compressed values and of trees. One comparison separates them from
    /// values that are plain bytes.
    pub const FIRST_OTHER: u8 = COMPRESSED_TREE.0;

    /// The encoding with this number, if it is one of values that are neither compressed nor a tree.
    pub const fn of_bytes(number: u8) -> Option<Self> {
        if number < Self::FIRST_OTHER { Some(Self(number)) } else { None }
    }

    /// The encoding of a compressed value of this encoding: its bytes are no longer the string, or the packed
    /// collection, but the form that docs/formats/stored-value.md describes. For a tree, the form of its changes.
    pub const fn compressed(self) -> Self {
        match self {
            Self::BIG => COMPRESSED_TREE,
            _ => Self(self.0 | COMPRESSED),
        }
    }

    /// The encoding of a value of this one once it is decompressed.
    pub const fn decompressed(self) -> Self {
        match self {
            Self::BIG | COMPRESSED_TREE => Self::BIG,
            _ => Self(self.0 & !COMPRESSED),
        }
    }

    /// Whether a value of this encoding is stored compressed.
    #[inline]
    pub const fn is_compressed(self) -> bool {
        self.is_compressed_or_big() && self.0 != Self::BIG.0
    }

    /// Whether a value of this encoding is something else than the bytes that its type packs.
    #[inline]
    pub const fn is_compressed_or_big(self) -> bool {
        self.0 >= Self::FIRST_OTHER
    }
}

/// A tree that is stored compressed.
const COMPRESSED_TREE: Encoding = Encoding(3);

/// Set in the encodings of other values that are stored compressed.
const COMPRESSED: u8 = 4;
const _: () = assert!(Encoding::PACKED_LONG.compressed().0 < Encoding::BIG.0);

#[cfg(test)]
mod tests {
    use super::*;

    /// Each encoding that a value has comes back, and none is taken for another.
    #[test]
    fn encodings_come_back() {
        let of_bytes: Vec<Encoding> = (0..=u8::MAX).filter_map(Encoding::of_bytes).collect();
        assert_eq!(of_bytes, [0, 1, 2].map(Encoding));
        let mut all = std::collections::BTreeSet::new();
        for encoding in of_bytes.into_iter().chain([Encoding::BIG]) {
            let compressed = encoding.compressed();
            assert!(compressed.is_compressed() && !encoding.is_compressed(), "{encoding:?}");
            assert_eq!((compressed.decompressed(), encoding.decompressed()), (encoding, encoding));
            assert!(compressed.is_compressed_or_big());
            assert_eq!(encoding.is_compressed_or_big(), encoding == Encoding::BIG);
            all.extend([encoding.0, compressed.0]);
        }
        assert!(all.into_iter().eq(0..8), "three bits");
    }
}
