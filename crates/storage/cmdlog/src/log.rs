//! The log's public interface: for workers, for the keeper, and for the start of the server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::{Clock, HistoryId, Lsn};
use parking_lot::Mutex;
use vfs::FileSystem;

use crate::error::{LogError, LogFailure};
use crate::flush::{Due, Flush};
use crate::frame::Kind;
use crate::options::{Admission, LogOptions, LogStart, LogWake};
use crate::record::Payload;
use crate::shared::{Shared, state};
use crate::start;
use crate::stats::{Counters, LogStats};
use crate::timing::LogMode;

/// The write thread gathers records for this long before it writes, unless many arrive.
const GATHER: Duration = Duration::from_millis(10);
/// How long the sync thread waits for a worker that has reserved space and not published it yet.
const SOON: Duration = Duration::from_millis(2);
/// How long the sync thread waits for workers in the middle of a turn: twice the time for which a worker defers a sync
/// to read further requests.
const TURN_MAX: Duration = Duration::from_millis(4);
/// Interval of the watch thread while something is not durable.
const WATCH: Duration = Duration::from_millis(100);

/// A running command log. One per data directory; its creator holds the directory's lock.
///
/// ```text
/// worker: admit -> (locks) append -> (unlock) -> reply, or wait_for + durable_lsn
/// threads: log-write (gathers, writes)   log-sync (writes, syncs, retries after failures)   log-watch (late syncs)
/// ```
pub struct Log {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The function that one of the log's threads runs until the log is closed.
type Body = fn(&Core);

/// The state that the log's threads share.
struct Core {
    shared: Arc<Shared>,
    flush: Mutex<Flush>,
    fs: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    dir: PathBuf,
    history: HistoryId,
    published: Mutex<Published>,
}

/// Figures of the flush that are readable while its lock is held.
#[derive(Default)]
struct Published {
    segments: usize,
    /// Where the oldest segment begins.
    first: u64,
    base_size_bytes: u64,
    counters: Counters,
}

impl Log {
    /// Starts a log: makes the recovered tail durable in new files, makes the first new segment durable, then starts
    /// the threads. Blocks for a few syncs.
    ///
    /// # Errors
    /// A file failed, or segments exist where the log should begin. The directory is as good as before: recovery
    /// returns the same records.
    pub fn create(
        fs: Arc<dyn FileSystem>,
        clock: Arc<dyn Clock>,
        options: LogOptions,
        start: LogStart,
        wake: Arc<dyn LogWake>,
    ) -> Result<Arc<Self>, LogError> {
        let log = Self::create_stepped(fs, clock, options, start, wake)?;
        log.start_threads()?;
        Ok(log)
    }

    /// As [`create`](Self::create), without threads: only [`write_step`](Self::write_step) writes and only
    /// [`sync_step`](Self::sync_step) syncs. Simulations use it to let the seed decide the order of all steps.
    ///
    /// # Errors
    /// As `create`.
    pub fn create_stepped(
        fs: Arc<dyn FileSystem>,
        clock: Arc<dyn Clock>,
        options: LogOptions,
        start: LogStart,
        wake: Arc<dyn LogWake>,
    ) -> Result<Arc<Self>, LogError> {
        let history = start.history;
        let (shared, stream) = Shared::new(&options, history, start.first.0, wake);
        let shared = Arc::new(shared);
        options.timing.add_reader(Arc::downgrade(&shared) as _);
        let flush = start::open(&fs, &clock, &options, start, (&shared, stream))?;
        let core = Core {
            shared,
            flush: Mutex::new(flush),
            fs,
            clock,
            dir: options.dir,
            history,
            published: Mutex::new(Published::default()),
        };
        core.publish(&core.flush.lock(), true);
        Ok(Arc::new(Self { core: Arc::new(core), threads: Mutex::new(Vec::new()) }))
    }

