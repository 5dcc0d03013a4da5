//! The keeper: a thread that decides when a checkpoint is taken and the log switched, and takes and switches.

use crate::disk_databases::DiskDatabases;
use crate::error::{DurabilityError, ModeNotSet};
use crate::flushing::state::Flushing;
use crate::history::known::History;
use crate::hold::{BeingRemoved, FileHold};
use crate::policy::{Cause, Policy, SinceLast};
use crate::rdb_writer::{RdbFigures, WriteRdb};
use crate::recovery::loading::Loading;
use crate::sink::LogSink;
use crate::status::{Figures, LastLoad, LogStatus, Running, Status};
use crate::tasks::{Busy, Task};
use crate::tell::Tell;
use crate::tiering::open::OpenTier;
use crate::work::{Ended, Job, Work};
use base::{Clock, Entropy, Lsn, UnixMs};
use checkpoint::{DataDir, Feed, ManifestFile};
use cmdlog::LogTiming;
use parking_lot::{Condvar, Mutex, RwLock};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::{RecordSink, Store, WorkerSet};
use vfs::FileSystem;

/// Time between two looks at whether a checkpoint is due.
const LOOK: Duration = Duration::from_millis(100);

/// Entries that a worker hands to a checkpoint at a time.
const WALK_ENTRIES: usize = 64;

/// What durability needs of its server.
pub struct Parts {
    /// Files.
    pub fs: Arc<dyn FileSystem>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// For ids of histories.
    pub entropy: Arc<dyn Entropy>,
    /// The data directory.
    pub dir: PathBuf,
    /// The data.
    pub store: Arc<Store>,
    /// Workers, numbered from 0.
    pub workers: usize,
    /// Receives reports of what happens.
    pub tell: Arc<dyn Tell>,
    /// Changes since the start.
    pub changes: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// The durability of one server.
pub struct Durability {
    pub(crate) parts: Parts,
    pub(crate) dir: DataDir,
    pub(crate) work: Work,
    pub(crate) loading: Loading,
    /// The mode and the window in force.
    pub(crate) timing: Arc<LogTiming>,
    policy: RwLock<Policy>,
    /// Held for the whole of a change of the policy.
    changing: Mutex<()>,
    /// Locked before `policy`, where both are needed.
    pub(crate) state: Mutex<State>,
    /// Notified when the keeper has something to look at.
    stir: Condvar,
    /// Used by recovery and then by the keeper alone; `None` before recovery.
    pub(crate) manifest: Mutex<Option<ManifestFile>>,
    pub(crate) files: FileHold,
    pub(crate) rdb_writer: OnceLock<Arc<dyn WriteRdb>>,
    /// Databases on disk, if there are any.
    pub(crate) databases: OnceLock<Arc<DiskDatabases>>,
    pub(crate) flushing: Flushing,
    /// The tier, if there is one.
    pub(crate) tier: OnceLock<OpenTier>,
    /// What the flusher asks of workers.
    pub(crate) flush_work: Work,
    /// All data is being replaced: there is no log meanwhile.
    is_replacing: AtomicBool,
}

/// What changes.
pub(crate) struct State {
    /// The log in force.
    pub log: Option<Arc<LogSink>>,
    /// Where the log stood when it was last on: positions below are used.
    pub position: Lsn,
    /// Recovery is done.
    is_loaded: bool,
    /// A checkpoint that is to be begun.
    asked: Option<(Cause, Task)>,
    pub running: Option<Going>,
    /// Nothing is begun any more.
    is_ended: bool,
    /// The start waits for room on the disk: a sentence that says so.
    pub no_room: Option<String>,
    /// Changes and time at the last cut.
    pub changes_at_cut: u64,
    /// Changes that the start has found in the log beyond the checkpoint.
    pub changes_found: u64,
    pub last_cut_ms: UnixMs,
    /// As LASTSAVE reports it.
    pub last_save_ms: UnixMs,
    pub failed_at: Option<UnixMs>,
    /// When switching the log failed.
    switch_failed_at: Option<UnixMs>,
    /// Why, as long as it has not succeeded since.
    switch_error: Option<String>,
    /// What the last checkpoint took, and the log's position at its cut.
    pub set_bytes: u64,
    pub cut: Lsn,
    /// For how long the last cut held all locks, in microseconds.
    pub stall_us: u64,
    pub saves: Figures,
    pub rewrites: Figures,
    pub load: LastLoad,
    pub sets: usize,
    pub all_set_bytes: u64,
    /// The numbers of the oldest and the newest set that is retained.
    pub set_span: Option<(u32, u32)>,
    pub restorable_since_ms: Option<UnixMs>,
    pub history: History,
    pub rdb: RdbFigures,
}

/// A checkpoint being taken.
pub(crate) struct Going {
    pub cause: Cause,
    pub since: Instant,
    pub feed: Option<Feed>,
    pub keys_done: Arc<AtomicU64>,
    pub keys_total: u64,
    pub is_cancelled: bool,
    /// The manifest that names it is being written: it is not given up any more.
    pub is_decided: bool,
}

impl Durability {
    /// Opens and locks the data directory; nothing is read yet.
    ///
    /// # Errors
    /// The directory cannot be used, or another process has it: the error names its number.
    pub fn open(parts: Parts, policy: Policy) -> Result<Arc<Self>, DurabilityError> {
        let dir = DataDir::open(parts.fs.clone(), &parts.dir)?;
        let now = parts.clock.now_ms();
        let state = State {
            log: None,
            position: Lsn(0),
            is_loaded: false,
            asked: None,
            running: None,
            is_ended: false,
            no_room: None,
            changes_at_cut: 0,
            changes_found: 0,
            last_cut_ms: now,
            last_save_ms: now,
            failed_at: None,
            switch_failed_at: None,
            switch_error: None,
            set_bytes: 0,
            cut: Lsn(0),
            stall_us: 0,
            saves: Figures::default(),
            rewrites: Figures::default(),
            load: LastLoad::default(),
            sets: 0,
            all_set_bytes: 0,
            set_span: None,
            restorable_since_ms: None,
            history: History::default(),
            rdb: RdbFigures::default(),
        };
        Ok(Arc::new(Self {
            parts,
            dir,
            work: Work::new(),
            loading: Loading::default(),
            timing: Arc::new(LogTiming::new(policy.mode, policy.window_ms)),
            policy: RwLock::new(policy),
            changing: Mutex::new(()),
            state: Mutex::new(state),
            stir: Condvar::new(),
            manifest: Mutex::new(None),
            files: FileHold::default(),
            rdb_writer: OnceLock::new(),
            databases: OnceLock::new(),
            flushing: Flushing::default(),
            tier: OnceLock::new(),
            flush_work: Work::new(),
            is_replacing: AtomicBool::new(false),
        }))
    }

