//! Databases on rows: opened with the data directory, and flushed at one position of the log.
//!
//! ```text
//! spill (shard by shard) -> begin (all locks, a moment) -> walk (shard by shard) -> install -> end (by shard)
//!                                                                 |                 '- no locks: log, then rows
//!                                                                 '-> void: a database was cleared meanwhile
//! ```
//!
//! R1. Rows never hold a change that the log may lose: the log is durable up to the cut before rows are installed.
//!     Otherwise records that are written after a restart would take positions that rows claim to have.
//! R2. All databases are flushed at one cut, and all of it is installed or none, since there is one position for all of
//!     them. Where one was cleared after the cut, what was not yet walked of it is gone, so all of the flush is given
//!     up.
//!
//! Workers call what takes locks (D1). `install` waits for devices, so it belongs on another thread.

use base::{KeyspaceId, Lsn, ShardId, UnixMs};
use disk::{Disk, DiskError, DiskOptions, DiskStats, Flush, Shards};
use engine::{Counts, FlushProgress};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use store::{SpillPlace, Store};
use vfs::FileSystem;

/// Leaves that become rows before a flush are moved into tables when they are this part of `maxmemory`, within these
/// bounds: what they were before is not given back at once, so that they take memory twice.
const SPILL_PARTS: u64 = 8;
const SPILL_BYTES: (u64, u64) = (4 << 20, 256 << 20);

/// Keys walked under one locking.
const WALK_STEP: usize = 64;

/// Why a flush has failed. Its keys are part of the next one.
#[derive(Debug, thiserror::Error)]
pub enum FlushError<E> {
    /// The log could not be made durable up to the cut.
    #[error("the command log is not durable up to the cut of a flush: {0}")]
    Log(E),
    /// The rows could not be written.
    #[error("rows cannot be flushed: {0}")]
    Rows(#[from] DiskError),
}

/// The databases of a store that have their rows on disk.
pub struct DiskDatabases {
    store: Arc<Store>,
    disk: Arc<Disk>,
    spaces: RwLock<Vec<KeyspaceId>>,
    /// Keyspaces that keep their names in order.
    ordered: Vec<KeyspaceId>,
}

/// What comes before a flush: changed leaves of large collections become rows.
pub struct Spill {
    databases: Arc<DiskDatabases>,
    /// What is still to be looked at.
    places: Vec<(ShardId, KeyspaceId)>,
    from: SpillPlace,
}

/// A flush that runs.
pub struct RunningFlush {
    databases: Arc<DiskDatabases>,
    flush: Option<Flush>,
    lsn: Lsn,
    /// What is still to be walked.
    places: Vec<(ShardId, KeyspaceId)>,
    /// What is to be ended.
    all_places: Vec<(ShardId, KeyspaceId)>,
    installed: Option<BTreeMap<(KeyspaceId, ShardId), Counts>>,
}

impl DiskDatabases {
    /// Opens the rows of these keyspaces, which are empty in memory, and backs the keyspaces with them, while nothing
    /// else runs. `ordered` are those that keep their names in order, also of those that are added later.
    ///
    /// # Errors
    /// [`DiskError`] when the rows cannot be opened.
    pub fn open(
        store: &Arc<Store>,
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        spaces: &[KeyspaceId],
        ordered: Vec<KeyspaceId>,
        options: DiskOptions,
    ) -> Result<Arc<Self>, DiskError> {
        // Not the store, which owns the rows.
        let slots = store.slots().clone();
        let count = u16::try_from(store.shard_ids().len()).unwrap_or(u16::MAX);
        let shards = Shards { count, of: Arc::new(move |key| slots.shard_of(base::slot::slot_of(key))) };
        let disk = Disk::open(fs, dir, shards, options)?;
        let databases = Arc::new(Self { store: store.clone(), disk, spaces: RwLock::default(), ordered });
        spaces.iter().try_for_each(|space| databases.add(*space))?;
        Ok(databases)
    }

