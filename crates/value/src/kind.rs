//! Types of values and their encodings.

/// The type of a value, as TYPE names it. The numbers are Redis', which DEBUG DIGEST shows. At most 15 exist, since entries
/// keep it in four bits.
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
}

impl Type {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::String, Self::List, Self::Set, Self::Zset, Self::Hash, Self::Stream];

    /// The name TYPE answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::List => "list",
            Self::Set => "set",
            Self::Zset => "zset",
            Self::Hash => "hash",
            Self::Stream => "stream",
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
    /// The bytes are the string, the text of a sum with a fraction (INCRBYFLOAT): OBJECT ENCODING never calls that `int`.
    pub const DECIMAL: Self = Self(2);
    /// A collection whose elements are in one packed buffer, as its type packs them.
    pub const PACKED: Self = Self(0);
    /// A collection that is a tree: a [`crate::Big`]. No string has it.
    pub const BIG: Self = Self(7);

    /// The encoding of a value of this one that is stored compressed: what is stored is no longer the string, or the packed
    /// collection, but the form that docs/formats/stored-value.md describes. Of a tree it is that of its changes.
    pub const fn compressed(self) -> Self {
        match self {
            Self::BIG => COMPRESSED_TREE,
            _ => Self(self.0 | COMPRESSED),
        }
    }

    /// The encoding of a value of this type once it is decompressed.
    pub fn decompressed(self, kind: Type) -> Self {
        match self {
            Self::BIG => self,
            COMPRESSED_TREE if kind != Type::String => Self::BIG,
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
        self.0 & COMPRESSED != 0
    }
}

/// Set in the encodings of values that are stored compressed, and in [`Encoding::BIG`], so that those who handle values that
/// are just bytes find out all others by one test.
const COMPRESSED: u8 = 4;
const _: () = assert!(Encoding::BIG.is_compressed_or_big());

/// A tree that is stored compressed; no packed collection has the encoding 2, which this would be of.
const COMPRESSED_TREE: Encoding = Encoding(6);
const _: () = assert!(COMPRESSED_TREE.is_compressed());

#[cfg(test)]
mod tests {
    use super::*;

    /// Each encoding that a value has comes back, and none is taken for another.
    #[test]
    fn encodings_come_back() {
        for kind in Type::ALL {
            let known = match kind {
                Type::String => [0, 1, 2, 2],
                _ => [0, 1, 1, Encoding::BIG.0],
            };
            for encoding in known.map(Encoding) {
                let compressed = encoding.compressed();
                assert!(compressed.is_compressed() && !encoding.is_compressed(), "{kind:?} {encoding:?}");
                assert_eq!(compressed.decompressed(kind), encoding, "{kind:?}");
                assert_eq!(encoding.decompressed(kind), encoding, "{kind:?}");
            }
        }
    }
}
