//! The order of entries, and the words for their parts.
//!
//! An entry is a user key, a sequence number, a kind and a value. Entries are ordered by user key ascending, then by
//! sequence number *descending*: the newest version of a key comes first. No two entries of one key share a number.

use std::cmp::Ordering;

/// The number of a change: every operation of every batch gets the next one. Zero stands for "older than any view",
/// which compaction gives to entries of a last run.
pub type Seqno = u64;

/// The largest sequence number. Two bits are left for the kind, in one 64-bit word.
pub const SEQNO_MAX: Seqno = (1 << 62) - 1;

/// Longest user key, in bytes.
pub const KEY_LEN_MAX: usize = 65_535;

/// Longest value, in bytes.
pub const VALUE_LEN_MAX: usize = 1 << 30;

/// Most that a batch may have, in bytes of keys and values and 32 for each operation.
pub const BATCH_BYTES_MAX: u64 = 4 << 30;

/// Names a key space: keys of different ones do not meet, and one batch may change several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeySpaceId(pub(crate) u32);

impl KeySpaceId {
    /// The one that is always there, named "default".
    pub const DEFAULT: KeySpaceId = KeySpaceId(0);
}

/// What an entry says about its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A tombstone: the key was deleted.
    #[default]
    Delete = 0,
    /// The key has this value.
    Put = 1,
}

/// Bits of a word for the kind.
pub(crate) const KIND_BITS: u32 = 2;

/// Sequence number and kind in one word, as tables and memtables keep them.
pub(crate) fn pack(seqno: Seqno, kind: Kind) -> u64 {
    debug_assert!(seqno <= SEQNO_MAX);
    seqno << KIND_BITS | kind as u64
}

/// Undoes [`pack`]; `None` for a kind of a later format.
pub(crate) fn unpack(word: u64) -> Option<(Seqno, Kind)> {
    let kind = match word & 3 {
        0 => Kind::Delete,
        1 => Kind::Put,
        _ => return None,
    };
    Some((word >> KIND_BITS, kind))
}

/// The order of entries.
pub(crate) fn compare(a: (&[u8], Seqno), b: (&[u8], Seqno)) -> Ordering {
    a.0.cmp(b.0).then(b.1.cmp(&a.1))
}

/// The hash of a user key that filters and sketches share: XXH3, 64 bits, seed 0. Part of the table format.
pub(crate) fn hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// A short key `s` with `left <= s < right`, for the index of a table; `left` itself if there is no shorter one.
pub(crate) fn separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let common = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    if let (Some(&a), Some(&b)) = (left.get(common), right.get(common))
        && a < b
    {
        if a + 1 < b && common + 1 < left.len() {
            let mut short = left[..=common].to_vec();
            short[common] += 1;
            return short;
        }
        // The byte cannot be raised without reaching `right`: raise the first later byte of `left` that can be.
        if let Some(at) = (common + 1..left.len()).find(|&at| left[at] < u8::MAX)
            && at + 1 < left.len()
        {
            let mut short = left[..=at].to_vec();
            short[at] += 1;
            return short;
        }
    }
    left.to_vec()
}

/// The smallest key greater than every key that begins with `prefix`; `None` if there is none.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// Newer versions of a key come first, and the packed word keeps both parts.
    #[test]
    fn order_and_packing() {
        assert_eq!(compare((b"a", 5), (b"a", 4)), Ordering::Less);
        assert_eq!(compare((b"a", 0), (b"b", 9)), Ordering::Less);
        assert_eq!(unpack(pack(SEQNO_MAX, Kind::Put)), Some((SEQNO_MAX, Kind::Put)));
        assert_eq!(unpack(2), None);
    }

    /// A separator lies between its neighbours and is never longer than the left one.
    #[test]
    fn separators_separate() {
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let mut draw =
                || (0..rng.below(6)).map(|_| [0, 1, 2, 254, 255][rng.below(5) as usize]).collect::<Vec<u8>>();
            let (a, b) = (draw(), draw());
            if a < b {
                let s = separator(&a, &b);
                assert!(a <= s && s < b && s.len() <= a.len(), "{a:?} {s:?} {b:?}");
            }
        }
    }

    /// The end of a prefix bounds exactly the keys with that prefix.
    #[test]
    fn prefix_ends() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(b"a\xff"), Some(b"b".to_vec()));
        assert_eq!(prefix_end(b"\xff\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }
}
