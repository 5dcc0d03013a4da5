//! `BGSAVE RDB`: an RDB file of one checkpoint, made while the server runs.
//!
//! ```text
//! prdb-* --block by block--> store of a few MiB --entry by entry--> FILE.new --synced, renamed--> FILE
//! ```
//!
//! A checkpoint has each entry whole and once, in neighbouring blocks of one file, so that memory is bounded by the
//! largest value and [`BATCH_BYTES`], whatever the checkpoint's size. Databases on disk come after it: from the copy of
//! their rows, with the changes of the log between that copy and the cut in memory, which are at most those of a flush.

use crate::error::MigrateError;
use crate::export::{Nobody, attach_tier, back};
use crate::pen::{Exported, FileWriter, Page, Pen};
use base::{Clock, DbIndex, Entropy, KeyspaceId, Lsn};
use checkpoint::{CheckpointError, DataDir, Manifest, Name, SetInfo, SnapshotReader};
use codec::Dictionaries;
use durability::{RdbWritten, WriteRdb};
use rdb::Target;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::shard::ShardEngine;
use store::{RecoveryPoints, Scratch, Store, StoreOptions};
use vfs::{FileSystem, OpenOptions};

/// Bytes of blocks whose entries are in memory at a time.
const BATCH_BYTES: usize = 8 << 20;

