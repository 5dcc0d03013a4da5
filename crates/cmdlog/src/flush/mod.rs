//! From the workers' rings to the disk.
//!
//! ```text
//!  rings --merge by LSN--> frames --write--> segment file --sync (outside the lock)--> durable --> wake workers
//!    ^                                            |  failed
//!    '---------- go on at the last durable byte, -'  in a new segment, from memory
//! ```
//!
//! F1. Within a history the stream's bytes are a function of the LSN: whatever is written again is written the same.
//! F2. `durable` passes a byte only after a sync that began after the byte was written returned without an error, of its
//!     segment and of all before it; the first time also of the directory that holds the segment's name.
//! F3. Memory is released only when durable (in `WrittenOnly`: when written), so a new segment can be filled from it.
//! F4. A segment whose write or sync failed is neither written nor synced again (Rebello et al., USENIX ATC 2020).
//! F5. Before a segment begins at `lsn` after a failure, the names of segments beyond it are removed; the sync of the
//!     directory that makes the new name durable covers the removals.
//! F6. A batch closes when the sync before it returns: what was appended meanwhile is written and synced together.

mod merge;
mod out;
mod rotate;
mod sync;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

use base::{Clock, HistoryId, Lsn};
use vfs::{File, FileSystem, FsError};

use crate::frame::{self, Kind, Mark};
use crate::options::{LogMode, OnSyncError};
use crate::segment::{HEADER_BYTES, Parent};
use crate::shared::{INLINE_MAX, Shared};
use crate::stats::Counters;
use merge::{Merge, Picked};
use out::Out;

pub(crate) use rotate::{open_segment, remove};
pub(crate) use sync::Due;

/// At least one mark in so much time while there are writes; and so much after the last sync of a burst, one that says
/// that all of it was durable.
const MARK_NS: u64 = 1_000_000_000;
/// Time between attempts to go on after a failure.
const RETRY_NS: u64 = 1_000_000_000;

/// A segment of this log, or of one that it continues.
pub(crate) struct Segment {
    pub first: u64,
    /// The position after the last byte written to it.
    pub end: u64,
    pub path: PathBuf,
    /// Open while it is written, or holds bytes that a sync can still make durable.
    pub file: Option<Arc<dyn File>>,
    /// Bytes that the file may grow to.
    pub capacity: u64,
    /// File and name were synced after its header was written.
    pub named: bool,
    /// The page cache was told to forget everything before this position.
    pub forgotten: u64,
}

/// The log has failed and waits for the next attempt.
struct Failed {
    retry_ns: u64,
    /// There will be none.
    forever: bool,
}

/// The state of the flush, in one lock. Threads and tests drive it by the same steps.
pub(crate) struct Flush {
    pub shared: Arc<Shared>,
    fs: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    dir: PathBuf,
    segment_bytes: u64,
    on_sync_error: OnSyncError,
    history: HistoryId,
    parent: Option<Parent>,
    merge: Merge,
    /// Everything before is merged: in `out`, or written.
    next: u64,
    /// Everything at or beyond is still in memory (F3).
    kept: u64,
    /// Frames to be written at the end of the last segment.
    out: Out,
    /// All segments, ascending; the last is the one written to.
    pub segments: Vec<Segment>,
    /// Segments that were begun and failed, to be removed.
    debris: Vec<PathBuf>,
    syncing: bool,
    failed: Option<Failed>,
    /// A new segment is being filled after a failure; the first successful sync ends it.
    refilling: bool,
    last_mark_ns: u64,
    /// What the last mark said.
    last_mark_durable: u64,
    /// The position after the last record (marks do not count).
    records_end: u64,
    last_sync_ns: u64,
    pub counters: Counters,
}

/// What the flush is made of at its beginning.
pub(crate) struct FlushStart {
    pub shared: Arc<Shared>,
    pub fs: Arc<dyn FileSystem>,
    pub clock: Arc<dyn Clock>,
    pub dir: PathBuf,
    pub segment_bytes: u64,
    pub on_sync_error: OnSyncError,
    pub history: HistoryId,
    pub parent: Option<Parent>,
    pub first: u64,
    /// Segments before `first`, ascending.
    pub older: Vec<Segment>,
}

/// Where a step went wrong, which decides what may still be done with the file.
enum Step {
    /// A new segment could not be made; the old one is as good as before.
    Roll(FsError),
    /// The last segment could not be written.
    Write(FsError),
}

impl Flush {
    pub fn new(start: FlushStart) -> Self {
        let FlushStart { shared, fs, clock, dir, segment_bytes, on_sync_error, history, parent, first, older } = start;
        let merge = Merge::new(shared.intakes.len());
        let now = clock.monotonic_ns();
        Self {
            shared,
            fs,
            clock,
            dir,
            segment_bytes,
            on_sync_error,
            history,
            parent,
            merge,
            next: first,
            kept: first,
            out: Out::new(),
            segments: older,
            debris: Vec::new(),
            syncing: false,
            failed: None,
            refilling: false,
            last_mark_ns: now,
            last_mark_durable: first,
            records_end: first,
            last_sync_ns: now,
            counters: Counters::default(),
        }
    }

