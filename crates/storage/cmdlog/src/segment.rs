//! Segments: the files of the log, their names and their headers.
//!
//! The file's first 4,096 bytes hold the header twice, in different sectors, so one damaged sector loses nothing. When
//! a log ends in order, the second copy is rewritten with the final durable position. It distinguishes damage that
//! removes the log's last bytes, the end mark among them, from a torn tail. Layout: docs/formats/command-log.md.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used))]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use base::checksum::crc32c;
use base::{HistoryId, Lsn, UnixMs};

/// Bytes before the first frame of a segment.
pub(crate) const HEADER_BYTES: u64 = 4096;
/// Bytes of one copy of the header.
const COPY_BYTES: usize = 128;
/// The offsets of the copies.
const COPIES_AT: [usize; 2] = [0, SECOND_COPY_AT as usize];
/// The offset of the copy that is rewritten when the log ends in order.
pub(crate) const SECOND_COPY_AT: u64 = 2048;
const MAGIC: [u8; 8] = *b"ONGGILOG";
/// The format this program writes, and the newest it reads.
pub(crate) const VERSION: u32 = 3;
/// The format in which the first frame follows the header directly, wherever the segment begins.
const VERSION_1: u32 = 1;
/// The first format with a cipher id, and in which records may have optional fields.
const VERSION_3: u32 = 3;
/// The header names the parent history.
const FLAG_PARENT: u32 = 1;

/// The file offset of a position, in a segment that begins at `first`. In the file as in the stream, blocks begin at
/// multiples of their size, so stream memory can be written with direct I/O as it is.
pub(crate) fn offset(first: u64, lsn: u64) -> u64 {
    HEADER_BYTES.saturating_add(first % HEADER_BYTES).saturating_add(lsn.saturating_sub(first))
}

/// Where a history branched off from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The history before.
    pub history: HistoryId,
    /// The last position the two have in common.
    pub lsn: Lsn,
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The format: [`VERSION`], or that of a segment that an older program wrote.
    pub version: u32,
    pub history: HistoryId,
    pub parent: Option<Parent>,
    /// The position at which the stream continues in this file.
    pub first: Lsn,
    /// How far the log was durable when the segment was created: at most `first`. In the second copy, after an end in
    /// order: up to the end mark.
    pub durable: Lsn,
    /// When the segment was created.
    pub created_ms: UnixMs,
}

/// Why bytes are not a valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// Neither copy is whole.
    Damaged,
    /// A newer program wrote it.
    Newer { version: u32 },
    /// It is encrypted, and this program has no keys.
    Key { id: u32 },
    /// The cipher is unknown to this program.
    Cipher { id: u32 },
}

impl Header {
    /// The first [`HEADER_BYTES`] of the file.
    pub fn encode(&self) -> Vec<u8> {
        let copy = self.encode_copy();
        let mut bytes = Vec::with_capacity(HEADER_BYTES as usize);
        for at in COPIES_AT {
            bytes.resize(at, 0);
            bytes.extend_from_slice(&copy);
        }
        bytes.resize(HEADER_BYTES as usize, 0);
        bytes
    }

    /// One copy of it.
    pub fn encode_copy(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(COPY_BYTES);
        copy.extend_from_slice(&MAGIC);
        copy.extend_from_slice(&self.version.to_le_bytes());
        copy.extend_from_slice(&(self.offset(self.first.0) as u32).to_le_bytes());
        copy.extend_from_slice(&self.history.0);
        let parent = self.parent.unwrap_or(Parent { history: HistoryId([0; 20]), lsn: Lsn(0) });
        copy.extend_from_slice(&parent.history.0);
        copy.extend_from_slice(&parent.lsn.0.to_le_bytes());
        copy.extend_from_slice(&self.first.0.to_le_bytes());
        copy.extend_from_slice(&self.durable.0.to_le_bytes());
        copy.extend_from_slice(&self.created_ms.to_le_bytes());
        copy.extend_from_slice(&0u32.to_le_bytes());
        copy.extend_from_slice(&(if self.parent.is_some() { FLAG_PARENT } else { 0 }).to_le_bytes());
        copy.resize(COPY_BYTES.saturating_sub(4), 0);
        let checksum = crc32c(&copy);
        copy.extend_from_slice(&checksum.to_le_bytes());
        copy
    }

