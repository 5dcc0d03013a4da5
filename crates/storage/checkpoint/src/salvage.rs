//! Reads the whole blocks of a damaged snapshot file.
//!
//! ```text
//! frame and payload right  -> a block
//! frame right, payload not -> a gap; the next block follows the payload
//! frame wrong              -> a gap; search for the next frame, byte by byte
//! ```
//!
//! A frame's checksum includes set, file and block number, so bytes of another file or place never pass as a block.

use crate::envelope;
use crate::format::{FRAME_LEN, Frame, Header, Place, SNAPSHOT};
use crate::{CheckpointError, SetId};
use base::checksum::crc32c;
use std::path::Path;
use std::sync::Arc;
use vfs::{File, FileSystem, OpenOptions};

/// Bytes searched at a time.
const WINDOW_LEN: usize = 256 << 10;

/// Block numbers to try at one place: a gap of more blocks ends the salvage of the file.
const MISSED_MAX: u64 = 4096;

/// Reads the whole blocks of a snapshot file, in order. Holds one block: 64 KiB, or one large entry.
pub struct WholeBlocks {
    file: Arc<dyn File>,
    place: Place,
    header: Option<Header>,
    at: u64,
    end: u64,
    number: u64,
    /// Something is missing before the next block.
    is_gap: bool,
    payload: Vec<u8>,
}

/// A block with valid checksums.
#[derive(Clone, Copy, Debug)]
pub struct WholeBlock<'a> {
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// As in [`SnapshotBlock`](crate::SnapshotBlock).
    pub entries: u32,
    /// As in [`SnapshotBlock`](crate::SnapshotBlock).
    pub payload: &'a [u8],
    /// Whether blocks between the last whole one and this one are missing.
    pub is_after_gap: bool,
}

impl WholeBlocks {
    /// Opens the file of a set.
    ///
    /// # Errors
    /// [`CheckpointError::FileMissing`]; otherwise the operating system's error.
    pub fn open(fs: &dyn FileSystem, path: &Path, set: SetId, number: u8) -> Result<Self, CheckpointError> {
        let file = match fs.open(path, OpenOptions::read()) {
            Err(error) if error.is_not_found() => {
                return Err(CheckpointError::FileMissing { path: path.into(), lost: SNAPSHOT.lost.to_owned() });
            }
            opened => opened?,
        };
        let end = file.len()?;
        let found = header(&*file, path, end)?.filter(|(header, _)| (header.set, header.file) == (set, number));
        let (header, at) = found.map_or((None, 0), |(header, len)| (Some(header), len));
        let is_gap = header.is_none();
        let place = Place { set, file: number };
        Ok(Self { file, place, header, at, end, number: 0, is_gap, payload: Vec::new() })
    }

    /// The header, if it is whole.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// The next whole block; `None` if there are no more.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn next_block(&mut self) -> Result<Option<WholeBlock<'_>>, CheckpointError> {
        let (offset, entries) = loop {
            let Some(frame) = self.frame_at(self.at, self.number)? else {
                self.is_gap = true;
                match self.search()? {
                    Some((at, number)) => (self.at, self.number) = (at, number),
                    None => return Ok(None),
                }
                continue;
            };
            let (at, is_whole) = (self.at, self.read_payload(self.at, &frame)?);
            self.at = at + FRAME_LEN as u64 + frame.len;
            self.number += 1;
            match is_whole {
                true => break (at, frame.entries),
                false => self.is_gap = true,
            }
        };
        let is_after_gap = std::mem::take(&mut self.is_gap);
        Ok(Some(WholeBlock { offset, entries, payload: &self.payload, is_after_gap }))
    }

    /// The frame at an offset, if it belongs to the block and its payload fits.
    fn frame_at(&self, at: u64, number: u64) -> Result<Option<Frame>, CheckpointError> {
        let Some(room) = self.room_after(at) else { return Ok(None) };
        let mut bytes = [0; FRAME_LEN];
        self.file.read_exact_at(&mut bytes, at)?;
        let frame = Frame::decode(bytes, self.place, number).map(|(frame, _)| frame);
        Ok(frame.filter(|frame| frame.len <= room))
    }

    /// The most bytes that the payload of a frame at this offset can have.
    fn room_after(&self, at: u64) -> Option<u64> {
        self.end.checked_sub(at)?.checked_sub(FRAME_LEN as u64)
    }

    /// Reads a payload and returns whether it is whole.
    fn read_payload(&mut self, at: u64, frame: &Frame) -> Result<bool, CheckpointError> {
        self.payload.clear();
        self.payload.resize(frame.len as usize, 0);
        self.file.read_exact_at(&mut self.payload, at + FRAME_LEN as u64)?;
        Ok(crc32c(&self.payload) == frame.payload_crc)
    }

    /// Searches for the next block after the offset where one should begin; returns its offset and number.
    fn search(&mut self) -> Result<Option<(u64, u64)>, CheckpointError> {
        let (from, first) = (self.at, self.number);
        let mut window = vec![0; WINDOW_LEN + FRAME_LEN - 1];
        let mut at = from + 1;
        while let Some(room) = self.room_after(at) {
            let len = window.len().min(usize::try_from(room).unwrap_or(usize::MAX).saturating_add(FRAME_LEN));
            let Some(found) = window.get_mut(..len) else { break };
            self.file.read_exact_at(found, at)?;
            let places: Vec<u64> = (at..)
                .zip(found.windows(FRAME_LEN))
                .filter(|(at, bytes)| is_likely_frame(bytes, self.end - at))
                .map(|(at, _)| at)
                .collect();
            for place in places {
                let missed = ((place - from) / FRAME_LEN as u64).min(MISSED_MAX);
                for number in first..=first + missed {
                    if let Some(frame) = self.frame_at(place, number)?
                        && self.read_payload(place, &frame)?
                    {
                        return Ok(Some((place, number)));
                    }
                }
            }
            at += WINDOW_LEN as u64;
        }
        Ok(None)
    }
}

/// Whether bytes may be a frame, with `left` bytes from its beginning to the end of the file. Avoids a checksum at
/// every byte.
fn is_likely_frame(bytes: &[u8], left: u64) -> bool {
    let mut rest = bytes;
    let (Some(len), Some(entries)) = (envelope::take_u64(&mut rest), envelope::take_u32(&mut rest)) else {
        return false;
    };
    len > 0 && len <= left && u64::from(entries) <= len
}

/// The header and its length, if it is whole.
fn header(file: &dyn File, path: &Path, len: u64) -> Result<Option<(Header, u64)>, CheckpointError> {
    let mut bytes = vec![0; len.min(envelope::PREFIX_LEN as u64) as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let body_len = match envelope::open_prefix(&SNAPSHOT, path, &bytes) {
        Ok((_, body_len)) => body_len,
        Err(CheckpointError::Damaged { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let header_len = envelope::PREFIX_LEN + body_len + envelope::SUFFIX_LEN;
    if len < header_len as u64 {
        return Ok(None);
    }
    bytes.resize(header_len, 0);
    file.read_exact_at(&mut bytes, 0)?;
    match Header::decode(path, &bytes) {
        Ok(header) => Ok(Some((header, header_len as u64))),
        Err(CheckpointError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
