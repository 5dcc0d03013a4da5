//! Files that grow record by record: the frame that the write-ahead log and the manifest share.
//!
//! ```text
//!   header (48 bytes) | record | record | ...        record: length | CRC-32C (4 bytes) | payload (1 byte or more)
//! ```
//!
//! The checksum covers the file's identity, the record's offset, its length and its payload, so a record of another
//! file, or one that moved, does not pass. A run of zeroes is no record. Formats: docs/formats/plex-wal.md,
//! plex-manifest.md.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::checksum::Crc32c;
use base::varint;
use vfs::{File, FileSystem, OpenOptions};

use crate::error::{Error, Result};

/// Length of a file's header, in bytes.
pub(crate) const HEADER_LEN: usize = 48;

/// Length of a record's checksum, in bytes.
const CRC_LEN: usize = size_of::<u32>();

/// What distinguishes the kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileType {
    pub magic: [u8; 8],
    /// As files are written; every one from 1 on is read.
    pub version: u32,
}

/// The head of a file, as far as it differs from file to file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Goes into the checksums of the file's records.
    pub identity: u64,
    /// The number of the file before this one, and its length; 0 for none.
    pub previous: (u64, u64),
}

impl Header {
    fn encode(self, kind: FileType) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[0..8].copy_from_slice(&kind.magic);
        out[8..12].copy_from_slice(&kind.version.to_le_bytes());
        out[12..20].copy_from_slice(&self.identity.to_le_bytes());
        out[20..28].copy_from_slice(&self.previous.0.to_le_bytes());
        out[28..36].copy_from_slice(&self.previous.1.to_le_bytes());
        // Bytes 36 to 44 are reserved for the id of an encryption key, and zero.
        let crc = base::checksum::crc32c(&out[..44]);
        out[44..48].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// That of a file; `None` if it is not sound, or not that of the file with this identity.
    pub fn read(fs: &dyn FileSystem, path: &Path, kind: FileType, identity: Option<u64>) -> Result<Option<Self>> {
        let file = fs.open(path, OpenOptions::read())?;
        let mut bytes = [0; HEADER_LEN];
        if file.len()? < HEADER_LEN as u64 {
            return Ok(None);
        }
        file.read_exact_at(&mut bytes, 0)?;
        Self::sound(path, kind, identity, &bytes)
    }

    fn sound(path: &Path, kind: FileType, identity: Option<u64>, bytes: &[u8]) -> Result<Option<Self>> {
        let header = Self::decode(path, kind, bytes)?;
        Ok(header.filter(|header| identity.is_none_or(|identity| identity == header.identity)))
    }

    /// `Ok(None)` when the bytes are no header of this kind, as after a crash before the first sync.
    ///
    /// # Errors
    /// A newer format.
    fn decode(path: &Path, kind: FileType, bytes: &[u8]) -> Result<Option<Self>> {
        let Some(bytes) = bytes.get(..HEADER_LEN) else { return Ok(None) };
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if bytes[..8] != kind.magic || base::checksum::crc32c(&bytes[..44]) != half(44) {
            return Ok(None);
        }
        if half(8) > kind.version {
            return Err(Error::NewerFormat { path: path.to_owned(), found: half(8), supported: kind.version });
        }
        let is_sound = half(8) > 0 && word(36) == 0;
        Ok(is_sound.then(|| Self { identity: word(12), previous: (word(20), word(28)) }))
    }
}

/// Length of a record with a payload of this many bytes.
pub(crate) fn record_len(payload_len: usize) -> u64 {
    let mut varint = Vec::new();
    varint::put(&mut varint, payload_len as u64);
    (varint.len() + CRC_LEN + payload_len) as u64
}

