//! A miniature command log: preallocated segments, vectored appends, group syncs, rotation. The smallest realistic user
//! of the crate, for crash tests and for measuring their speed.
//!
//! Record: length of the payload (u32), CRC-32C of sequence and payload (u32), sequence (u64), payload.
#![allow(dead_code, reason = "the benchmark and the tests each use a part")]

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::checksum::Crc32c;
use vfs::{AllocateLen, File, FileSystem, FsError, OpenOptions, Result, read_file};

const HEADER_LEN: usize = 16;
const DIR: &str = "/log";

pub struct MiniLog<'a> {
    fs: &'a dyn FileSystem,
    segment: Arc<dyn File>,
    segment_len: u64,
    at: u64,
    written: u64,
    durable: u64,
}

impl<'a> MiniLog<'a> {
    pub fn create(fs: &'a dyn FileSystem, segment_len: u64) -> Result<Self> {
        vfs::create_dirs_synced(fs, Path::new(DIR))?;
        let segment = new_segment(fs, 1, segment_len)?;
        Ok(Self { fs, segment, segment_len, at: 0, written: 0, durable: 0 })
    }

    /// The last record that a sync has covered: what a client knows to be durable.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    pub fn written(&self) -> u64 {
        self.written
    }

    pub fn append(&mut self, payload_len: usize) -> Result<()> {
        let sequence = self.written + 1;
        let len = (HEADER_LEN + payload_len) as u64;
        if self.at + len > self.segment_len {
            self.sync()?;
            self.segment = new_segment(self.fs, sequence, self.segment_len)?;
            self.at = 0;
        }
        let payload = vec![sequence as u8; payload_len];
        let mut header = [0; HEADER_LEN];
        header[..4].copy_from_slice(&(payload_len as u32).to_le_bytes());
        header[4..8].copy_from_slice(&checksum(sequence, &payload).to_le_bytes());
        header[8..].copy_from_slice(&sequence.to_le_bytes());
        self.segment.write_all_vectored_at(&mut [IoSlice::new(&header), IoSlice::new(&payload)], self.at)?;
        self.at += len;
        self.written = sequence;
        Ok(())
    }

    pub fn sync(&mut self) -> Result<()> {
        self.segment.sync_data()?;
        self.durable = self.written;
        Ok(())
    }
}

fn checksum(sequence: u64, payload: &[u8]) -> u32 {
    Crc32c::new().update(&sequence.to_le_bytes()).update(payload).finish()
}

fn new_segment(fs: &dyn FileSystem, first: u64, len: u64) -> Result<Arc<dyn File>> {
    let path: PathBuf = format!("{DIR}/log-{first:08}").into();
    let segment = fs.open(&path, OpenOptions::write().create_new())?;
    segment.allocate(0, len, AllocateLen::Extend)?;
    segment.sync_all()?;
    fs.sync_dir(Path::new(DIR))?;
    Ok(segment)
}

/// Reads records while they are whole and in sequence; returns the last. A missing log has none.
pub fn recover(fs: &dyn FileSystem) -> Result<u64> {
    let segments = match fs.read_dir(Path::new(DIR)) {
        Ok(segments) => segments,
        Err(error) if error.is_not_found() => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut last = 0;
    for segment in segments {
        let bytes = read_file(fs, &Path::new(DIR).join(segment.name), 1 << 20)?;
        last = recover_segment(&bytes, last);
    }
    Ok(last)
}

fn recover_segment(bytes: &[u8], mut last: u64) -> u64 {
    let mut rest = bytes;
    while let Some((header, behind)) = rest.split_at_checked(HEADER_LEN) {
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let sequence = u64::from_le_bytes(header[8..].try_into().expect("eight bytes"));
        let Some((payload, behind)) = behind.split_at_checked(word(0) as usize) else { break };
        if sequence != last + 1 || checksum(sequence, payload) != word(4) {
            break;
        }
        last = sequence;
        rest = behind;
    }
    last
}

/// What a recovery after a crash must find: everything that a client knows to be durable, and nothing that was never
/// written.
pub fn check(fs: &dyn FileSystem, durable: u64, written: u64) -> std::result::Result<(), String> {
    match recover(fs) {
        Ok(last) if (durable..=written).contains(&last) => Ok(()),
        Ok(last) => Err(format!("recovered up to {last}; durable {durable}, written {written}")),
        Err::<_, FsError>(error) => Err(format!("{error}: {:?}", error.raw_os_error())),
    }
}
