//! New segments: when one is full, and after a failure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

use base::Lsn;
use vfs::{File, FsError, Op, OpenOptions};

use super::out::open_direct;
use super::segment_file::{open_segment, remove};
use super::{Failed, Flush, RETRY_NS, Segment, Step};
use crate::error::{LogError, LogFailure};
use crate::frame::MARK_FRAME_BYTES;
use crate::options::OnSyncError;
use crate::recovery::Piece;
use crate::segment::{self, Header};
use crate::shared::state;
use crate::start;
use crate::timing::LogMode;

impl Flush {
    /// Creates a segment that begins at `next` and has room for a frame of `bytes` bytes. The next sync makes it
    /// durable.
    pub(super) fn make_segment(&mut self, bytes: u64) -> Result<(), FsError> {
        let path = segment::path(&self.dir, Lsn(self.next));
        let least = segment::offset(self.next, self.next) + bytes;
        let header = self.header();
        match open_segment(&*self.fs, &path, &header, self.segment_bytes.max(least), least) {
            Ok((file, capacity)) => self.push_segment(header, path, file, capacity, false),
            Err(error) => {
                self.debris.push(path);
                Err(error)
            }
        }
    }

    /// Creates a segment that begins at `next`, durably, replacing one that begins there already. Header and name are
    /// durable before the first record is written. This matters where recovery knows no earlier history: there it
    /// treats a damaged header before records, or a missing file before others, as damage.
    pub fn open_durably(&mut self) -> Result<(), FsError> {
        let (path, beside) = (segment::path(&self.dir, Lsn(self.next)), self.dir.join(segment::COPY_NAME));
        remove(&*self.fs, &beside)?;
        let least = segment::offset(self.next, self.next);
        let header = self.header();
        let (file, capacity) = open_segment(&*self.fs, &beside, &header, self.segment_bytes.max(least), least)?;
        file.sync_all()?;
        self.fs.rename(&beside, &path)?;
        self.fs.sync_dir(&self.dir)?;
        // Open it again under its final name, so that errors show that name.
        let file = self.fs.open(&path, OpenOptions::write())?;
        self.push_segment(header, path, file, capacity, true)
    }

    fn header(&self) -> Header {
        Header {
            version: segment::VERSION,
            history: self.history,
            parent: self.parent,
            first: Lsn(self.next),
            durable: Lsn(self.durable()),
            created_ms: self.clock.now_ms(),
        }
    }

    fn push_segment(
        &mut self,
        header: Header,
        path: PathBuf,
        file: Arc<dyn File>,
        capacity: u64,
        named: bool,
    ) -> Result<(), FsError> {
        let first = header.first.0;
        self.out.begin(open_direct(&*self.fs, &path)?, capacity, segment::offset(first, first));
        let (header, file) = (Some(header), Some(file));
        self.segments.push(Segment { first, end: first, header, path, file, capacity, named, forgotten: first });
        Ok(())
    }

    /// Handles the failure of a step of `write`.
    pub(super) fn fail_write(&mut self, step: Step, now_ns: u64) {
        self.counters.write_ok = false;
        match step {
            // The old segment is untouched: its bytes can still become durable.
            Step::Roll(error) => self.fail(&error, now_ns),
            Step::Write(error) => {
                // In `WrittenOnly` the written bytes are no longer in memory. They were accepted without an error, and
                // no sync failed: they stay, and may be synced.
                let only_copy = self.kept > self.durable();
                if let Some(last) = self.segments.last_mut().filter(|_| !only_copy) {
                    last.file = None;
                }
                self.fail(&error, now_ns);
            }
        }
    }

    /// Stops writing until `retry` succeeds.
    pub(super) fn fail(&mut self, error: &FsError, now_ns: u64) {
        self.counters.failures += 1;
        self.out.abandon();
        self.refilling = false;
        let forever = self.on_sync_error == OnSyncError::Stop;
        self.failed = Some(Failed { retry_ns: now_ns.saturating_add(RETRY_NS), forever });
        let failure = {
            let mut slot = self.shared.failure.lock();
            let since_ms = slot.as_ref().map_or(self.clock.now_ms(), |old| old.since_ms);
            let failure = LogFailure::new(error, since_ms);
            let state = if failure.disk_full { state::DISK_FULL } else { state::FAILED };
            *slot = Some(failure.clone());
            self.shared.state.store(state, SeqCst);
            failure
        };
        self.shared.wake_for_room();
        self.shared.wake_syncers();
        self.shared.wake.failed(&failure);
        if self.on_sync_error == OnSyncError::Stop {
            self.shared.wake.stop(&failure);
        }
    }

    /// After a failure, when the time has come: continues in a new segment at the last durable byte.
    pub fn retry(&mut self, now_ns: u64) {
        let Some(failed) = &self.failed else { return };
        // Sync the old segments first: the new one begins after their bytes.
        if failed.forever || self.syncing || now_ns < failed.retry_ns || self.has_syncable() {
            return;
        }
        if let Err(step) = self.reopen(now_ns) {
            self.fail_write(step, now_ns);
        }
    }

