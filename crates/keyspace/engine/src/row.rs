//! An entry as a row: what a store of rows keeps of it, and how it becomes an entry again.
//!
//! ```text
//! version 1 | type 1 | encoding 1 | flags 1 | expiration 8 (flag 1) | optional fields (flag 4) | value
//! optional fields: varint length | tagged fields
//! value: as it is stored; of a tree parts: varint length | leaves, as in a checkpoint
//! ```
//!
//! In version 3, leaves may be rows of their own, which have addresses in the place of their elements.
//!
//! Numbers are little-endian. Flag 2 says that elements have a time. The key is not part of it. What is stored
//! compressed stays so. The access stamp is lost: an entry that comes from a row counts as just made.

use crate::{Counts, Encoding, Entry, NewEntry, PackedFields, SharedBig, TaggedFields, Type, Value};
use base::hash::KeyHasher;
use base::{UnixMs, varint};
use std::sync::Arc;
use value::cold::Keeper;
use value::{Big, Progress};

/// The version of a row that is whole. One in parts has version 2, which a store of rows keeps to itself.
const VERSION: u8 = 1;

/// The version of a row of a tree whose leaves may be rows.
const VERSION_OF_LEAVES: u8 = 3;

/// The flag of an expiration.
const EXPIRES: u8 = 1;

/// The flag of elements with a time.
const TIMED: u8 = 2;

/// The flag of optional fields.
const FIELDS: u8 = 4;

const HEAD_BYTES: usize = 4;

/// Why bytes are no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// They end too early.
    #[error("a row of {0} bytes is cut off")]
    Short(usize),
    /// Another version has written them.
    #[error("a row has version {0}; this program reads versions 1 to 3")]
    Version(u8),
    /// There is no such type.
    #[error("a row has type {0}, which is unknown")]
    Type(u8),
    /// The optional fields are none.
    #[error("a row has optional fields of another form")]
    Fields,
    /// There is no such flag.
    #[error("a row has flags {0:#04x}, of which some are unknown")]
    Flags(u8),
}

/// Appends the entry as a row. Leaves that are rows are not read: the row has their addresses.
pub fn write_row(entry: &Entry<'_>, out: &mut Vec<u8>) {
    write(entry, matches!(entry.value, Value::Big(tree) if tree.may_have_rows()), out);
}

/// Appends the entry as a row that has all elements. Reads leaves that are rows.
pub fn write_whole_row(entry: &Entry<'_>, out: &mut Vec<u8>) {
    write(entry, false, out);
}

fn write(entry: &Entry<'_>, has_addresses: bool, out: &mut Vec<u8>) {
    let Counts { expiring, timed, .. } = Counts::of(entry);
    let mut buffer = Vec::new();
    let fields = entry.fields.tagged(&mut buffer);
    let set = [(expiring > 0, EXPIRES), (timed > 0, TIMED), (!fields.is_none(), FIELDS)];
    let flags = set.iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, flag)| flags | flag);
    let version = if has_addresses { VERSION_OF_LEAVES } else { VERSION };
    out.extend([version, entry.kind as u8, entry.encoding.0, flags]);
    out.extend(entry.expire_at.iter().flat_map(|at| at.to_le_bytes()));
    if !fields.is_none() {
        varint::put(out, fields.bytes().len() as u64);
        out.extend_from_slice(fields.bytes());
    }
    match entry.value {
        Value::Big(tree) => {
            let (mut next, mut part) = (Some(Progress::default()), Vec::new());
            while let Some(from) = next {
                part.clear();
                next = match has_addresses {
                    true => tree.write_addresses(from, usize::MAX, &mut part),
                    false => tree.write_leaves(from, usize::MAX, &mut part),
                };
                varint::put(out, part.len() as u64);
                out.extend_from_slice(&part);
            }
        }
        value => out.extend_from_slice(value.bytes()),
    }
}

