//! The fixed parts of a table file: block trailers, handles, the meta block, the footer.
//!
//! ```text
//!   data block .. | index block .. | top index | partition .. | filter | sketch | tombstones | meta | footer (48 B)
//! ```
//!
//! Every part but the footer is followed by a trailer of five bytes: compression (0: none) and a CRC-32C over the
//! file's identity, the part's offset, its bytes and the compression byte. So a block of another file, or of another
//! place, does not pass. Format: docs/formats/sstable.md.

use std::path::Path;

use base::checksum::Crc32c;
use base::varint;

use super::Summary;
use super::compression::{self, Compression};
use super::sample::Sample;
use crate::error::{Error, Result};
use crate::key::Seqno;

/// The last bytes of every table.
const MAGIC: [u8; 8] = *b"plexsst\n";

/// The newest version that this release reads, and writes for a table whose values have the times of their writes.
const VERSION: u32 = 5;

/// The version of others with a sample of their keys.
const VERSION_SAMPLE: u32 = 4;

/// The version of others whose index is in parts.
const VERSION_PARTS: u32 = 3;

/// The version of others whose filter is in partitions or knows prefixes.
const VERSION_FILTERS: u32 = 2;

/// The version of all others.
const VERSION_PLAIN: u32 = 1;

/// Length of a footer, in bytes.
pub(super) const FOOTER_LEN: usize = 48;

/// Length of a trailer, in bytes.
pub(super) const TRAILER_LEN: usize = 5;

/// Longest part that is read as a whole, in bytes: the largest value, with room for its key and head.
const PART_LEN_MAX: u64 = (1 << 30) + (1 << 20);

/// Where a part lies; the trailer is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Handle {
    pub offset: u64,
    pub len: u64,
}

impl Handle {
    pub fn put(self, out: &mut Vec<u8>) {
        varint::put(out, self.offset);
        varint::put(out, self.len);
    }

    pub fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (offset, len) = (varint::take(bytes)?, varint::take(bytes)?);
        (len <= PART_LEN_MAX).then_some(Self { offset, len })
    }

    /// A handle that is all of the bytes.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let handle = Self::take(&mut bytes)?;
        bytes.is_empty().then_some(handle)
    }
}

/// The checksum of a part.
pub(super) fn checksum(identity: u64, offset: u64, bytes: &[u8]) -> u32 {
    let mut head = [0; 16];
    head[..8].copy_from_slice(&identity.to_le_bytes());
    head[8..].copy_from_slice(&offset.to_le_bytes());
    let mut crc = Crc32c::new();
    crc.update(&head).update(bytes);
    crc.finish()
}

/// Compresses `part`, which begins at `offset` of the file, and appends its trailer.
pub(super) fn seal(identity: u64, offset: u64, part: &mut Vec<u8>, compression: Compression) {
    let byte = compression.pack(part);
    part.push(byte);
    let crc = checksum(identity, offset, part);
    part.extend_from_slice(&crc.to_le_bytes());
}

/// Takes the trailer off a part that was read with it, and undoes its compression.
///
/// # Errors
/// Corruption, when the checksum does not fit, or the compressed form or its kind is unknown.
pub(super) fn unseal(path: &Path, identity: u64, offset: u64, part: &mut Vec<u8>) -> Result<()> {
    let (len, byte) = verify(path, identity, offset, part)?;
    part.truncate(len);
    compression::unpack(byte, part).map_err(|what| Error::corruption(path, offset, what))
}

/// The length of a part that was read with its trailer, and how it is compressed.
///
/// # Errors
/// Corruption, when the checksum does not fit.
pub(super) fn verify(path: &Path, identity: u64, offset: u64, sealed: &[u8]) -> Result<(usize, u8)> {
    let wrong = |what: String| Err(Error::corruption(path, offset, what));
    let Some((covered, crc)) = sealed.split_last_chunk() else {
        return wrong("block shorter than its trailer".into());
    };
    let [part @ .., byte] = covered else { return wrong("block shorter than its trailer".into()) };
    let (got, expected) = (checksum(identity, offset, covered), u32::from_le_bytes(*crc));
    if got != expected {
        let len = covered.len();
        return wrong(format!("block of {len} bytes: checksum {got:#010x}, expected {expected:#010x}"));
    }
    Ok((part.len(), *byte))
}

/// What a table is, apart from its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meta {
    pub top_index: Handle,
    pub filter: Handle,
    pub sketch: Handle,
    pub ranges: Handle,
    pub entry_count: u64,
    pub tombstone_count: u64,
    /// Lengths of keys and values, added up.
    pub user_bytes: u64,
    pub seqno_min: Seqno,
    pub seqno_max: Seqno,
    /// Whether the filter is in partitions. From version 2 on.
    pub has_partitions: bool,
    /// Length of the prefixes that the filter knows, in bytes; 0 for none. From version 2 on.
    pub prefix_bytes: u64,
    /// Whether the top index counts data blocks, so that the index can be read in parts. From version 3 on.
    pub counts_blocks: bool,
    /// From version 4 on.
    pub sample: Sample,
    /// When the first and the last of the values were written. From version 5 on.
    pub times: Option<(u64, u64)>,
}