    fn reopen(&mut self, now_ns: u64) -> Result<(), Step> {
        self.save_only_copies().map_err(Step::Roll)?;
        self.kept = self.kept.max(self.durable());
        let base = self.kept;
        self.remove_beyond(base).map_err(Step::Roll)?;
        if let Some(last) = self.segments.last_mut() {
            last.end = last.end.min(base);
        }
        self.next = base;
        self.safe = self.durable();
        self.shared.written.store(base, SeqCst);
        self.open_durably().map_err(Step::Roll)?;
        self.counters.rotations += 1;
        self.failed = None;
        self.refilling = true;
        self.write(now_ns, false);
        let nothing_to_sync = self.shared.mode() == LogMode::WrittenOnly || self.shared.end() == self.durable();
        if self.failed.is_none() && self.refilling && nothing_to_sync {
            self.recovered();
        }
        Ok(())
    }

    /// In `WrittenOnly`, written records exist only in the operating system. If a sync of them has failed, reads them
    /// back, checks them frame by frame, and makes them durable in new files that replace the old ones.
    fn save_only_copies(&mut self) -> Result<(), FsError> {
        let (durable, kept) = (self.durable(), self.kept);
        if kept <= durable {
            return Ok(());
        }
        let beside = self.dir.join(segment::COPY_NAME);
        let mut saved = Vec::new();
        for segment in self.segments.iter().filter(|segment| segment.end > durable && segment.first < kept) {
            remove(&*self.fs, &beside)?;
            let piece = Piece {
                path: segment.path.clone(),
                segment_first: Lsn(segment.first),
                history: self.history,
                parent: self.parent,
                from: segment.first.max(durable),
                to: segment.end.min(kept),
            };
            let pieces = std::slice::from_ref(&piece);
            start::copy(&*self.fs, &*self.clock, &beside, pieces, Lsn(durable)).map_err(|error| match error {
                LogError::File { source } => source,
                other => FsError::io(Op::Read, segment.path.clone(), std::io::Error::other(other.to_string())),
            })?;
            let path = segment::path(&self.dir, Lsn(piece.from));
            self.fs.rename(&beside, &path)?;
            let (first, end) = (piece.from, piece.to);
            saved.push(Segment {
                first,
                end,
                header: None,
                path,
                file: None,
                capacity: 0,
                named: true,
                forgotten: first,
            });
        }
        self.fs.sync_dir(&self.dir)?;
        self.segments.retain(|segment| segment.first < durable);
        if let Some(last) = self.segments.last_mut() {
            last.end = last.end.min(durable);
        }
        self.segments.extend(saved);
        self.shared.set_durable(kept);
        Ok(())
    }

    /// Removes the segments that begin beyond `base`, newest first, and the remains of failed attempts (F5). A segment
    /// that begins at `base` is only forgotten: the new one replaces it.
    fn remove_beyond(&mut self, base: u64) -> Result<(), FsError> {
        let at_base = segment::path(&self.dir, Lsn(base));
        while let Some(path) = self.debris.last() {
            if *path != at_base {
                remove(&*self.fs, path)?;
            }
            self.debris.pop();
        }
        while let Some(last) = self.segments.last().filter(|last| last.first >= base) {
            if last.first > base {
                remove(&*self.fs, &last.path)?;
            }
            self.segments.pop();
        }
        Ok(())
    }

    /// Ends the failure.
    pub(super) fn recovered(&mut self) {
        self.refilling = false;
        *self.shared.failure.lock() = None;
        self.shared.state.store(state::HEALTHY, SeqCst);
        self.shared.wake_for_room();
        self.shared.wake_threads();
        self.shared.wake.healthy();
    }

    /// Ends the last segment, which is durable, with an end mark after everything. Its header then also declares the
    /// records before the mark durable, because damage may remove the mark together with records. Truncates the unused
    /// preallocation.
    pub fn end(&mut self) {
        if let Some(last) = self.segments.last_mut()
            && let (Some(file), Some(made)) = (last.file.take(), last.header)
        {
            let header = Header { durable: Lsn(last.end - MARK_FRAME_BYTES as u64), ..made };
            let told =
                file.write_all_at(&header.encode_copy(), segment::SECOND_COPY_AT).and_then(|()| file.sync_data());
            // Optional: the log and the first copy of the header are whole without it, and zeros at the end do no harm.
            let _ = told.and_then(|()| file.set_len(last.offset(last.end)));
        }
    }

    /// Segments that can be removed: everything in them is before `lsn`, and their successor's name is durable.
    pub fn removable(&self, lsn: u64) -> Vec<PathBuf> {
        let pairs = self.segments.windows(2).map(|pair| (&pair[0], &pair[1]));
        let old = pairs.take_while(|(old, next)| next.first <= lsn && next.named && old.file.is_none());
        old.map(|(old, _)| old.path.clone()).collect()
    }

    /// Forgets a segment whose file was removed.
    pub fn forget(&mut self, path: &Path) {
        self.segments.retain(|segment| segment.path != path);
    }
}
