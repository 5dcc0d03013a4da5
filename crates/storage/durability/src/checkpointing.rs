//! One checkpoint, from the cut to the removal of what it makes obsolete.
//!
//! ```text
//! rows of databases on disk linked -> files created -> cut (all locks; the log switched) -> walk by workers,
//!               files written -> files durable
//!               -> log durable up to the cut -> MANIFEST -> older sets and segments removed
//! ```

use crate::error::DurabilityError;
use crate::history::Room;
use crate::keeper::{Durability, State};
use crate::policy::{Cause, Policy};
use crate::segments;
use crate::sink::{LogSink, StoreWaker};
use crate::training;
use base::{DbIndex, HistoryId, KeyspaceId, Lsn};
use checkpoint::{Feed, FeedOptions, LogState, ManifestFile, SetHead, SetId, SetInfo, Writer, WriterOptions};
use cmdlog::{Log, LogOptions, LogStart};
use engine::{Entry, EntrySink};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::{Cut, RecordSink};

/// What a checkpoint needs when it is given its name in the manifest.
struct Naming<'n> {
    cause: Cause,
    policy: &'n Policy,
    switch: &'n Switch,
    /// Flushes before the cut.
    flushes: u64,
}

/// What becomes of the log at the cut.
enum Switch {
    Stay,
    On(Arc<LogSink>),
    Off(Arc<LogSink>),
}

impl Durability {
    /// Takes a checkpoint. Blocks for as long as it takes; on the keeper's thread.
    ///
    /// # Errors
    /// What failed. A restart then loads what it would have loaded before, and the log is as it was, unless it was
    /// being switched off: then it stays off.
    pub(crate) fn checkpoint(&self, cause: Cause) -> Result<(), DurabilityError> {
        let mut place = self.manifest.lock();
        // Before recovery there is none, and nothing to save.
        let Some(manifest) = place.as_mut() else { return Err(crate::work::Ended.into()) };
        let policy = self.policy();
        if cause != Cause::Shutdown {
            self.make_room(&policy, manifest)?;
        }
        let set = manifest.next_set();
        self.begin_set_on_tier(set);
        let feed = Feed::new(FeedOptions { limit_bytes: policy.feed_bytes }, self.parts.store.backlog().clone());
        let result = self.write_and_name(cause, &policy, manifest, set, &feed);
        self.parts.store.backlog().set_limit(u64::MAX);
        if result.is_ok() {
            // The checkpoint counts all the same.
            if let Err(error) = self.remove_obsolete(manifest) {
                self.parts.tell.say(&format!("files that are not needed any more could not be removed: {error}"));
            }
        } else {
            // What a failed checkpoint left goes with the next one that succeeds, if not now.
            if let Some(_removing) = self.files.removing(self.parts.clock.now_ms()) {
                let _ = manifest.prune(&self.dir, None);
            }
        }
        match result {
            Err(_) if self.is_cancelled() => Err(DurabilityError::Cancelled),
            other => other,
        }
    }

    fn write_and_name(
        &self,
        cause: Cause,
        policy: &Policy,
        manifest: &mut ManifestFile,
        set: SetId,
        feed: &Feed,
    ) -> Result<(), DurabilityError> {
        let expected_bytes = manifest.current().newest().map_or(0, SetInfo::bytes);
        let options = WriterOptions { threads: policy.threads, expected_bytes, ..WriterOptions::default() };
        // Before the cut, so that the log from their position on leads to it.
        let rows = self.copy_rows(set)?;
        let mut writer = Writer::create(&self.dir, set, options, feed)?;
        let switch = if cause == Cause::LogSwitch { self.prepare_switch(policy)? } else { Switch::Stay };
        let history = manifest.current().history;
        // Before the cut: what comes between is in the set, but counts as unsaved. The other way round it would be
        // lost.
        let changes = (self.parts.changes)().saturating_add(self.state.lock().changes_found);
        let done = self.cut_and_write(&mut writer, feed, &switch, history).and_then(|flushes| {
            let info = SetInfo { rows, ..writer.finish()? };
            self.name(&Naming { cause, policy, switch: &switch, flushes }, manifest, info)
        });
        if done.is_ok() {
            self.state.lock().changes_at_cut = changes;
        }
        match (&done, switch) {
            (Ok(()), Switch::On(sink)) => sink.counts.store(true, Ordering::Release),
            (Err(_), Switch::On(sink)) => self.take_back(&sink),
            // Off at its cut, whether or not the checkpoint succeeds: its segments are complete up to there. The log
            // itself has reported a failure.
            (_, Switch::Off(sink)) => {
                let _ = sink.log.close();
                // Its end has taken positions of its own.
                let mut state = self.state.lock();
                state.position = sink.log.end_lsn().max(state.position);
            }
            (_, Switch::Stay) => {}
        }
        done
    }

