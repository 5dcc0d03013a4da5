//! The names OBJECT ENCODING has for how a value is stored.
//!
//! Tools read them, so they are those of Valkey for an equal value, although what lies in memory here is something
//! else: every string is its bytes.

use crate::decoder::string_len;
use base::integer::parse_integer;
use engine::{Encoding, Entry, Type};

/// Up to this many bytes, its key and its own headers included, Valkey 9.1 keeps a string in one allocation with its
/// key.
const EMBEDDED_BYTES_MAX: usize = 128;
/// Of these, what is neither key nor value: the object's header, one byte for the size of the key's header, both string
/// headers and both final zeros; keys of 32 bytes and more have a larger header.
const EMBEDDED_HEADER_BYTES: usize = 15;
const LONG_KEY_BYTES_MIN: usize = 32;
const LONG_KEY_HEADER_BYTES: usize = 2;
/// What an expiration adds.
const EXPIRATION_BYTES: usize = 8;

/// The name of the entry's encoding.
pub fn name(entry: &Entry<'_>) -> &'static str {
    match entry.kind {
        Type::String => string_name(entry),
        // Each type says what its forms are called.
        Type::List | Type::Set | Type::Zset | Type::Hash | Type::Stream | Type::Btree => {
            collection_name(entry.kind, entry.encoding.decompressed())
        }
    }
}

/// Whether an entry stored raw because of its long key would have another encoding name under this key. Valkey does not
/// encode a value again when its key changes.
pub(crate) fn leaves_raw(entry: &Entry<'_>, key: &[u8]) -> bool {
    name(entry) == "raw" && name(&Entry { key, ..*entry }) != "raw"
}

/// Whether this string is named raw when it takes the place of one that expires, and otherwise not: Valkey makes the
/// new entry with room for the old one's expiration before it decides how to keep the value.
pub(crate) fn depends_on_old(key: &[u8], value: &[u8]) -> bool {
    let bytes = embedded_bytes(key, value.len());
    bytes <= EMBEDDED_BYTES_MAX && bytes.saturating_add(EXPIRATION_BYTES) > EMBEDDED_BYTES_MAX
}

/// Whether a collection that is not compressed has the name of a tree.
pub(crate) fn is_called_big(encoding: Encoding) -> bool {
    encoding == Encoding::BIG || encoding == Encoding::PACKED_LONG
}

/// The name of a collection's form.
fn collection_name(kind: Type, encoding: Encoding) -> &'static str {
    match kind {
        Type::Stream => "stream",
        Type::Btree if encoding == Encoding::BIG => "btree",
        Type::Btree => "packed",
        Type::Set if encoding == value::set::INTEGERS => "intset",
        // Valkey keeps no times in a listpack.
        Type::Hash if encoding == value::hash::TIMED => "hashtable",
        _ if !is_called_big(encoding) => "listpack",
        Type::List => "quicklist",
        Type::Zset => "skiplist",
        _ => "hashtable",
    }
}

fn string_name(entry: &Entry<'_>) -> &'static str {
    let encoding = entry.encoding.decompressed();
    if encoding == Encoding::EDITED {
        return "raw";
    }
    // What reads as an integer is never compressed.
    if encoding != Encoding::DECIMAL && !entry.is_compressed() && parse_integer(entry.value.bytes()).is_some() {
        return "int";
    }
    if embedded_bytes(entry.key, string_len(entry)) <= EMBEDDED_BYTES_MAX { "embstr" } else { "raw" }
}

/// What a string and its key take in one allocation.
fn embedded_bytes(key: &[u8], value_len: usize) -> usize {
    let long_key = if key.len() < LONG_KEY_BYTES_MIN { 0 } else { LONG_KEY_HEADER_BYTES };
    let lengths = [key.len(), value_len, long_key];
    lengths.iter().fold(EMBEDDED_HEADER_BYTES, |sum, len| sum.saturating_add(*len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{ExtFields, Value};

    /// The borders measured on Valkey 9.1.2, by length of the key.
    #[test]
    fn strings_are_named_as_in_valkey() {
        let named = |key: usize, value: &[u8], encoding| {
            let key = vec![b'k'; key];
            let value = Value::Bytes(value);
            name(&Entry {
                key: &key,
                kind: Type::String,
                encoding,
                value,
                expire_at: None,
                stamp: 0,
                fields: ExtFields::NONE,
            })
        };
        for (key, most) in [(1, 112), (10, 103), (20, 93), (40, 71), (60, 51), (100, 11)] {
            assert_eq!(named(key, &vec![b'x'; most], Encoding::PLAIN), "embstr");
            assert_eq!(named(key, &vec![b'x'; most + 1], Encoding::PLAIN), "raw");
        }
        assert_eq!(named(1, b"", Encoding::PLAIN), "embstr");
        assert_eq!(named(200, b"a", Encoding::PLAIN), "raw");
        assert_eq!(named(200, b"-5", Encoding::PLAIN), "int");
        assert_eq!(named(1, b"9223372036854775808", Encoding::PLAIN), "embstr");
        assert_eq!(named(1, b"5", Encoding::DECIMAL), "embstr");
        assert_eq!(named(1, b"5", Encoding::EDITED), "raw");
    }

    /// A collection is called the same whether it is compressed or not, and with long elements what its tree is called.
    #[test]
    fn collections_are_named_as_in_valkey() {
        let long = ["hashtable", "skiplist", "hashtable"];
        for (kind, name_of_long) in [Type::Set, Type::Zset, Type::Hash].into_iter().zip(long) {
            for (encoding, expected) in
                [(Encoding::PACKED, "listpack"), (Encoding::PACKED_LONG, name_of_long), (Encoding::BIG, name_of_long)]
            {
                for encoding in [encoding, encoding.compressed()] {
                    let value = Value::Bytes(b"");
                    let entry =
                        Entry { key: b"k", kind, encoding, value, expire_at: None, stamp: 0, fields: ExtFields::NONE };
                    assert_eq!(name(&entry), expected, "{kind:?} {encoding:?}");
                }
            }
        }
    }
}
