//! `onggi export`: the data of a directory as an RDB file.
//!
//! ```text
//! newest checkpoint, then the log --as a start loads them--> store --entry by entry--> FILE.new --synced, renamed--> FILE
//! ```
//!
//! A string is changed by what stands in the log, so the data is loaded first: memory is what a server with it takes.

use crate::error::MigrateError;
use base::{Clock, DbIndex, Entropy, Lsn, UnixMs};
use checkpoint::{CheckpointError, DataDir, LoadProgress, Manifest, ManifestFile};
use codec::stored::{Form, Stored};
use codec::{CodecError, Dictionaries};
use engine::{Engine, Entry, Type};
use rdb::{Target, Value, WriteError, Writer, stored};
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use store::lock::WorkerSet;
use store::shard::ShardEngine;
use store::{Scratch, Store, StoreOptions, Wake};
use types::Decoder;
use vfs::{File, FileSystem, FsError, OpenOptions};

/// Bytes that are written at once.
const WRITE_LEN: usize = 1 << 20;

/// What the name of the file ends with while it is written.
const UNFINISHED: &str = ".new";

/// What is to be exported, and how.
#[derive(Clone)]
pub struct Export<'a> {
    /// The file system of all paths.
    pub fs: &'a Arc<dyn FileSystem>,
    /// The data directory. No server may be using it.
    pub dir: &'a Path,
    /// The file to make; missing.
    pub file: &'a Path,
    /// Who is to read it.
    pub target: Target,
    /// What expires at this moment or before is left out, and what the file says about when it was made.
    pub clock: Arc<dyn Clock>,
    /// Where the secret of the store's hash comes from.
    pub entropy: Arc<dyn Entropy>,
}

/// What was exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Keys in the file.
    pub keys: u64,
    /// Keys that were left out, since their time has come, or that of all their fields.
    pub expired: u64,
    /// Bytes of the file.
    pub bytes: u64,
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
    let mut unfinished = OsString::from(file);
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    let done = write(export, &store, &unfinished);
    if done.is_err() {
        // The error that ended it is the one to tell.
        let _ = fs.remove_file(&unfinished);
    }
    let exported = done?;
    fs.rename(&unfinished, file)?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    fs.sync_dir(directory.unwrap_or(Path::new(".")))?;
    Ok(exported)
}

/// Nobody waits for a lock.
struct Nobody;

impl Wake for Nobody {
    fn wake(&self, _workers: WorkerSet) {}
}

/// The store as a start makes it.
fn load(export: &Export<'_>) -> Result<Store, MigrateError> {
    let (dir, _held) = inspect::lock(export.fs, export.dir)?;
    let Some(manifest) = ManifestFile::load(&dir)? else {
        return Err(MigrateError::NoData { path: export.dir.to_owned() });
    };
    let manifest = manifest.current();
    let store = Store::new(StoreOptions {
        shard_count: 1,
        database_count: crate::DATABASES_MAX,
        clock: Arc::clone(&export.clock),
        entropy: Arc::clone(&export.entropy),
        wake: Arc::new(Nobody),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    });
    let dictionaries = &store.compression.dictionaries;
    manifest.open_dictionaries(&dir)?.into_iter().for_each(|found| drop(dictionaries.insert(found)));
    load_set(&dir, manifest, &store)?;
    if let Some(missing) = store.missing_dictionary() {
        return Err(CodecError::NoDictionary(missing).into());
    }
    replay_log(&dir, manifest, &store)?;
    Ok(store)
}

fn load_set(dir: &DataDir, manifest: &Manifest, store: &Store) -> Result<(), CheckpointError> {
    let Some(set) = manifest.newest() else { return Ok(()) };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let put = |effect: &engine::Effect<'_>| store.load(effect);
    let report = checkpoint::load(dir, set, threads, &store.hasher, &put, &LoadProgress::default())?;
    (0..).zip(&report.spaces).for_each(|(db, space)| store.spaces.set(DbIndex(db), *space));
    Ok(())
}

fn replay_log(dir: &DataDir, manifest: &Manifest, store: &Store) -> Result<(), MigrateError> {
    let newest = manifest.newest();
    let from: Option<Lsn> = newest.map_or(manifest.log.on.then_some(manifest.log.since), |set| set.log_from);
    let Some(from) = from else { return Ok(()) };
    let mut scratch = Scratch::default();
    let mut each = |_, payload: &[u8]| Ok(store.replay(&mut scratch, payload)?);
    let end = cmdlog::recover(&**dir.fs(), dir.path(), from, &mut each, &mut |_| {})?;
    if end.history.is_none() && newest.is_some() {
        return Err(MigrateError::LogMissing { path: dir.path().to_owned(), from });
    }
    Ok(())
}