/// A row without its value, which is a row itself, and its value.
///
/// # Errors
/// [`RowError`] when the bytes are no row.
pub fn split_row(row: &[u8]) -> Result<(&[u8], &[u8]), RowError> {
    let head_len = Row::read(row)?.head_len(row);
    row.split_at_checked(head_len).ok_or(RowError::Short(row.len()))
}

/// A row as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'r> {
    /// The type of the entry.
    pub kind: Type,
    /// Its encoding.
    pub encoding: Encoding,
    /// When it expires.
    pub expire_at: Option<UnixMs>,
    /// Whether elements of it have a time.
    pub is_timed: bool,
    /// Whether leaves of it may be rows.
    pub has_addresses: bool,
    /// Its optional fields.
    fields: TaggedFields<'r>,
    value: &'r [u8],
}

impl<'r> Row<'r> {
    /// Reads a row.
    ///
    /// # Errors
    /// [`RowError`] when the bytes are none.
    pub fn read(bytes: &'r [u8]) -> Result<Self, RowError> {
        let short = RowError::Short(bytes.len());
        let (&[version, kind, encoding, flags], rest) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(short)?;
        if version != VERSION && version != VERSION_OF_LEAVES {
            return Err(RowError::Version(version));
        }
        let has_addresses = version == VERSION_OF_LEAVES;
        let kind = Type::from_number(kind).ok_or(RowError::Type(kind))?;
        if flags & !(EXPIRES | TIMED | FIELDS) != 0 {
            return Err(RowError::Flags(flags));
        }
        let (expire_at, mut value) = match flags & EXPIRES {
            0 => (None, rest),
            _ => {
                let (at, value) = rest.split_first_chunk().ok_or(short)?;
                (Some(UnixMs::from_le_bytes(*at)), value)
            }
        };
        let mut fields = TaggedFields::NONE;
        if flags & FIELDS != 0 {
            let len = varint::take(&mut value).and_then(|len| usize::try_from(len).ok()).ok_or(short)?;
            let (tagged, behind) = value.split_at_checked(len).ok_or(short)?;
            (fields, value) = (TaggedFields::check(tagged).ok_or(RowError::Fields)?, behind);
        }
        let (encoding, is_timed) = (Encoding(encoding), flags & TIMED != 0);
        Ok(Self { kind, encoding, expire_at, is_timed, has_addresses, fields, value })
    }

    /// How many bytes come before its value.
    fn head_len(&self, row: &[u8]) -> usize {
        row.len() - self.value.len()
    }

    /// What it counts for.
    pub fn counts(&self) -> Counts {
        Counts { len: 1, expiring: i64::from(self.expire_at.is_some()), timed: i64::from(self.is_timed) }
    }

    /// Builds the tree; `None` when the row holds none. `keeper` reads leaves that are compressed.
    ///
    /// # Panics
    /// When the value is not leaves of this type: a store checks rows before it stores them.
    pub fn tree(&self, keeper: &Arc<dyn Keeper>, hasher: &KeyHasher) -> Option<SharedBig> {
        self.is_tree().then(|| {
            let mut tree = Big::empty(self.kind, hasher);
            self.tree_parts().for_each(|part| tree.push_leaves(part, keeper));
            SharedBig::new(tree)
        })
    }

    fn is_tree(&self) -> bool {
        self.encoding == Encoding::BIG && self.kind != Type::String
    }