    // ---- By workers.

    /// Keeps all files of the data directory in place for `ms`, for a backup.
    ///
    /// # Errors
    /// [`BeingRemoved`]: ask again.
    pub fn hold_files(&self, ms: u64) -> Result<(), BeingRemoved> {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX);
        self.files.hold(self.parts.clock.now_ms().saturating_add(ms))
    }

    /// Ends what [`Durability::hold_files`] has begun.
    ///
    /// # Errors
    /// [`BeingRemoved`]: to be asked again.
    pub fn release_files(&self) -> Result<(), BeingRemoved> {
        self.files.release()
    }

    /// The server's time.
    pub fn now_ms(&self) -> UnixMs {
        self.parts.clock.now_ms()
    }

    /// The data directory.
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// A worker's part of what is to be done now: a few dozen microseconds. True when there is more to do at once.
    #[inline]
    pub fn work(&self) -> bool {
        let store = &self.parts.store;
        if self.work.step() || self.flush_work.step() {
            return true;
        }
        if store.checkpoint_shards_left() == 0 {
            return false;
        }
        let more = store.walk_checkpoint(WALK_ENTRIES);
        if store.checkpoint_shards_left() == 0 {
            self.work.announce();
        }
        more
    }

    /// Whether there is anything for [`Durability::work`].
    #[inline]
    pub fn has_work(&self) -> bool {
        self.work.is_asked() || self.flush_work.is_asked() || self.parts.store.checkpoint_shards_left() > 0
    }

    // ---- By commands.

    /// Begins a checkpoint.
    ///
    /// # Errors
    /// [`Busy`] while another one is being taken or about to be.
    pub fn begin(&self, cause: Cause) -> Result<Task, Busy> {
        let mut state = self.state.lock();
        if let Some(cause) = state.cause_now() {
            return Err(Busy { is_save: cause.is_save() });
        }
        Ok(self.ask(&mut state, cause))
    }

