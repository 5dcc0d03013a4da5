//! Flushes and compactions, and how their results become the state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::live::{LiveManifest, Writer};
use super::merging::{Chosen, Turn};
use super::{Inner, State, table_path, wal_path};
use crate::compaction::{self, Choose, FlushShape, Now, Outcome, OutputSettings, Task, Unsynced};
use crate::error::{Error, Result};
use crate::log::SpareWal;
use crate::memtable::Memtable;
use crate::options::{Background, Wal};
use crate::panics;
use crate::spans::span;
use crate::sstable::Table;
use crate::stats::Counters;
use crate::version::manifest::{self, Manifest};
use crate::version::{ApplyError, Tree, Version, VersionEdit};

/// How long nothing is written before a database counts as idle.
const IDLE_AFTER: Duration = Duration::from_secs(10);

/// How often it is looked whether something has expired.
const EXPIRES_EVERY: Duration = Duration::from_secs(1);

/// How long a full disk is left alone.
const RETRY_AFTER: Duration = Duration::from_millis(500);

impl Inner {
    /// Writes the oldest full memtable to tables; `false` if there is none.
    pub(super) fn flush_oldest(&self) -> Result<bool> {
        let _flushing = self.flushing.lock();
        self.resume_flushing()?;
        self.prepare_wal();
        let Some(wal_number) = self.flush_one()? else { return Ok(false) };
        // Writers do not wait for the removal: a long file takes a millisecond.
        let old = self.forget_wals_before(&mut self.writer.lock(), wal_number);
        self.remove_wals(&old);
        self.bell.ring();
        Ok(true)
    }

    /// Makes the file of the next log while a memtable waits to be flushed, for the writer that fills the one after it.
    fn prepare_wal(&self) {
        let has_threads = self.options.background == Background::Threads && self.options.wal != Wal::Off;
        if !has_threads || self.state.read().immutables.is_empty() || self.spare_wal.lock().is_some() {
            return;
        }
        let number = self.number();
        // Where this fails, the writer tries again, and reports why.
        if let Ok(spare) = SpareWal::create(&*self.options.fs, &wal_path(&self.dir, number), number) {
            *self.spare_wal.lock() = Some(spare);
        }
    }

    /// The same for a caller that holds the lock of flushes; the log file from which on logs are still needed.
    pub(super) fn flush_one(&self) -> Result<Option<u64>> {
        self.check_running()?;
        let state = self.state();
        let Some(memtable) = state.immutables.last() else { return Ok(None) };
        span!("flush", bytes = memtable.bytes());
        // The log continues with the next memtable's file.
        let next = state.immutables.iter().rev().nth(1).unwrap_or(&state.memtable);
        let mut wal_number = next.wal_number;
        let outcome = self.writing_tables(|settings| flush_memtable(self, settings, memtable, &state.version))?;
        if wal_number > 0 && self.names.check(wal_number).is_err() {
            // The manifest must not name a file that may be gone; the log from before does as well.
            wal_number = self.manifest.lock().wal.0;
        }
        Counters::add(&self.counters.flush_bytes, outcome.bytes_written);
        Counters::add(&self.counters.flushes, 1);
        Counters::add(&self.counters.dropped, outcome.dropped);
        let mut edit = outcome.edit;
        edit.wal = (wal_number > 0).then_some((wal_number, true));
        edit.flushed_lsn = (memtable.lsn() > 0).then(|| memtable.lsn());
        self.install(edit, Cause::Flushed(memtable))?;
        Ok(Some(wal_number))
    }

    /// How what is flushed to this key space is cut into tables.
    pub(super) fn flush_shape(&self, version: &Version, space: u32) -> FlushShape {
        self.chooser.flush_shape(version.tree(space).map_or(&Tree::default(), |tree| &**tree))
    }

    /// Does one merge; `false` if no policy asks for one besides those that run.
    pub(super) fn compact_once(&self) -> Result<bool> {
        let has_read = self.read_some()?;
        let begun = self.merging.begin(self.options.merges_max, |others| {
            self.pick_merge(others, |chooser, tree, now| chooser.pick(tree, now))
        })?;
        let Some((turn, chosen)) = begun else { return Ok(has_read) };
        self.merge(turn, chosen)?;
        Ok(true)
    }

