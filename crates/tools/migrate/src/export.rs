//! `onggi export`: the data of a directory as an RDB file.
//!
//! ```text
//! rows on disk (lsm) ---------------------------------------read, row by row, where they are---v
//! newest checkpoint, then the log --as a start loads them--> store --each entry--> FILE.new --sync, rename--> FILE
//! ```
//!
//! The log may change a string, so the data is loaded first: the export takes as much memory as a server with that
//! data.

use crate::error::MigrateError;
use crate::pen::{Exported, Page};
use base::{Clock, DbIndex, Entropy, KeyspaceId, Lsn};
use checkpoint::{CheckpointError, DataDir, LoadProgress, Manifest, ManifestFile, Name};
use codec::CodecError;
use durability::{DiskDatabases, DiskOptions};
use engine::ValueTier;
use rdb::Target;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use store::lock::WorkerSet;
use store::shard::ShardEngine;
use store::{RecoveryPoints, Scratch, Store, StoreOptions, Wake};
use tier::{TierError, TierId, TierReader, offline};
use vfs::FileSystem;

/// What is to be exported, and how.
#[derive(Clone)]
pub struct Export<'a> {
    /// The file system of all paths.
    pub fs: &'a Arc<dyn FileSystem>,
    /// The data directory. No server may be using it.
    pub dir: &'a Path,
    /// The file to make; missing.
    pub file: &'a Path,
    /// The server that will read it.
    pub target: Target,
    /// What expires at this moment or before is left out, and what the file says about when it was made.
    pub clock: Arc<dyn Clock>,
    /// Where the secret of the store's hash comes from.
    pub entropy: Arc<dyn Entropy>,
}

/// Writes what a start would load into a file. Changes nothing in the directory. Blocks for as long as it takes.
///
/// # Errors
/// [`MigrateError::Exists`], [`MigrateError::NoData`] and all that concern the directory before anything is written;
/// [`MigrateError::NeedsNewer`], a failing disk: there is no file then.
pub fn export(export: &Export<'_>) -> Result<Exported, MigrateError> {
    let (fs, file) = (&**export.fs, export.file);
    if fs.exists(file)? {
        return Err(MigrateError::Exists { path: file.to_owned() });
    }
    let store = load(export)?;
    let page = Page {
        fs,
        path: file,
        target: export.target,
        clock: &*export.clock,
        dictionaries: Arc::clone(&store.compression.dictionaries),
    };
    page.make(|pen| pen.write_store(&store))
}

/// No thread waits for a lock.
pub(crate) struct Nobody;

impl Wake for Nobody {
    fn wake(&self, _workers: WorkerSet) {}
}

/// The store as a start makes it.
fn load(export: &Export<'_>) -> Result<Arc<Store>, MigrateError> {
    let (dir, _held) = inspect::lock(export.fs, export.dir)?;
    let Some(manifest) = ManifestFile::load(&dir)? else {
        return Err(MigrateError::NoData { path: export.dir.to_owned() });
    };
    let manifest = manifest.current();
    let store = Arc::new(Store::new(StoreOptions {
        shard_count: 1,
        database_count: crate::DATABASES_MAX,
        clock: Arc::clone(&export.clock),
        entropy: Arc::clone(&export.entropy),
        wake: Arc::new(Nobody),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    }));
    attach_tier(&store, manifest, &dir)?;
    let dictionaries = &store.compression.dictionaries;
    manifest.open_dictionaries(&dir)?.into_iter().for_each(|found| drop(dictionaries.insert(found)));
    let rows = match manifest.disk_spaces.is_empty() {
        true => None,
        false => Some(back(&store, export.fs, &dir.file(Name::Rows), &manifest.disk_spaces)?),
    };
    if let Some(rows) = rows {
        let loaded = manifest.newest().map_or(manifest.log.since, |set| set.cut);
        let spaces = manifest.disk_spaces.iter().map(|space| (*space, rows)).collect();
        store.set_recovery_points(RecoveryPoints { loaded, rows: spaces });
    }
    load_set(&dir, manifest, &store)?;
    if let Some(missing) = store.missing_dictionary() {
        return Err(CodecError::NoDictionary(missing).into());
    }
    replay_log(&dir, manifest, rows, &store)?;
    Ok(store)
}

/// Has keyspaces read from rows, which are not changed. Gives the position up to which these have all changes.
pub(crate) fn back(
    store: &Arc<Store>,
    fs: &Arc<dyn FileSystem>,
    rows: &Path,
    spaces: &[KeyspaceId],
) -> Result<Lsn, MigrateError> {
    let options = DiskOptions { create: false, is_read_only: true, ..DiskOptions::default() };
    match DiskDatabases::open(store, Arc::clone(fs), rows, spaces, Vec::new(), options) {
        Ok(databases) => Ok(databases.recovered_lsn()),
        Err(error) => Err(MigrateError::Rows { path: rows.to_owned(), error: Box::new(error) }),
    }
}

/// Has values that lie on a tier read from it.
pub(crate) fn attach_tier(store: &Store, manifest: &Manifest, dir: &DataDir) -> Result<(), TierError> {
    if let Some(tier) = &manifest.tier {
        let path = offline::directory(&**dir.fs(), dir.path(), TierId(tier.id), tier.path())?;
        let reader: Arc<dyn ValueTier> = Arc::new(TierReader::new(Arc::clone(dir.fs()), path));
        store.attach_tier(&reader);
    }
    Ok(())
}

fn load_set(dir: &DataDir, manifest: &Manifest, store: &Store) -> Result<(), CheckpointError> {
    let Some(set) = manifest.newest() else { return Ok(()) };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let put = |effect: &engine::Effect<'_>| store.load(effect);
    let report = checkpoint::load(dir, set, threads, &store.hasher, &put, &LoadProgress::default())?;
    (0..).zip(&report.spaces).for_each(|(db, space)| store.spaces.set(DbIndex(db), *space));
    Ok(())
}

fn replay_log(dir: &DataDir, manifest: &Manifest, rows: Option<Lsn>, store: &Store) -> Result<(), MigrateError> {
    let newest = manifest.newest();
    let from: Option<Lsn> = newest.map_or(manifest.log.on.then_some(manifest.log.since), |set| set.log_from);
    let Some(from) = from.into_iter().chain(rows).min() else { return Ok(()) };
    let mut scratch = Scratch::default();
    let mut each = |lsn, payload: &[u8]| Ok(store.replay(&mut scratch, lsn, payload)?);
    let end = cmdlog::recover(&**dir.fs(), dir.path(), from, &mut each, &mut |_| {})?;
    if end.history.is_none() && newest.is_some() {
        return Err(MigrateError::LogMissing { path: dir.path().to_owned(), from });
    }
    Ok(())
}