    fn start_threads(&self) -> Result<(), LogError> {
        let bodies = [
            ("log-write", Core::write_loop as Body),
            ("log-sync", Core::sync_loop as Body),
            ("log-watch", Core::watch_loop as Body),
        ];
        for (name, body) in bodies {
            let core = Arc::clone(&self.core);
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
                let _bug = TellOfPanic(&core);
                body(&core);
            });
            // Threads that are already running end when the log is dropped.
            self.threads.lock().push(thread.map_err(|source| LogError::Thread { source })?);
        }
        Ok(())
    }

    // ---- By workers.

    /// Whether the worker may make a change. Call it before taking any lock. `Go` covers one record. A few
    /// relaxed loads.
    #[inline]
    pub fn admit(&self, worker: usize) -> Admission {
        self.core.shared.admit(worker)
    }

    /// As [`admit`](Self::admit), for a change that only removes data. A full disk does not refuse it while memory has
    /// room.
    #[inline]
    pub fn admit_delete(&self, worker: usize) -> Admission {
        self.core.shared.admit_delete(worker)
    }

    /// Appends a record and returns the position after it. Never waits for the disk and never fails. A payload above 64
    /// KiB, or one that finds no room in the ring, is kept in a buffer outside the ring; admission normally prevents
    /// the second case. Call it under the locks of the changed shards, on the worker's own thread: two threads must not
    /// append as the same worker concurrently.
    ///
    /// # Panics
    /// If there is no such worker.
    #[inline]
    pub fn append(&self, worker: usize, payload: &[u8]) -> Lsn {
        Lsn(self.core.shared.append(worker, payload))
    }

    /// As [`append`](Self::append), for a worker that calls [`end_turn`](Self::end_turn) soon. The end of the turn
    /// triggers the write and, in `Sync` mode, the sync: one sync then covers everything that a worker appends in a
    /// turn.
    ///
    /// # Panics
    /// As `append`.
    #[inline]
    pub fn append_in_turn(&self, worker: usize, payload: &[u8]) -> Lsn {
        Lsn(self.core.shared.append_in_turn(worker, payload))
    }

    /// As [`append_in_turn`](Self::append_in_turn), for a payload with a shared part. The shared part is kept by
    /// reference, however short it is.
    ///
    /// # Panics
    /// As `append`.
    pub fn append_shared_in_turn(&self, worker: usize, payload: &Payload<'_>) -> Lsn {
        Lsn(self.core.shared.append_shared_in_turn(worker, payload))
    }

    /// Whether a sync waits for the worker's [`end_turn`](Self::end_turn). A few loads.
    #[inline]
    pub fn puts_off_sync(&self, worker: usize) -> bool {
        self.core.shared.puts_off_sync(worker)
    }

    /// Ends the worker's turn if the worker appended in it. Otherwise a few loads.
    #[inline]
    pub fn end_turn(&self, worker: usize) {
        self.core.shared.end_turn(worker);
    }

    /// Registers the worker to be woken once, when more is durable. Also ends its turn, unless a running sync will wake
    /// the worker anyway. Read [`durable_lsn`](Self::durable_lsn) *after* this call: progress before it may not wake
    /// the worker.
    pub fn wait_for(&self, worker: usize) {
        self.core.shared.wait_for(worker);
    }

    /// Whether replies wait until the changes they show are durable.
    #[inline]
    pub fn holds_replies(&self) -> bool {
        self.mode() == LogMode::Sync
    }

    // ---- Positions.

    /// The history this log writes.
    pub fn history(&self) -> HistoryId {
        self.core.history
    }

    /// The position after everything appended.
    #[inline]
    pub fn end_lsn(&self) -> Lsn {
        Lsn(self.core.shared.end())
    }

    /// The operating system has accepted everything before this position. Goes back after a failure.
    pub fn written_lsn(&self) -> Lsn {
        Lsn(self.core.shared.written.load(SeqCst))
    }

    /// Everything before this position is on the medium. Never goes back.
    #[inline]
    pub fn durable_lsn(&self) -> Lsn {
        Lsn(self.core.shared.durable.load(SeqCst))
    }

    // ---- Settings.

    /// When records become durable.
    #[inline]
    pub fn mode(&self) -> LogMode {
        self.core.shared.mode()
    }

    /// Changes the mode for every log that shares the [`LogTiming`](crate::LogTiming), with immediate effect.
    pub fn set_mode(&self, mode: LogMode) {
        self.core.shared.timing().set_mode(mode);
        self.core.shared.watch(self.core.clock.monotonic_ns());
    }

    /// The current window of `Async`, in milliseconds.
    pub fn window_ms(&self) -> u64 {
        self.core.shared.timing().window_ms()
    }

    /// Changes the window (at least 1), as [`set_mode`](Self::set_mode) changes the mode.
    pub fn set_window_ms(&self, window_ms: u64) {
        self.core.shared.timing().set_window_ms(window_ms);
        self.core.shared.watch(self.core.clock.monotonic_ns());
    }

    // ---- Health and figures.

    /// The current failure; `None` while the log is healthy.
    pub fn health(&self) -> Option<LogFailure> {
        if self.core.shared.state.load(SeqCst) == state::HEALTHY {
            return None;
        }
        self.core.shared.failure.lock().clone()
    }

    /// The log's figures. Does not wait for the disk.
    pub fn stats(&self) -> LogStats {
        self.core.stats()
    }

    // ---- By the keeper.

    /// Makes everything appended before the call durable, in any mode, and returns the position reached. Blocks.
    ///
    /// # Errors
    /// The log has failed. It keeps retrying.
    pub fn sync(&self) -> Result<Lsn, LogFailure> {
        let target = self.core.shared.end();
        self.core.shared.wanted.fetch_max(target, SeqCst);
        self.core.shared.sync_sleeper.wake();
        let reached = || self.core.shared.durable.load(SeqCst) >= target;
        if self.threads.lock().is_empty() {
            while !reached() && self.health().is_none() && self.sync_step() {}
        } else {
            self.core.shared.wait_until(|| reached() || self.health().is_some());
        }
        match self.health() {
            Some(failure) if !reached() => Err(failure),
            _ => Ok(self.durable_lsn()),
        }
    }

    /// Removes the segments that lie wholly before `lsn`, and returns the bytes freed. Call it once the manifest that
    /// makes everything up to `lsn` unnecessary is durable.
    ///
    /// # Errors
    /// A file could not be removed; older files are already gone.
    pub fn remove_before(&self, lsn: Lsn) -> Result<u64, LogError> {
        self.core.remove_before(lsn)
    }

    /// Shuts the log down in order: makes everything durable, then an end mark and the last segment's header, and stops
    /// the threads. Nothing may be appended afterwards. Blocks.
    ///
    /// # Errors
    /// The log has failed. The threads stop in this case too.
    pub fn close(&self) -> Result<Lsn, LogFailure> {
        let synced = self.sync();
        self.stop_threads();
        synced?;
        // The threads have ended, so the steps run here.
        self.sync()?;
        self.core.flush.lock().mark(Kind::End, self.core.clock.monotonic_ns());
        let end = self.sync()?;
        self.core.flush.lock().end();
        Ok(end)
    }

    fn stop_threads(&self) {
        self.core.shared.closing.store(true, SeqCst);
        self.core.shared.wake_threads();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A thread that panicked has reported it already.
            let _ = thread.join();
        }
    }

    // ---- Steps, for simulations.

    /// Writes what is published, as the write thread does every ten milliseconds.
    pub fn write_step(&self) {
        self.core.write_turn();
    }

    /// One round of the sync thread: writes and syncs if a sync is due, or retries after a failure if it is time.
    /// Returns whether it did something.
    pub fn sync_step(&self) -> bool {
        self.core.sync_turn() == Due::Now
    }

    /// Checks the clock, as the watch thread does, and decides whether writes must wait.
    pub fn watch_step(&self) {
        self.core.shared.watch(self.core.clock.monotonic_ns());
    }
}

