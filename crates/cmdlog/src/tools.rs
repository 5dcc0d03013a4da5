//! What tools need of segments: one read alone, and a part of the log copied to another directory.
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

/// One segment, frame by frame, without the others. Which of its frames count only [`recover`](crate::recover) can tell.
/// Holds a window of 1 MiB, or the longest frame.
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
    /// What it is.
    pub body: FrameBody<'a>,
}

/// What lies behind the last frame that a segment leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRest {
    /// Where that is in the log.
    pub lsn: Lsn,
    /// Where that is in the file, in bytes.
    pub offset: u64,
    /// Bytes up to the last that is not zero: 0 in a segment that is whole.
    pub bytes: u64,
    /// How far some mark behind says that the log was durable. Beyond `lsn` it means damage, if no other segment has the
    /// frames in between.
    pub durable: Option<Lsn>,
}

impl SegmentReader {
    /// Opens a segment under its own name or another.
    ///
    /// # Errors
    /// [`RecoverError::Header`] for a damaged header, or one that is not what the name says; [`RecoverError::Newer`],
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

    /// Bytes of the file, preallocated ones included.
    pub fn file_bytes(&self) -> u64 {
        self.file.len()
    }

    /// The next frame; `None` where none follows.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_frame(&mut self) -> Result<Option<SegmentFrame<'_>>, RecoverError> {
        let lsn = self.position;
        let Some(offset) = self.file.offset(lsn) else { return Ok(None) };
        let Some(frame) = self.file.frame(&self.header.history, lsn)? else { return Ok(None) };
        self.position = frame.end;
        // A mark of another length has a right checksum and no meaning; recovery passes over it too.
        let body = body_of(frame.kind, frame.payload).unwrap_or(FrameBody::Unknown(frame.kind));
        Ok(Some(SegmentFrame { lsn: Lsn(lsn), end: Lsn(frame.end), offset, body }))
    }

    /// What lies behind the frames read so far. Reads the rest of the file.
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

/// Whether the name is that of a segment in the making, which holds nothing.
pub fn is_segment_copy(name: &OsStr) -> bool {
    name == OsStr::new(segment::COPY_NAME)
}

/// The first position that a segment under a foreign name has in its header.
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
    /// From where: where a frame begins.
    pub from: Lsn,
    /// Up to where: where a frame ends.
    pub to: Lsn,
    /// Where the copy goes: a directory without segments.
    pub into: &'a Path,
    /// The history that goes on behind the copy.
    pub history: HistoryId,
    /// The history of `from`, in case that there is no segment to tell it.
    pub origin: Option<HistoryId>,
}

/// Copies the frames of a part of a log, each at its own position and under its own history, and begins a new history
/// behind them. Everything is durable when this returns. Memory: about 2 MiB, or the longest frame twice. `each` is told
/// of every file written. Gives the history that the new one came from.
///
/// # Errors
/// A failing disk, or [`LogError::Unstable`] when the frames do not lead up to `to`. The copy is of no use then.
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
        // What is before is copied and synced before the copy counts, and so was durable.
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
    /// The frames do not lead so far, or none ends there.
    #[error("the command log leads to LSN {reached} and not to {to}")]
    Short {
        /// How far they lead.
        reached: Lsn,
        /// How far they should.
        to: Lsn,
    },
}