    /// The file offset of a position.
    pub fn offset(&self, lsn: u64) -> u64 {
        match self.version {
            VERSION_1 => HEADER_BYTES.saturating_add(lsn.saturating_sub(self.first.0)),
            _ => offset(self.first.0, lsn),
        }
    }

    /// Reads the header from the first bytes of a file, which may be cut short. Of two valid copies, the one with the
    /// higher durable position counts.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let copies = COPIES_AT.map(|at| bytes.get(at..)?.first_chunk::<COPY_BYTES>());
        let decoded = copies.map(|copy| copy.map_or(Err(HeaderError::Damaged), decode_copy));
        match decoded {
            [Err(HeaderError::Damaged), second] => second,
            [Ok(first), Ok(second)] if second.is_of(&first) && second.durable > first.durable => Ok(second),
            [first, _] => first,
        }
    }

    /// Whether both are headers of the same segment.
    fn is_of(&self, other: &Self) -> bool {
        (self.version, self.history, self.first) == (other.version, other.history, other.first)
    }
}

/// Takes little-endian fields from the front of a copy.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], HeaderError> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(HeaderError::Damaged)?;
        self.0 = rest;
        Ok(*field)
    }

    fn u32(&mut self) -> Result<u32, HeaderError> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, HeaderError> {
        self.take().map(u64::from_le_bytes)
    }
}

fn decode_copy(copy: &[u8; COPY_BYTES]) -> Result<Header, HeaderError> {
    let Some((body, checksum)) = copy.split_last_chunk::<4>() else { return Err(HeaderError::Damaged) };
    if crc32c(body) != u32::from_le_bytes(*checksum) {
        return Err(HeaderError::Damaged);
    }
    let mut fields = Fields(body);
    if fields.take()? != MAGIC {
        return Err(HeaderError::Damaged);
    }
    // Every future version keeps the magic, the version and the place of the checksum.
    let version = fields.u32()?;
    if !(VERSION_1..=VERSION).contains(&version) {
        return Err(HeaderError::Newer { version });
    }
    let data_at = fields.u32()?;
    let history = HistoryId(fields.take()?);
    let parent = Parent { history: HistoryId(fields.take()?), lsn: Lsn(fields.u64()?) };
    let first = Lsn(fields.u64()?);
    let durable = Lsn(fields.u64()?);
    let created_ms = fields.u64()?.cast_signed();
    let id = fields.u32()?;
    if id != 0 {
        return Err(HeaderError::Key { id });
    }
    let parent = (fields.u32()? & FLAG_PARENT != 0).then_some(parent);
    // 0 in every file so far: reserved for replication. Reading the log does not need it.
    let _resp_offset = fields.u64()?;
    let cipher = fields.u32()?;
    if version >= VERSION_3 && cipher != 0 {
        return Err(HeaderError::Cipher { id: cipher });
    }
    let header = Header { version, history, parent, first, durable, created_ms };
    if header.offset(first.0) == u64::from(data_at) { Ok(header) } else { Err(HeaderError::Damaged) }
}

/// The name of the segment that begins at this position.
pub(crate) fn name(first: Lsn) -> String {
    format!("log-{:016x}", first.0)
}

/// The path of the segment that begins at this position.
pub(crate) fn path(dir: &Path, first: Lsn) -> PathBuf {
    dir.join(name(first))
}

/// The position in a segment's name; `None` for any other name.
pub(crate) fn first_of(name: &OsStr) -> Option<Lsn> {
    let digits = name.to_str()?.strip_prefix("log-")?;
    let hex = digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if hex { u64::from_str_radix(digits, 16).ok().map(Lsn) } else { None }
}