fn write(export: &Export<'_>, store: &Store, path: &Path) -> Result<Exported, MigrateError> {
    let file = export.fs.open(path, OpenOptions::write().create().truncate())?;
    let failed = |error: WriteError| MigrateError::Write { path: path.to_owned(), error };
    let sink = BufWriter::with_capacity(WRITE_LEN, Sink { file: Arc::clone(&file), at: 0 });
    let now = export.clock.now_ms();
    let mut pen = Pen {
        writer: Writer::new(sink, export.target).map_err(failed)?,
        decoder: Decoder::default(),
        dictionaries: Arc::clone(&store.compression.dictionaries),
        now,
        exported: Exported::default(),
    };
    let remarks = [("onggi-ver", env!("CARGO_PKG_VERSION").to_owned()), ("redis-bits", usize::BITS.to_string())];
    for (name, value) in remarks.into_iter().chain([("ctime", now.div_euclid(1000).to_string())]) {
        pen.writer.aux(name.as_bytes(), value.as_bytes()).map_err(failed)?;
    }
    for db in (0..store.spaces.count() as u32).map(DbIndex) {
        pen.write_database(store, db).map_err(|refused| refused.told(path, db))?;
    }
    let Pen { writer, mut exported, .. } = pen;
    writer.finish().map_err(failed)?;
    file.sync_all()?;
    exported.bytes = file.len()?;
    Ok(exported)
}

/// Writes entries.
struct Pen<W> {
    writer: Writer<W>,
    decoder: Decoder,
    dictionaries: Arc<Dictionaries>,
    now: UnixMs,
    exported: Exported,
}

/// An entry that was not written.
struct Refused {
    key: Vec<u8>,
    error: WriteError,
}

impl Refused {
    fn told(self, path: &Path, db: DbIndex) -> MigrateError {
        let Self { key, error } = self;
        match error {
            WriteError::NeedsNewer { .. } => MigrateError::NeedsNewer { db: db.0, key: inspect::text::escape(&key) },
            error => MigrateError::Write { path: path.to_owned(), error },
        }
    }
}

impl<W: Write> Pen<W> {
    fn write_database(&mut self, store: &Store, db: DbIndex) -> Result<(), Refused> {
        let Some(space) = store.spaces.get(db) else { return Ok(()) };
        let mut done = Ok(());
        let walk = store.each_shard(|shard| {
            let mut from = Some(0);
            while let Some(bound) = from.filter(|_| done.is_ok()) {
                let mut visit = |entry: &Entry<'_>, _cost| {
                    if done.is_ok() {
                        done = self.write_entry(db, entry).map_err(|error| Refused { key: entry.key.to_vec(), error });
                    }
                };
                from = shard.engine.survey(space, bound, &mut visit).next;
            }
        });
        walk.for_each(drop);
        done
    }

    fn write_entry(&mut self, db: DbIndex, entry: &Entry<'_>) -> Result<(), WriteError> {
        if entry.is_expired(self.now) {
            self.exported.expired += 1;
            return Ok(());
        }
        let Entry { key, kind, encoding, value, expire_at, .. } = *entry;
        // A string that is LZF already stays so.
        if entry.is_compressed()
            && let Ok(Stored { form: Form::Lzf, len, payload }) = Stored::parse(value.bytes())
        {
            self.exported.keys += 1;
            return self.writer.lzf_entry(db.0, key, expire_at, payload, len);
        }
        let mut value = match kind {
            Type::String => Value::String(self.decoder.show(&self.dictionaries, *entry).value.bytes().to_vec()),
            kind => match stored::of_collection(kind, encoding, value.stored()) {
                Some(value) => value,
                None => return Ok(()),
            },
        };
        if let Value::Hash(hash) = &mut value {
            hash.drop_due(self.now);
        }
        if value.is_empty_collection() {
            self.exported.expired += 1;
            return Ok(());
        }
        self.exported.keys += 1;
        self.writer.entry(db.0, key, expire_at, &value)
    }
}

/// A file that is written from its beginning to its end.
struct Sink {
    file: Arc<dyn File>,
    at: u64,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.at).map_err(|error: FsError| io::Error::other(error))?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