/// A log whose thread has died of a bug makes nothing durable any more, so its owner must be notified.
struct TellOfPanic<'a>(&'a Core);

impl Drop for TellOfPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let message = "a thread of the command log ended by a bug; nothing becomes durable any more".to_owned();
            let (path, since_ms) = (self.0.dir.clone(), self.0.clock.now_ms());
            let failure = LogFailure { path, op: "run", errno: None, disk_full: false, since_ms, message };
            *self.0.shared.failure.lock() = Some(failure.clone());
            self.0.shared.state.store(state::FAILED, SeqCst);
            self.0.shared.wake_syncers();
            self.0.shared.wake.stop(&failure);
        }
    }
}

impl Drop for Log {
    /// Stops the threads without writing. Close a log that is to be kept before it is dropped.
    fn drop(&mut self) {
        self.stop_threads();
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (end, durable) = (self.end_lsn(), self.durable_lsn());
        f.debug_struct("Log").field("dir", &self.core.dir).field("end", &end).field("durable", &durable).finish()
    }
}

impl Core {
    fn closing(&self) -> bool {
        self.shared.closing.load(SeqCst)
    }

    /// Writes what is published. Returns whether more is likely to come soon.
    fn write_turn(&self) -> bool {
        let mut flush = self.flush.lock();
        let wrote = flush.write(self.clock.monotonic_ns(), false);
        self.publish(&flush, false);
        wrote
    }

