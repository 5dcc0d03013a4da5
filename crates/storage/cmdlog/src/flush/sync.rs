//! Makes written bytes durable. The sync runs outside the flush's lock, so a slow device does not stop writing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

use vfs::{File, FileSystem, FsError};

use super::{Flush, MARK_NS, Segment};
use crate::frame::Kind;
use crate::segment::{self, HEADER_BYTES};
use crate::timing::LogMode;

/// Durable bytes at which the page cache is asked to drop them: only recovery reads them. Dropped pages are reused by
/// the next write while still in the processor's cache. On a guest whose host backs memory at first use, writing and
/// syncing a KB took 0.33 us instead of 2.3.
const FORGET_BYTES: u64 = 1 << 20;
/// The page cache's unit, or a multiple of it.
const PAGE_BYTES: u64 = 4096;
const _: () = assert!(HEADER_BYTES == PAGE_BYTES, "what is whole in the stream is whole in the file");

/// When to check again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    /// Something is reserved but not published: check in a moment.
    Soon,
    /// At this monotonic time (ns).
    At(u64),
    /// Not before something changes.
    Never,
}

/// One segment of a sync.
struct Part {
    file: Arc<dyn File>,
    named: bool,
    /// The position after the last byte written before the sync began.
    end: u64,
    first: u64,
    /// After this position, the page cache may hold bytes that no thread will read.
    forgotten: u64,
}

/// A sync to be run.
pub(crate) struct SyncJob {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    parts: Vec<Part>,
    started_ns: u64,
}

/// The result of a sync.
pub(crate) struct SyncOutcome {
    /// The number of segments, from the first on, that are durable.
    done: usize,
    /// The segment (by its first position) that failed, and how.
    error: Option<(u64, FsError)>,
}

impl SyncJob {
    /// Blocks until the device has answered.
    pub fn run(&self) -> SyncOutcome {
        for (done, part) in self.parts.iter().enumerate() {
            if let Err(error) = self.sync(part) {
                return SyncOutcome { done, error: Some((part.first, error)) };
            }
        }
        SyncOutcome { done: self.parts.len(), error: None }
    }

    fn sync(&self, part: &Part) -> Result<(), FsError> {
        if part.named {
            part.file.sync_data()?;
        } else {
            part.file.sync_all()?;
            self.fs.sync_dir(&self.dir)?;
        }
        if part.forgets() {
            part.file.forget_cached(segment::offset(part.first, part.forgotten), part.end - part.forgotten);
        }
        Ok(())
    }
}

impl Part {
    /// Whether enough of it is durable to ask the page cache to drop it.
    fn forgets(&self) -> bool {
        self.end - self.forgotten >= FORGET_BYTES
    }
}

impl Flush {
    /// Whether old segments hold bytes that a sync can make durable although the log has failed.
    pub(super) fn has_syncable(&self) -> bool {
        let durable = self.durable();
        let open = self.segments.iter().find(|segment| segment.end > durable);
        open.is_some_and(|segment| segment.file.is_some())
    }

    /// When the next sync is due.
    pub fn due(&self, now_ns: u64) -> Due {
        let (durable, end) = (self.durable(), self.shared.end());
        if self.syncing {
            return Due::Never;
        }
        if let Some(failed) = &self.failed {
            return match failed.forever {
                _ if self.has_syncable() => Due::Now,
                true => Due::Never,
                false => Due::At(failed.retry_ns),
            };
        }
        if self.refilling {
            return Due::Now;
        }
        if end == durable {
            return self.quiet_mark_due();
        }
        if self.shared.wanted.load(SeqCst) > durable {
            return Due::Now;
        }
        let oldest = self.shared.oldest_ns.load(SeqCst);
        match self.shared.mode() {
            LogMode::Sync => Due::Now,
            LogMode::Async if oldest == 0 => Due::Never,
            LogMode::Async => at_or_now(oldest.saturating_add(self.shared.window_ns() / 2), now_ns),
            LogMode::WrittenOnly => Due::Never,
        }
    }

    /// After the last sync of a burst, one mark declares all of it durable, so later damage to it does not pass as a
    /// torn tail.
    fn quiet_mark_due(&self) -> Due {
        if self.records_end <= self.last_mark_durable || self.shared.mode() == LogMode::WrittenOnly {
            return Due::Never;
        }
        Due::At(self.last_sync_ns.saturating_add(MARK_NS))
    }