    /// Opens the rows of one more keyspace, which is empty in memory, and backs it with them, while no command runs.
    /// # Errors
    /// [`DiskError`] when the rows cannot be opened.
    pub fn add(&self, space: KeyspaceId) -> Result<(), DiskError> {
        self.disk.open_space(space)?;
        self.store.back(space, self.ordered.contains(&space), |shard| {
            self.disk.rows(shard, space).expect("it was opened just now")
        });
        self.spaces.write().push(space);
        Ok(())
    }

    /// For each keyspace, the position of the log up to which its rows hold all changes: where its replay begins.
    pub fn recovery_points(&self) -> BTreeMap<KeyspaceId, Lsn> {
        let recovered = self.disk.recovered_lsn();
        self.spaces.read().iter().map(|space| (*space, recovered)).collect()
    }

    /// The position up to which the rows held all changes when they were opened.
    pub fn recovered_lsn(&self) -> Lsn {
        self.disk.recovered_lsn()
    }

    /// Begins what comes before a flush.
    pub fn begin_spill(self: &Arc<Self>) -> Spill {
        Spill { databases: self.clone(), places: self.places(), from: SpillPlace::default() }
    }

    /// Begins a flush of the present moment; `lsn` returns the position of the log, under all locks. `None` when the
    /// locks cannot be had within a millisecond: the caller tries again later.
    pub fn begin_flush(self: &Arc<Self>, lsn: impl FnOnce() -> Lsn) -> Option<RunningFlush> {
        let mut flush = self.disk.begin_flush();
        let all_places = self.places();
        let mut all = self.store.try_lock_all()?;
        all.begin_flush(&self.spaces.read(), |shard, space| flush.sink(shard, space));
        let lsn = lsn();
        drop(all);
        let places = all_places.clone();
        Some(RunningFlush { databases: self.clone(), flush: Some(flush), lsn, places, all_places, installed: None })
    }

    fn places(&self) -> Vec<(ShardId, KeyspaceId)> {
        let spaces = self.spaces.read();
        self.store.shard_ids().flat_map(|shard| spaces.iter().map(move |space| (shard, *space))).collect()
    }

    /// Drops clean entries in all shards: of each database, about this many bytes in each shard.
    pub fn drop_clean(&self, bytes: usize) {
        for (shard, space) in self.places() {
            self.store.drop_clean(shard, space, bytes);
        }
    }

    /// Makes a copy of the rows by hard links. Gives the position up to which it has all changes, and the keyspaces;
    /// `None` while a flush collects, or after one that failed. Waits for the device.
    ///
    /// # Errors
    /// [`DiskError::Tree`]
    pub fn copy_to(&self, dir: &Path) -> Result<Option<(Lsn, Vec<KeyspaceId>)>, DiskError> {
        let mut spaces = self.spaces.read().clone();
        spaces.sort_unstable();
        Ok(self.disk.copy_to(dir)?.map(|lsn| (lsn, spaces)))
    }

    /// Does one merge of tables; false when none is due. Waits for the device.
    ///
    /// # Errors
    /// [`DiskError::Tree`]
    pub fn compact_step(&self) -> Result<bool, DiskError> {
        self.disk.compact_step()
    }

    /// Looks for rows that have expired, for upkeep to delete. True when there are more. Waits for the device.
    ///
    /// # Errors
    /// [`DiskError::Tree`]
    pub fn gather_due(&self, now: UnixMs) -> Result<bool, DiskError> {
        self.disk.gather_due(now)
    }

    /// Memory of tables and of flushes on their way, in bytes, without leaves of large collections.
    pub fn memory_bytes(&self) -> u64 {
        self.disk.stats().memory_bytes.saturating_sub(self.disk.leaf_bytes())
    }

    /// What rows take, and what was done with them.
    pub fn stats(&self) -> DiskStats {
        self.disk.stats()
    }