impl Meta {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for handle in [self.top_index, self.filter, self.sketch, self.ranges] {
            handle.put(&mut out);
        }
        for number in [self.entry_count, self.tombstone_count, self.user_bytes, self.seqno_min, self.seqno_max] {
            varint::put(&mut out, number);
        }
        if self.version() >= VERSION_FILTERS {
            varint::put(&mut out, u64::from(self.has_partitions));
            varint::put(&mut out, self.prefix_bytes);
        }
        if self.version() >= VERSION_PARTS {
            varint::put(&mut out, u64::from(self.counts_blocks));
        }
        if self.version() >= VERSION_SAMPLE {
            self.sample.encode(&mut out);
        }
        if let Some((first, last)) = self.times {
            varint::put(&mut out, first);
            varint::put(&mut out, last - first);
        }
        out
    }

    /// The oldest version that can say it.
    pub fn version(&self) -> u32 {
        if self.times.is_some() {
            VERSION
        } else if !self.sample.is_empty() {
            VERSION_SAMPLE
        } else if self.counts_blocks {
            VERSION_PARTS
        } else if self.has_partitions || self.prefix_bytes > 0 {
            VERSION_FILTERS
        } else {
            VERSION_PLAIN
        }
    }

    /// What the manifest keeps of it.
    pub fn summary(&self, has_ranges: bool) -> Summary {
        Summary {
            tombstone_count: self.tombstone_count,
            user_bytes: self.user_bytes,
            seqno_min: self.seqno_min,
            seqno_max: self.seqno_max,
            has_ranges,
            times: self.times,
        }
    }

    pub fn decode(mut bytes: &[u8], version: u32) -> Option<Self> {
        let rest = &mut bytes;
        let mut meta = Self {
            top_index: Handle::take(rest)?,
            filter: Handle::take(rest)?,
            sketch: Handle::take(rest)?,
            ranges: Handle::take(rest)?,
            entry_count: varint::take(rest)?,
            tombstone_count: varint::take(rest)?,
            user_bytes: varint::take(rest)?,
            seqno_min: varint::take(rest)?,
            seqno_max: varint::take(rest)?,
            ..Self::default()
        };
        if version >= VERSION_FILTERS {
            meta.has_partitions = take_flag(rest)?;
            meta.prefix_bytes = varint::take(rest)?;
        }
        if version >= VERSION_PARTS {
            meta.counts_blocks = take_flag(rest)?;
        }
        if version >= VERSION_SAMPLE {
            meta.sample = Sample::take(rest)?;
        }
        if version >= VERSION {
            let first: u64 = varint::take(rest)?;
            meta.times = Some((first, first.checked_add(varint::take(rest)?)?));
        }
        rest.is_empty().then_some(meta)
    }
}

fn take_flag(rest: &mut &[u8]) -> Option<bool> {
    match varint::take(rest)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// The end of a table file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub meta: Handle,
    pub identity: u64,
    pub version: u32,
}

impl Footer {
    /// `offset` is where the footer will stand.
    pub fn encode(&self, offset: u64) -> [u8; FOOTER_LEN] {
        let mut out = [0; FOOTER_LEN];
        out[0..8].copy_from_slice(&self.meta.offset.to_le_bytes());
        out[8..16].copy_from_slice(&self.meta.len.to_le_bytes());
        out[16..24].copy_from_slice(&self.identity.to_le_bytes());
        // Bytes 24 to 32 are reserved for the id of an encryption key, and zero.
        out[32..36].copy_from_slice(&self.version.to_le_bytes());
        let crc = checksum(self.identity, offset, &out[..36]);
        out[36..40].copy_from_slice(&crc.to_le_bytes());
        out[40..48].copy_from_slice(&MAGIC);
        out
    }

    /// # Errors
    /// A newer format; corruption.
    pub fn decode(path: &Path, offset: u64, bytes: &[u8; FOOTER_LEN]) -> Result<Self> {
        let wrong = |what: &str| Error::corruption(path, offset, what);
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if bytes[40..] != MAGIC {
            return Err(wrong("not the end of a table; the whole table is lost"));
        }
        let meta = Handle { offset: word(0), len: word(8) };
        let footer = Self { meta, identity: word(16), version: half(32) };
        let (got, expected) = (checksum(footer.identity, offset, &bytes[..36]), half(36));
        if got != expected {
            return Err(wrong("checksum of the footer; the whole table is lost"));
        }
        if half(32) > VERSION {
            return Err(Error::NewerFormat { path: path.to_owned(), found: half(32), supported: VERSION });
        }
        if word(24) != 0 || half(32) == 0 {
            return Err(wrong("the footer asks for what this release cannot do"));
        }
        Ok(footer)
    }
}