    /// Has a checkpoint taken as soon as none is being taken.
    pub fn schedule(&self, cause: Cause) -> Task {
        let mut state = self.state.lock();
        match &state.asked {
            Some((_, task)) => task.clone(),
            None => self.ask(&mut state, cause),
        }
    }

    fn ask(&self, state: &mut State, cause: Cause) -> Task {
        let task = Task::default();
        if state.is_ended {
            task.end(Err(Ended.to_string()));
        } else if let Some(error) = &state.no_room {
            task.end(Err(error.clone()));
        } else {
            state.asked = Some((cause, task.clone()));
            self.stir.notify_all();
        }
        task
    }

    /// Gives up the save that is being taken, or forgets the one that is to be. `None` when there is none, or when it
    /// is all but done.
    pub fn cancel(&self) -> Option<Cancelled> {
        let mut state = self.state.lock();
        if let Some((cause, task)) = state.asked.take() {
            if cause.is_save() {
                task.end(Err(DurabilityError::Cancelled.to_string()));
                return Some(Cancelled::Scheduled);
            }
            state.asked = Some((cause, task));
        }
        let running = state.running.as_mut().filter(|running| running.cause.is_save() && !running.is_decided)?;
        running.is_cancelled = true;
        if let Some(feed) = &running.feed {
            feed.abort();
        }
        Some(Cancelled::Running)
    }

    /// Changes since the cut of the last checkpoint.
    pub fn changes(&self) -> u64 {
        self.state.lock().changes(&self.parts)
    }

    /// Whether a stop without asking takes a checkpoint: save points are set, and something was changed since the last
    /// one.
    pub fn saves_at_end(&self) -> bool {
        let is_set = !self.policy.read().save_points.is_empty();
        is_set && self.changes() > 0 && self.state.lock().is_loaded
    }

    /// Whether the data is loaded: before that nothing was acknowledged that could be lost.
    pub fn is_loaded(&self) -> bool {
        self.state.lock().is_loaded
    }

    /// Makes everything in the log durable; false when the log is off. Blocks; not on a worker.
    ///
    /// # Errors
    /// The log has failed, and what is not durable would be lost by an end.
    pub fn sync_log(&self) -> Result<bool, DurabilityError> {
        let sink = self.state.lock().log.clone();
        match sink.filter(|sink| sink.counts()) {
            Some(sink) => Ok(sink.log.sync().map(|_| true)?),
            None => Ok(false),
        }
    }

    /// Other settings. Mode and window are in force when this returns, whether or not there is a log now; the keeper
    /// switches the log on or off. A new mode needs all shard locks and waits at most `patience` for them.
    ///
    /// # Errors
    /// Commands held locks for all of that time. Nothing has changed.
    pub fn set_policy(&self, policy: Policy, patience: Duration) -> Result<(), ModeNotSet> {
        let changing = self.changing.lock();
        self.put_mode(policy.mode, patience)?;
        self.timing.set_window_ms(policy.window_ms);
        if let (Some(open), Some(policy)) = (self.tier.get(), &policy.tier) {
            open.tier.set_options(policy.options);
            open.scrubber.set_interval(policy.scrub_seconds);
        }
        if let Some(tier) = self.tier() {
            tier.set_logged(policy.log_wanted);
        }
        *self.policy.write() = policy;
        self.state.lock().history.is_due = true;
        drop(changing);
        self.parts.store.gate.allow_writes();
        self.refuse_writes_if_failing();
        self.stir.notify_all();
        Ok(())
    }

    /// How things stand.
    pub fn status(&self) -> Status {
        let state = self.state.lock();
        let log = state.log.as_ref().map(|sink| {
            let stats = sink.log.stats();
            let since_cut = sink.log.end_lsn().0.saturating_sub(state.cut.0);
            LogStatus {
                mode: sink.log.mode(),
                window_ms: sink.log.window_ms(),
                end: sink.log.end_lsn(),
                durable: sink.log.durable_lsn(),
                stats,
                failure: sink.log.health(),
                current_size: state.set_bytes.saturating_add(since_cut),
                base_size: state.set_bytes,
            }
        });
        let is_switching_on = state.log.as_ref().is_some_and(|sink| !sink.counts());
        Status {
            log,
            is_switching_on,
            running: self.told(&state),
            is_scheduled: state.asked.is_some() && state.running.is_some(),
            changes: state.changes(&self.parts),
            last_save_ms: state.last_save_ms,
            stall_us: state.stall_us,
            saves: state.saves.clone(),
            rewrites: state.rewrites.clone(),
            load: state.load,
            sets: state.sets,
            set_bytes: state.all_set_bytes,
            restorable_since_ms: state.restorable_since_ms,
            rdb: state.rdb.clone(),
        }
    }

