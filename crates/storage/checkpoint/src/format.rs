//! The parts of a snapshot file: header, blocks, footer.
//!
//! ```text
//! header | block 0 | block 1 | ... | footer
//! block  = length u64 | entries u32 | crc of the payload u32 | crc of all this u32 | payload
//! footer = blocks u64 | entries u64 | payload bytes u64 | chain u32 | crc u32
//! ```
//!
//! The checksums of a block's frame and of the footer include set and file number (and the block number) without
//! storing them again: a block of another file, or at another place, does not match. The chain is a checksum over the
//! checksums of the header and the blocks. So the footer, which the manifest names, covers every byte of the file.

use crate::envelope::{self, Kind};
use crate::{CheckpointError, SetId};
use base::checksum::{Crc32c, crc32c};
use base::{HistoryId, KeyspaceId, Lsn, UnixMs, varint};
use std::path::Path;

/// The header of a snapshot file.
pub(crate) const SNAPSHOT: Kind = Kind {
    magic: *b"OnggiSNP",
    version: 2,
    // A database takes at most five bytes, and no server has a hundred thousand.
    body_len_max: 1 << 20,
    lost: "the entries of this file",
};

/// Bytes before a block's payload.
pub(crate) const FRAME_LEN: usize = 20;
/// Bytes of the footer.
pub(crate) const FOOTER_LEN: usize = 32;
/// Entries are collected into blocks of about this size: small enough to be read and checked within the processor's
/// cache, large enough that thousands of entries share a system call.
pub(crate) const BLOCK_LEN: usize = 64 << 10;

/// The header of a snapshot file. Equal in all files of a set, except for the file's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The set.
    pub set: SetId,
    /// Its number in the set, from 0.
    pub file: u8,
    /// Number of files in the set.
    pub files: u8,
    /// The position in the log that the set represents: it has the effect of every record up to here and of none after.
    pub cut: Lsn,
    /// The history that `cut` belongs to.
    pub history: HistoryId,
    /// When the cut was made.
    pub created_ms: UnixMs,
    /// The key that encrypts the file: always 0, not encrypted.
    pub key_id: u32,
    /// The keyspace of each SELECT number.
    pub spaces: Vec<KeyspaceId>,
}

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        varint::put(&mut body, u64::from(self.set.0));
        body.extend_from_slice(&[self.file, self.files]);
        varint::put(&mut body, self.cut.0);
        body.extend_from_slice(&self.history.0);
        envelope::put_time(&mut body, self.created_ms);
        body.extend_from_slice(&self.key_id.to_le_bytes());
        // The cipher: not encrypted.
        body.extend_from_slice(&0u32.to_le_bytes());
        envelope::put_spaces(&mut body, &self.spaces);
        envelope::seal(&SNAPSHOT, &body)
    }

    pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let (version, body) = envelope::open(&SNAPSHOT, path, bytes)?;
        let malformed =
            || envelope::damaged(&SNAPSHOT, path, envelope::PREFIX_LEN as u64, "the header is malformed".to_owned());
        let (header, cipher) = Self::decode_body(version, body).ok_or_else(malformed)?;
        if cipher != 0 {
            return Err(CheckpointError::Reserved { path: path.into(), what: "an encryption cipher" });
        }
        if header.key_id != 0 {
            let what = format!("encrypted with key {}, which this version cannot read", header.key_id);
            return Err(envelope::damaged(&SNAPSHOT, path, envelope::PREFIX_LEN as u64, what));
        }
        Ok(header)
    }

    /// The header, and the number of the cipher.
    fn decode_body(version: u32, mut rest: &[u8]) -> Option<(Self, u32)> {
        let rest = &mut rest;
        let set = SetId(u32::try_from(varint::take(rest)?).ok()?);
        let (file, files) = (envelope::take_u8(rest)?, envelope::take_u8(rest)?);
        let (cut, history) = (envelope::take_lsn(rest)?, envelope::take_history(rest)?);
        let (created_ms, key_id) = (envelope::take_time(rest)?, envelope::take_u32(rest)?);
        let cipher = if version > 1 { envelope::take_u32(rest)? } else { 0 };
        let spaces = envelope::take_spaces(rest)?;
        rest.is_empty().then_some((Self { set, file, files, cut, history, created_ms, key_id, spaces }, cipher))
    }
}

