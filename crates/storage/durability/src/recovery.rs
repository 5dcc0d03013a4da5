//! A start: from the files of the data directory to a store that serves.
//!
//! ```text
//! MANIFEST -> dictionaries -> newest set, on all cores -> records of the log from its cut -> new segment -> serve
//! ```
//!
//! Formats: docs/formats/manifest.md, dictionary-file.md, snapshot-file.md and command-log.md; rows.md for databases on
//! disk, and tier-segment.md for a tier.
//!
//! Nothing is written before everything was read. If the process crashes in between, the next start reads the same
//! state, however often that happens.
//!
//! A start has to write a little. On a full disk it serves what it has read, refuses every change, and tries again
//! (`room`).

pub(crate) mod loading;

use crate::error::DurabilityError;
use crate::keeper::Durability;
use crate::sink::LogSink;
use crate::status::LastLoad;
use crate::work::Ended;
use base::{DbIndex, HistoryId, Lsn, UnixMs};
use checkpoint::{CheckpointError, HashKey, LogState, Manifest, ManifestFile, SetInfo};
use cmdlog::{LogEnd, LogStart};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use store::replay::ReplayError;
use store::{RecordSink, RecoveryPoints, Scratch};

/// How far a start has come, as INFO shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadingStatus {
    /// When it began.
    pub since_ms: UnixMs,
    /// Bytes of snapshot files and log.
    pub total_bytes: u64,
    /// Bytes of them that were read.
    pub done_bytes: u64,
    /// Entries loaded from snapshot files.
    pub keys: u64,
}

/// What a start has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Entries of the checkpoint.
    pub keys: u64,
    /// Records of the log.
    pub records: u64,
    /// The position at which the log ended.
    pub end: Lsn,
    /// What was cut from the end of the log, in a sentence.
    pub torn: Option<String>,
}

impl Durability {
    /// How far the start has come; `None` when it is over.
    pub fn loading(&self) -> Option<LoadingStatus> {
        let loading = &self.loading;
        let since_ms = (*loading.since_ms.lock())?;
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        Some(LoadingStatus {
            since_ms,
            total_bytes: read(&loading.set.bytes_total).saturating_add(read(&loading.log_total)),
            done_bytes: read(&loading.set.bytes_done).saturating_add(read(&loading.log_done)),
            keys: read(&loading.set.entries_done),
        })
    }

    /// Loads what the directory holds and continues the log, if it was on. Close the gate of the store before, and open
    /// it when [`Durability::wait_for_log`] has returned. Blocks for as long as it takes.
    ///
    /// # Errors
    /// Damage, a newer format, or a failing disk; the error names the file and what to do. Or [`Durability::end`] came
    /// before all was read. Nothing was changed on disk, and the store is to be given up.
    pub fn recover(&self) -> Result<Recovered, DurabilityError> {
        let began_ms = self.parts.clock.now_ms();
        self.loading.start(began_ms);
        let found = ManifestFile::load(&self.dir)?;
        let manifest = found.as_ref().map(|file| file.current().clone());
        manifest.as_ref().map_or(Ok(()), |manifest| self.open_dictionaries(manifest))?;
        self.open_tier(manifest.as_ref())?;
        let rows = manifest.as_ref().map_or(Ok(None), |manifest| self.open_rows(manifest))?;
        let keys = manifest.as_ref().and_then(Manifest::newest).map_or(Ok(0), |set| self.load_set(set))?;
        self.check_dictionaries()?;
        let from = manifest.as_ref().and_then(log_to_replay).into_iter().chain(rows).min();
        let end = from.map(|from| self.replay(from)).transpose()?;
        if let (Some(from), Some(end)) = (from, &end)
            && end.history.is_none()
            && manifest.as_ref().is_some_and(|manifest| manifest.newest().is_some())
        {
            // A set's log is begun, and durable, before the manifest names the set.
            return Err(DurabilityError::LogMissing { path: self.dir.path().to_owned(), from });
        }

        if let Some(rows) = rows
            && let Some(end) = end.as_ref().map(|end| end.end_lsn).filter(|end| *end < rows)
        {
            return Err(DurabilityError::LogBehindRows { rows, end });
        }
        self.loading.go_on()?;
        let position = manifest.as_ref().map_or(Lsn(0), position);
        let recovered = Recovered {
            keys,
            records: end.as_ref().map_or(0, |end| end.records),
            end: end.as_ref().map_or(position, |end| end.end_lsn.max(position)),
            torn: end.as_ref().and_then(torn),
        };
        // Everything is read: from here on the directory changes.
        let file = match self.begin_writing(found, end, began_ms) {
            Err(error) if error.is_out_of_space() => self.begin_when_there_is_room(error, from, began_ms)?,
            file => file?,
        };
        let now = self.parts.clock.now_ms();
        {
            let mut state = self.state.lock();
            state.position = recovered.end;
            state.look_at(&file);
            if let Some(set) = file.current().newest() {
                (state.set_bytes, state.cut) = (set.bytes(), set.cut);
                (state.last_save_ms, state.last_cut_ms) = (set.created_ms, set.created_ms);
            }
            let ms = u64::try_from(now.saturating_sub(began_ms)).unwrap_or(0);
            state.load = LastLoad { keys, records: recovered.records, ms };
            // What the log has beyond the checkpoint is not in it.
            state.changes_found = recovered.records;
        }
        self.count_tier(&file);
        *self.manifest.lock() = Some(file);
        self.parts.store.compression.resume();
        self.loading.end();
        self.loaded();
        Ok(recovered)
    }

