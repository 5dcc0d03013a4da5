//! Segments for tools: read one alone, or copy a part of the log to another directory.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::ffi::OsStr;
use std::path::Path;

use base::{Clock, HistoryId, Lsn};
use vfs::{FileSystem, OpenOptions};

use crate::error::{LogError, RecoverError};
use crate::flush::open_segment;
use crate::reader::SegmentFile;
use crate::recovery::{self, FrameBody, SegmentHeader, body_of};
use crate::segment::{self, HEADER_BYTES, Header, HeaderError, Parent};
use crate::start::copy;

/// One segment, frame by frame, without the others. Only [`recover`](crate::recover) knows which of its frames
/// count. Holds a window of 1 MiB, or the longest frame.
pub struct SegmentReader {
    file: SegmentFile,
    header: Header,
    position: u64,
}

/// A frame of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFrame<'a> {
    /// Where it begins in the log.
    pub lsn: Lsn,
    /// The position after it.
    pub end: Lsn,
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Its contents.
    pub body: FrameBody<'a>,
}

/// The bytes after the last frame that can be reached in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRest {
    /// Their position in the log.
    pub lsn: Lsn,
    /// Their offset in the file, in bytes.
    pub offset: u64,
    /// Their number up to the last byte that is not zero: 0 in a whole segment.
    pub bytes: u64,
    /// How far a mark among them declares the log durable. Beyond `lsn` it means damage, unless another segment has the
    /// frames in between.
    pub durable: Option<Lsn>,
}

impl SegmentReader {
    /// Opens a segment under its own name or under another.
    ///
    /// # Errors
    /// [`RecoverError::Header`] for a damaged header, or one that contradicts the name; [`RecoverError::Newer`],
    /// [`RecoverError::Encrypted`], or a failing disk.
    pub fn open(fs: &dyn FileSystem, path: &Path) -> Result<Self, RecoverError> {
        let first = match path.file_name().and_then(segment::first_of) {
            Some(first) => first,
            None => first_in_header(fs, path)?,
        };
        let file = SegmentFile::open(fs, path.to_path_buf(), first)?;
        let header = file.header.map_err(|error| header_error(path, error))?;
        Ok(Self { file, header, position: first.0 })
    }

    /// What the header says.
    pub fn header(&self) -> SegmentHeader {
        let Header { history, parent, durable, created_ms, .. } = self.header;
        SegmentHeader { history, parent, durable, created_ms }
    }

    /// Where the segment begins in the log.
    pub fn first(&self) -> Lsn {
        self.header.first
    }

    /// Bytes of the file, including preallocated ones.
    pub fn file_bytes(&self) -> u64 {
        self.file.len()
    }

    /// The next frame; `None` if no frame follows.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_frame(&mut self) -> Result<Option<SegmentFrame<'_>>, RecoverError> {
        let lsn = self.position;
        let Some(offset) = self.file.offset(lsn) else { return Ok(None) };
        let Some(frame) = self.file.frame(&self.header.history, lsn)? else { return Ok(None) };
        self.position = frame.end;
        // A mark of the wrong length has a valid checksum and no meaning; recovery skips it too.
        let body = body_of(frame.kind, frame.payload).unwrap_or(FrameBody::Unknown(frame.kind));
        Ok(Some(SegmentFrame { lsn: Lsn(lsn), end: Lsn(frame.end), offset, body }))
    }

    /// The bytes after the frames read so far. Reads the rest of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn rest(&mut self) -> Result<SegmentRest, RecoverError> {
        let offset = self.file.offset(self.position).unwrap_or(self.file.len());
        let last = self.file.last_nonzero(offset)?;
        let durable = match last {
            Some(_) => self.file.durable_by_marks(&self.header.history, self.position)?,
            None => None,
        };
        let bytes = last.map_or(0, |last| last.saturating_sub(offset));
        Ok(SegmentRest { lsn: Lsn(self.position), offset, bytes, durable })
    }
}