/// The name of a segment while it is being written. Recovery never reads a file of this name.
pub(crate) const COPY_NAME: &str = "log-copy.new";

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            version: VERSION,
            history: HistoryId([1; 20]),
            parent: Some(Parent { history: HistoryId([2; 20]), lsn: Lsn(0x0102) }),
            first: Lsn(0x0304),
            durable: Lsn(0x0300),
            created_ms: 0x0506,
        }
    }

    /// Every byte of a header, as docs/formats/command-log.md gives them: a change here changes the format.
    #[test]
    fn golden_bytes() {
        let bytes = header().encode();
        assert_eq!(bytes.len(), 4096);
        let mut expected = b"ONGGILOG\x03\0\0\0\x04\x13\0\0".to_vec();
        expected.extend([[1; 20], [2; 20]].concat());
        for number in [0x0102u64, 0x0304, 0x0300, 0x0506] {
            expected.extend(number.to_le_bytes());
        }
        expected.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        expected.extend([0; 28]);
        assert_eq!(bytes[..124], expected);
        assert_eq!(bytes[124..128], 0x5970_012eu32.to_le_bytes());
        assert_eq!(bytes[2048..2176], bytes[..128]);
        assert!(bytes[128..2048].iter().chain(&bytes[2176..]).all(|byte| *byte == 0));
    }

    /// One valid copy is enough, and a bit flipped in both is detected.
    #[test]
    fn one_whole_copy_is_enough() {
        let bytes = header().encode();
        assert_eq!(Header::decode(&bytes), Ok(header()));
        assert_eq!(Header::decode(&bytes[..200]), Ok(header()));
        for bit in 0..COPY_BYTES * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&bytes), Ok(header()), "first copy, bit {bit}");
            bytes[2048 + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&bytes), Err(HeaderError::Damaged), "both copies, bit {bit}");
        }
        for len in [0, 1, 127] {
            assert_eq!(Header::decode(&bytes[..len]), Err(HeaderError::Damaged));
        }
        assert_eq!(
            Header { parent: None, ..header() },
            Header::decode(&Header { parent: None, ..header() }.encode()).unwrap()
        );
    }

    /// After an end in order the second copy has the higher durable position and counts; without it the first does. A
    /// copy of another segment never counts.
    #[test]
    fn the_copy_that_says_more_counts() {
        let ended = Header { durable: Lsn(0x0909), ..header() };
        let mut bytes = header().encode();
        bytes[2048..2176].copy_from_slice(&ended.encode_copy());
        assert_eq!(Header::decode(&bytes), Ok(ended));
        for (damaged, left) in [(0, ended), (2048, header())] {
            let mut bytes = bytes.clone();
            bytes[damaged + 9] ^= 1;
            assert_eq!(Header::decode(&bytes), Ok(left));
        }
        let other = Header { first: Lsn(0x0305), ..ended };
        bytes[2048..2176].copy_from_slice(&other.encode_copy());
        assert_eq!(Header::decode(&bytes), Ok(header()));
    }

    /// Newer formats and encrypted segments are distinguished from damage.
    #[test]
    fn newer_and_encrypted_are_named() {
        let changed = |at: usize, value: u8| {
            let mut bytes = header().encode();
            bytes[at] = value;
            let checksum = crc32c(&bytes[..124]);
            bytes[124..128].copy_from_slice(&checksum.to_le_bytes());
            Header::decode(&bytes[..COPY_BYTES])
        };
        assert_eq!(changed(8, 4), Err(HeaderError::Newer { version: 4 }));
        assert_eq!(changed(12, 0), Err(HeaderError::Damaged), "frames begin elsewhere");
        assert_eq!(changed(88, 9), Err(HeaderError::Key { id: 9 }));
        assert_eq!(changed(104, 9), Err(HeaderError::Cipher { id: 9 }));
        assert_eq!(changed(96, 9), Ok(header()), "the offset of a stream of replies");
    }

    #[test]
    fn names_are_exact() {
        assert_eq!(name(Lsn(0x1f)), "log-000000000000001f");
        assert_eq!(first_of(OsStr::new("log-000000000000001f")), Some(Lsn(0x1f)));
        for other in ["log-1f", "log-000000000000001F", "log-+00000000000001f", "log-000000000000001f.new", COPY_NAME] {
            assert_eq!(first_of(OsStr::new(other)), None, "{other}");
        }
    }
}
