//! The threads that flush databases on disk and merge their tables.
//!
//! ```text
//! flusher:   due? -> spill (worker) -> cut (worker, all locks) -> [walk (worker) -> drain]..
//!            -> log durable, then rows -> end (worker)
//! compactor: after a flush, merge until nothing is due; when idle, give back space of what is deleted
//! expirer:   look for rows that have expired, for upkeep to delete
//! ```
//!
//! A flush is due when the log has grown by half of the limit since the last cut, or when a write needs memory that
//! only a flush can free; and half a minute after the last one or the start, if the log has grown. Every change is in
//! the log, so its growth bounds what is dirty, but for collections that are large and changed a little; those are
//! bounded by the memory budget. At the limit itself, writes to these databases wait. If flushes fail, they are refused
//! after a time; the flusher tries again every second.
//!
//! W1. The flusher asks workers in turns of its own ([`Durability::work`]), so that it does not wait for a checkpoint.
//! W2. The log is kept from the position of the last flush on, so that a start finds every change that rows lack.

pub(crate) mod state;

use crate::disk_databases::{DiskDatabases, FlushError, RunningFlush};
use crate::error::DurabilityError;
use crate::keeper::Durability;
use crate::sink::LogSink;
use crate::work::{Ended, Job};
use base::Lsn;
use checkpoint::{ManifestFile, RowsInfo, SetId, SetInfo};
use cmdlog::LogFailure;
use disk::DiskStats;
use engine::FlushProgress;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use store::WorkerSet;

/// Time between two looks at whether a flush is due.
const LOOK: Duration = Duration::from_millis(10);

/// The same for merges, which begin after a flush.
const MERGE_LOOK: Duration = Duration::from_millis(200);

/// The same for rows that have expired.
const DUE_LOOK: Duration = Duration::from_millis(100);

/// Time after the last flush before what has changed since is flushed, be it little: a start then has little to replay,
/// and the space of what was deleted comes back.
const QUIET: Duration = Duration::from_secs(30);

/// Least time between two flushes that writes wait for.
const REST: Duration = Duration::from_millis(50);

/// Time after a failed flush before the next one. It doubles where all is walked anew, since the tree's memory keeps
/// what was walked before.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_DOUBLINGS: u32 = 6;

/// Bytes that a walk collects before they are written.
const COLLECTED_BYTES_MAX: usize = 1 << 20;

/// Time without a flush after which space of what is deleted is given back.
const IDLE: Duration = Duration::from_secs(10);

/// How flushes of databases on disk stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlushStatus {
    /// Flushes since the start.
    pub count: u64,
    /// The position up to which rows hold all changes.
    pub flushed: Lsn,
    /// Bytes of log since the last cut.
    pub unflushed_bytes: u64,
    /// Why the last flush failed; `None` when it did not.
    pub error: Option<String>,
    /// Keyspaces on disk.
    pub databases: usize,
    /// Bytes that only copies of rows have, which checkpoints keep. As of the last checkpoint.
    pub retained_bytes: u64,
    /// The rows.
    pub rows: DiskStats,
}

/// A flush that runs, on its way between the flusher and workers.
type Walked = Arc<Mutex<Option<RunningFlush>>>;