    // ---- The keeper's thread.

    /// Keeps, until [`Durability::end`]. Call after recovery, on a thread of its own.
    pub fn run(&self) {
        while let Some(todo) = self.wait_for_work() {
            match todo {
                Todo::Look => {}
                Todo::Take(cause, task) => task.end(self.take(cause)),
                Todo::Switch => _ = self.take(Cause::LogSwitch),
                Todo::Trim => self.trim(),
            }
        }
    }

    /// Waits until the log that the settings ask for counts: a server that answers before would acknowledge what no log
    /// holds. Blocks for the checkpoint that this takes; returns at once when there is nothing to wait for, or when the
    /// keeper has ended. Not on the keeper's thread.
    ///
    /// # Errors
    /// Why the log could not be switched on, in a sentence.
    pub fn wait_for_log(&self) -> Result<(), String> {
        let mut state = self.state.lock();
        while self.policy.read().log_wanted && !state.is_ended && state.log.as_ref().is_none_or(|sink| !sink.counts()) {
            if let Some(error) = &state.switch_error {
                return Err(error.clone());
            }
            self.stir.wait_for(&mut state, LOOK);
        }
        Ok(())
    }

    /// Whether the log that the settings ask for counts, or they ask for none, and no copy is about to switch it off.
    ///
    /// # Errors
    /// Why the log could not be switched on, in a sentence. The keeper tries again.
    pub fn has_log_as_wanted(&self) -> Result<bool, String> {
        if !self.policy.read().log_wanted {
            return Ok(true);
        }
        if self.is_replacing.load(Ordering::Acquire) {
            return Ok(false);
        }
        let state = self.state.lock();
        if state.log.as_ref().is_some_and(|sink| sink.counts()) {
            return Ok(true);
        }
        state.switch_error.clone().map_or(Ok(false), Err)
    }

    /// The checkpoint being taken, or the one that was asked for and is about to begin. So a client that has asked for
    /// one always sees one of the two.
    fn told(&self, state: &State) -> Option<Running> {
        let Some(going) = &state.running else {
            let (cause, _) = state.asked.as_ref()?;
            return Some(Running {
                cause: *cause,
                seconds: 0,
                keys_done: 0,
                keys_total: 0,
                extra_bytes: 0,
                extra_bytes_max: 0,
            });
        };
        let memory = self.parts.store.backlog().memory();
        Some(Running {
            cause: going.cause,
            seconds: going.since.elapsed().as_secs(),
            keys_done: going.keys_done.load(Ordering::Relaxed),
            keys_total: going.keys_total,
            extra_bytes: memory.now,
            extra_bytes_max: memory.peak,
        })
    }

    fn wait_for_work(&self) -> Option<Todo> {
        let mut state = self.state.lock();
        // What is asked for while nothing is loaded, or while a copy replaces all data, waits until that is over.
        if (state.asked.is_none() || !state.is_loaded) && !state.is_ended {
            self.stir.wait_for(&mut state, LOOK);
        }
        if state.is_ended {
            if let Some((_, task)) = state.asked.take() {
                task.end(Err(Ended.to_string()));
            }
            return None;
        }
        if !state.is_loaded {
            return Some(Todo::Look);
        }
        // Before the guard: a second read lock of the policy would wait for a writer, and the writer for this one.
        let wants_log = self.wants_log();
        let (policy, now) = (self.policy.read(), self.parts.clock.now_ms());
        // Before what is asked for: a client that asks again and again does not keep the log from being switched.
        if wants_log != state.log.is_some() {
            let is_soon =
                state.switch_failed_at.is_some_and(|at| (0..SWITCH_RETRY_MS).contains(&now.saturating_sub(at)));
            if !is_soon {
                state.running = Some(Going::new(Cause::LogSwitch));
                return Some(Todo::Switch);
            }
        }
        if let Some((cause, task)) = state.asked.take() {
            state.running = Some(Going::new(cause));
            return Some(Todo::Take(cause, task));
        }
        let since = SinceLast {
            now,
            taken_at: state.last_cut_ms,
            failed_at: state.failed_at,
            changes: state.changes(&self.parts),
            log_bytes: state.log.as_ref().map_or(0, |sink| sink.log.end_lsn().0.saturating_sub(state.cut.0)),
            set_bytes: state.set_bytes,
            tier_bytes: self.tier_bytes_due(&policy, &state),
        };
        let Some(cause) = policy.due(&since) else {
            // Only now: a log that grows by a segment in every round must not keep checkpoints from being taken.
            let is_trim_due = state.is_trim_due(policy.segment_bytes) || self.is_tier_over_limit(&policy, &state);
            return Some(if is_trim_due { Todo::Trim } else { Todo::Look });
        };
        state.running = Some(Going::new(cause));
        Some(Todo::Take(cause, Task::default()))
    }