    fn write_loop(&self) {
        while !self.closing() {
            if self.write_turn() {
                self.shared.write_sleeper.nap(GATHER, || self.closing());
            } else {
                self.shared.write_sleeper.idle(None, || self.closing() || self.should_write());
            }
        }
    }

    /// Whether the write thread has work. In `Sync` mode the sync thread writes, unless it is blocked.
    fn should_write(&self) -> bool {
        let pending = self.shared.end().saturating_sub(self.shared.written.load(SeqCst));
        let least = if self.shared.mode() == LogMode::Sync { self.shared.write_early_bytes } else { 1 };
        self.shared.state.load(SeqCst) == state::HEALTHY && pending >= least
    }

    /// One round: `Now` if it did something and there may be more.
    fn sync_turn(&self) -> Due {
        let mut flush = self.flush.lock();
        let now = self.clock.monotonic_ns();
        flush.retry(now);
        flush.mark_if_quiet(now);
        let due = flush.due(now);
        if due != Due::Now {
            self.publish(&flush, false);
            return due;
        }
        flush.write(now, true);
        if flush.finish_writes(now, self.clock.monotonic_ns()) {
            self.publish(&flush, false);
            return Due::Now;
        }
        let Some(job) = flush.begin_sync(now) else {
            self.publish(&flush, false);
            // Space is reserved and not published yet; or the write failed, and the time of the next attempt is set.
            let due = flush.due(now);
            return if due == Due::Now { Due::Soon } else { due };
        };
        drop(flush);
        let outcome = job.run();
        let mut flush = self.flush.lock();
        flush.finish_sync(&job, outcome, self.clock.monotonic_ns());
        self.publish(&flush, false);
        Due::Now
    }

    fn sync_loop(&self) {
        while !self.closing() {
            self.await_turns();
            let before = self.sync_news();
            let time = match self.sync_turn() {
                Due::Now => continue,
                Due::Soon => Some(SOON),
                Due::At(at) => Some(Duration::from_nanos(at.saturating_sub(self.clock.monotonic_ns()))),
                Due::Never => None,
            };
            let soon = time == Some(SOON);
            self.shared
                .sync_sleeper
                .idle(time, || self.closing() || before != self.sync_news() || !soon && self.sync_now());
        }
    }

