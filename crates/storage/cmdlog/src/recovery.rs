//! Recovery: from the segments in a directory to the stream of records. Only reads.
//!
//! ```text
//! log-0 (history a)  ......======== leftovers        at each position: the newest segment of the history that has a
//! log-D (history a)            ==========            whole frame there; where a child history begins, it continues
//! log-E (history b, parent a at E)      ======       there; where there is no frame, the log ends
//! ```
//!
//! C1. Recovery returns a prefix of what was appended. A frame's checksum covers its history and position, so the frame
//!     at a position can only be the one written for it.
//! C2. Everything that any header or mark declares durable must lie before the end of the log. If it does not, records
//!     are damaged or missing: that is an error, never a shorter log.
//! C3. Bytes after the end that no statement declares durable are a torn tail: they were never acknowledged as durable.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used))]

use std::path::{Path, PathBuf};

use base::{HistoryId, Lsn, UnixMs};
use vfs::{FileKind, FileSystem, FsError};

use crate::error::RecoverError;
use crate::frame::{Kind, Mark};
use crate::reader::SegmentFile;
use crate::segment::{self, HEADER_BYTES, Header, HeaderError, Parent};

/// The end of the readable log, and what is known about it.
#[derive(Clone, Debug)]
pub struct LogEnd {
    /// The position after the last whole frame; the requested position, if no frame follows it.
    pub end_lsn: Lsn,
    /// The history of the last frame; `None` if there is no segment.
    pub history: Option<HistoryId>,
    /// The history before that one.
    pub parent: Option<Parent>,
    /// The last mark read.
    pub last_mark: Option<Mark>,
    /// The log was ended in order: its last frame is an end mark.
    pub clean: bool,
    /// Bytes after the end, if any.
    pub torn: Option<TornTail>,
    /// Everything before this position is known to have been durable.
    pub proven_lsn: Lsn,
    /// Number of records returned.
    pub records: u64,
    /// Segments that hold no part of the log and lie where it continues; [`Log::create`](crate::Log::create) removes
    /// them.
    pub(crate) leftovers: Vec<PathBuf>,
    /// Where the frames from `proven_lsn` on are.
    pub(crate) tail: Vec<Piece>,
    /// The segment of the last frame, and the number of its bytes in use.
    pub(crate) used: Option<(PathBuf, u64)>,
}

/// Bytes after the end of the log: written, and cut off by a crash before they were durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The segment.
    pub path: PathBuf,
    /// Where they begin, as a byte offset in the file.
    pub offset: u64,
    /// Their number, up to the last byte that is not zero.
    pub bytes: u64,
}

/// A range of the stream and the segment it was read from.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub path: PathBuf,
    pub segment_first: Lsn,
    pub history: HistoryId,
    pub parent: Option<Parent>,
    pub from: u64,
    pub to: u64,
}

/// Progress of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The position reached.
    pub lsn: Lsn,
    /// Bytes read.
    pub done_bytes: u64,
    /// The most bytes to read: the last segment is preallocated and may be nearly empty.
    pub total_bytes: u64,
}

/// Records between two calls of the progress function.
const PROGRESS_RECORDS: u64 = 1024;

/// Receives each record: the position after it, and its payload. An error ends the recovery.
pub type EachRecord<'a> = dyn FnMut(Lsn, &[u8]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + 'a;

/// A frame of the log, as tools see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameBody<'a> {
    /// The effects of one command or transaction, encoded.
    Record(&'a [u8]),
    /// A statement about time and durability.
    Mark(Mark),
    /// A mark written when the program shut down in order.
    End(Mark),
    /// A kind that only a newer program knows. [`recover_frames`] never returns it.
    Unknown(u8),
}

/// Receives each frame of [`recover_frames`]: the position after it, and its body. An error ends the recovery.
pub type EachFrame<'a> = dyn FnMut(Lsn, FrameBody<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + 'a;

/// Reads the log from a position on, which is the beginning of a frame or the end, and passes on each record in order.
///
/// # Errors
/// See [`RecoverError`]. Nothing is ever changed; the records before the error have been passed on.
pub fn recover(
    fs: &dyn FileSystem,
    dir: &Path,
    from: Lsn,
    each: &mut EachRecord<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<LogEnd, RecoverError> {
    let mut each = |after: Lsn, body: FrameBody<'_>| match body {
        FrameBody::Record(payload) => each(after, payload),
        _ => Ok(()),
    };
    recover_frames(fs, dir, from, &mut each, progress)
}