fn checksum(identity: u64, offset: u64, payload: &[u8]) -> u32 {
    let mut head = [0; 24];
    head[..8].copy_from_slice(&identity.to_le_bytes());
    head[8..16].copy_from_slice(&offset.to_le_bytes());
    head[16..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    let mut crc = Crc32c::new();
    crc.update(&head).update(payload);
    crc.finish()
}

/// A file that records are appended to.
pub(crate) struct FrameWriter {
    file: Arc<dyn File>,
    identity: u64,
    /// Where the next record begins.
    end: u64,
    frame: Vec<u8>,
}

impl FrameWriter {
    /// Creates the file, which must not exist, and writes its header.
    pub fn create(fs: &dyn FileSystem, path: &Path, kind: FileType, header: Header) -> Result<Self> {
        Self::begin(fs.open(path, OpenOptions::write().create_new())?, kind, header)
    }

    /// Writes the header of an empty file.
    pub fn begin(file: Arc<dyn File>, kind: FileType, header: Header) -> Result<Self> {
        file.write_all_at(&header.encode(kind), 0)?;
        Ok(Self { file, identity: header.identity, end: HEADER_LEN as u64, frame: Vec::new() })
    }

    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// Appends a record to those not yet written.
    pub fn push(&mut self, payload: &[u8]) {
        debug_assert!(!payload.is_empty());
        let offset = self.end + self.frame.len() as u64;
        varint::put(&mut self.frame, payload.len() as u64);
        self.frame.extend_from_slice(&checksum(self.identity, offset, payload).to_le_bytes());
        self.frame.extend_from_slice(payload);
    }

    /// Hands the pushed records to the file in one write.
    ///
    /// # Errors
    /// The file may then hold any part of them. They are forgotten, and what is pushed next takes their place: what is
    /// left of them after it is no record, since a record's checksum covers its offset.
    pub fn write(&mut self) -> Result<()> {
        let wrote = self.file.write_all_at(&self.frame, self.end);
        self.end += if wrote.is_ok() { self.frame.len() as u64 } else { 0 };
        self.frame.clear();
        Ok(wrote?)
    }

    /// Writes a record of a few bytes that the next one takes the place of. Nothing must be pushed.
    ///
    /// # Errors
    /// As those of [`write`](Self::write).
    pub fn write_provisional(&mut self, payload: &[u8]) -> Result<()> {
        debug_assert!(self.frame.is_empty() && payload.len() <= PROVISIONAL_LEN_MAX);
        self.push(payload);
        let wrote = self.file.write_all_at(&self.frame, self.end);
        self.frame.clear();
        Ok(wrote?)
    }
}

/// Longest payload of a provisional record: a tag and a number.
const PROVISIONAL_LEN_MAX: usize = 11;

/// What a device writes as a whole, in bytes.
const SECTOR_BYTES: u64 = 512;

/// Bytes of a file of records that are in memory at once, but for a record that is longer.
const STRETCH_BYTES: u64 = 8 << 20;

/// A file of records, all of it in memory or a stretch.
pub(crate) struct Frames {
    pub path: PathBuf,
    /// `None` if the file has no sound header; then it has no records either.
    pub header: Option<Header>,
    /// The version of the file's format; 0 without a sound header.
    pub version: u32,
    /// What the checksums of records must cover.
    identity: Option<u64>,
    file: Arc<dyn File>,
    /// Length of the file.
    len: u64,
    /// What is in memory, and where in the file it begins.
    bytes: Vec<u8>,
    begin: u64,
    at: u64,
}

impl Frames {
    /// The whole file. `identity` is the file's, if it is known from elsewhere; a header with another one is no sound
    /// header.
    pub fn read(fs: &dyn FileSystem, path: &Path, kind: FileType, identity: Option<u64>) -> Result<Self> {
        let mut frames = Self::open(fs, path, kind, identity)?;
        frames.load(0..frames.len)?;
        Ok(frames)
    }

    /// The same with no record in memory yet.
    pub fn open(fs: &dyn FileSystem, path: &Path, kind: FileType, identity: Option<u64>) -> Result<Self> {
        let file = fs.open(path, OpenOptions::read())?;
        let (len, path) = (file.len()?, path.to_owned());
        let mut frames = Self {
            path,
            header: None,
            version: 0,
            identity,
            file,
            len,
            bytes: Vec::new(),
            begin: 0,
            at: HEADER_LEN as u64,
        };
        frames.load(0..len.min(HEADER_LEN as u64))?;
        frames.header = Header::sound(&frames.path, kind, identity, &frames.bytes)?;
        if frames.header.is_some() {
            frames.version = u32::from_le_bytes(std::array::from_fn(|i| frames.bytes[8 + i]));
        }
        frames.identity = identity.or(frames.header.map(|header| header.identity));
        Ok(frames)
    }

    fn load(&mut self, range: Range<u64>) -> Result<()> {
        // Nothing is there if the read fails.
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize((range.end - range.start) as usize, 0);
        self.file.read_exact_at(&mut bytes, range.start)?;
        (self.bytes, self.begin) = (bytes, range.start);
        Ok(())
    }

    /// To this place, at which a record has ended, with a stretch from there on in memory; whether a whole record
    /// begins there.
    pub fn go_on_from(&mut self, offset: u64) -> Result<bool> {
        self.at = offset;
        let left = self.len.saturating_sub(offset);
        self.load(offset..offset + left.min(STRETCH_BYTES))?;
        let mut rest = &self.bytes[..];
        let payload_len = varint::take(&mut rest).unwrap_or(0);
        let record_len = (self.bytes.len() - rest.len() + CRC_LEN) as u64 + payload_len.min(left);
        if record_len > self.bytes.len() as u64 && record_len <= left {
            self.load(offset..offset + record_len)?;
        }
        Ok(self.at(offset).is_some())
    }

    /// Has everything from the current place on in memory.
    pub fn load_rest(&mut self) -> Result<()> {
        self.load(self.at.min(self.len)..self.len)
    }

    /// Where the next record begins.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Bytes from the current place to the end of the file.
    pub fn bytes_left(&self) -> u64 {
        self.len.saturating_sub(self.at)
    }

    /// Nothing follows the last record.
    pub fn is_at_end(&self) -> bool {
        self.header.is_some() && self.at == self.len
    }

    /// The next whole record in memory.
    pub fn next(&mut self) -> Option<&[u8]> {
        let offset = self.at;
        self.at = self.at(offset)?.1;
        self.at(offset).map(|(record, _)| record)
    }

    /// The whole record that begins at this place, if it is in memory, and where it ends.
    pub fn at(&self, offset: u64) -> Option<(&[u8], u64)> {
        self.header?;
        let payload = self.record_at(usize::try_from(offset.checked_sub(self.begin)?).ok()?)?;
        let end = self.begin + payload.end as u64;
        Some((&self.bytes[payload], end))
    }

    /// The payload of a sound record that begins at this place of what is in memory.
    fn record_at(&self, at: usize) -> Option<Range<usize>> {
        let identity = self.identity?;
        let mut rest = self.bytes.get(at..)?;
        let len = usize::try_from(varint::take(&mut rest)?).ok()?;
        let payload_at = self.bytes.len() - rest.len() + CRC_LEN;
        let payload = rest.get(CRC_LEN..)?.get(..len)?;
        let expected = u32::from_le_bytes(*rest.first_chunk()?);
        let is_sound = len > 0 && checksum(identity, self.begin + at as u64, payload) == expected;
        is_sound.then_some(payload_at..payload_at + len)
    }

    /// Places in memory from the current one on.
    fn places(&self) -> Range<usize> {
        let here = (self.at.saturating_sub(self.begin) as usize).min(self.bytes.len());
        here..self.bytes.len()
    }

    /// All sound records of `len` bytes at or after the current place, wherever they begin.
    pub fn records_of_len(&self, len: usize) -> impl Iterator<Item = &[u8]> {
        let starts = self.places().filter(move |&at| usize::from(self.bytes[at]) == len);
        starts.filter_map(|at| self.record_at(at)).map(|payload| &self.bytes[payload])
    }

    /// Whether any sound record begins after the current place.
    pub fn has_record_behind(&self) -> bool {
        self.record_behind().is_some()
    }

    /// Whether a whole record stands at the current place that is not sound, and that no write cut short can have left.
    /// Of such a write, each sector's share lacks its first or its last byte, which then reads as zero, or as what a
    /// provisional record had there: so nothing is said of records that are not longer than one, or that begin just
    /// before the end of a sector.
    pub fn is_whole_and_not_torn(&self) -> bool {
        let bytes = &self.bytes[self.places()];
        let mut rest = bytes;
        let Some(len) = varint::take(&mut rest) else { return false };
        let whole = ((bytes.len() - rest.len() + CRC_LEN) as u64).saturating_add(len);
        let Some(record) = usize::try_from(whole).ok().and_then(|whole| bytes.get(..whole)) else { return false };
        let room = (SECTOR_BYTES - self.at % SECTOR_BYTES) as usize;
        if len <= PROVISIONAL_LEN_MAX as u64 || room <= CRC_LEN + 1 + PROVISIONAL_LEN_MAX {
            return false;
        }
        let (first, behind) = record.split_at(room.min(record.len()));
        let mut shares = std::iter::once(first).chain(behind.chunks(SECTOR_BYTES as usize));
        shares.all(|share| share.first() != Some(&0) && share.last() != Some(&0))
    }

    /// Continues with the first sound record after the current place, which is damaged; `false` if there is none.
    pub fn skip_damage(&mut self) -> bool {
        let behind = self.record_behind();
        self.at = behind.unwrap_or(self.at);
        behind.is_some()
    }

    fn record_behind(&self) -> Option<u64> {
        let behind = self.places().skip(1).find(|&at| self.record_at(at).is_some());
        behind.map(|at| self.begin + at as u64)
    }
}