    /// Takes a checkpoint and keeps its figures. `running` is set.
    fn take(&self, cause: Cause) -> Result<(), String> {
        let since = Instant::now();
        self.parts.tell.say(&format!("checkpoint begun: {cause}"));
        let result = self.checkpoint(cause);
        let took = since.elapsed();
        let extra = self.parts.store.backlog().memory().peak;
        let mut state = self.state.lock();
        let file = match cause {
            Cause::Rdb(target) if result.is_ok() => Some(target),
            _ => None,
        };
        if file.is_none() {
            state.running = None;
        }
        let now = self.parts.clock.now_ms();
        if cause == Cause::LogSwitch {
            // Together with `running`, so that no reader sees it over and not yet failed.
            state.switch_error = result.as_ref().err().map(ToString::to_string);
            state.switch_failed_at = result.is_err().then_some(now);
            self.stir.notify_all();
        }
        let figures = if cause.is_save() { &mut state.saves } else { &mut state.rewrites };
        figures.last_seconds = Some(took.as_secs());
        figures.last_extra_bytes = extra;
        match &result {
            Ok(()) => {
                figures.count += 1;
                figures.failures = 0;
                // One checkpoint serves both purposes.
                state.saves.failures = 0;
                state.failed_at = None;
                let (bytes, ms) = (state.set_bytes, took.as_millis());
                self.parts.tell.say(&format!("checkpoint done: {bytes} bytes in {ms} ms"));
            }
            Err(error) => {
                if !matches!(error, DurabilityError::Cancelled | DurabilityError::Ended(_)) {
                    figures.failures += 1;
                    state.failed_at = Some(now);
                }
                self.parts.tell.say(&format!("checkpoint failed: {error}; what was saved before stands"));
            }
        }
        drop(state);
        self.refuse_writes_if_failing();
        let written = file.map_or(Ok(()), |target| self.write_rdb(target));
        self.state.lock().running = None;
        result.and(written).map_err(|error| error.to_string())
    }

    /// Applies `stop-writes-on-bgsave-error`: refuses writes while checkpoints fail, and only then.
    fn refuse_writes_if_failing(&self) {
        let gate = &self.parts.store.gate;
        let policy = self.policy.read();
        let is_asked = policy.stop_writes_on_error && !policy.save_points.is_empty();
        // Not held while the state is locked: others take the two the other way round.
        drop(policy);
        if is_asked && self.state.lock().saves.failures > 0 {
            gate.refuse_writes();
        } else {
            gate.allow_writes();
        }
    }

    /// Ends the keeper: nothing is begun any more, and a checkpoint being taken or loaded is given up. Workers may go
    /// after this.
    pub fn end(&self) {
        self.loading.cancel();
        let mut state = self.state.lock();
        state.is_ended = true;
        if let Some(running) = &mut state.running {
            running.is_cancelled = !running.is_decided;
            if let Some(feed) = &running.feed {
                feed.abort();
            }
        }
        drop(state);
        self.work.end();
        self.flush_work.end();
        self.stir.notify_all();
        self.stir_flushing();
        self.tier().into_iter().for_each(|tier| tier.end());
    }