/// Why a flush has not come about.
#[derive(Debug, thiserror::Error)]
enum Unflushed {
    #[error(transparent)]
    Failed(#[from] FlushError<LogFailure>),
    #[error(transparent)]
    Ended(#[from] Ended),
}

impl Durability {
    /// Flushes databases on disk whenever that is due, until [`Durability::end`]. On a separate thread. `ended` is
    /// called after each, with the time it took. It is to give back memory: the C library keeps much that a flush has
    /// freed.
    pub fn flush_databases(&self, ended: impl Fn(Duration)) {
        let mut kept = None;
        // As if a flush had just ended.
        self.flushing.state.lock().ended_at_ns = Some(self.parts.clock.monotonic_ns());
        while self.wait(LOOK) {
            let Some((databases, sink)) = self.to_flush() else { continue };
            let began_ns = self.parts.clock.monotonic_ns();
            match self.flush_once(&databases, &sink, &mut kept) {
                Ok(()) => self.note_flushed(None),
                Err(Unflushed::Ended(Ended)) => return,
                Err(Unflushed::Failed(error)) => {
                    self.note_flushed(Some(error.to_string()));
                }
            }
            ended(self.since(began_ns));
        }
    }

    /// Merges tables of databases on disk, until [`Durability::end`]. On a thread of its own.
    pub fn compact_databases(&self) {
        let (mut seen, mut is_reclaimed) = (0, true);
        while self.wait(MERGE_LOOK) {
            let Some(databases) = self.databases.get() else { continue };
            let (count, ended_at_ns) = {
                let state = self.flushing.state.lock();
                (state.count, state.ended_at_ns)
            };
            let is_new = std::mem::replace(&mut seen, count) != count;
            is_reclaimed &= !is_new;
            let is_idle = ended_at_ns.is_some_and(|ended| self.since(ended) > IDLE);
            let merged = match (is_new, is_idle && !is_reclaimed) {
                (true, _) => self.merge_all(|| databases.compact_step()),
                (false, true) => {
                    is_reclaimed = true;
                    self.merge_all(|| databases.reclaim_step())
                }
                (false, false) => Ok(()),
            };
            if let Err(error) = merged {
                self.parts.tell.warn(&format!("tables of databases on disk cannot be merged: {error}"));
                self.wait(RETRY);
            }
            self.parts.store.pressure.set_row_store_bytes(databases.memory_bytes());
        }
    }

    /// Looks for rows that have expired, until [`Durability::end`]. On a thread of its own: merges take too long.
    pub fn look_for_due_rows(&self) {
        while self.wait(DUE_LOOK) {
            let Some(databases) = self.databases.get() else { continue };
            let now = || self.parts.clock.now_ms();
            if let Err(error) = self.merge_all(|| databases.gather_due(now())) {
                self.parts.tell.warn(&format!("expired rows of databases on disk cannot be looked for: {error}"));
                self.wait(RETRY);
            }
        }
    }

    fn merge_all<E>(&self, mut step: impl FnMut() -> Result<bool, E>) -> Result<(), E> {
        while !self.is_ended() && step()? {}
        Ok(())
    }

    /// Waits for this time, or until it is woken. Returns false at the end.
    fn wait(&self, time: Duration) -> bool {
        let mut state = self.flushing.state.lock();
        if !self.is_ended() {
            self.flushing.stir.wait_for(&mut state, time);
        }
        !self.is_ended()
    }

    /// The time since then.
    fn since(&self, then_ns: u64) -> Duration {
        Duration::from_nanos(self.parts.clock.monotonic_ns().saturating_sub(then_ns))
    }

    /// Wakes the flusher and the compactor.
    pub(crate) fn stir_flushing(&self) {
        self.flushing.stir.notify_all();
    }

    /// What is to be flushed now, and the log; `None` when no flush is due.
    fn to_flush(&self) -> Option<(Arc<DiskDatabases>, Arc<LogSink>)> {
        let databases = self.databases.get()?;
        let sink = self.state.lock().log.clone().filter(|sink| store::RecordSink::counts(&**sink))?;
        let pressure = &self.parts.store.pressure;
        let policy = self.policy();
        let limit = policy.flush_bytes;
        let mut state = self.flushing.state.lock();
        let unflushed = sink.log.end_lsn().0.saturating_sub(state.cut.0);
        let is_behind = unflushed >= limit;
        let mut is_news = pressure.set_behind(is_behind) && !is_behind;
        let has_rested = |time: Duration| state.ended_at_ns.is_none_or(|ended| self.since(ended) >= time);
        let is_due = match state.error {
            Some(_) => has_rested(RETRY * (1 << state.failures.min(RETRY_DOUBLINGS))),
            None => {
                let is_quiet = has_rested(QUIET) && unflushed > 0;
                unflushed >= limit / 2 || is_quiet || has_rested(REST) && pressure.take_wanted()
            }
        };
        if state.error.is_some() && (is_behind || pressure.is_wanted()) {
            let since_ns = *state.stuck_since_ns.get_or_insert_with(|| self.parts.clock.monotonic_ns());
            let is_refusing = self.since(since_ns) >= Duration::from_millis(policy.flush_error_wait_ms);
            is_news |= is_refusing && !pressure.set_refusing(true);
        }
        drop(state);
        if is_news {
            self.wake_workers();
        }
        is_due.then(|| (databases.clone(), sink))
    }

    /// Does one flush, or repeats what failed of the last one, `kept`.
    fn flush_once(
        &self,
        databases: &Arc<DiskDatabases>,
        sink: &Arc<LogSink>,
        kept: &mut Option<Walked>,
    ) -> Result<(), Unflushed> {
        let running = match kept.take() {
            Some(walked) => walked,
            None => self.begin_flush(databases, sink)?,
        };
        let lsn = running.lock().as_ref().map_or(Lsn(0), RunningFlush::lsn);
        let written = self.walk_and_install(databases, &running, sink);
        if let Err(Unflushed::Ended(Ended)) = written {
            return Err(Ended.into());
        }
        if written.is_err() && running.lock().as_ref().is_some_and(RunningFlush::can_repeat) {
            *kept = Some(running);
            return written.map(|_| ());
        }
        let place = running.clone();
        self.by_a_worker_for_flush(Box::new(move || {
            if let Some(flush) = place.lock().take() {
                flush.end();
            }
            true
        }))?;
        let mut state = self.flushing.state.lock();
        match written {
            Ok(true) => state.flushed = lsn,
            // Its changes are part of the next one.
            _ => {
                state.cut = state.flushed;
                state.failures += u32::from(written.is_err());
            }
        }
        written.map(|_| ())
    }

    /// Has changed leaves of large collections become rows, and then the cut of a flush made.
    fn begin_flush(&self, databases: &Arc<DiskDatabases>, sink: &Arc<LogSink>) -> Result<Walked, Unflushed> {
        let spill = Arc::new(Mutex::new(databases.begin_spill()));
        while !spill.lock().is_done() {
            let place = spill.clone();
            self.by_a_worker_for_flush(Box::new(move || {
                let mut spill = place.lock();
                spill.step();
                spill.is_done() || spill.is_full()
            }))?;
            let spill = spill.lock();
            if spill.is_full() {
                spill.flush_leaves().map_err(FlushError::Rows)?;
            }
        }
        let running = Walked::default();
        let (place, from, log) = (running.clone(), databases.clone(), sink.clone());
        self.by_a_worker_for_flush(Box::new(move || {
            let flush = from.begin_flush(|| log.log.end_lsn());
            let is_begun = flush.is_some();
            *place.lock() = flush;
            is_begun
        }))?;
        let lsn = running.lock().as_ref().map_or(Lsn(0), RunningFlush::lsn);
        self.flushing.state.lock().cut = lsn;
        // From here on the limit counts from the cut. Not after a failure, where each try would admit as much again.
        if !self.parts.store.pressure.is_failing() {
            self.parts.store.pressure.set_behind(false);
            self.wake_workers();
        }
        Ok(running)
    }

    /// Has the flush walked and installed; false when it has become void.
    fn walk_and_install(&self, databases: &DiskDatabases, running: &Walked, sink: &LogSink) -> Result<bool, Unflushed> {
        loop {
            let (place, progress) = (running.clone(), Arc::new(Mutex::new(FlushProgress::More)));
            let told = progress.clone();
            self.by_a_worker_for_flush(Box::new(move || {
                let mut place = place.lock();
                let step = place.as_mut().map_or(FlushProgress::Void, RunningFlush::walk);
                *told.lock() = step;
                let is_full = place.as_ref().is_some_and(|flush| flush.collected_bytes() >= COLLECTED_BYTES_MAX);
                step != FlushProgress::More || is_full
            }))?;
            let progress = *progress.lock();
            let mut place = running.lock();
            let Some(flush) = place.as_mut() else { return Ok(false) };
            match progress {
                FlushProgress::More => flush.drain().map_err(FlushError::Rows)?,
                FlushProgress::Void => return Ok(false),
                FlushProgress::Done => {
                    flush.drain().map_err(FlushError::Rows)?;
                    self.parts.store.pressure.set_row_store_bytes(databases.memory_bytes());
                    flush.install(|_| sink.log.sync().map(|_| ()))?;
                    // Before those are woken who wait for memory.
                    self.parts.store.pressure.set_row_store_bytes(databases.memory_bytes());
                    return Ok(true);
                }
            }
            self.parts.store.pressure.set_row_store_bytes(databases.memory_bytes());
        }
    }

    fn note_flushed(&self, error: Option<String>) {
        let pressure = &self.parts.store.pressure;
        let mut state = self.flushing.state.lock();
        state.ended_at_ns = Some(self.parts.clock.monotonic_ns());
        state.count += u64::from(error.is_none());
        let before = std::mem::replace(&mut state.error, error.clone());
        if error.is_none() {
            (state.stuck_since_ns, state.failures) = (None, 0);
        }
        drop(state);
        pressure.set_failure(error.as_deref());
        match &error {
            Some(error) if before.is_none() => self.parts.tell.warn(&format!(
                "databases on disk: {error}. Nothing is lost: the command log has it. Writes that need \
                 a flush wait (flush-error-wait), and then are refused until one succeeds; the server tries again"
            )),
            None if before.is_some() => self.parts.tell.say("databases on disk are flushed again"),
            _ => {}
        }
        if error.is_none() {
            // As of the cut of this flush; what was written since is looked at next.
            pressure.set_behind(false);
            pressure.set_refusing(false);
        }
        self.wake_workers();
        self.flushing.stir.notify_all();
    }

    /// Has a worker run a job of the flusher.
    fn by_a_worker_for_flush(&self, job: Job) -> Result<(), Ended> {
        self.flush_work.run(job, &|| self.parts.store.wake(WorkerSet::one(0)))
    }

    /// Writes that wait for a flush look again.
    fn wake_workers(&self) {
        (0..self.parts.workers).for_each(|worker| self.parts.store.wake(WorkerSet::one(worker)));
    }

    /// The numbers of databases that the settings have on disk.
    pub fn disk_databases(&self) -> Vec<u32> {
        self.policy().disk_databases
    }

    /// How flushes stand; `None` without databases on disk.
    pub fn flush_status(&self) -> Option<FlushStatus> {
        let rows = self.databases.get()?.stats();
        let databases = self.parts.store.pressure.spaces().len();
        let end = self.state.lock().log.as_ref().map_or(Lsn(0), |sink| sink.log.end_lsn());
        let state = self.flushing.state.lock();
        let unflushed_bytes = end.0.saturating_sub(state.cut.0);
        let (count, flushed, error) = (state.count, state.flushed, state.error.clone());
        let retained_bytes = state.retained_bytes;
        Some(FlushStatus { count, flushed, unflushed_bytes, error, databases, retained_bytes, rows })
    }

    /// From where on the log is needed by rows (W2); `None` without databases on disk.
    pub(crate) fn log_needed_by_rows(&self) -> Option<Lsn> {
        self.databases.get().map(|_| self.flushing.state.lock().flushed)
    }

    /// Begins to count from a position that rows have.
    pub(crate) fn begin_flushing_at(&self, lsn: Lsn) {
        let mut state = self.flushing.state.lock();
        (state.flushed, state.cut) = (lsn, lsn);
    }

    /// Gives databases that are to be on disk and are not yet their rows, before clients are served. The log counts.
    ///
    /// # Errors
    /// A database has entries in memory already; or its rows cannot be made.
    pub fn add_databases(&self) -> Result<(), DurabilityError> {
        let store = &self.parts.store;
        let mut place = self.manifest.lock();
        let Some(manifest) = place.as_mut() else { return Err(Ended.into()) };
        let wanted = self.policy().disk_databases;
        let (mut spaces, mut new_numbers) = (manifest.current().disk_spaces.clone(), Vec::new());
        for number in wanted {
            let Some(space) = store.spaces.get(base::DbIndex(number)) else { continue };
            if spaces.contains(&space) {
                continue;
            }
            let keys = store.len(base::DbIndex(number)).0;
            if keys > 0 {
                return Err(DurabilityError::EngineFixed { number, keys });
            }
            spaces.push(space);
            new_numbers.push(number);
        }
        if spaces.len() == manifest.current().disk_spaces.len() {
            return Ok(());
        }
        let new = spaces.iter().filter(|space| !manifest.current().disk_spaces.contains(space)).copied();
        let databases = match self.databases.get() {
            Some(databases) => databases.clone(),
            None => self.open_databases(&[], true)?,
        };
        new.into_iter().try_for_each(|space| databases.add(space))?;
        // A start that ended before its manifest was written has left none.
        let has_rows = |number: &u32| store.len(base::DbIndex(*number)).0 > 0;
        if let Some(number) = new_numbers.iter().copied().find(has_rows) {
            return Err(DurabilityError::RowsLeft { path: self.dir.file(checkpoint::Name::Rows), number });
        }
        let disk_since = self.flush_while_nothing_runs(&databases)?;
        spaces.sort_unstable();
        let next = checkpoint::Manifest { disk_spaces: spaces, disk_since, ..manifest.current().clone() };
        Ok(manifest.commit(&self.dir, next)?)
    }

    /// Copies the rows for a checkpoint, before its cut; `None` without databases on disk. Waits for a flush that runs.
    pub(crate) fn copy_rows(&self, set: SetId) -> Result<Option<RowsInfo>, DurabilityError> {
        let Some(databases) = self.databases.get() else { return Ok(None) };
        let dir = self.dir.file(checkpoint::Name::RowsOf { set });
        loop {
            if let Some((lsn, spaces)) = databases.copy_to(&dir)? {
                return Ok(Some(RowsInfo { lsn, spaces }).filter(|rows| !rows.spaces.is_empty()));
            }
            let error = self.flushing.state.lock().error.clone();
            if let Some(why) = error {
                return Err(DurabilityError::RowsBehind { why });
            }
            // One that was given up leaves its part to the next.
            self.parts.store.pressure.want();
            if !self.wait(LOOK) || self.is_cancelled() {
                return Err(Ended.into());
            }
        }
    }

    /// Whether the newest checkpoint lacks databases that are on disk by now: it was taken when they were not.
    pub fn lacks_copy_of_rows(&self) -> bool {
        let place = self.manifest.lock();
        let Some(manifest) = place.as_ref().map(ManifestFile::current) else { return false };
        let has_all = |set: &SetInfo| set.rows.as_ref().is_some_and(|rows| rows.spaces == manifest.disk_spaces);
        !manifest.disk_spaces.is_empty() && manifest.newest().is_some_and(|set| !has_all(set))
    }

    /// Notes what the copies of rows take that checkpoints have, without what the rows in use share with them.
    pub(crate) fn note_bytes_of_copies(&self) {
        if self.databases.get().is_none() {
            return;
        }
        let Ok(listing) = self.dir.list() else { return };
        let copies = listing.row_copies.iter().map(|set| self.dir.file(checkpoint::Name::RowsOf { set: *set }));
        let copies: Vec<_> = copies.collect();
        let copies: Vec<_> = copies.iter().map(std::path::PathBuf::as_path).collect();
        let rows = self.dir.file(checkpoint::Name::Rows);
        // A table that goes meanwhile is no error.
        if let Ok(bytes) = disk::offline::bytes_of_copies_alone(&**self.dir.fs(), &rows, &copies) {
            self.flushing.state.lock().retained_bytes = bytes;
        }
    }

    /// A flush on this thread.
    fn flush_while_nothing_runs(&self, databases: &Arc<DiskDatabases>) -> Result<Lsn, DurabilityError> {
        let Some(sink) = self.state.lock().log.clone() else { return Err(Ended.into()) };
        let mut flush = loop {
            match databases.begin_flush(|| sink.log.end_lsn()) {
                Some(flush) => break flush,
                None => std::thread::yield_now(),
            }
            if self.is_ended() {
                return Err(Ended.into());
            }
        };
        while flush.walk() == FlushProgress::More {}
        let lsn = flush.lsn();
        let installed = flush.install(|_| sink.log.sync().map(|_| ()));
        flush.end();
        installed.map_err(|error| match error {
            FlushError::Log(failure) => DurabilityError::Unsynced(failure),
            FlushError::Rows(error) => DurabilityError::Rows(error),
        })?;
        self.begin_flushing_at(lsn);
        Ok(lsn)
    }

    /// Opens the rows of these keyspaces.
    pub(crate) fn open_databases(
        &self,
        spaces: &[base::KeyspaceId],
        create: bool,
    ) -> Result<Arc<DiskDatabases>, DurabilityError> {
        let policy = self.policy();
        let crate::Policy { block_cache_bytes, parts_from, .. } = policy;
        let options = disk::DiskOptions { create, block_cache_bytes, is_read_only: false, parts_from };
        let dir = self.dir.file(checkpoint::Name::Rows);
        let space_of = |number: &u32| self.parts.store.spaces.get(base::DbIndex(*number));
        let ordered = policy.ordered_databases.iter().filter_map(space_of).collect();
        let databases = DiskDatabases::open(&self.parts.store, self.parts.fs.clone(), &dir, spaces, ordered, options)?;
        // There is one.
        let _ = self.databases.set(databases.clone());
        Ok(databases)
    }
}