/// Whether the name is that of an unfinished segment, which holds nothing.
pub fn is_segment_copy(name: &OsStr) -> bool {
    name == OsStr::new(segment::COPY_NAME)
}

/// The first position in the header of a segment whose name does not give it.
fn first_in_header(fs: &dyn FileSystem, path: &Path) -> Result<Lsn, RecoverError> {
    let file = fs.open(path, OpenOptions::read())?;
    let len = usize::try_from(file.len()?.min(HEADER_BYTES)).unwrap_or_default();
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, 0)?;
    Header::decode(&bytes).map(|header| header.first).map_err(|error| header_error(path, error))
}

fn header_error(path: &Path, error: HeaderError) -> RecoverError {
    match error {
        HeaderError::Damaged => RecoverError::Header { path: path.into() },
        HeaderError::Newer { version } => RecoverError::Newer { path: path.into(), version },
        HeaderError::Key { id } => RecoverError::Encrypted { path: path.into(), id },
        HeaderError::Cipher { id } => RecoverError::Cipher { path: path.into(), id },
    }
}

/// A part of a log, to be copied.
#[derive(Clone, Debug)]
pub struct Extract<'a> {
    /// The directory with the segments.
    pub dir: &'a Path,
    /// The first position: where a frame begins.
    pub from: Lsn,
    /// The end: where a frame ends.
    pub to: Lsn,
    /// The target: a directory without segments.
    pub into: &'a Path,
    /// The history that continues after the copy.
    pub history: HistoryId,
    /// The history of `from`, in case no segment names it.
    pub origin: Option<HistoryId>,
}

/// Copies the frames of a part of a log, each to its own position and history, and begins a new history after them.
/// Everything is durable when this returns. Uses about 2 MiB, or twice the longest frame. Calls `each` for every file
/// written. Returns the parent of the new history.
///
/// # Errors
/// A failing disk, or [`LogError::Unstable`] when the frames do not reach `to`. The copy is unusable then.
pub fn extract(
    fs: &dyn FileSystem,
    clock: &dyn Clock,
    part: &Extract<'_>,
    each: &mut dyn FnMut(&Path),
) -> Result<Option<Parent>, ExtractError> {
    let (pieces, end) = recovery::pieces_until(fs, part.dir, part.from, part.to)?;
    let reached = end.map_or(part.from, |end| end.lsn);
    if reached != part.to {
        return Err(ExtractError::Short { reached, to: part.to });
    }
    for piece in &pieces {
        let path = segment::path(part.into, Lsn(piece.from));
        // Everything before is copied and synced before the copy counts, so it was durable.
        copy(fs, clock, &path, std::slice::from_ref(piece), Lsn(piece.from))?;
        each(&path);
    }
    let origin = end.map(|end| end.history).or(part.origin);
    let parent = origin.map(|history| Parent { history, lsn: part.to });
    let created_ms = clock.now_ms();
    let header = Header {
        version: segment::VERSION,
        history: part.history,
        parent,
        first: part.to,
        durable: part.to,
        created_ms,
    };
    let (path, least) = (segment::path(part.into, part.to), header.offset(part.to.0));
    let (file, _) = open_segment(fs, &path, &header, least, least).map_err(LogError::from)?;
    file.sync_all().map_err(LogError::from)?;
    fs.sync_dir(part.into).map_err(LogError::from)?;
    each(&path);
    Ok(parent)
}

/// Why a part of a log could not be copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] RecoverError),
    /// The copy cannot be written, or the log changed meanwhile.
    #[error(transparent)]
    Write(#[from] LogError),
    /// The frames do not reach the position, or none ends there.
    #[error("the command log reaches LSN {reached}, not LSN {to}")]
    Short {
        /// The end of the frames.
        reached: Lsn,
        /// The requested end.
        to: Lsn,
    },
}
