//! The start of a log after recovery: make the recovered tail durable first.
//!
//! Bytes that recovery read after the last statement about durability may exist only in the page cache. A sync of the
//! old file may return `Ok` although an earlier sync failed. So these bytes are copied to new files and synced there,
//! before the new log's first segment declares everything before it durable.
//!
//! B1. A crash at any step leaves a directory that recovers to the same records.

use std::path::Path;
use std::sync::Arc;

use base::Clock;
use vfs::{File, FileSystem, OpenOptions};

use crate::error::LogError;
use crate::flush::{Flush, FlushStart, Segment, open_segment, remove};
use crate::options::{LogOptions, LogStart};
use crate::reader::SegmentFile;
use crate::recovery::{self, LogEnd, Piece};
use crate::segment::{self, Header};
use crate::shared::Shared;
use crate::stream::StreamReader;

/// Bytes per write of the copy.
const COPY_BYTES: usize = 1 << 20;

/// Opens the log's first segment.
pub(crate) fn open(
    fs: &Arc<dyn FileSystem>,
    clock: &Arc<dyn Clock>,
    options: &LogOptions,
    start: LogStart,
    (shared, stream): (&Arc<Shared>, StreamReader),
) -> Result<Flush, LogError> {
    let dir = &options.dir;
    if let Some(end) = &start.after {
        settle(&**fs, &**clock, dir, end)?;
    }
    let names = recovery::list(&**fs, dir)?;
    let known = |path| start.after.as_ref().is_some_and(|end| end.leftovers.contains(path));
    if let Some((_, path)) = names.iter().find(|(first, path)| *first >= start.first && !known(path)) {
        return Err(LogError::Occupied { path: path.clone(), first: start.first });
    }
    let names: Vec<_> = names.into_iter().filter(|(first, _)| *first < start.first).collect();
    let ends = names.iter().skip(1).map(|(first, _)| first.0).chain([start.first.0]);
    let older = names.iter().zip(ends).map(|((first, path), end)| Segment {
        first: first.0,
        end,
        header: None,
        path: path.clone(),
        file: None,
        capacity: 0,
        named: true,
        forgotten: first.0,
    });
    let mut flush = Flush::new(FlushStart {
        shared: Arc::clone(shared),
        stream,
        fs: Arc::clone(fs),
        clock: Arc::clone(clock),
        dir: dir.clone(),
        segment_bytes: options.segment_bytes,
        on_sync_error: options.on_sync_error,
        history: start.history,
        parent: start.parent,
        first: start.first.0,
        older: older.collect(),
    });
    flush.open_durably()?;
    if let Some((path, bytes)) = start.after.and_then(|end| end.used) {
        // The rest is preallocated or torn. Nothing depends on it, so a failure here is ignored.
        let _ = fs.open(&path, OpenOptions::write()).and_then(|file| file.set_len(bytes));
    }
    Ok(flush)
}

/// Makes durable what recovery read, and removes the files that recovery found empty.
fn settle(fs: &dyn FileSystem, clock: &dyn Clock, dir: &Path, end: &LogEnd) -> Result<(), LogError> {
    let beside = dir.join(segment::COPY_NAME);
    remove(fs, &beside)?;
    // Keep a segment that begins at the very end until the new segment replaces it. If it were removed and a crash left
    // a later one, a segment would be missing.
    let at_end = segment::path(dir, end.end_lsn);
    for path in end.leftovers.iter().rev().filter(|path| **path != at_end) {
        remove(fs, path)?;
    }
    // One file for all pieces of a history: its name may be that of a file from which a piece is read.
    for pieces in end.tail.chunk_by(|a, b| a.history == b.history) {
        let Some(first) = pieces.first() else { continue };
        copy(fs, clock, &beside, pieces, end.proven_lsn)?;
        fs.rename(&beside, &segment::path(dir, base::Lsn(first.from)))?;
    }
    fs.sync_dir(dir)?;
    Ok(())
}

/// Copies the frames of neighbouring pieces of one history to a new segment, durably. The caller renames it.
pub(crate) fn copy(
    fs: &dyn FileSystem,
    clock: &dyn Clock,
    to: &Path,
    pieces: &[Piece],
    proven: base::Lsn,
) -> Result<(), LogError> {
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Ok(()) };
    let header = Header {
        version: segment::VERSION,
        history: first.history,
        parent: first.parent,
        first: base::Lsn(first.from),
        durable: base::Lsn(proven.0.min(first.from)),
        created_ms: clock.now_ms(),
    };
    let bytes = header.offset(last.to);
    let (target, _) = open_segment(fs, to, &header, bytes, bytes)?;
    for piece in pieces {
        copy_piece(fs, piece, &*target, header.offset(piece.from))?;
    }
    target.sync_all()?;
    Ok(())
}

fn copy_piece(fs: &dyn FileSystem, piece: &Piece, target: &dyn File, mut at: u64) -> Result<(), LogError> {
    let mut source = SegmentFile::open(fs, piece.path.clone(), piece.segment_first)?;
    let (mut position, mut gathered) = (piece.from, Vec::new());
    while position < piece.to {
        let unstable = || LogError::Unstable {
            path: piece.path.clone(),
            offset: segment::offset(piece.segment_first.0, position),
        };
        // Checked again: the copy must equal what recovery returned.
        let next = source.frame(&piece.history, position)?.ok_or_else(unstable)?.end;
        let offset = source.offset(position).ok_or_else(unstable)?;
        gathered.extend_from_slice(source.bytes(offset, (next - position) as usize)?);
        position = next;
        if gathered.len() >= COPY_BYTES || position >= piece.to {
            target.write_all_at(&gathered, at)?;
            at += gathered.len() as u64;
            gathered.clear();
        }
    }
    Ok(())
}
