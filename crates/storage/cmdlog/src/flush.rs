//! Writes the stream in memory to the disk.
//!
//! ```text
//!  stream --whole frames, not copied--> write --> segment --sync (outside the lock)--> durable --> wake workers
//!    ^                                                |  failed
//!    '------ continue at the last durable byte, ------'  in a new segment, from memory
//! ```
//!
//! F1. Within a history the stream's bytes are a function of the LSN: a rewrite writes the same bytes.
//! F2. `durable` passes a byte only after a successful sync that began after the byte was written. The sync covers its
//!     segment and all segments before it; the first one also covers the directory that holds the segment's name.
//! F3. Memory is released only when durable (in `WrittenOnly`: when written), so a new segment can be filled from it.
//! F4. A segment whose write or sync failed is neither written nor synced again (Rebello et al., USENIX ATC 2020).
//! F5. Before a segment begins at `lsn` after a failure, the names of segments beyond it are removed; the sync of the
//!     directory that makes the new name durable covers the removals.
//! F6. A batch closes when the previous sync returns: everything appended meanwhile is written and synced together.
//! F7. A write syncs itself only if everything before it is durable, including the name of its segment.

mod out;
mod rotate;
mod segment_file;
mod sync;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

use base::{Clock, HistoryId, Lsn};
use vfs::{File, FileSystem, FsError};

use crate::frame::{self, HEAD_BYTES_MAX, Kind, MARK_FRAME_BYTES, Mark};
use crate::options::OnSyncError;
use crate::segment::{self, Header, Parent};
use crate::shared::{Shared, SideRecord};
use crate::stats::Counters;
use crate::stream::StreamReader;
use crate::timing::LogMode;
use out::{Out, Sync};

pub(crate) use segment_file::{open_segment, remove};
pub(crate) use sync::Due;

/// While writes arrive, one mark at least per interval. One more follows this long after the last sync of a burst, and
/// declares the whole burst durable.
const MARK_NS: u64 = 1_000_000_000;
/// Time between attempts to continue after a failure.
const RETRY_NS: u64 = 1_000_000_000;

/// A segment of this log, or of one that it continues.
pub(crate) struct Segment {
    pub first: u64,
    /// The position after the last byte written to it.
    pub end: u64,
    /// Its header, if this log created it.
    pub header: Option<Header>,
    pub path: PathBuf,
    /// Open while it is written, or while a sync can still make its bytes durable.
    pub file: Option<Arc<dyn File>>,
    /// Bytes that the file may grow to.
    pub capacity: u64,
    /// File and name were synced after its header was written.
    pub named: bool,
    /// The page cache was asked to drop everything before this position.
    pub forgotten: u64,
}

impl Segment {
    /// The file offset of a position.
    pub fn offset(&self, lsn: u64) -> u64 {
        segment::offset(self.first, lsn)
    }
}

/// The log has failed and waits for the next attempt.
struct Failed {
    retry_ns: u64,
    /// There will be no further attempt.
    forever: bool,
}

/// The state of the flush, under one lock. Threads and tests drive it by the same steps.
pub(crate) struct Flush {
    pub shared: Arc<Shared>,
    fs: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    dir: PathBuf,
    segment_bytes: u64,
    on_sync_error: OnSyncError,
    history: HistoryId,
    parent: Option<Parent>,
    stream: StreamReader,
    /// Positions of the log's own frames that may not be written yet.
    marks: VecDeque<u64>,
    /// Everything before this was passed to a file.
    next: u64,
    /// Everything before this is durable, although not all of it may be published: at least `durable`, at most `next`.
    safe: u64,
    /// Everything at or beyond this is still in memory (F3).
    kept: u64,
    /// The end of the last segment.
    out: Out,
    /// All segments, ascending; the last one is being written.
    pub segments: Vec<Segment>,
    /// Segments whose creation failed, to be removed.
    debris: Vec<PathBuf>,
    syncing: bool,
    failed: Option<Failed>,
    /// A new segment is being filled after a failure; the first successful sync ends this state.
    refilling: bool,
    last_mark_ns: u64,
    /// The durable position in the last mark.
    last_mark_durable: u64,
    /// The position after the last record, without marks.
    records_end: u64,
    last_sync_ns: u64,
    pub counters: Counters,
}