/// The file that a checksum belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub set: SetId,
    pub file: u8,
}

impl Place {
    fn crc(self) -> Crc32c {
        let mut crc = Crc32c::new();
        crc.update(&self.set.0.to_le_bytes()).update(&[self.file]);
        crc
    }
}

/// The frame before a block's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub len: u64,
    pub entries: u32,
    pub payload_crc: u32,
}

impl Frame {
    /// The encoded frame, and the checksum at its end.
    pub fn encode(&self, place: Place, block: u64) -> ([u8; FRAME_LEN], u32) {
        let (len, entries, payload) =
            (self.len.to_le_bytes(), self.entries.to_le_bytes(), self.payload_crc.to_le_bytes());
        let crc = place.crc().update(&block.to_le_bytes()).update(&len).update(&entries).update(&payload).finish();
        let mut bytes = [0; FRAME_LEN];
        let parts = len.iter().chain(&entries).chain(&payload).copied().chain(crc.to_le_bytes());
        bytes.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
        (bytes, crc)
    }

    /// The frame and its checksum; `None` if the checksum is wrong.
    pub fn decode(bytes: [u8; FRAME_LEN], place: Place, block: u64) -> Option<(Self, u32)> {
        let mut rest = &bytes[..];
        let frame = Self {
            len: envelope::take_u64(&mut rest)?,
            entries: envelope::take_u32(&mut rest)?,
            payload_crc: envelope::take_u32(&mut rest)?,
        };
        let (expected, crc) = frame.encode(place, block);
        (expected == bytes).then_some((frame, crc))
    }
}

/// The footer of a snapshot file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footer {
    /// Blocks.
    pub blocks: u64,
    /// Entries in all blocks.
    pub entries: u64,
    /// Bytes of all payloads.
    pub payload_bytes: u64,
    /// Checksum over the crcs of header and blocks.
    pub chain: u32,
}

impl Footer {
    /// The encoded footer, and the checksum at its end, which covers the whole file.
    pub(crate) fn encode(&self, place: Place) -> ([u8; FOOTER_LEN], u32) {
        let mut bytes = [0; FOOTER_LEN];
        let parts = [self.blocks, self.entries, self.payload_bytes];
        let parts = parts.iter().flat_map(|part| part.to_le_bytes()).chain(self.chain.to_le_bytes());
        bytes.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
        let crc = place.crc().update(b"end").update(bytes.get(..FOOTER_LEN - 4).unwrap_or_default()).finish();
        bytes.iter_mut().skip(FOOTER_LEN - 4).zip(crc.to_le_bytes()).for_each(|(byte, part)| *byte = part);
        (bytes, crc)
    }

    /// The footer and its checksum; `None` if the checksum is wrong.
    pub(crate) fn decode(bytes: [u8; FOOTER_LEN], place: Place) -> Option<(Self, u32)> {
        let mut rest = &bytes[..];
        let footer = Self {
            blocks: envelope::take_u64(&mut rest)?,
            entries: envelope::take_u64(&mut rest)?,
            payload_bytes: envelope::take_u64(&mut rest)?,
            chain: envelope::take_u32(&mut rest)?,
        };
        let (expected, crc) = footer.encode(place);
        (expected == bytes).then_some((footer, crc))
    }
}

/// Computes the chain of a file's footer.
pub(crate) struct Chain(Crc32c);

impl Chain {
    /// Begins with the bytes of the header.
    pub fn new(header: &[u8]) -> Self {
        let mut chain = Self(Crc32c::new());
        chain.add(crc32c(header));
        chain
    }

    /// Adds the checksum of the next block's frame.
    pub fn add(&mut self, crc: u32) {
        self.0.update(&crc.to_le_bytes());
    }

    pub fn finish(&self) -> u32 {
        self.0.finish()
    }
}
