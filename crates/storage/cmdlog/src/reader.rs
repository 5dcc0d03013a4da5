//! Reads frames from one segment, through a window that moves over the file.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used))]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{HistoryId, Lsn};
use vfs::{File, FileSystem, FsError, OpenOptions};

use crate::frame::{self, HEAD_BYTES_MAX, Look, MARK_FRAME_BYTES};
use crate::segment::{self, HEADER_BYTES, Header, HeaderError};

/// Bytes per read.
const WINDOW_BYTES: usize = 1 << 20;

/// A segment's file, open for reading.
pub(crate) struct SegmentFile {
    pub path: PathBuf,
    /// The position in its name.
    pub first: u64,
    pub header: Result<Header, HeaderError>,
    file: Arc<dyn File>,
    len: u64,
    /// Bytes of the file from `window_at` on.
    window: Vec<u8>,
    window_at: u64,
}

/// A frame as it was read.
pub(crate) struct Frame<'a> {
    pub kind: u8,
    pub payload: &'a [u8],
    /// The position after it.
    pub end: u64,
}

impl SegmentFile {
    /// Opens a segment and reads its header.
    pub fn open(fs: &dyn FileSystem, path: PathBuf, first: Lsn) -> Result<Self, FsError> {
        let file = fs.open(&path, OpenOptions::read())?;
        let len = file.len()?;
        let mut bytes = vec![0; usize::try_from(len.min(HEADER_BYTES)).unwrap_or_default()];
        file.read_exact_at(&mut bytes, 0)?;
        let header = match Header::decode(&bytes) {
            // A file under another segment's name does not hold what its name promises.
            Ok(header) if header.first != first => Err(HeaderError::Damaged),
            header => header,
        };
        Ok(Self { path, first: first.0, header, file, len, window: Vec::new(), window_at: 0 })
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The file offset of a position of the stream; `None` before the segment or past the end of the file.
    pub fn offset(&self, lsn: u64) -> Option<u64> {
        lsn.checked_sub(self.first)?;
        let offset = match self.header {
            Ok(header) => header.offset(lsn),
            Err(_) => segment::offset(self.first, lsn),
        };
        (offset <= self.len).then_some(offset)
    }

    /// Returns `bytes` bytes from an offset on; fewer at the end of the file.
    pub fn bytes(&mut self, offset: u64, bytes: usize) -> Result<&[u8], FsError> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = bytes.min(left);
        let start = offset.checked_sub(self.window_at).and_then(|start| usize::try_from(start).ok());
        let held = start.and_then(|start| Some(start..start.checked_add(bytes)?));
        if held.as_ref().is_none_or(|held| self.window.get(held.clone()).is_none()) {
            self.window.clear();
            self.window.resize(bytes.max(WINDOW_BYTES).min(left), 0);
            self.window_at = offset;
            self.file.read_exact_at(&mut self.window, offset)?;
            return Ok(self.window.get(..bytes).unwrap_or_default());
        }
        Ok(held.and_then(|held| self.window.get(held)).unwrap_or_default())
    }

    /// The frame at a position, if it is whole and belongs to this history.
    pub fn frame(&mut self, history: &HistoryId, lsn: u64) -> Result<Option<Frame<'_>>, FsError> {
        let Some(offset) = self.offset(lsn) else { return Ok(None) };
        let left = self.len.saturating_sub(offset);
        let needs = match frame::look(self.bytes(offset, HEAD_BYTES_MAX)?, history, lsn) {
            Look::Broken => return Ok(None),
            Look::Needs(needs) => needs,
            Look::Frame { bytes, .. } => bytes,
        };
        // A length beyond the end of the file is not a frame's; nothing is allocated for it.
        let Some(needs) = usize::try_from(needs).ok().filter(|_| needs <= left) else { return Ok(None) };
        match frame::look(self.bytes(offset, needs)?, history, lsn) {
            Look::Frame { kind, payload, bytes } => Ok(Some(Frame { kind, payload, end: lsn.saturating_add(bytes) })),
            _ => Ok(None),
        }
    }

    /// The newest statement about durability among all marks at or beyond a position.
    pub fn durable_by_marks(&mut self, history: &HistoryId, from: u64) -> Result<Option<Lsn>, FsError> {
        let mut lsn = from.max(self.first);
        let mut newest = None;
        while let Some(offset) = self.offset(lsn).filter(|offset| *offset < self.len) {
            let bytes = self.bytes(offset, WINDOW_BYTES)?;
            newest = newest.max(frame::marks_within(bytes, history, lsn));
            // The next window finds marks that cross the end of this one.
            let step = bytes.len().saturating_sub(MARK_FRAME_BYTES.saturating_sub(1)).max(1);
            if bytes.len() < WINDOW_BYTES {
                break;
            }
            lsn = lsn.saturating_add(step as u64);
        }
        Ok(newest)
    }

    /// The offset after the last byte that is not zero, at or beyond an offset; `None` if all are zero.
    pub fn last_nonzero(&mut self, from: u64) -> Result<Option<u64>, FsError> {
        let (mut at, mut last) = (from, None);
        while at < self.len {
            let bytes = self.bytes(at, WINDOW_BYTES)?;
            if let Some(index) = bytes.iter().rposition(|byte| *byte != 0) {
                last = at.checked_add(index as u64).and_then(|last| last.checked_add(1));
            }
            at = at.saturating_add(bytes.len().max(1) as u64);
        }
        Ok(last)
    }

    /// The path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