    /// Adds that mark when its time has come.
    pub fn mark_if_quiet(&mut self, now_ns: u64) {
        if self.failed.is_some() || self.syncing || self.refilling || self.shared.end() != self.durable() {
            return;
        }
        if matches!(self.quiet_mark_due(), Due::At(at) if at <= now_ns) {
            self.mark(Kind::Mark, now_ns);
            self.shared.wanted.fetch_max(self.shared.end(), SeqCst);
        }
    }

    /// Accounts for writes that synced themselves. Returns whether there were any and nothing else is left to sync.
    pub fn finish_writes(&mut self, started_ns: u64, now_ns: u64) -> bool {
        if self.failed.is_some() || self.syncing || self.safe <= self.durable() || self.safe < self.next {
            return false;
        }
        self.last_sync_ns = now_ns;
        self.counters.syncs += 1;
        self.counters.add_sync_time(now_ns.saturating_sub(started_ns));
        self.counters.sync_ok = true;
        self.reached(self.safe, started_ns, true);
        let last = self.segments.last().map(|last| last.first);
        for segment in self.segments.iter_mut().filter(|segment| Some(segment.first) != last) {
            segment.file = None;
        }
        if self.refilling {
            self.recovered();
        }
        self.shared.watch(now_ns);
        true
    }

    /// Publishes progress: everything that existed when a sync began, or less.
    fn reached(&mut self, lsn: u64, started_ns: u64, is_all: bool) {
        self.shared.set_durable(lsn);
        let durable = self.durable();
        self.safe = self.safe.max(durable);
        self.kept = self.kept.max(durable);
        if is_all && self.failed.is_none() {
            // Whatever is not durable now was appended after the sync began.
            let oldest = if self.shared.end() > durable { started_ns.max(1) } else { 0 };
            self.shared.oldest_ns.store(oldest, SeqCst);
        }
        self.release(durable);
    }

    /// Determines what the next sync covers: everything written by now. `None` if there is nothing, or a sync is
    /// running.
    pub fn begin_sync(&mut self, now_ns: u64) -> Option<SyncJob> {
        if self.syncing {
            return None;
        }
        let durable = self.durable();
        let unsynced = self.segments.iter().filter(|segment| segment.end > durable);
        // Only up to the first that must not be synced again (F4): nothing beyond it can become durable.
        let parts = unsynced.map_while(|segment| {
            let file = Arc::clone(segment.file.as_ref()?);
            let Segment { named, end, first, forgotten, .. } = *segment;
            Some(Part { file, named, end, first, forgotten })
        });
        let parts: Vec<Part> = parts.collect();
        if parts.is_empty() {
            return None;
        }
        self.set_syncing(true);
        Some(SyncJob { fs: Arc::clone(&self.fs), dir: self.dir.clone(), parts, started_ns: now_ns })
    }

    fn set_syncing(&mut self, syncing: bool) {
        self.syncing = syncing;
        self.shared.syncing.store(syncing, SeqCst);
    }

    /// Records the result of a sync (F2).
    pub fn finish_sync(&mut self, job: &SyncJob, outcome: SyncOutcome, now_ns: u64) {
        self.set_syncing(false);
        self.last_sync_ns = now_ns;
        self.counters.syncs += 1;
        self.counters.add_sync_time(now_ns.saturating_sub(job.started_ns));
        self.counters.sync_ok = outcome.error.is_none();
        self.now_durable(job, &job.parts[..outcome.done]);
        match outcome.error {
            Some((first, error)) => {
                for segment in self.segments.iter_mut().filter(|segment| segment.first >= first) {
                    segment.file = None;
                }
                self.fail(&error, now_ns);
            }
            None if self.refilling => self.recovered(),
            None => {}
        }
        self.shared.watch(now_ns);
    }

    fn now_durable(&mut self, job: &SyncJob, done: &[Part]) {
        let Some(reached) = done.last() else { return };
        self.reached(reached.end, job.started_ns, done.len() == job.parts.len());
        let durable = self.durable();
        let last = self.segments.last().map(|last| last.first);
        for segment in &mut self.segments {
            if let Some(part) = done.iter().find(|part| part.first == segment.first) {
                segment.named = true;
                if part.forgets() {
                    // Only whole pages are dropped.
                    segment.forgotten = part.end - part.end % PAGE_BYTES;
                }
            }
            if segment.end <= durable && Some(segment.first) != last {
                segment.file = None;
            }
        }
    }
}

fn at_or_now(at: u64, now_ns: u64) -> Due {
    if at <= now_ns { Due::Now } else { Due::At(at) }
}