    /// A new log, when it is to be switched on.
    fn prepare_switch(&self, policy: &Policy) -> Result<Switch, DurabilityError> {
        let (log, position) = {
            let state = self.state.lock();
            (state.log.clone(), state.position)
        };
        if let Some(sink) = log {
            return Ok(if policy.log_wanted { Switch::Stay } else { Switch::Off(sink) });
        }
        if !policy.log_wanted {
            return Ok(Switch::Stay);
        }
        // A position of its own: between the old end and this one lie changes that no log has.
        let first = Lsn(position.0.saturating_add(1));
        segments::remove_from(&self.dir, first)?;
        let history = HistoryId::random(&mut self.parts.entropy.rng());
        Ok(Switch::On(self.create_log(policy, LogStart::fresh(history, first), false)?))
    }

    /// Starts a log.
    pub(crate) fn create_log(
        &self,
        policy: &Policy,
        start: LogStart,
        counts: bool,
    ) -> Result<Arc<LogSink>, DurabilityError> {
        let options = LogOptions {
            dir: self.dir.path().to_owned(),
            timing: self.timing.clone(),
            segment_bytes: policy.segment_bytes,
            workers: self.parts.workers,
            ring_bytes: usize::try_from(policy.buffer_bytes).unwrap_or(usize::MAX),
            on_sync_error: policy.on_sync_error,
        };
        let waker = StoreWaker { store: self.parts.store.clone(), tell: self.parts.tell.clone() };
        let (fs, clock) = (self.parts.fs.clone(), self.parts.clock.clone());
        let log = Log::create(fs, clock, options, start, Arc::new(waker))?;
        Ok(Arc::new(LogSink { log, counts: AtomicBool::new(counts) }))
    }

    /// The cut, the threads that write, and the walk. Gives the number of flushes before the cut.
    fn cut_and_write(
        &self,
        writer: &mut Writer,
        feed: &Feed,
        switch: &Switch,
        history: HistoryId,
    ) -> Result<u64, DurabilityError> {
        let keys_total = self.count_keys();
        let keys_done = Arc::new(AtomicU64::new(0));
        {
            let mut state = self.state.lock();
            if let Some(going) = &mut state.running {
                (going.keys_done, going.keys_total) = (keys_done.clone(), keys_total);
                going.feed = Some(feed.clone());
                if going.is_cancelled {
                    return Err(DurabilityError::Cancelled);
                }
            }
        }
        let (cut, flushes) = self.cut(feed, switch, &keys_done)?;
        let head = {
            let state = self.state.lock();
            let history = state.log.as_ref().map_or(history, |sink| sink.log.history());
            SetHead {
                cut: cut.lsn,
                history,
                created_ms: cut.at_ms,
                log_from: state.log.is_some().then_some(cut.lsn),
                spaces: cut.spaces.clone(),
                libraries: cut.libraries.clone(),
                position: cut.position.clone(),
            }
        };
        let walked = writer.begin(head).map_err(DurabilityError::from).and_then(|()| self.wait_for_walk(feed));
        if walked.is_err() || feed.is_aborted() {
            feed.abort();
            let store = self.parts.store.clone();
            self.by_a_worker(Box::new(move || {
                store.abandon_checkpoint();
                true
            }))?;
        }
        // After an abort, the writer returns the error that led to it.
        walked.map(|()| flushes)
    }