    /// Gives back some space of what is deleted; false when there is none. Waits for the device.
    ///
    /// # Errors
    /// [`DiskError::Tree`]
    pub fn reclaim_step(&self) -> Result<bool, DiskError> {
        self.disk.reclaim_step()
    }
}

impl Spill {
    /// A step.
    pub fn step(&mut self) {
        while let Some(&(shard, space)) = self.places.last() {
            match self.databases.store.spill_changed(shard, space, self.from) {
                Some(next) => {
                    self.from = next;
                    return;
                }
                None => {
                    self.places.pop();
                    self.from = SpillPlace::default();
                }
            }
        }
    }

    /// Whether every shard was looked at.
    pub fn is_done(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether leaves are to be moved into tables before the next step.
    pub fn is_full(&self) -> bool {
        let max = self.databases.store.budget_bytes() / SPILL_PARTS;
        self.databases.disk.unflushed_leaf_bytes() >= max.clamp(SPILL_BYTES.0, SPILL_BYTES.1)
    }

    /// Moves leaves into tables. Waits for the device.
    ///
    /// # Errors
    /// [`DiskError::Tree`]
    pub fn flush_leaves(&self) -> Result<(), DiskError> {
        self.databases.disk.flush_leaves()
    }
}

impl RunningFlush {
    /// The position of the log at its cut.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Walks some keys of a shard. [`FlushProgress::Done`] when all shards are walked, [`FlushProgress::Void`] when the
    /// flush is to be ended without having been installed (R2).
    pub fn walk(&mut self) -> FlushProgress {
        let Some(&(shard, space)) = self.places.last() else { return FlushProgress::Done };
        match self.databases.store.walk_flush(shard, space, WALK_STEP) {
            FlushProgress::Done => _ = self.places.pop(),
            FlushProgress::More => {}
            FlushProgress::Void => return FlushProgress::Void,
        }
        if self.places.is_empty() { FlushProgress::Done } else { FlushProgress::More }
    }

    /// Bytes that were walked and not drained.
    pub fn collected_bytes(&self) -> usize {
        self.flush.as_ref().map_or(0, Flush::collected_bytes)
    }

    /// Writes what was walked so far into the rows' memory, so that it does not pile up. May wait for the device.
    ///
    /// # Errors
    /// [`DiskError`]: the flush is to be ended.
    pub fn drain(&mut self) -> Result<(), DiskError> {
        self.flush.as_mut().map_or(Ok(()), Flush::drain)
    }

    /// Whether [`RunningFlush::install`] may be called after it failed: all rows are in the tree's memory. It is the
    /// better way, since a flush that begins anew puts them there again.
    pub fn can_repeat(&self) -> bool {
        self.places.is_empty() && self.flush.as_ref().is_some_and(Flush::is_whole)
    }

    /// Has the log made durable up to the cut, and then the rows. When all is walked, and until it succeeds. Waits for
    /// devices.
    ///
    /// # Errors
    /// [`FlushError`]; then nothing of the flush counts.
    ///
    /// # Panics
    /// When shards are still to be walked.
    pub fn install<E>(&mut self, make_durable: impl FnOnce(Lsn) -> Result<(), E>) -> Result<(), FlushError<E>> {
        assert!(self.places.is_empty(), "a flush is installed when all its keys were given to it");
        make_durable(self.lsn).map_err(FlushError::Log)?;
        if let Some(flush) = &mut self.flush {
            self.installed = Some(flush.install(self.lsn)?);
            self.flush = None;
        }
        Ok(())
    }

    /// Ends the flush in all shards: what was installed is clean, and what was not is part of the next flush.
    pub fn end(self) {
        for (shard, space) in &self.all_places {
            let installed = self.installed.as_ref().and_then(|all| all.get(&(*space, *shard)).copied());
            self.databases.store.end_flush(*shard, *space, installed);
        }
    }
}