    /// Reads the ends of some tables that the open left alone, so that the policy knows them; `false` if it needs none.
    fn read_some(&self) -> Result<bool> {
        if !self.has_unread {
            return Ok(false);
        }
        let (state, views) = (self.state(), self.held_views());
        let now = Now { views: &views, ..Now::default() };
        let mut to_read = state.version.trees.values().map(|tree| self.chooser.unread_of(tree, &now));
        let Some(tables) = to_read.find(|tables| !tables.is_empty()) else { return Ok(false) };
        for table in tables {
            match table.ensure_read() {
                // It is counted, and reads that need the table answer with it.
                Err(error) if error.is_corruption() => {}
                other => other?,
            }
        }
        Ok(true)
    }

    /// Does a merge that holds its turn.
    pub(super) fn merge(&self, mut turn: Turn<'_>, mut chosen: Chosen) -> Result<()> {
        let Chosen { space, task, is_bottom } = &mut chosen;
        span!("merge", key_space = *space, reason = task.reason, tables = task.inputs.len());
        let mut merge = compaction::Merge::new(*space, task, *is_bottom, self.number());
        while !merge.is_over() {
            let visibility = self.visibility();
            let outcome = self.writing_tables(|settings| {
                let settings = OutputSettings { limiter: self.limiter.as_ref(), ..settings.clone() };
                merge.step(&settings, &visibility)
            })?;
            Counters::add(&self.counters.compaction_bytes_read, outcome.bytes_read);
            Counters::add(&self.counters.compaction_bytes_written, outcome.bytes_written);
            Counters::add(&self.counters.compaction_parts, outcome.parts);
            Counters::add(&self.counters.dropped, outcome.dropped);
            turn.take(outcome.edit.added.iter().map(|(place, info)| (place.number, info.smallest.clone())));
            self.install(outcome.edit, Cause::Merged)?;
            self.bell.ring();
        }
        Counters::add(&self.counters.compactions, 1);
        drop(turn);
        self.bell.ring();
        Ok(())
    }

