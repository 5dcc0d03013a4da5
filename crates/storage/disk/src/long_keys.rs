//! Rows of keys that are too long for a key of the tree: several share one entry if their hashes are equal.
//!
//! ```text
//! CRC-64 of the key, 8 bytes -> [length, key, length, row] [length, key, length, row] ...
//! ```
//!
//! docs/formats/rows.md describes the bytes.

use base::checksum::Crc64Rdb;
use base::varint;

/// The key of the tree for a long key.
pub fn stored_key(key: &[u8]) -> [u8; 8] {
    Crc64Rdb::new().update(key).finish().to_be_bytes()
}

/// The keys and rows of an entry; `None` if it is malformed.
pub fn pairs(mut entry: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut pairs = Vec::new();
    while !entry.is_empty() {
        pairs.push((take(&mut entry)?, take(&mut entry)?));
    }
    Some(pairs)
}

/// The entry with another row for a key, or without the key; empty without any key. `None` if it is malformed.
pub fn changed(entry: &[u8], key: &[u8], row: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let others = pairs(entry)?.into_iter().filter(|(other, _)| *other != key);
    for (key, row) in others.chain(row.map(|row| (key, row))) {
        put(&mut out, key);
        put(&mut out, row);
    }
    Some(out)
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take<'e>(entry: &mut &'e [u8]) -> Option<&'e [u8]> {
    let len = usize::try_from(varint::take(entry)?).ok()?;
    let (taken, rest) = entry.split_at_checked(len)?;
    *entry = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys with one hash do not lose each other's rows.
    #[test]
    fn keys_share_an_entry() {
        let one = changed(b"", b"k", Some(b"row")).expect("it is empty");
        assert_eq!(one, b"\x01k\x03row");
        let two = changed(&one, b"other", Some(b"")).expect("it is whole");
        assert_eq!(pairs(&two), Some(vec![(&b"k"[..], &b"row"[..]), (b"other", b"")]));
        let two = changed(&two, b"k", Some(b"new")).expect("it is whole");
        assert_eq!(pairs(&two), Some(vec![(&b"other"[..], &b""[..]), (b"k", b"new")]));
        let one = changed(&two, b"other", None).expect("it is whole");
        assert_eq!(changed(&one, b"k", None), Some(Vec::new()));
        assert_eq!(pairs(&two[..two.len() - 1]), None);
    }
}
