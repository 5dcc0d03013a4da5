//! Rows and binlog entries of SSDB, as bytes say them.
//!
//! ```text
//! 'k' key                                    value       'h' len name '=' field          value
//! 's' len name len member                    score       'q' len name sequence u64       item
//! entry: sequence u64 (little-endian) | type u8 | command u8 | key of the row, or the name of a queue
//! ```
//!
//! Sizes (`H`, `Z`, `Q`) and the order of scores (`z`) say the same again. The items 2 and 3 of a queue are where it
//! begins and ends.

/// First byte of a binlog entry's row; its sequence follows, big-endian.
pub(super) const LOG: u8 = 1;

/// The zset that has the times of keys, in milliseconds.
pub(super) const EXPIRE_LIST: &[u8] = b"\xff\xff\xff\xff\xff|EXPIRE_LIST|KV";

/// Below are no items of a queue.
const ITEM_MIN: u64 = 10_000;

/// Times below are in seconds: an early SSDB wrote them.
const MILLISECONDS_MIN: i64 = 2_000_000_000;

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row<'a> {
    Key(&'a [u8]),
    Field {
        name: &'a [u8],
        field: &'a [u8],
    },
    Member {
        name: &'a [u8],
        member: &'a [u8],
    },
    /// The row's value is when the key expires.
    Expiry(&'a [u8]),
    Item {
        name: &'a [u8],
        sequence: u64,
    },
    /// A binlog entry.
    Log(u64),
    /// Follows from other rows.
    Derived,
}

impl<'a> Row<'a> {
    /// `None` for a key that no SSDB writes.
    pub fn parse(key: &'a [u8]) -> Option<Self> {
        let (kind, rest) = key.split_first()?;
        match kind {
            b'k' => Some(Self::Key(rest)),
            b'h' => {
                let (name, rest) = short(rest)?;
                Some(Self::Field { name, field: rest.strip_prefix(b"=")? })
            }
            b's' => {
                let (name, rest) = short(rest)?;
                let (member, rest) = short(rest)?;
                match rest.is_empty() {
                    true if name == EXPIRE_LIST => Some(Self::Expiry(member)),
                    true => Some(Self::Member { name, member }),
                    false => None,
                }
            }
            b'q' => {
                let (name, rest) = short(rest)?;
                let sequence = u64::from_be_bytes(rest.try_into().ok()?);
                Some(if sequence < ITEM_MIN { Self::Derived } else { Self::Item { name, sequence } })
            }
            &LOG => Some(Self::Log(u64::from_be_bytes(rest.try_into().ok()?))),
            _ => Some(Self::Derived),
        }
    }
}

/// Bytes after their length in one byte, and the rest.
fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

/// The key before all rows of a queue.
pub(super) fn before_queue(name: &[u8]) -> Vec<u8> {
    let mut key = vec![b'q', name.len() as u8];
    key.extend_from_slice(name);
    key
}

/// The time of a key that expires, in milliseconds since 1970.
pub(super) fn expires_at(score: i64) -> i64 {
    if score < MILLISECONDS_MIN { score.saturating_mul(1000) } else { score }
}

/// What an entry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Nothing happens to data: the entry says how far SSDB is.
    Nothing,
    CopyBegins,
    CopyEnds,
    OutOfSync,
    Set,
    Delete,
    PushBack,
    PushFront,
    PopBack,
    PopFront,
    SetItem,
}

/// An entry of the binlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub sequence: u64,
    pub command: Command,
    pub key: &'a [u8],
}

impl<'a> Entry<'a> {
    /// `None` for what is no entry, or one of a command that no SSDB has.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (sequence, rest) = bytes.split_first_chunk::<8>()?;
        let (&[kind, command], key) = rest.split_first_chunk::<2>()?;
        let command = match (kind, command) {
            (0, _) => Command::Nothing,
            (4, _) if key == b"OUT_OF_SYNC" => Command::OutOfSync,
            (1..=3, 1 | 3 | 5) => Command::Set,
            (1..=3, 2 | 4 | 6) => Command::Delete,
            (3, 7) => Command::CopyBegins,
            (3, 8) => Command::CopyEnds,
            (1..=3, 10) => Command::PushBack,
            (1..=3, 11) => Command::PushFront,
            (1..=3, 12) => Command::PopBack,
            (1..=3, 13) => Command::PopFront,
            (1..=3, 14) => Command::SetItem,
            _ => return None,
        };
        Some(Self { sequence: u64::from_le_bytes(*sequence), command, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_each_type() {
        assert_eq!(Row::parse(b"ka"), Some(Row::Key(b"a")));
        assert_eq!(Row::parse(b"h\x02ab=f="), Some(Row::Field { name: b"ab", field: b"f=" }));
        assert_eq!(Row::parse(b"s\x01z\x03abc"), Some(Row::Member { name: b"z", member: b"abc" }));
        let item = b"q\x01q\x3f\xff\xff\xff\xff\xff\xff\xff";
        assert_eq!(Row::parse(item), Some(Row::Item { name: b"q", sequence: 0x3fff_ffff_ffff_ffff }));
        assert_eq!(Row::parse(b"q\x01q\0\0\0\0\0\0\0\x02"), Some(Row::Derived), "where it begins");
        assert_eq!(Row::parse(b"Hab"), Some(Row::Derived));
        assert_eq!(Row::parse(b"\x01\0\0\0\0\0\0\x01\0"), Some(Row::Log(256)));
        let expires = [b"s\x14".as_slice(), EXPIRE_LIST, b"\x01a"].concat();
        assert_eq!(Row::parse(&expires), Some(Row::Expiry(b"a")));
        for damaged in [b"".as_slice(), b"h", b"h\x05ab", b"h\x01a", b"s\x01z\x03ab", b"s\x01z\x01ab", b"q\x01q12345"] {
            assert_eq!(Row::parse(damaged), None, "{}", damaged.escape_ascii());
        }
        assert!(item.as_slice() > before_queue(b"q").as_slice());
        assert_eq!((expires_at(1_700_000_000), expires_at(1_700_000_000_123)), (1_700_000_000_000, 1_700_000_000_123));
    }

    #[test]
    fn entries_of_each_command() {
        let entry = |kind: u8, command: u8, key: &[u8]| [&7u64.to_le_bytes()[..], &[kind, command], key].concat();
        let parsed =
            |bytes: &[u8]| Entry::parse(bytes).map(|entry| (entry.sequence, entry.command, entry.key.to_vec()));
        assert_eq!(parsed(&entry(1, 3, b"h\x01a=f")), Some((7, Command::Set, b"h\x01a=f".to_vec())));
        assert_eq!(parsed(&entry(2, 13, b"queue")), Some((7, Command::PopFront, b"queue".to_vec())));
        assert_eq!(parsed(&entry(0, 0, b"")), Some((7, Command::Nothing, vec![])));
        assert_eq!(parsed(&entry(3, 8, b"")).unwrap().1, Command::CopyEnds);
        assert_eq!(parsed(&entry(4, 0, b"OUT_OF_SYNC")).unwrap().1, Command::OutOfSync);
        for foreign in [entry(1, 9, b""), entry(5, 1, b"k"), b"short".to_vec()] {
            assert_eq!(parsed(&foreign), None);
        }
    }
}