    fn count_keys(&self) -> u64 {
        let store = &self.parts.store;
        (0..store.spaces.count() as u32).map(|db| store.len(DbIndex(db)).0).sum()
    }

    /// Has a worker make the cut, and switch the log there. Gives the number of flushes before it, too.
    fn cut(&self, feed: &Feed, switch: &Switch, keys_done: &Arc<AtomicU64>) -> Result<(Cut, u64), DurabilityError> {
        let done: Arc<Mutex<Option<(Cut, u64)>>> = Arc::default();
        let (store, feed, keys_done, place) = (self.parts.store.clone(), feed.clone(), keys_done.clone(), done.clone());
        let new = match switch {
            Switch::Stay => None,
            Switch::On(sink) => Some(Some(sink.clone())),
            Switch::Off(_) => Some(None),
        };
        let position = self.state.lock().position;
        let stall_ns = Arc::new(AtomicU64::new(0));
        let stalled = stall_ns.clone();
        self.by_a_worker(Box::new(move || {
            let Some(mut all) = store.try_lock_all() else { return false };
            let locked_ns = store.clock.monotonic_ns();
            let before = all.log();
            if let Some(new) = &new {
                all.set_log(new.clone().map(|sink| sink as Arc<dyn RecordSink>));
            }
            let log = all.log().or(before);
            let sink = |_| Box::new(Counted::new(feed.sink(), &keys_done)) as Box<dyn EntrySink>;
            let cut = all.cut(sink, || log.map_or(position, |log| log.end()));
            // Rows that are not in memory may have values of any dictionary.
            if cut.is_some() && store.pressure.spaces().is_empty() {
                training::forget_unused(&store);
            }
            let flushes = store.flushes.load(Ordering::Relaxed);
            drop(all);
            stalled.store(store.clock.monotonic_ns().saturating_sub(locked_ns), Ordering::Relaxed);
            let is_made = cut.is_some();
            *place.lock() = cut.map(|cut| (cut, flushes));
            is_made
        }))?;
        let made = done.lock().take().ok_or(crate::work::Ended)?;
        let mut state = self.state.lock();
        state.stall_us = stall_ns.load(Ordering::Relaxed) / 1000;
        match switch {
            Switch::Stay => {}
            Switch::On(sink) => state.log = Some(sink.clone()),
            Switch::Off(sink) => {
                state.log = None;
                state.position = sink.log.end_lsn().max(state.position);
            }
        }
        Ok(made)
    }

    /// Waits until the workers have walked all shards, or a writing thread has failed.
    fn wait_for_walk(&self, feed: &Feed) -> Result<(), DurabilityError> {
        let is_over = || self.parts.store.checkpoint_shards_left() == 0 || feed.is_aborted();
        Ok(self.work.wait_until(is_over)?)
    }

    /// Makes the set count.
    fn name(&self, naming: &Naming<'_>, manifest: &mut ManifestFile, info: SetInfo) -> Result<(), DurabilityError> {
        let &Naming { cause, policy, switch, flushes } = naming;
        let log = self.state.lock().log.clone();
        if let Some(sink) = &log {
            sink.log.sync()?;
        }
        self.sync_tier()?;
        self.decide()?;
        let mut next = manifest.current().clone();
        next.sets.extend(manifest.current().beginning());
        self.pin_before_flush(&next, &info, flushes);
        if let Some(sink) = &log
            && next.history != sink.log.history()
        {
            next.begin_history(sink.log.history(), self.state.lock().position);
        }
        if next.log.on != log.is_some() || matches!(switch, Switch::On(_)) {
            next.log = LogState { on: log.is_some(), since: info.cut, since_ms: info.created_ms };
        }
        let (cut, bytes, created_ms) = (info.cut, info.bytes(), info.created_ms);
        next.sets.push(info);
        let room = Room { reserve_bytes: policy.segment_bytes, is_end: cause == Cause::Shutdown };
        self.drop_obsolete(policy, &mut next, &room)?;
        self.retire_dictionaries(&mut next);
        manifest.commit(&self.dir, next)?;
        let mut state = self.state.lock();
        state.last_cut_ms = created_ms;
        state.last_save_ms = self.parts.clock.now_ms();
        (state.set_bytes, state.cut) = (bytes, cut);
        state.look_at(manifest);
        Ok(())
    }