    pub fn durable(&self) -> u64 {
        self.shared.durable.load(Relaxed)
    }

    /// Writes everything that is published. Gives whether it found anything new.
    pub fn write(&mut self, now_ns: u64) -> bool {
        if self.failed.is_some() || self.shared.end() == self.next {
            return false;
        }
        self.note_oldest(now_ns);
        self.mark_if_due(now_ns);
        let before = self.next;
        match self.write_published() {
            Ok(()) => {
                self.counters.write_ok = true;
                if self.shared.mode() == LogMode::WrittenOnly {
                    self.release_written();
                }
            }
            Err(step) => self.fail_write(step, now_ns),
        }
        self.next != before
    }

    /// The first record since everything was durable: its age counts from now on.
    fn note_oldest(&self, now_ns: u64) {
        if self.shared.oldest_ns.load(Relaxed) == 0 {
            self.shared.oldest_ns.store(now_ns.max(1), SeqCst);
            if self.shared.mode() == LogMode::Async {
                // Its deadlines start here.
                self.shared.sync_sleeper.wake_if_idle();
                self.shared.watch_sleeper.wake_if_idle();
            }
        }
    }

    fn mark_if_due(&mut self, now_ns: u64) {
        let synced = self.durable() > self.last_mark_durable;
        if synced || now_ns.saturating_sub(self.last_mark_ns) >= MARK_NS {
            self.mark(Kind::Mark, now_ns);
        }
    }

    /// Adds a mark to the stream, to be written with what comes next.
    pub fn mark(&mut self, kind: Kind, now_ns: u64) {
        let durable = self.durable();
        let mark = Mark { time_ms: self.clock.now_ms(), durable_lsn: Lsn(durable) };
        self.merge.push_mark(&self.shared, kind, mark.encode());
        self.last_mark_ns = now_ns;
        self.last_mark_durable = durable;
    }

    fn write_published(&mut self) -> Result<(), Step> {
        while let Some(picked) = self.merge.take(&self.shared.intakes, self.next) {
            let bytes = frame::frame_bytes(picked.payload_bytes());
            if !self.fits(bytes) {
                self.write_out().map_err(Step::Write)?;
                self.make_segment(bytes).map_err(Step::Roll)?;
            }
            let is_mark = matches!(picked, Picked::Mark(..));
            match picked {
                Picked::Ring(worker, entry) => {
                    let frame = self.out.take(bytes as usize);
                    let head = frame::begin(frame, Kind::Record, entry.bytes);
                    self.shared.intakes[worker].ring.copy(&entry, &mut frame[head..]);
                    frame::seal(frame, &self.history, self.next, &[]);
                }
                Picked::Mark(kind, payload) => self.put(kind, &payload),
                Picked::Side(payload) if payload.len() <= INLINE_MAX => self.put(Kind::Record, &payload),
                Picked::Side(payload) => self.put_big(&payload).map_err(Step::Write)?,
            }
            self.next += bytes;
            if !is_mark {
                self.records_end = self.next;
            }
            if self.out.is_full() {
                self.write_out().map_err(Step::Write)?;
            }
        }
        self.write_out().map_err(Step::Write)
    }

    fn put(&mut self, kind: Kind, payload: &[u8]) {
        let frame = self.out.take(frame::frame_bytes(payload.len()) as usize);
        let head = frame::begin(frame, kind, payload.len());
        frame[head..].copy_from_slice(payload);
        frame::seal(frame, &self.history, self.next, &[]);
    }

    /// Whether the last segment takes a frame of so many bytes. An empty one always does: it was made for its first.
    fn fits(&self, bytes: u64) -> bool {
        self.segments.last().is_some_and(|last| {
            self.next == last.first || HEADER_BYTES + (self.next - last.first) + bytes <= last.capacity
        })
    }

    /// Writes what is gathered at the end of the last segment. Its end moves to the last whole frame.
    fn write_out(&mut self) -> Result<(), FsError> {
        let Some(last) = self.segments.last_mut() else { return Ok(()) };
        let Some(file) = &last.file else { return Ok(()) };
        if !self.out.is_empty() {
            self.out.write(&**file, self.shared.mode() == LogMode::Sync)?;
        }
        last.end = self.next;
        self.shared.written.store(last.end, SeqCst);
        Ok(())
    }

    /// Gathers a record of any length, writing as often as enough is gathered.
    fn put_big(&mut self, payload: &[u8]) -> Result<(), FsError> {
        let mut head = [0; frame::HEAD_BYTES_MAX];
        let bytes = frame::begin(&mut head, Kind::Record, payload.len());
        let head = &mut head[..bytes];
        frame::seal(head, &self.history, self.next, payload);
        self.out.take(bytes).copy_from_slice(head);
        for piece in payload.chunks(INLINE_MAX) {
            self.out.take(piece.len()).copy_from_slice(piece);
            if self.out.is_full() {
                self.write_out()?;
            }
        }
        Ok(())
    }

    /// In `WrittenOnly`: what is written is not kept.
    fn release_written(&mut self) {
        self.kept = self.next;
        self.merge.release_marks(self.kept);
        self.shared.release(&self.merge.ring_positions(), self.kept);
        if self.refilling {
            self.recovered();
        }
    }
}