    /// In `Sync` mode, gives workers in the middle of a turn time to end it. Otherwise a sync would cover the first
    /// records of a turn, and the rest would wait for the next sync. Waits [`TURN_MAX`] at most.
    fn await_turns(&self) {
        let shared = &*self.shared;
        if shared.mode() != LogMode::Sync {
            return;
        }
        let turns = shared.open_turns();
        let until = Instant::now() + TURN_MAX;
        while !shared.have_ended(&turns) && !self.closing() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            shared.sync_sleeper.idle(Some(left), || self.closing() || shared.have_ended(&turns));
        }
    }

    /// The inputs, besides time, that decide when the next sync is due. When one changes, the sync thread checks again.
    fn sync_news(&self) -> (u64, u64, u64, LogMode, u8) {
        let shared = &*self.shared;
        let (oldest, wanted) = (shared.oldest_ns.load(SeqCst), shared.wanted.load(SeqCst));
        (oldest, wanted, shared.window_ns(), shared.mode(), shared.state.load(SeqCst))
    }

    /// Whether something was appended that must be synced at once.
    fn sync_now(&self) -> bool {
        let shared = &*self.shared;
        let healthy = shared.state.load(SeqCst) == state::HEALTHY;
        healthy && shared.mode() == LogMode::Sync && shared.end() > shared.durable.load(SeqCst)
    }

    fn watch_loop(&self) {
        let outstanding = || self.shared.mode() == LogMode::Async && self.shared.oldest_ns.load(SeqCst) != 0;
        while !self.closing() {
            self.shared.watch(self.clock.monotonic_ns());
            if outstanding() {
                self.shared.watch_sleeper.nap(WATCH, || self.closing());
            } else {
                self.shared.watch_sleeper.idle(None, || self.closing() || outstanding());
            }
        }
    }

    fn publish(&self, flush: &Flush, new_base: bool) {
        let mut published = self.published.lock();
        published.segments = flush.segments.len();
        published.first = flush.segments.first().map_or(0, |segment| segment.first);
        published.counters = flush.counters.clone();
        if new_base {
            published.base_size_bytes = self.shared.end().saturating_sub(published.first);
        }
    }

    fn stats(&self) -> LogStats {
        let shared = &*self.shared;
        let (durable, written) = (shared.durable.load(SeqCst), shared.written.load(SeqCst));
        let (end, oldest) = (shared.end(), shared.oldest_ns.load(SeqCst));
        let age = if oldest == 0 { 0 } else { self.clock.monotonic_ns().saturating_sub(oldest) };
        let published = self.published.lock();
        let counters = &published.counters;
        LogStats {
            segments: published.segments,
            size_bytes: end.saturating_sub(published.first),
            base_size_bytes: published.base_size_bytes,
            pending_bytes: end.saturating_sub(written),
            unsynced_bytes: end.saturating_sub(durable),
            oldest_unsynced_ms: age / 1_000_000,
            syncs: counters.syncs,
            last_sync_us: counters.last_sync_ns / 1000,
            sync_us: counters.sync_ns / 1000,
            sync_us_max: counters.sync_ns_max / 1000,
            last_write_ok: counters.write_ok,
            last_sync_ok: counters.sync_ok,
            delayed_syncs: shared.delayed.load(Relaxed),
            failures: counters.failures,
            rotations: counters.rotations,
            memory_bytes: shared.stream.capacity() + shared.side_bytes(),
        }
    }

    fn remove_before(&self, lsn: Lsn) -> Result<u64, LogError> {
        // Removing a large file takes a while, so release the flush's lock first.
        let paths = self.flush.lock().removable(lsn.0);
        let mut freed = 0;
        for path in paths {
            let allocated = self.fs.metadata(&path).map_or(0, |found| found.allocated);
            match self.fs.remove_file(&path) {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => freed += allocated,
            }
            self.flush.lock().forget(&path);
        }
        self.publish(&self.flush.lock(), true);
        Ok(freed)
    }
}