    /// Uninstalls a log that was to be switched on: no client has seen it as on.
    fn take_back(&self, sink: &Arc<LogSink>) {
        let store = self.parts.store.clone();
        let uninstalled = self.by_a_worker(Box::new(move || {
            let Some(mut all) = store.try_lock_all() else { return false };
            all.set_log(None);
            true
        }));
        if uninstalled.is_err() {
            // The server ends: nothing more is written, and the next start removes what lies beyond the manifest's log.
            return;
        }
        let mut state = self.state.lock();
        state.log = None;
        state.position = sink.log.end_lsn().max(state.position);
    }

    pub(crate) fn remove_obsolete(&self, manifest: &mut ManifestFile) -> Result<(), DurabilityError> {
        let Some(_removing) = self.files.removing(self.parts.clock.now_ms()) else { return Ok(()) };
        manifest.prune(&self.dir, None)?;
        self.note_bytes_of_copies();
        self.retire_segments(manifest.current());
        let (needed, log) = (manifest.log_needed_from(), self.state.lock().log.clone());
        let needed = needed.into_iter().chain(self.log_needed_by_rows()).min();
        match (log, needed) {
            (Some(sink), Some(needed)) => drop(sink.log.remove_before(needed)?),
            (Some(_), None) => {}
            (None, needed) => segments::remove_before(&self.dir, needed)?,
        }
        Ok(())
    }

    /// From here on the checkpoint is not given up any more.
    fn decide(&self) -> Result<(), DurabilityError> {
        let mut state = self.state.lock();
        let Some(going) = &mut state.running else { return Ok(()) };
        going.is_decided = !going.is_cancelled;
        if going.is_cancelled { Err(DurabilityError::Cancelled) } else { Ok(()) }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.lock().running.as_ref().is_some_and(|going| going.is_cancelled)
    }
}

impl State {
    /// Keeps figures about what the manifest names.
    pub(crate) fn look_at(&mut self, manifest: &ManifestFile) {
        let manifest = manifest.current();
        self.sets = manifest.sets.iter().filter(|set| !set.files.is_empty()).count();
        self.set_span = manifest.sets.first().zip(manifest.sets.last()).map(|(first, last)| (first.set.0, last.set.0));
        self.all_set_bytes = manifest.sets.iter().map(SetInfo::bytes).sum();
        let first = manifest.restorable_from().map(|set| set.created_ms);
        self.restorable_since_ms = first.or(manifest.log.on.then_some(manifest.log.since_ms));
    }
}

/// A sink that counts.
struct Counted {
    sink: Box<dyn EntrySink>,
    count: u64,
    done: Arc<AtomicU64>,
}

/// Entries between two additions to the common count.
const COUNT_STEP: u64 = 256;

impl Counted {
    fn new(sink: Box<dyn EntrySink>, done: &Arc<AtomicU64>) -> Self {
        Self { sink, count: 0, done: done.clone() }
    }
}

impl EntrySink for Counted {
    fn save(&mut self, space: KeyspaceId, entry: &Entry<'_>) {
        self.count += 1;
        if self.count == COUNT_STEP {
            self.done.fetch_add(std::mem::take(&mut self.count), Ordering::Relaxed);
        }
        self.sink.save(space, entry);
    }

    fn finish(&mut self) {
        self.done.fetch_add(std::mem::take(&mut self.count), Ordering::Relaxed);
        self.sink.finish();
    }
}
