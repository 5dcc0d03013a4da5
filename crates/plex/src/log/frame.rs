//! Files that grow record by record: the frame that the write-ahead log and the manifest share.
//!
//! ```text
//!   header (48 bytes) | record | record | ...        record: length | CRC-32C (4 bytes) | payload (1 byte or more)
//! ```
//!
//! The checksum covers the file's identity, the record's offset, its length and its payload, so a record of another file,
//! or one that moved, does not pass. A run of zeroes is no record. Formats: docs/formats/plex-wal.md, plex-manifest.md.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::checksum::Crc32c;
use base::varint;
use vfs::{File, FileSystem, OpenOptions};

use crate::error::{Error, Result};

/// Length of a file's header, in bytes.
pub(crate) const HEADER_LEN: usize = 48;

/// What tells the kinds of files apart.
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
        let file = fs.open(path, OpenOptions::write().create_new())?;
        file.write_all_at(&header.encode(kind), 0)?;
        Ok(Self { file, identity: header.identity, end: HEADER_LEN as u64, frame: Vec::new() })
    }

    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// Puts a record behind those not yet written.
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
    /// The file may then hold any part of them. They are forgotten, and what is pushed next takes their place: what is left of
    /// them behind it is no record, since a record's checksum covers its offset.
    pub fn write(&mut self) -> Result<()> {
        let wrote = self.file.write_all_at(&self.frame, self.end);
        self.end += if wrote.is_ok() { self.frame.len() as u64 } else { 0 };
        self.frame.clear();
        Ok(wrote?)
    }
}

/// A whole file of records in memory.
pub(crate) struct Frames {
    pub path: PathBuf,
    /// `None` if the file has no sound header; then it has no records either.
    pub header: Option<Header>,
    /// What the checksums of records must cover.
    identity: Option<u64>,
    bytes: Vec<u8>,
    at: usize,
}

impl Frames {
    /// `identity` is the file's, if it is known from elsewhere; a header with another one is no sound header.
    pub fn read(fs: &dyn FileSystem, path: &Path, kind: FileType, identity: Option<u64>) -> Result<Self> {
        let file = fs.open(path, OpenOptions::read())?;
        let mut bytes = vec![0; file.len()? as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let header = Header::sound(path, kind, identity, &bytes)?;
        let identity = identity.or(header.map(|header| header.identity));
        Ok(Self { path: path.to_owned(), header, identity, bytes, at: HEADER_LEN })
    }

    /// Where the next record begins.
    pub fn offset(&self) -> u64 {
        self.at as u64
    }

    /// Nothing stands behind the last record.
    pub fn is_at_end(&self) -> bool {
        self.header.is_some() && self.at == self.bytes.len()
    }

    /// The next whole record.
    pub fn next(&mut self) -> Option<&[u8]> {
        let (record, to) = self.at(self.at as u64)?;
        let from = to as usize - record.len();
        self.at = to as usize;
        Some(&self.bytes[from..self.at])
    }

    /// The whole record that begins at this place, and where it ends.
    pub fn at(&self, offset: u64) -> Option<(&[u8], u64)> {
        self.header?;
        let (from, to) = self.record_at(usize::try_from(offset).ok()?)?;
        Some((&self.bytes[from..to], to as u64))
    }

    /// To this place, at which a record has ended.
    pub fn go_to(&mut self, offset: u64) {
        self.at = offset as usize;
    }

    /// Where the payload of a sound record that begins at `at` begins and ends.
    fn record_at(&self, at: usize) -> Option<(usize, usize)> {
        let identity = self.identity?;
        let mut rest = self.bytes.get(at..)?;
        let len = usize::try_from(varint::take(&mut rest)?).ok()?;
        let payload_at = self.bytes.len() - rest.len() + 4;
        let payload = rest.get(4..)?.get(..len)?;
        let expected = u32::from_le_bytes(rest[..4].try_into().ok()?);
        (len > 0 && checksum(identity, at as u64, payload) == expected).then_some((payload_at, payload_at + len))
    }

    /// All sound records of `len` bytes at or behind the current place, wherever they begin.
    pub fn records_of_len(&self, len: usize) -> impl Iterator<Item = &[u8]> {
        let starts =
            (self.at.min(self.bytes.len())..self.bytes.len()).filter(move |&at| usize::from(self.bytes[at]) == len);
        starts.filter_map(move |at| self.record_at(at)).map(|(from, to)| &self.bytes[from..to])
    }

    /// Whether any sound record begins behind the current place.
    pub fn has_record_behind(&self) -> bool {
        self.record_behind().is_some()
    }

    /// Goes on with the first sound record behind the current place, which is damaged; `false` if there is none.
    pub fn skip_damage(&mut self) -> bool {
        let behind = self.record_behind();
        self.at = behind.unwrap_or(self.at);
        behind.is_some()
    }

    fn record_behind(&self) -> Option<usize> {
        (self.at + 1..self.bytes.len()).find(|&at| self.record_at(at).is_some())
    }
}