    /// Ends the log in order: everything in it is durable when this returns. Call when workers and keeper have ended.
    ///
    /// # Errors
    /// The log has failed, and what is not durable is lost.
    pub fn close(&self) -> Result<(), DurabilityError> {
        self.tier().into_iter().for_each(|tier| tier.close());
        let sink = self.state.lock().log.take();
        if let Some(sink) = sink {
            sink.log.close()?;
        }
        Ok(())
    }

    // ---- By a replica.

    /// Announces [`Durability::begin_replacing`]: from now on, do not rely on the log.
    pub fn intend_replacing(&self) {
        self.is_replacing.store(true, Ordering::Release);
    }

    /// Begins to replace all data by a copy, past the log: switches the log off with a last checkpoint of the old data,
    /// and takes none until [`Durability::end_replacing`]. A process that ends in between starts again with the old
    /// data. Blocks for the checkpoint.
    ///
    /// # Errors
    /// Why the log could not be switched off. Nothing has changed.
    pub fn begin_replacing(&self) -> Result<(), String> {
        self.is_replacing.store(true, Ordering::Release);
        let mut state = self.state.lock();
        self.stir.notify_all();
        loop {
            if state.is_ended {
                return Err(Ended.to_string());
            }
            if state.log.is_none() && state.running.is_none() && state.is_loaded {
                // From here on the keeper only looks.
                state.is_loaded = false;
                return Ok(());
            }
            if let Some(error) = state.switch_error.clone().filter(|_| state.running.is_none()) {
                self.is_replacing.store(false, Ordering::Release);
                return Err(error);
            }
            self.stir.wait_for(&mut state, LOOK);
        }
    }

    /// The copy is complete. The log is switched on again if it is wanted, with a checkpoint of the new data; without a
    /// log a checkpoint is taken. Does not wait for it.
    pub fn end_replacing(&self) {
        self.is_replacing.store(false, Ordering::Release);
        self.loaded();
        if !self.wants_log() {
            self.schedule(Cause::Asked);
        }
    }

    /// Whether there is to be a log now.
    pub(crate) fn wants_log(&self) -> bool {
        self.policy.read().log_wanted && !self.is_replacing.load(Ordering::Acquire)
    }

    // ---- For the checkpoint, and for training.

    /// Waits for `time`, or until the end.
    pub(crate) fn sleep(&self, time: Duration) {
        let mut state = self.state.lock();
        let deadline = Instant::now() + time;
        while !state.is_ended && !self.stir.wait_until(&mut state, deadline).timed_out() {}
    }

    /// Whether nothing is begun any more.
    pub(crate) fn is_ended(&self) -> bool {
        self.state.lock().is_ended
    }

    /// The settings in force.
    pub(crate) fn policy(&self) -> Policy {
        Policy { log_wanted: self.wants_log(), ..self.policy.read().clone() }
    }

    pub(crate) fn loaded(&self) {
        let mut state = self.state.lock();
        (state.is_loaded, state.history.is_due) = (true, true);
        drop(state);
        self.stir.notify_all();
    }

    /// Has a worker run the job.
    pub(crate) fn by_a_worker(&self, job: Job) -> Result<(), DurabilityError> {
        Ok(self.work.run(job, &|| self.parts.store.wake(WorkerSet::one(0)))?)
    }
}

/// Time before switching the log is tried again.
const SWITCH_RETRY_MS: i64 = 5_000;

/// What BGSAVE CANCEL has cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The save that was being taken.
    Running,
    /// One that was to be taken.
    Scheduled,
}

enum Todo {
    Look,
    Take(Cause, Task),
    Switch,
    Trim,
}

impl State {
    /// Changes since the last cut.
    fn changes(&self, parts: &Parts) -> u64 {
        (parts.changes)().saturating_add(self.changes_found).saturating_sub(self.changes_at_cut)
    }

    /// Why a checkpoint is being taken, or is about to be.
    fn cause_now(&self) -> Option<Cause> {
        let running = self.running.as_ref().map(|running| running.cause);
        running.or(self.asked.as_ref().map(|(cause, _)| *cause))
    }
}

impl Going {
    fn new(cause: Cause) -> Self {
        let keys_done = Arc::new(AtomicU64::new(0));
        Self {
            cause,
            since: Instant::now(),
            feed: None,
            keys_done,
            keys_total: 0,
            is_cancelled: false,
            is_decided: false,
        }
    }
}
