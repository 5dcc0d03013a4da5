//! The bytes of a segment: a header, then records at multiples of 16.
//!
//! ```text
//! header = "OnggiTIR" | version u32 | segment u32 | tier id (16) | key id u32 | cipher u32 | flags u32 | crc u32
//! record = value length u32 | type u8 | encoding u8 | key length u16 | crc u32 | key | value | zeros up to 16
//! ```
//!
//! Integers are little-endian. The crc of a record covers its first eight bytes, the key and the value, and is the tag
//! of its address. The key lets cleaning find the entry of a record.

use crate::TierId;
use base::checksum::{Crc32c, crc32c};
use engine::{Encoding, TierAddress, Type};

pub const VERSION: u32 = 1;

/// The longest segment file.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// The longest segment of a small tier.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;

/// Segments of a full tier at least. The open one is not cleaned, so a tier of few could not give back what is dead.
const SEGMENTS_MIN: u64 = 32;

/// The longest segment of a tier with this limit.
pub fn segment_bytes_for(max_bytes: u64) -> u64 {
    (max_bytes / SEGMENTS_MIN / SEGMENT_BYTES_MIN * SEGMENT_BYTES_MIN).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES)
}

/// Length of a segment's header.
pub const HEADER_BYTES: usize = 48;

/// Length of a record without its key and its value.
pub const RECORD_HEAD_BYTES: usize = 12;

/// The longest key whose value goes to a tier.
pub const KEY_LEN_MAX: usize = engine::tier::KEY_LEN_MAX;

/// Records begin at multiples of this.
pub const UNIT_BYTES: u64 = 16;

/// A flag of a header: zeros after the last record are no damage, since the file was made with its greatest length.
const PREALLOCATED: u32 = 1;

const MAGIC: [u8; 8] = *b"OnggiTIR";

/// Bytes that a record takes.
pub const fn record_bytes(key_len: usize, value_len: u32) -> u64 {
    (RECORD_HEAD_BYTES as u64 + key_len as u64 + value_len as u64).next_multiple_of(UNIT_BYTES)
}

/// The header of a segment; of one that has its greatest length from the beginning, if it `is_preallocated`.
pub fn header(segment: u32, id: TierId, is_preallocated: bool) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&segment.to_le_bytes());
    bytes[16..32].copy_from_slice(&id.0);
    bytes[40..44].copy_from_slice(&if is_preallocated { PREALLOCATED } else { 0 }.to_le_bytes());
    let crc = crc32c(&bytes[..HEADER_BYTES - 4]);
    bytes[HEADER_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub segment: u32,
    pub tier: TierId,
    /// Zeros after the last record are no damage.
    pub is_preallocated: bool,
}

