//! The attributes and their bytes.

use base::varint;
use engine::{Entry, Type};
use value::btree::Bkey;

/// The most elements of a collection that says nothing else.
pub const COUNT_DEFAULT: u32 = 4000;

/// What a full collection does with one element more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Overflow {
    /// Refuses it.
    Error = 0,
    /// Drops the head of a list.
    HeadTrim = 1,
    /// Drops the tail of a list.
    TailTrim = 2,
    /// Drops the smallest element of a b+tree, and notes that it did.
    SmallestTrim = 3,
    /// Drops the largest element of a b+tree, and notes that it did.
    LargestTrim = 4,
    /// Drops the smallest element of a b+tree.
    SmallestSilentTrim = 5,
    /// Drops the largest element of a b+tree.
    LargestSilentTrim = 6,
}

impl Overflow {
    /// All of them, each at its number.
    pub const ALL: [Self; 7] = [
        Self::Error,
        Self::HeadTrim,
        Self::TailTrim,
        Self::SmallestTrim,
        Self::LargestTrim,
        Self::SmallestSilentTrim,
        Self::LargestSilentTrim,
    ];

    /// What collections of this type do that say nothing else.
    pub fn default_of(kind: Type) -> Self {
        match kind {
            Type::List => Self::TailTrim,
            Type::Btree => Self::SmallestTrim,
            _ => Self::Error,
        }
    }

    /// Whether collections of this type can do that.
    pub fn fits(self, kind: Type) -> bool {
        match self {
            Self::Error => true,
            Self::HeadTrim | Self::TailTrim => kind == Type::List,
            _ => kind == Type::Btree,
        }
    }
}

/// Attributes of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The most elements; `None` for as many as the server allows.
    pub max_count: Option<u32>,
    /// What happens when it is full.
    pub overflow: Overflow,
    /// Whether it may be read.
    pub is_readable: bool,
    /// Whether elements were dropped at the bound.
    pub is_trimmed: bool,
    /// How far apart the keys of a b+tree may be.
    pub range: Option<Bkey>,
}

/// The bits of the first byte: the lowest three are the number of [`Overflow`].
const OVERFLOW: u8 = 7;
const UNREADABLE: u8 = 8;
const TRIMMED: u8 = 16;
const RANGE: u8 = 32;

impl Attributes {
    /// Those of a collection without any.
    pub fn default_of(kind: Type) -> Self {
        let overflow = Overflow::default_of(kind);
        Self { max_count: Some(COUNT_DEFAULT), overflow, is_readable: true, is_trimmed: false, range: None }
    }

    /// Those of a collection, and its flags.
    pub fn of_entry(entry: &Entry<'_>) -> (Self, u32) {
        let default = Self::default_of(entry.kind);
        if entry.fields.is_none() {
            return (default, 0);
        }
        let fields = entry.fields.get();
        (Self::decode(fields.attributes).unwrap_or(default), fields.flags)
    }

    /// The most elements, as a number: what `allowed` gives where that is as many as the server allows.
    pub fn count_max(&self, allowed: impl FnOnce() -> u32) -> u32 {
        self.max_count.unwrap_or_else(allowed)
    }

    /// Whether a collection of this many elements is full.
    pub fn is_full(&self, len: u64, allowed: impl FnOnce() -> u32) -> bool {
        len >= u64::from(self.count_max(allowed))
    }

    /// The bytes: at least two.
    pub fn encode(&self) -> Vec<u8> {
        let unreadable = if self.is_readable { 0 } else { UNREADABLE };
        let trimmed = if self.is_trimmed { TRIMMED } else { 0 };
        let range = if self.range.is_some() { RANGE } else { 0 };
        let mut out = vec![self.overflow as u8 | unreadable | trimmed | range];
        varint::put(&mut out, self.max_count.map_or(0, u64::from));
        if let Some(range) = &self.range {
            range.put(&mut out);
        }
        out
    }

    /// The attributes that these bytes are; `None` when they are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&first, mut rest) = bytes.split_first()?;
        let max_count = u32::try_from(varint::take(&mut rest)?).ok()?;
        let range = if first & RANGE == 0 { None } else { Some(Bkey::take(&mut rest)?) };
        let overflow = *Overflow::ALL.get(usize::from(first & OVERFLOW))?;
        let is_whole = rest.is_empty() && first & !(OVERFLOW | UNREADABLE | TRIMMED | RANGE) == 0;
        let (is_readable, is_trimmed) = (first & UNREADABLE == 0, first & TRIMMED != 0);
        let max_count = Some(max_count).filter(|count| *count > 0);
        is_whole.then_some(Self { max_count, overflow, is_readable, is_trimmed, range })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that docs/formats/entry-fields.md gives.
    #[test]
    fn golden_bytes() {
        let default = Attributes::default_of(Type::List);
        let attributes = Attributes { is_readable: false, ..default };
        assert_eq!(attributes.encode(), b"\x0a\xa0\x1f");
        assert_eq!(Attributes::decode(b"\x0a\xa0\x1f"), Some(attributes));
        let (overflow, range) = (Overflow::SmallestTrim, Some(Bkey::Number(300)));
        let attributes = Attributes { max_count: None, overflow, is_trimmed: true, range, ..default };
        assert_eq!(attributes.encode(), b"\x33\0\x22\x01\x2c");
        assert_eq!(Attributes::decode(b"\x33\0\x22\x01\x2c"), Some(attributes));
        for bytes in [&b""[..], b"\0", b"\x07\0", b"\x80\0", b"\0\0\0", b"\x20\0", b"\0\xff\xff\xff\xff\x7f"] {
            assert_eq!(Attributes::decode(bytes), None, "{bytes:?}");
        }
    }
}