    /// The first writes of a start: a manifest, if there is none; the log, if it is on; and the removal of files that
    /// are not needed. After an error the directory is as good as before.
    pub(crate) fn begin_writing(
        &self,
        found: Option<ManifestFile>,
        end: Option<LogEnd>,
        began_ms: UnixMs,
    ) -> Result<ManifestFile, DurabilityError> {
        let log_wanted = self.policy().log_wanted;
        let mut file = match found {
            Some(file) => file,
            None => {
                let history = HistoryId::random(&mut self.parts.entropy.rng());
                let log = LogState { on: log_wanted, since: Lsn(0), since_ms: began_ms };
                let hash_key = Some(HashKey::random(&mut self.parts.entropy.rng()));
                ManifestFile::create(&self.dir, Manifest { hash_key, ..Manifest::new(history, log) })?
            }
        };
        if file.current().hash_key.is_none() {
            // An earlier version, or a tool, made the directory.
            let hash_key = Some(HashKey::random(&mut self.parts.entropy.rng()));
            let next = Manifest { hash_key, ..file.current().clone() };
            file.commit(&self.dir, next)?;
        }
        self.name_tier(&mut file)?;
        let sink = if file.current().log.on && log_wanted {
            Some(self.go_on(&mut file, end)?)
        } else {
            if file.current().log.on && end.is_some_and(|end| end.history.is_none()) {
                // It was to be on, and crashed before it began. One that is switched on later begins further on, and
                // until it counts, nothing may look for this one's beginning.
                let mut next = file.current().clone();
                next.log.on = false;
                file.commit(&self.dir, next)?;
            }
            None
        };
        // A set that was not finished, or that an unfinished prune has left.
        file.prune(&self.dir, None)?;
        self.install(sink)?;
        Ok(file)
    }

    /// Opens the rows of databases on disk, and has the log count for them from where these end. Gives that position;
    /// `None` when no database is on disk.
    fn open_rows(&self, manifest: &Manifest) -> Result<Option<Lsn>, DurabilityError> {
        let spaces = &manifest.disk_spaces;
        let policy = self.policy();
        // Databases on disk change numbers only among themselves.
        if let Some(missing) = spaces.iter().find(|space| !policy.disk_databases.contains(&space.0)) {
            return Err(DurabilityError::EngineMissing { number: missing.0 });
        }
        if spaces.is_empty() {
            return Ok(None);
        }
        if !manifest.log.on || !policy.log_wanted {
            return Err(DurabilityError::RowsWithoutLog);
        }
        let databases = self.open_databases(spaces, false)?;
        let recovered = databases.recovered_lsn();
        self.begin_flushing_at(recovered);
        let loaded = manifest.newest().map_or(manifest.log.since, |set| set.cut);
        self.parts.store.set_recovery_points(RecoveryPoints { loaded, rows: databases.recovery_points() });
        Ok(Some(recovered))
    }