    /// A merge that does not touch these tables, which other threads merge: the policy's most urgent, or what `choose`
    /// asks for instead.
    fn pick_merge(
        &self,
        others: &BTreeMap<u64, Vec<u8>>,
        choose: impl Fn(&dyn Choose, &Tree, &Now<'_>) -> Option<Task>,
    ) -> Result<Option<Chosen>> {
        self.check_running()?;
        let views = self.held_views();
        // Taken while no merge can end, so that all that are over are in it.
        let state = self.state();
        // Each tree has its turn: they are asked from the one after the tree that was merged last.
        let (trees, from) = (&state.version.trees, self.next_merged.load(Ordering::Relaxed));
        let picked = trees.range(from..).chain(trees.range(..from)).find_map(|(space, tree)| {
            let expiry = state.expiry(*space, &self.options.clock);
            let now = Now { others: Some(others), views: &views, expiry };
            let task = compaction::expire(tree, &now).or_else(|| choose(&*self.chooser, tree, &now))?;
            Some((*space, tree, task))
        });
        let Some((space, tree, task)) = picked else { return Ok(None) };
        self.next_merged.store(space.wrapping_add(1), Ordering::Relaxed);
        let is_bottom = compaction::check(tree, &task).map_err(Error::Bug)?;
        Ok(Some(Chosen { space, task, is_bottom }))
    }

    /// Whether values of any key space expire.
    fn has_expiry(&self) -> bool {
        self.state.read().spaces.values().any(|options| options.ttl_ms.is_some())
    }

    /// Gives back space of what is deleted, in one step: a flush of tombstones in memory, a merge that the policy asks
    /// for, or one that it has for an idle database. `false` if there is nothing left to give back.
    pub(super) fn reclaim_once(&self) -> Result<bool> {
        if self.state.read().memtable.has_tombstones() {
            self.switch_memtable()?;
        }
        if self.flush_oldest()? || self.compact_once()? {
            return Ok(true);
        }
        let begun = self.merging.begin(self.options.merges_max, |others| {
            self.pick_merge(others, |chooser, tree, now| chooser.reclaim(tree, now))
        })?;
        let Some((turn, chosen)) = begun else { return Ok(false) };
        self.merge(turn, chosen)?;
        Ok(true)
    }

    /// Merges until the policy asks for no merge and none runs.
    pub(super) fn settle(&self) -> Result<()> {
        while self.compact_once()? || self.merging.await_one() {}
        Ok(())
    }

    /// Runs what writes tables and makes their names durable; after an error removes them.
    pub(super) fn writing_tables(&self, write: impl FnOnce(&OutputSettings<'_>) -> Result<Outcome>) -> Result<Outcome> {
        // Before any table is newer than the last edit (M5 of the manifest).
        self.settle_manifest(&mut self.manifest.lock())?;
        let written: Mutex<Vec<PathBuf>> = Mutex::default();
        let oldest = self.next_number.load(Ordering::Relaxed);
        let next_table = || {
            let number = self.number();
            let path = table_path(&self.dir, number);
            written.lock().push(path.clone());
            (number, self.identity(number), path)
        };
        let has_threads = self.options.background == Background::Threads;
        let unsynced = Unsynced::new(has_threads);
        let settings = OutputSettings {
            fs: &*self.options.fs,
            options: &self.options,
            table_bytes: self.options.table_bytes,
            filter: self.options.compaction_filter.as_deref(),
            spaces: self.state().spaces.clone(),
            now_ms: self.options.clock.now_ms(),
            key_order: self.key_order,
            limiter: None,
            next_table: &next_table,
            unsynced: Some(&unsynced),
            parts_max: self.options.merge_parts_max,
            has_threads,
        };
        let written_or_panicked = panics::as_error(|| write(&settings)).map_err(|error| match error {
            Error::Panicked(_) => self.stop(error),
            other => other,
        });
        let outcome = written_or_panicked.and_then(|outcome| {
            unsynced.sync()?;
            let synced = self.names.sync(&*self.options.fs, &self.dir, oldest, &self.next_number);
            // The log's name may be lost with those of the tables.
            synced.map_err(|error| self.fail(error))?;
            Ok(outcome)
        });
        if outcome.is_err() {
            for path in written.lock().iter() {
                // The next open removes what is left over.
                let _ = self.options.fs.remove_file(path);
            }
        }
        outcome
    }

    /// Makes an edit durable, and then the state.
    pub(super) fn install(&self, mut edit: VersionEdit, cause: Cause<'_>) -> Result<()> {
        let mut manifest = self.manifest.lock();
        self.check_running()?;
        self.settle_manifest(&mut manifest)?;
        edit.next_number = Some(self.next_number.load(Ordering::Relaxed));
        edit.last_seqno = Some(self.visible.load(Ordering::Acquire));
        let current = self.state().version.clone();
        let open = |number, info: &_| {
            let (path, how) = (table_path(&self.dir, number), self.options.table_reads());
            Table::open(&self.options.fs, &self.cache, path, number, Clone::clone(info), how).map(Arc::new)
        };
        let (next, removed) = current.apply(&edit, open).map_err(|error| match error {
            ApplyError::Table(error) => error,
            other => Error::Bug(other.to_string()),
        })?;
        let Some(file) = &mut manifest.file else { return Err(Error::ReadOnly) };
        let bytes_before = file.bytes();
        let appended = file.append(&edit);
        let (bytes, is_long) = (file.bytes() - bytes_before, file.is_long());
        if let Err(error) = appended {
            manifest.in_doubt = Some(self.tables_of(&edit));
            return Err(self.fail(error));
        }
        Counters::add(&self.counters.manifest_bytes, bytes);
        self.key_spaces.write().change(&edit);
        self.publish(next, cause);
        self.flushed_lsn.fetch_max(edit.flushed_lsn.unwrap_or(0), Ordering::AcqRel);
        if let Some(wal) = edit.wal {
            manifest.wal = wal;
        }
        // D3: the manifest that forgets them is durable.
        removed.iter().for_each(|table| table.mark_obsolete());
        if is_long {
            match self.write_manifest_anew(&mut manifest) {
                // The edit counts, in whichever of the two.
                Err(error) if error.may_pass() => {}
                other => other.map_err(|error| self.stop(error))?,
            }
        }
        Ok(())
    }

    /// The old manifest stands until the new one counts; after a failure it is in doubt which of the two does.
    pub(super) fn write_manifest_anew(&self, manifest: &mut LiveManifest) -> Result<()> {
        let number = self.number();
        let whole = self.whole_edit(manifest.wal);
        let path = manifest::path(&self.dir, number);
        manifest.in_doubt.get_or_insert_default().push(path.clone());
        let fs = &*self.options.fs;
        let create = || Manifest::create(fs, &self.dir, number, self.identity(number), &whole);
        let new = self.names.changing(&self.next_number, create)?;
        Counters::add(&self.counters.manifest_bytes, new.bytes());
        let mut left = manifest.in_doubt.take().unwrap_or_default();
        left.extend(manifest.file.replace(new).map(|old| manifest::path(&self.dir, old.number)));
        for path in left.iter().filter(|left| **left != path) {
            // The next open removes what is left over.
            let _ = fs.remove_file(path);
        }
        Ok(())
    }

    /// The log files before this number, which are not needed any more.
    pub(super) fn forget_wals_before(&self, writer: &mut Writer, number: u64) -> Vec<u64> {
        if let Some(wal) = &mut writer.wal {
            wal.forget_before(number);
        }
        let old = writer.old_wals.extract_if(.., |(old, _)| *old < number);
        old.map(|(old, _)| old).collect()
    }

    pub(super) fn remove_wals(&self, numbers: &[u64]) {
        for number in numbers {
            // The next open removes what is left over.
            let _ = self.options.fs.remove_file(&wal_path(&self.dir, *number));
        }
    }

    /// Makes a database in `dir` that has everything of this moment and shares the tables by hard links.
    pub(super) fn clone_to(&self, dir: &Path) -> Result<()> {
        let fs = &*self.options.fs;
        self.switch_memtable()?;
        while self.flush_oldest()? {}
        vfs::create_dirs_synced(fs, dir)?;
        if !fs.read_dir(dir)?.is_empty() {
            return Err(Error::InvalidArgument(format!("{} is not empty", dir.display())));
        }
        // Under the manifest's lock the version, the numbers and the key spaces belong together.
        let (whole, version) = {
            let _manifest = self.manifest.lock();
            (self.whole_edit((0, false)), self.state().version.clone())
        };
        // The version is held, so its files stay until they have their second names.
        for (_, _, table) in version.trees.values().flat_map(|tree| tree.tables()) {
            fs.hard_link(table.path(), &table_path(dir, table.number))?;
        }
        let number = whole.next_number.unwrap_or(1);
        let whole = VersionEdit { next_number: Some(number + 1), ..whole };
        // It counts from the moment its CURRENT is durable, and not before.
        Manifest::create(fs, dir, number, self.identity(number), &whole)?;
        Ok(())
    }

    /// Everything the manifest must say now. The caller holds its lock.
    fn whole_edit(&self, wal: (u64, bool)) -> VersionEdit {
        VersionEdit {
            database: Some(self.database),
            next_number: Some(self.next_number.load(Ordering::Relaxed)),
            last_seqno: Some(self.visible.load(Ordering::Acquire)),
            wal: Some(wal),
            flushed_lsn: Some(self.flushed_lsn.load(Ordering::Acquire)),
            key_spaces: self.key_spaces.read().as_made(),
            key_space_options: self.key_spaces.read().options_as_set(),
            next_key_space: Some(self.next_key_space.load(Ordering::Acquire)),
            key_order: self.key_order,
            ..self.state().version.as_edit()
        }
    }

    fn publish(&self, version: Version, cause: Cause<'_>) {
        let (views, spaces) = (self.held_views(), self.key_spaces.read().options().clone());
        let before = self.state();
        let lag = before.lag.after(&before.version, &version, |tree| compaction::lag(&*self.chooser, tree, &views));
        let mut state = self.state.write();
        let keeps = |memtable: &&Arc<Memtable>| match cause {
            Cause::Flushed(flushed) => !Arc::ptr_eq(memtable, flushed),
            Cause::Merged | Cause::TakenIn => true,
        };
        let immutables = state.immutables.iter().filter(keeps).cloned().collect();
        let memtable = match cause {
            Cause::TakenIn => Arc::new(Memtable::in_place_of(&state.memtable)),
            Cause::Flushed(_) | Cause::Merged => state.memtable.clone(),
        };
        *state = Arc::new(State { memtable, immutables, version: Arc::new(version), lag, spaces });
    }
}

/// Where a new version comes from.
#[derive(Clone, Copy)]
pub(super) enum Cause<'a> {
    /// This memtable, which leaves the immutable ones.
    Flushed(&'a Arc<Memtable>),
    /// What the version before had, in other tables; or less, or other options.
    Merged,
    /// Files from outside. The caller holds the lock of writers, and the memtable is empty.
    TakenIn,
}

/// Starts the threads of [`crate::Background::Threads`].
pub(super) fn spawn(inner: &Arc<Inner>) -> Result<Vec<JoinHandle<()>>> {
    let start = |name: &str, work: fn(&Inner) -> Result<bool>, idle: Option<fn(&Inner) -> Result<bool>>| {
        let (inner, merges) = (inner.clone(), name == "compact");
        let thread = std::thread::Builder::new().name(format!("plex-{name}"));
        thread.spawn(move || work_until_close(&inner, work, merges, idle)).map_err(Error::Thread)
    };
    let reclaims = inner.options.reclaim_when_idle.unwrap_or(inner.options.policy.reclaims_when_idle());
    let idle = reclaims.then_some(Inner::reclaim_once as fn(&Inner) -> Result<bool>);
    let merges = std::iter::repeat_with(|| start("compact", Inner::compact_once, idle)).take(inner.options.merges_max);
    std::iter::once(start("flush", Inner::flush_oldest, None)).chain(merges).collect()
}

/// A background thread: works while there is work, sleeps until something happens, ends with the database or a failure.
/// Once nothing was written for a while, it does its idle work, if it has any, until that is done.
fn work_until_close(
    inner: &Inner,
    work: fn(&Inner) -> Result<bool>,
    merges: bool,
    idle: Option<fn(&Inner) -> Result<bool>>,
) {
    let mut seen = 0;
    // Bytes written when the idle work was last done.
    let (mut is_idle, mut done_at) = (false, None);
    // The bell and the bytes written when nothing had happened since then.
    let (mut quiet_since, mut quiet) = (Instant::now(), (0, 0));
    let written = || inner.counters.user_bytes.load(Ordering::Relaxed);
    while !inner.is_closing.load(Ordering::Acquire) {
        let next = idle.filter(|_| is_idle).unwrap_or(work);
        match panics::as_error(|| next(inner)) {
            Ok(true) => *inner.trouble.lock() = None,
            Ok(false) => {
                if std::mem::take(&mut is_idle) {
                    done_at = Some((written(), inner.held_views()));
                }
                let may_idle = idle.is_some() && done_at != Some((written(), inner.held_views()));
                let expires = merges && inner.has_expiry();
                if quiet != (seen, written()) {
                    (quiet_since, quiet) = (Instant::now(), (seen, written()));
                }
                seen = match may_idle.then(|| IDLE_AFTER.saturating_sub(quiet_since.elapsed())) {
                    None if !expires => inner.bell.wait(seen),
                    until_idle => inner.bell.wait_for(
                        seen,
                        until_idle.unwrap_or(EXPIRES_EVERY).min(if expires { EXPIRES_EVERY } else { IDLE_AFTER }),
                    ),
                };
                is_idle = may_idle && quiet == (seen, written()) && quiet_since.elapsed() >= IDLE_AFTER;
            }
            Err(error) if error.may_pass() && inner.check_running().is_ok() => {
                // There may be space again: writers get the error, and the work is tried again a little later.
                *inner.trouble.lock() = Some(Arc::new(error));
                inner.bell.wait_for(inner.bell.ring(), RETRY_AFTER);
            }
            Err(Error::Stopped { .. }) => return,
            Err(error) => {
                inner.stop(error);
                return;
            }
        }
    }
}

/// Writes a memtable's key spaces to tables of level 0.
fn flush_memtable(
    inner: &Inner,
    settings: &OutputSettings<'_>,
    memtable: &Arc<Memtable>,
    version: &Version,
) -> Result<Outcome> {
    let visibility = inner.visibility();
    let mut all = Outcome::default();
    for space in memtable.key_spaces().into_iter().filter(|space| inner.has_key_space(*space)) {
        let shape = inner.flush_shape(version, space);
        let one = compaction::flush(settings, &visibility, memtable, space, inner.number(), &shape)?;
        all.edit.added.extend(one.edit.added);
        all.bytes_written += one.bytes_written;
        all.dropped += one.dropped;
    }
    Ok(all)
}