/// What the flush needs at its start.
pub(crate) struct FlushStart {
    pub shared: Arc<Shared>,
    pub stream: StreamReader,
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

/// The step that failed. It decides what may still be done with the file.
enum Step {
    /// A new segment could not be created; the old one is intact.
    Roll(FsError),
    /// The last segment could not be written.
    Write(FsError),
}

impl Flush {
    pub fn new(start: FlushStart) -> Self {
        let FlushStart { shared, stream, fs, clock, dir, segment_bytes, on_sync_error, history, parent, first, older } =
            start;
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
            stream,
            marks: VecDeque::new(),
            next: first,
            safe: first,
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

    /// Writes everything published, and returns whether it found anything new. `sync_follows`: the bytes must become
    /// durable at once, by [`finish_writes`](Self::finish_writes) or a sync.
    pub fn write(&mut self, now_ns: u64, sync_follows: bool) -> bool {
        if self.failed.is_some() || self.shared.end() == self.next {
            return false;
        }
        self.note_oldest(now_ns);
        self.mark_if_due(now_ns);
        let before = self.next;
        match self.write_published(sync_follows) {
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
                // Its deadlines begin here.
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

    /// Adds a mark to the stream; the next write includes it.
    pub fn mark(&mut self, kind: Kind, now_ns: u64) {
        let durable = self.durable();
        let mark = Mark { time_ms: self.clock.now_ms(), durable_lsn: Lsn(durable) };
        self.marks.push_back(self.shared.put_mark(kind, &mark.encode()));
        self.last_mark_ns = now_ns;
        self.last_mark_durable = durable;
    }

    fn write_published(&mut self, sync_follows: bool) -> Result<(), Step> {
        let published = self.stream.published();
        while self.next < published {
            // Records outside the ring were stored before they were published.
            let (to, beside) = match self.shared.side.first_from(self.next).filter(|(at, _)| *at < published) {
                Some((at, record)) if at == self.next => (at + record.frame_bytes(), Some(record)),
                Some((at, _)) => (at, None),
                None => (published, None),
            };
            let to = if self.fits(to - self.next) { to } else { self.last_that_fits(to, beside.as_deref()) };
            if to == self.next {
                self.make_segment(self.first_frame_bytes(beside.as_deref())).map_err(Step::Roll)?;
                continue;
            }
            let is_durable = self.write_up_to(to, beside.as_deref(), sync_follows).map_err(Step::Write)?;
            self.note_records(to);
            self.next = to;
            if is_durable {
                self.safe = to;
            }
            if let Some(last) = self.segments.last_mut() {
                last.end = to;
            }
            self.shared.written.store(to, SeqCst);
        }
        Ok(())
    }

    /// Whether the last segment has room for `bytes` more bytes.
    fn fits(&self, bytes: u64) -> bool {
        self.segments.last().is_some_and(|last| last.offset(self.next) + bytes <= last.capacity)
    }

    /// The end of the last frame before `to` that fits the last segment; the current position if none does. An empty
    /// segment always has room: it was created for its first frame.
    fn last_that_fits(&self, to: u64, beside: Option<&SideRecord>) -> u64 {
        let Some(last) = self.segments.last() else { return self.next };
        let limit = last.first + (last.capacity - last.offset(last.first));
        let mut at = self.next;
        if beside.is_none() {
            while at < to {
                let end = at + self.frame_bytes_at(at);
                if end > limit {
                    break;
                }
                at = end;
            }
        }
        if at == last.first { at + self.first_frame_bytes(beside) } else { at }
    }

    fn first_frame_bytes(&self, beside: Option<&SideRecord>) -> u64 {
        beside.map_or_else(|| self.frame_bytes_at(self.next), SideRecord::frame_bytes)
    }

    /// Length of the frame that begins at a published position of the stream's memory.
    fn frame_bytes_at(&self, at: u64) -> u64 {
        let [first, second] = self.stream.bytes(at, self.stream.seen().min(at + HEAD_BYTES_MAX as u64));
        let mut head = [0; HEAD_BYTES_MAX];
        head[..first.len()].copy_from_slice(first);
        head[first.len()..first.len() + second.len()].copy_from_slice(second);
        frame::bytes_by_head(&head[..first.len() + second.len()]).expect("what is published is whole frames")
    }

    /// Writes the frames up to a position, from the stream's memory, or one record from outside it. Returns whether the
    /// write made them durable.
    fn write_up_to(&mut self, to: u64, beside: Option<&SideRecord>, sync_follows: bool) -> Result<bool, FsError> {
        let Some(last) = self.segments.last() else { return Ok(false) };
        let Some(file) = last.file.clone() else { return Ok(false) };
        let sync = match self.shared.mode() == LogMode::Sync {
            true if sync_follows && last.named && self.safe == self.next => Sync::Itself,
            true => Sync::Next,
            false => Sync::Later,
        };
        match beside {
            Some(record) => {
                let mut head = [0; HEAD_BYTES_MAX];
                let head_bytes = frame::begin(&mut head, record.kind(), record.len());
                let (head, [first, second, third]) = (&mut head[..head_bytes], record.parts());
                frame::seal(head, &self.history, self.next, &[first, second, third]);
                self.out.write_apart(&*file, &[head, first, second, third], sync).map(|()| false)
            }
            None => self.out.write(&*file, self.stream.bytes(self.next, to), sync),
        }
    }

    /// Records where the last record ends among the frames from `next` to a position.
    fn note_records(&mut self, to: u64) {
        while self.marks.front().is_some_and(|mark| *mark < self.next) {
            self.marks.pop_front();
        }
        let mut end = to;
        for mark in self.marks.iter().rev().filter(|mark| **mark < to) {
            if mark + MARK_FRAME_BYTES as u64 != end {
                break;
            }
            end = *mark;
        }
        if end > self.next {
            self.records_end = end;
        }
    }

    /// In `WrittenOnly`: releases what is written.
    fn release_written(&mut self) {
        self.kept = self.next;
        self.release(self.kept);
        if self.refilling {
            self.recovered();
        }
    }

    /// Releases the memory of everything before a position.
    fn release(&mut self, lsn: u64) {
        self.stream.release(lsn);
        self.shared.released(lsn);
    }
}