/// As [`recover`], with the marks.
///
/// # Errors
/// As [`recover`].
pub fn recover_frames(
    fs: &dyn FileSystem,
    dir: &Path,
    from: Lsn,
    each: &mut EachFrame<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<LogEnd, RecoverError> {
    let names = list(fs, dir)?;
    let Some(mut chain) = Chain::open(fs, &names, from)? else { return empty(fs, &names, from) };
    chain.read(each, progress)?;
    chain.end(&names)
}

/// The segments in a directory, ascending.
pub(crate) fn list(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<(Lsn, PathBuf)>, FsError> {
    let entries = fs.read_dir(dir)?;
    let files = entries.into_iter().filter(|entry| entry.kind == FileKind::File);
    Ok(files.filter_map(|entry| Some((segment::first_of(&entry.name)?, dir.join(&entry.name)))).collect())
}

/// No segment can be read from `from` on. This is correct if nothing was ever written there.
fn empty(fs: &dyn FileSystem, names: &[(Lsn, PathBuf)], from: Lsn) -> Result<LogEnd, RecoverError> {
    let mut leftovers = Vec::new();
    for (first, path) in names {
        let mut file = open(fs, path, *first)?;
        // A header is durable before the first record of a log is written, so no record follows a header torn by a
        // crash.
        if file.header.is_err() && file.last_nonzero(HEADER_BYTES)?.is_some() {
            return Err(RecoverError::Header { path: path.clone() });
        }
        if file.header.is_ok() {
            return Err(RecoverError::Missing { path: path.clone(), first: *first, wanted: from });
        }
        leftovers.push(path.clone());
    }
    Ok(LogEnd {
        end_lsn: from,
        history: None,
        parent: None,
        last_mark: None,
        clean: false,
        torn: None,
        proven_lsn: from,
        records: 0,
        leftovers,
        tail: Vec::new(),
        used: None,
    })
}

/// Opens a segment. A format that this program must not touch is an error.
fn open(fs: &dyn FileSystem, path: &Path, first: Lsn) -> Result<SegmentFile, RecoverError> {
    let file = SegmentFile::open(fs, path.to_path_buf(), first)?;
    match file.header {
        Err(HeaderError::Newer { version }) => Err(RecoverError::Newer { path: path.into(), version }),
        Err(HeaderError::Key { id }) => Err(RecoverError::Encrypted { path: path.into(), id }),
        Err(HeaderError::Cipher { id }) => Err(RecoverError::Cipher { path: path.into(), id }),
        Err(HeaderError::Damaged) | Ok(_) => Ok(file),
    }
}

/// The segments from the requested position on, and how far they are read.
struct Chain {
    /// Ascending by first position.
    files: Vec<SegmentFile>,
    /// The file that the last frame came from.
    current: usize,
    history: HistoryId,
    parent: Option<Parent>,
    /// Histories that were abandoned: their remains are no evidence.
    left: Vec<HistoryId>,
    position: u64,
    from: u64,
    proven: u64,
    last_mark: Option<Mark>,
    clean: bool,
    records: u64,
    pieces: Vec<Piece>,
}

impl Chain {
    /// `None` if no segment with a valid header begins at or before `from`.
    fn open(fs: &dyn FileSystem, names: &[(Lsn, PathBuf)], from: Lsn) -> Result<Option<Self>, RecoverError> {
        let mut files = Vec::new();
        let mut start = None;
        for (first, path) in names.iter().rev() {
            let file = open(fs, path, *first)?;
            let found = file.header.ok().filter(|_| *first <= from);
            files.push(file);
            if found.is_some() {
                start = found;
                break;
            }
        }
        files.reverse();
        let Some(header) = start else { return Ok(None) };
        Ok(Some(Self {
            files,
            current: 0,
            history: header.history,
            parent: header.parent,
            left: header.parent.map(|parent| parent.history).into_iter().collect(),
            position: from.0,
            from: from.0,
            proven: header.durable.0,
            last_mark: None,
            clean: false,
            records: 0,
            pieces: Vec::new(),
        }))
    }

    fn read(&mut self, each: &mut EachFrame<'_>, progress: &mut dyn FnMut(Progress)) -> Result<(), RecoverError> {
        let total = self.files.iter().fold(0u64, |sum, file| sum.saturating_add(file.len()));
        while self.find()? {
            self.take(each)?;
            if self.records.is_multiple_of(PROGRESS_RECORDS) {
                let done_bytes = self.position.saturating_sub(self.from);
                progress(Progress { lsn: Lsn(self.position), done_bytes, total_bytes: total });
            }
        }
        Ok(())
    }

    /// Whether a file belongs to the current history. One without a header may.
    fn is_ours(&self, file: &SegmentFile) -> bool {
        file.header.map_or(true, |header| header.history == self.history)
    }

    /// Finds the file that has a frame at the position, and makes it the current one.
    fn find(&mut self) -> Result<bool, RecoverError> {
        let border = self.files.iter().rposition(|file| file.first == self.position);
        if let Some(index) = border {
            self.enter(index);
        }
        // No segment begins here, so the file of the last frame likely has the next one.
        if border.is_none() && self.has_frame(self.current)? {
            return Ok(true);
        }
        for index in (0..self.files.len()).rev() {
            if self.has_frame(index)? {
                self.current = index;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A segment begins at the position: of this history, or of a child that branches off here.
    fn enter(&mut self, index: usize) {
        let Some(header) = self.files.get(index).and_then(|file| file.header.ok()) else { return };
        let here = Parent { history: self.history, lsn: Lsn(self.position) };
        if header.history != self.history && header.parent == Some(here) {
            self.left.push(self.history);
            self.history = header.history;
            self.parent = header.parent;
            self.clean = false;
            self.current = index;
        }
        if header.history == self.history {
            self.proven = self.proven.max(header.durable.0);
        }
    }

    fn has_frame(&mut self, index: usize) -> Result<bool, RecoverError> {
        let Some(file) = self.files.get(index).filter(|file| file.first <= self.position) else { return Ok(false) };
        if !self.is_ours(file) {
            return Ok(false);
        }
        let Some(file) = self.files.get_mut(index) else { return Ok(false) };
        Ok(file.frame(&self.history, self.position)?.is_some())
    }

    /// Reads the frame at the position from the current file.
    fn take(&mut self, each: &mut EachFrame<'_>) -> Result<(), RecoverError> {
        let (position, history) = (self.position, self.history);
        let Some(file) = self.files.get_mut(self.current) else { return Ok(()) };
        let (path, first) = (file.path().to_path_buf(), file.first);
        let offset = file.offset(position).unwrap_or_default();
        let Some(frame) = file.frame(&history, position)? else { return Ok(()) };
        let end = frame.end;
        self.clean = false;
        let body = body_of(frame.kind, frame.payload);
        if let Some(body) = body.filter(|body| !matches!(body, FrameBody::Unknown(_))) {
            let refused = |source| RecoverError::Apply { path: path.clone(), offset, lsn: Lsn(position), source };
            each(Lsn(end), body).map_err(refused)?;
        }
        match body {
            Some(FrameBody::Record(_)) => self.records = self.records.saturating_add(1),
            Some(FrameBody::Mark(mark) | FrameBody::End(mark)) => {
                self.proven = self.proven.max(mark.durable_lsn.0);
                self.last_mark = Some(mark);
                self.clean = matches!(body, Some(FrameBody::End(_)));
            }
            Some(FrameBody::Unknown(kind)) => return Err(RecoverError::UnknownKind { path, offset, kind }),
            None => {}
        }
        self.position = end;
        match self.pieces.last_mut() {
            Some(piece) if piece.segment_first.0 == first && piece.history == history => piece.to = end,
            _ => self.pieces.push(Piece {
                path,
                segment_first: Lsn(first),
                history,
                parent: self.parent,
                from: position,
                to: end,
            }),
        }
        Ok(())
    }

    /// Judges the bytes after the last frame (C2, C3).
    fn end(mut self, names: &[(Lsn, PathBuf)]) -> Result<LogEnd, RecoverError> {
        let end = self.position;
        let (durable, torn) = self.behind()?;
        if durable > end {
            // The newest segment that should continue here.
            let newest = self.files.iter().rev().find(|file| self.is_ours(file) && file.first <= end);
            let file = newest.or(self.files.get(self.current));
            let path = file.map(|file| file.path().to_path_buf()).unwrap_or_default();
            let offset = file.map(|file| file.offset(end).unwrap_or(file.len())).unwrap_or_default();
            return Err(RecoverError::Damaged { path, offset, lsn: Lsn(end), durable: Lsn(durable) });
        }
        let proven = durable.max(self.from.min(end));
        let last = self.pieces.last().filter(|piece| piece.to == end);
        let used = last.map(|piece| {
            let file = self.files.iter().find(|file| file.first == piece.segment_first.0);
            let bytes = file.and_then(|file| file.offset(end));
            (piece.path.clone(), bytes.unwrap_or_else(|| segment::offset(piece.segment_first.0, end)))
        });
        self.pieces.retain(|piece| piece.to > proven);
        if let Some(first) = self.pieces.first_mut() {
            first.from = first.from.max(proven);
        }
        Ok(LogEnd {
            end_lsn: Lsn(end),
            history: Some(self.history),
            parent: self.parent,
            last_mark: self.last_mark,
            clean: self.clean,
            torn,
            proven_lsn: Lsn(proven),
            records: self.records,
            leftovers: names.iter().filter(|(first, _)| first.0 >= end).map(|(_, path)| path.clone()).collect(),
            tail: self.pieces,
            used,
        })
    }

    /// The newest statement about durability, at any position, and the torn tail.
    fn behind(&mut self) -> Result<(u64, Option<TornTail>), RecoverError> {
        let (end, history, current) = (self.position, self.history, self.current);
        let mut durable = self.proven;
        let mut torn = None;
        // Histories without a parent, and their descendants: a log that was switched on while this one was off. Their
        // presence does not mean that records of this log are missing.
        let mut foreign: Vec<HistoryId> = Vec::new();
        for (index, file) in self.files.iter_mut().enumerate() {
            let header = file.header.ok();
            if header.is_some_and(|header| self.left.contains(&header.history)) {
                continue;
            }
            if let Some(Header { history: other, parent, .. }) = header
                && other != history
                && parent.is_none_or(|parent| foreign.contains(&parent.history))
            {
                foreign.push(other);
                continue;
            }
            // A header after the end declares what was before it, in this history or in a descendant.
            if let Some(Header { durable: said, .. }) = header.filter(|_| file.first > end) {
                durable = durable.max(said.0);
            }
            if header.is_some_and(|header| header.history != history) {
                continue;
            }
            let begin = file.offset(end.max(file.first)).unwrap_or(file.len());
            let Some(last) = file.last_nonzero(begin)? else { continue };
            if let Some(said) = file.durable_by_marks(&history, end)? {
                durable = durable.max(said.0);
            }
            if index >= current && torn.is_none() {
                torn = Some(TornTail { path: file.path.clone(), offset: begin, bytes: last.saturating_sub(begin) });
            }
        }
        Ok((durable, torn))
    }
}

/// The body of a frame with a valid checksum; `None` for a malformed mark.
pub(crate) fn body_of(kind: u8, payload: &[u8]) -> Option<FrameBody<'_>> {
    Some(match Kind::of(kind) {
        Some(Kind::Record) => FrameBody::Record(payload),
        Some(Kind::Mark) => FrameBody::Mark(Mark::decode(payload)?),
        Some(Kind::End) => FrameBody::End(Mark::decode(payload)?),
        None => FrameBody::Unknown(kind),
    })
}

/// The pieces of files that hold the frames from one position to another, and where they end; `None` without a segment.
/// They end before `to` where no frame continues them. The function does not decide whether that is damage: its caller
/// chooses where to stop.
pub(crate) fn pieces_until(
    fs: &dyn FileSystem,
    dir: &Path,
    from: Lsn,
    to: Lsn,
) -> Result<(Vec<Piece>, Option<Parent>), RecoverError> {
    let names = list(fs, dir)?;
    let Some(mut chain) = Chain::open(fs, &names, from)? else { return Ok((Vec::new(), None)) };
    while chain.position < to.0 && chain.find()? {
        chain.take(&mut |_, _| Ok(()))?;
    }
    let end = Parent { history: chain.history, lsn: Lsn(chain.position) };
    Ok((chain.pieces, Some(end)))
}

/// A segment as tools list it.
#[derive(Clone, Debug)]
pub struct SegmentInfo {
    /// The file.
    pub path: PathBuf,
    /// The position its name gives.
    pub first: Lsn,
    /// Bytes of the file, including preallocated ones.
    pub file_bytes: u64,
    /// Its header; `None` if it is damaged or has another format.
    pub header: Option<SegmentHeader>,
}

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The history its frames belong to.
    pub history: HistoryId,
    /// Where that history branched off.
    pub parent: Option<Parent>,
    /// How far the log was durable when the segment was created, or when the log ended in order.
    pub durable: Lsn,
    /// When it was made.
    pub created_ms: UnixMs,
}

/// The segments in a directory, ascending. For tools.
///
/// # Errors
/// The directory or a file cannot be read.
pub fn segments(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<SegmentInfo>, FsError> {
    list(fs, dir)?
        .into_iter()
        .map(|(first, path)| {
            let file = SegmentFile::open(fs, path, first)?;
            let header = file.header.ok().map(|Header { history, parent, durable, created_ms, .. }| SegmentHeader {
                history,
                parent,
                durable,
                created_ms,
            });
            Ok(SegmentInfo { path: file.path().to_path_buf(), first, file_bytes: file.len(), header })
        })
        .collect()
}