/// What a segment's header says; what is wrong with it otherwise.
pub fn parse_header(bytes: &[u8]) -> Result<Header, String> {
    let Some((header, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err("the file ends within its header".to_owned());
    };
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if header[..8] != MAGIC || number(HEADER_BYTES - 4) != crc32c(&header[..HEADER_BYTES - 4]) {
        return Err("the header is damaged".to_owned());
    }
    if number(8) != VERSION {
        return Err(format!("the header has version {}, this program reads version {VERSION}", number(8)));
    }
    let mut id = [0; 16];
    id.copy_from_slice(&header[16..32]);
    let (segment, is_preallocated) = (number(12), number(40) & PREALLOCATED != 0);
    Ok(Header { segment, tier: TierId(id), is_preallocated })
}

/// What stands before the key of a record. Its last four bytes are the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head([u8; RECORD_HEAD_BYTES]);

impl Head {
    pub fn new(key: &[u8], kind: Type, encoding: Encoding, value: &[u8]) -> Self {
        debug_assert!(key.len() <= KEY_LEN_MAX, "a key of {} bytes", key.len());
        let mut head = [0; RECORD_HEAD_BYTES];
        head[..4].copy_from_slice(&(value.len() as u32).to_le_bytes());
        (head[4], head[5]) = (kind as u8, encoding.0);
        head[6..8].copy_from_slice(&(key.len() as u16).to_le_bytes());
        let crc = Crc32c::new().update(&head[..8]).update(key).update(value).finish();
        head[8..].copy_from_slice(&crc.to_le_bytes());
        Self(head)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn tag(&self) -> u32 {
        let [.., a, b, c, d] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// The parts of a record whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'r> {
    pub kind: Type,
    pub encoding: Encoding,
    pub key: &'r [u8],
    pub value: &'r [u8],
    pub tag: u32,
}

/// The lengths of key and value that a head gives.
pub fn lengths(head: &[u8; RECORD_HEAD_BYTES]) -> (usize, u32) {
    let key_len = u16::from_le_bytes([head[6], head[7]]);
    (usize::from(key_len), u32::from_le_bytes([head[0], head[1], head[2], head[3]]))
}

/// The parts of the record that `bytes` begin with; what is wrong with it otherwise.
pub fn parse(bytes: &[u8]) -> Result<Parts<'_>, String> {
    let Some((head, rest)) = bytes.split_first_chunk::<RECORD_HEAD_BYTES>() else {
        return Err("the file ends within a record".to_owned());
    };
    let (key_len, value_len) = lengths(head);
    let Some((key, value)) =
        rest.split_at_checked(key_len).and_then(|(key, rest)| Some((key, rest.get(..value_len as usize)?)))
    else {
        return Err("the file ends within a record".to_owned());
    };
    let Some(kind) = Type::from_number(head[4]) else { return Err(format!("the record has type {}", head[4])) };
    let (encoding, expected) = (Encoding(head[5]), Head::new(key, kind, Encoding(head[5]), value));
    match expected.0 == *head {
        true => Ok(Parts { kind, encoding, key, value, tag: expected.tag() }),
        false => Err("the checksum is wrong".to_owned()),
    }
}

/// The encoding and the value of a record that was read, if it is the one at this address under this key; else what is
/// wrong.
pub fn check<'r>(record: &'r [u8], key: &[u8], address: TierAddress) -> Result<(Encoding, &'r [u8]), String> {
    let parts = parse(record)?;
    match parts.key == key && parts.value.len() == address.len as usize && parts.tag == address.tag {
        true => Ok((parts.encoding, parts.value)),
        false => Err("it is the record of another value".to_owned()),
    }
}

/// As [`check`], for a record whose value is not behind its head and key.
pub fn check_parts(head: &[u8], key: &[u8], value: &[u8], address: TierAddress) -> Result<Encoding, String> {
    let encoding = recognise(head, key, address)?;
    let kind = head.get(4).copied().and_then(Type::from_number);
    match kind.is_some_and(|kind| head.starts_with(Head::new(key, kind, encoding, value).bytes())) {
        true => Ok(encoding),
        false => Err("the checksum is wrong".to_owned()),
    }
}

/// As [`check`], for a record whose checksum was compared before.
pub fn recognise(record: &[u8], key: &[u8], address: TierAddress) -> Result<Encoding, String> {
    let Some((head, rest)) = record.split_first_chunk::<RECORD_HEAD_BYTES>() else {
        return Err("the file ends within a record".to_owned());
    };
    let (key_len, value_len) = lengths(head);
    let is_it = (key_len, value_len, Head(*head).tag()) == (key.len(), address.len, address.tag);
    match is_it && rest.starts_with(key) {
        true => Ok(Encoding(head[5])),
        false => Err("it is the record of another value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that docs/formats/tier-segment.md gives. A change here is a change of the format.
    #[test]
    fn golden_bytes() {
        let (tier, header) = (TierId(*b"0123456789abcdef"), header(7, TierId(*b"0123456789abcdef"), false));
        assert_eq!(header[..8], *b"OnggiTIR");
        assert_eq!(header[8..16], [1, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(header[16..32], *b"0123456789abcdef");
        assert_eq!(header[32..44], [0; 12]);
        let head = Head::new(b"key", Type::String, Encoding::PLAIN, b"value");
        assert_eq!(head.bytes()[..8], [5, 0, 0, 0, 0, 0, 3, 0]);
        let golden: Vec<u8> = [&header[..], head.bytes(), b"key", b"value", &[0; 12]].concat();
        assert_eq!(parse_header(&golden), Ok(Header { segment: 7, tier, is_preallocated: false }));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/seg-0000000007");
        if std::env::var_os("ONGGI_WRITE_GOLDEN").is_some() {
            std::fs::write(path, &golden).expect("the golden file can be written");
        }
        assert_eq!(std::fs::read(path).expect("the golden file is there"), golden);
        assert_eq!(record_bytes(3, 5), 32);
        let mapped = super::header(7, tier, true);
        assert_eq!((&mapped[..40], &mapped[40..44]), (&golden[..40], &[1, 0, 0, 0][..]));
        assert!(parse_header(&mapped).is_ok_and(|header| header.is_preallocated));
    }

    /// One changed bit anywhere, another key and another address are found out.
    #[test]
    fn no_other_record_passes() {
        let head = Head::new(b"key", Type::String, Encoding::EDITED, b"value");
        let record = [head.bytes(), b"key", b"value"].concat();
        let address = TierAddress { segment: 1, offset: 3, len: 5, tag: head.tag() };
        assert_eq!(check(&record, b"key", address), Ok((Encoding::EDITED, &b"value"[..])));
        for bit in 0..record.len() * 8 {
            let mut record = record.clone();
            record[bit / 8] ^= 1 << (bit % 8);
            check(&record, b"key", address).expect_err("a bit is wrong");
        }
        check(&record, b"kez", address).expect_err("it is another key");
        check(&record, b"key", TierAddress { tag: 1, ..address }).expect_err("it is another version");
        check(&record[..10], b"key", address).expect_err("it is cut off");
    }
}