    /// The parts of the value of a tree.
    fn tree_parts(&self) -> impl Iterator<Item = &'r [u8]> {
        let mut rest = self.value;
        std::iter::from_fn(move || varint::take(&mut rest).and_then(|len| rest.split_off(..usize::try_from(len).ok()?)))
    }

    /// Visits the addresses of leaves that are rows.
    pub fn addresses(&self, visit: &mut dyn FnMut(&'r [u8])) {
        if self.has_addresses && self.is_tree() {
            self.tree_parts().for_each(|part| Big::addresses_in_leaves(self.kind, part, visit));
        }
    }

    /// The optional fields, as an entry has them.
    pub fn fields(&self) -> PackedFields {
        if self.fields.is_none() { PackedFields::default() } else { self.fields.get().pack() }
    }

    /// The entry to be stored, with what [`Row::tree`] and [`Row::fields`] have built.
    pub fn as_new<'a>(self, tree: Option<&'a SharedBig>, fields: &'a PackedFields) -> NewEntry<'a>
    where
        'r: 'a,
    {
        let value = tree.map_or(Value::Bytes(self.value), Value::Big);
        let Self { kind, encoding, expire_at, .. } = self;
        NewEntry { kind, encoding, value, expire_at, fields: fields.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExtFields, Fields, conformance};
    use base::Rng;

    fn written(entry: &Entry<'_>) -> Vec<u8> {
        let mut row = Vec::new();
        write_row(entry, &mut row);
        row
    }

    fn string(value: &[u8]) -> Entry<'_> {
        let (kind, encoding, value) = (Type::String, Encoding::PLAIN, Value::Bytes(value));
        Entry { key: b"k", kind, encoding, value, expire_at: None, stamp: 9, fields: ExtFields::NONE }
    }

    #[test]
    fn rows_have_these_bytes() {
        let mut entry = string(b"abc");
        assert_eq!(written(&entry), [1, 0, 0, 0, b'a', b'b', b'c']);
        entry.expire_at = Some(0x0102);
        let row = written(&entry);
        assert_eq!(row, [1, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, b'a', b'b', b'c']);
        let read = Row::read(&row).expect("it is a row");
        assert_eq!((read.kind, read.encoding, read.expire_at), (Type::String, Encoding::PLAIN, Some(0x0102)));
        assert_eq!(read.as_new(None, &read.fields()).value.bytes(), b"abc");
    }

    #[test]
    fn optional_fields_come_back() {
        let fields = Fields { flags: 7, is_sticky: true, ..Fields::default() }.pack();
        let row = written(&Entry { fields: fields.get(), ..string(b"v") });
        assert_eq!(row, [1, 0, 0, 4, 8, 1, 4, 7, 0, 0, 0, 2, 0, b'v']);
        let read = Row::read(&row).expect("it is a row");
        assert_eq!((read.fields(), read.as_new(None, &fields).value.bytes()), (fields.clone(), &b"v"[..]));
    }

    #[test]
    fn a_tree_comes_back_as_a_tree_however_small() {
        let (limits, hasher) = (value::Limits::default(), KeyHasher::new(&mut Rng::new(1)));
        let mut changes = Vec::new();
        value::set::Change::Add(b"member").put(&mut changes);
        let tree = SharedBig::new(Big::build(Type::Set, &changes, &limits, &hasher));
        let (kind, encoding, value) = (Type::Set, Encoding::BIG, Value::Big(&tree));
        let row = written(&Entry { kind, encoding, value, ..string(b"") });
        let back =
            Row::read(&row).expect("it is a row").tree(&conformance::keeper(), &hasher).expect("it holds a tree");
        assert_eq!(back.content_bytes(), tree.content_bytes());
    }

    #[test]
    fn other_bytes_are_errors() {
        assert_eq!(Row::read(&[1, 0]), Err(RowError::Short(2)));
        assert_eq!(Row::read(&[2, 0, 0, 0]), Err(RowError::Version(2)));
        assert_eq!(Row::read(&[1, 5, 0, 0]), Err(RowError::Type(5)));
        assert_eq!(Row::read(&[1, 0, 0, 1, 0, 0]), Err(RowError::Short(6)));
        assert_eq!(Row::read(&[1, 0, 0, 8]), Err(RowError::Flags(8)));
        assert_eq!(Row::read(&[1, 0, 0, 4, 1, 0]), Err(RowError::Fields));
    }
}