    fn load_set(&self, set: &SetInfo) -> Result<u64, DurabilityError> {
        let store = &self.parts.store;
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let put = |effect: &engine::Effect<'_>| store.load(effect);
        let report = match checkpoint::load(&self.dir, set, threads, &store.hasher, &put, &self.loading.set) {
            Err(CheckpointError::LoadCancelled) => return Err(Ended.into()),
            report => report?,
        };
        if report.spaces.len() > store.spaces.count() {
            let (found, configured) = (report.spaces.len(), store.spaces.count());
            return Err(DurabilityError::Databases { found, configured });
        }
        (0..).zip(&report.spaces).for_each(|(db, space)| store.spaces.set(DbIndex(db), *space));
        // Libraries of functions and a replica's position are entries of a set, and no keys.
        let others = store.libraries.get().len() as u64 + u64::from(!store.position.is_empty());
        Ok(report.entries.saturating_sub(others))
    }

    fn replay(&self, from: Lsn) -> Result<LogEnd, DurabilityError> {
        let mut scratch = Scratch::default();
        let store = &self.parts.store;
        let mut databases = None;
        let end = cmdlog::recover(
            &*self.parts.fs,
            self.dir.path(),
            from,
            &mut |lsn, payload| {
                self.loading.go_on()?;
                let replayed = store.replay(&mut scratch, lsn, payload);
                if let Err(ReplayError::Databases { count, needed }) = replayed {
                    databases = Some(DurabilityError::Databases { found: needed, configured: count });
                }
                Ok(replayed?)
            },
            &mut |progress| {
                self.loading.log_done.store(progress.done_bytes, Ordering::Relaxed);
                self.loading.log_total.store(progress.total_bytes, Ordering::Relaxed);
            },
        );
        store.compression.count_decompressed(scratch.take_decompressed());
        match (end, databases) {
            (Err(_), Some(databases)) => Err(databases),
            (end, _) => {
                self.loading.go_on()?;
                Ok(end?)
            }
        }
    }

    /// Continues the log where it ended.
    fn go_on(&self, file: &mut ManifestFile, end: Option<LogEnd>) -> Result<Arc<LogSink>, DurabilityError> {
        let history = HistoryId::random(&mut self.parts.entropy.rng());
        let start = match end {
            Some(end) => LogStart::after(end, history),
            None => LogStart::fresh(file.current().history, file.current().log.since),
        };
        let (history, first) = (start.history(), start.first_lsn());
        let sink = self.create_log(&self.policy(), start, true)?;
        if file.current().history != history {
            let mut next = file.current().clone();
            next.begin_history(history, first);
            file.commit(&self.dir, next)?;
        }
        Ok(sink)
    }

    /// Puts the log into force; `None` when it is off.
    fn install(&self, sink: Option<Arc<LogSink>>) -> Result<(), DurabilityError> {
        self.set_log(sink.clone().map(|sink| sink as Arc<dyn RecordSink>))?;
        self.state.lock().log = sink;
        Ok(())
    }

    /// Gives the store this log. Others may run, and have locks.
    pub(crate) fn set_log(&self, log: Option<Arc<dyn RecordSink>>) -> Result<(), DurabilityError> {
        loop {
            if let Some(mut all) = self.parts.store.try_lock_all() {
                all.set_log(log);
                return Ok(());
            }
            if self.is_ended() {
                return Err(Ended.into());
            }
            thread::yield_now();
        }
    }
}

/// From where the log leads on from the newest set, or from its beginning; `None` when nothing of it belongs to the
/// data.
fn log_to_replay(manifest: &Manifest) -> Option<Lsn> {
    match manifest.newest() {
        Some(set) => set.log_from,
        None => manifest.log.on.then_some(manifest.log.since),
    }
}

/// Where a log that is off has ended, or is to begin.
fn position(manifest: &Manifest) -> Lsn {
    manifest.newest().map_or(manifest.log.since, |set| set.cut.max(manifest.log.since))
}

fn torn(end: &LogEnd) -> Option<String> {
    let torn = end.torn.as_ref()?;
    Some(format!(
        "{}: {} bytes from offset {} on were cut: the end of the log was being written when the server stopped, and was \
         never acknowledged as durable",
        torn.path.display(),
        torn.bytes,
        torn.offset
    ))
}