/// Makes RDB files.
pub struct RdbFile {
    /// Its name in the data directory.
    name: PathBuf,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl RdbFile {
    /// Files of that name.
    ///
    /// # Errors
    /// [`MigrateError::RdbName`]: it is no name, or that of a file of the data directory.
    pub fn new(name: &Path, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Result<Self, MigrateError> {
        // Of `a/b` and `..` the file name is not the whole, and the unfinished file is not ours either.
        let is_name = name.file_name().is_some_and(|own| own == name.as_os_str() && Name::parse(own) == Name::Other);
        match is_name {
            true => Ok(Self { name: name.to_owned(), clock, entropy }),
            false => Err(MigrateError::RdbName { name: name.to_owned() }),
        }
    }

    fn make(
        &self,
        dir: &DataDir,
        manifest: &Manifest,
        target: Target,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<RdbWritten, MigrateError> {
        let set = manifest.newest().ok_or_else(|| MigrateError::NoData { path: dir.path().to_owned() })?;
        let dictionaries = Dictionaries::default();
        manifest.open_dictionaries(dir)?.into_iter().for_each(|found| drop(dictionaries.insert(found)));
        let path = dir.path().join(&self.name);
        refuse_foreign(&**dir.fs(), &path)?;
        let page =
            Page { fs: &**dir.fs(), path: &path, target, clock: &*self.clock, dictionaries: Arc::new(dictionaries) };
        let Exported { keys, formless, bytes, .. } =
            page.make(|pen| self.fill(pen, dir, (manifest, set), is_cancelled))?;
        Ok(RdbWritten { path, keys, formless, bytes })
    }

    fn fill(
        &self,
        pen: &mut Pen<FileWriter>,
        dir: &DataDir,
        (manifest, set): (&Manifest, &SetInfo),
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<(), MigrateError> {
        for (number, info) in (0u8..).zip(&set.files) {
            let path = dir.file(Name::Snapshot { set: set.set, file: number });
            let mut reader = SnapshotReader::open(&**dir.fs(), &path)?;
            if reader.info() != *info {
                let what = format!("{:?}, but the manifest says {info:?}", reader.info());
                let lost = "the checkpoint".to_owned();
                return Err(CheckpointError::Damaged { path, offset: 0, what, lost }.into());
            }
            let spaces = reader.header().spaces.clone();
            let batch = || -> Result<Store, MigrateError> {
                let store = self.batch(&spaces);
                attach_tier(&store, manifest, dir)?;
                Ok(store)
            };
            let mut store = batch()?;
            let mut bytes = 0;
            while let Some(block) = reader.next_block()? {
                if is_cancelled() {
                    return Err(CheckpointError::LoadCancelled.into());
                }
                for effect in cmdlog::effects(block.payload, &store.hasher) {
                    let damaged = |what: String| CheckpointError::Damaged {
                        path: path.clone(),
                        offset: block.offset,
                        what,
                        lost: format!("the entries of block {}", block.number),
                    };
                    store.load(&effect.map_err(|error| damaged(error.to_string()))?);
                }
                bytes += block.payload.len();
                // A block without entries is a part of a collection that continues in the next.
                if bytes >= BATCH_BYTES && block.entries > 0 {
                    pen.write_store(&store)?;
                    (store, bytes) = (batch()?, 0);
                }
            }
            pen.write_store(&store)?;
        }
        let (found, expected) = (pen.entries_met(), set.files.iter().map(|info| info.entries).sum());
        match found == expected {
            true => self.fill_from_rows(pen, dir, (manifest, set), is_cancelled),
            false => Err(MigrateError::Incomplete { found, expected }),
        }
    }

    /// Writes the databases on disk.
    fn fill_from_rows(
        &self,
        pen: &mut Pen<FileWriter>,
        dir: &DataDir,
        (manifest, set): (&Manifest, &SetInfo),
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<(), MigrateError> {
        let Some(rows) = &set.rows else {
            return match manifest.disk_spaces.is_empty() {
                true => Ok(()),
                false => Err(MigrateError::NoRows { set: set.set }),
            };
        };
        let path = dir.file(Name::Snapshot { set: set.set, file: 0 });
        let store = Arc::new(self.batch(&SnapshotReader::open(&**dir.fs(), &path)?.header().spaces));
        let lsn = back(&store, dir.fs(), &dir.file(Name::RowsOf { set: set.set }), &rows.spaces)?;
        let dictionaries = &store.compression.dictionaries;
        manifest.open_dictionaries(dir)?.into_iter().for_each(|found| drop(dictionaries.insert(found)));
        let points = rows.spaces.iter().map(|space| (*space, lsn)).collect();
        store.set_recovery_points(RecoveryPoints { loaded: set.cut, rows: points });
        let (mut scratch, mut is_reached) = (Scratch::default(), false);
        let mut each = |after: Lsn, payload: &[u8]| {
            is_reached |= after > set.cut;
            match is_reached || is_cancelled() {
                true => Err(Over.into()),
                false => Ok(store.replay(&mut scratch, after, payload)?),
            }
        };
        let replayed = cmdlog::recover(&**dir.fs(), dir.path(), lsn, &mut each, &mut |_| {});
        if is_cancelled() {
            return Err(CheckpointError::LoadCancelled.into());
        }
        if !is_reached {
            replayed?;
        }
        pen.write_store_while(&store, &|| !is_cancelled())?;
        if is_cancelled() { Err(CheckpointError::LoadCancelled.into()) } else { Ok(()) }
    }

    /// A store for some entries.
    fn batch(&self, spaces: &[KeyspaceId]) -> Store {
        let store = Store::new(StoreOptions {
            shard_count: 1,
            database_count: spaces.len() as u32,
            clock: Arc::clone(&self.clock),
            entropy: Arc::clone(&self.entropy),
            wake: Arc::new(Nobody),
            log: None,
            engine: |engine| ShardEngine::Memory(Box::new(engine)),
        });
        (0..).zip(spaces).for_each(|(db, space)| store.spaces.set(DbIndex(db), *space));
        store
    }
}

/// All that is needed of the log was read.
#[derive(Debug, thiserror::Error)]
#[error("the cut was reached")]
struct Over;

/// Refuses to replace a file that this server has not written: it may be all that is left of another server's data.
fn refuse_foreign(fs: &dyn FileSystem, path: &Path) -> Result<(), MigrateError> {
    let file = match fs.open(path, OpenOptions::read()) {
        Err(error) if error.is_not_found() => return Ok(()),
        file => file?,
    };
    let len = usize::try_from(file.len()?).unwrap_or(usize::MAX).min(rdb::origin::HEAD_BYTES);
    if len == 0 {
        return Ok(());
    }
    let mut head = vec![0; len];
    file.read_exact_at(&mut head, 0)?;
    match rdb::origin::origin(&head) {
        Some(origin) if origin.server == Some("Onggi") => Ok(()),
        origin => {
            let what = origin.map_or_else(|| "no RDB file".to_owned(), |origin| origin.to_string());
            Err(MigrateError::ForeignRdb { path: path.to_owned(), what })
        }
    }
}

impl WriteRdb for RdbFile {
    fn write(
        &self,
        dir: &DataDir,
        manifest: &Manifest,
        target: Target,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<RdbWritten, String> {
        self.make(dir, manifest, target, is_cancelled).map_err(|error| error.to_string())
    }
}
