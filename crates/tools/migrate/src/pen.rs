//! Entries of stores, written into an RDB file.

use crate::error::MigrateError;
use base::hash::KeyHasher;
use base::{Clock, DbIndex, Rng, UnixMs};
use codec::Dictionaries;
use codec::stored::{Form, Stored};
use engine::{Entry, Type};
use rdb::{Target, Value, WriteError, Writer, stored};
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;
use types::{Decoder, Source};
use value::Limits;
use vfs::{File, FileSystem, FsError, OpenOptions};

/// Bytes that are written at once.
const WRITE_LEN: usize = 1 << 20;

/// What the name of the file ends with while it is written.
const UNFINISHED: &str = ".new";

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Keys in the file.
    pub keys: u64,
    /// Keys that were left out, since their time has come, or that of all their fields.
    pub expired: u64,
    /// Keys that were left out, since an RDB file has no form for them: b+trees, and collections that have attributes
    /// and no elements.
    pub formless: u64,
    /// Libraries of functions in the file.
    pub libraries: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The file to make, and for whom.
pub(crate) struct Page<'a> {
    pub fs: &'a dyn FileSystem,
    pub path: &'a Path,
    pub target: Target,
    pub clock: &'a dyn Clock,
    /// Those of compressed values.
    pub dictionaries: Arc<Dictionaries>,
}

impl Page<'_> {
    /// Makes the file of what `fill` writes: under another name, synced, then in the place of the one before. An error
    /// leaves that one.
    pub fn make(
        &self,
        fill: impl FnOnce(&mut Pen<FileWriter>) -> Result<(), MigrateError>,
    ) -> Result<Exported, MigrateError> {
        let mut unfinished = OsString::from(self.path);
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        let done = self.write(&unfinished, fill);
        if done.is_err() {
            // Report the error that ended it.
            let _ = self.fs.remove_file(&unfinished);
        }
        let exported = done?;
        self.fs.rename(&unfinished, self.path)?;
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        self.fs.sync_dir(directory.unwrap_or(Path::new(".")))?;
        Ok(exported)
    }

    fn write(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut Pen<FileWriter>) -> Result<(), MigrateError>,
    ) -> Result<Exported, MigrateError> {
        let file = self.fs.open(path, OpenOptions::write().create().truncate())?;
        let failed = |error: WriteError| MigrateError::Write { path: path.to_owned(), error };
        let sink = BufWriter::with_capacity(WRITE_LEN, Sink { file: Arc::clone(&file), at: 0 });
        let now = self.clock.now_ms();
        let mut pen = Pen {
            path: path.to_owned(),
            writer: Writer::new(sink, self.target).map_err(failed)?,
            decoder: Decoder::default(),
            dictionaries: Arc::clone(&self.dictionaries),
            hasher: KeyHasher::new(&mut Rng::new(0)),
            limits: Limits::default(),
            now,
            exported: Exported::default(),
        };
        let remarks = [("onggi-ver", env!("CARGO_PKG_VERSION").to_owned()), ("redis-bits", usize::BITS.to_string())];
        for (name, value) in remarks.into_iter().chain([("ctime", now.div_euclid(1000).to_string())]) {
            pen.writer.aux(name.as_bytes(), value.as_bytes()).map_err(failed)?;
        }
        fill(&mut pen)?;
        let Pen { writer, mut exported, .. } = pen;
        writer.finish().map_err(failed)?;
        file.sync_all()?;
        exported.bytes = file.len()?;
        Ok(exported)
    }
}

/// Writes entries.
pub(crate) struct Pen<W> {
    path: PathBuf,
    writer: Writer<W>,
    decoder: Decoder,
    dictionaries: Arc<Dictionaries>,
    /// Orders trees that are built from what is stored compressed.
    hasher: KeyHasher,
    limits: Limits,
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
    /// Entries of a checkpoint met so far: keys that were written or left out, and libraries.
    pub fn entries_met(&self) -> u64 {
        self.exported.keys + self.exported.expired + self.exported.formless + self.exported.libraries
    }

    /// Writes all that a store has: libraries of functions first, as the format requires.
    pub fn write_store(&mut self, store: &Store) -> Result<(), MigrateError> {
        self.write_store_while(store, &|| true)
    }

    /// The same until `goes_on` says false, which is asked for every key.
    pub fn write_store_while(&mut self, store: &Store, goes_on: &dyn Fn() -> bool) -> Result<(), MigrateError> {
        for (_, code) in store.libraries.get().iter() {
            self.writer.function(code).map_err(|error| MigrateError::Write { path: self.path.clone(), error })?;
            self.exported.libraries += 1;
        }
        let databases = (0..store.spaces.count() as u32).map(DbIndex);
        databases.into_iter().try_for_each(|db| {
            let path = self.path.clone();
            self.write_database(store, db, goes_on).map_err(|refused| refused.told(&path, db))
        })
    }

    fn write_database(&mut self, store: &Store, db: DbIndex, goes_on: &dyn Fn() -> bool) -> Result<(), Refused> {
        let Some(space) = store.spaces.get(db) else { return Ok(()) };
        let (mut done, mut bytes) = (Ok(()), Vec::new());
        store.visit_entries(space, &mut |entry| {
            let whole = store.whole(*entry, &mut bytes).map_err(WriteError::Io);
            let written = whole.and_then(|whole| self.write_entry(db, &whole));
            done = written.map_err(|error| Refused { key: entry.key.to_vec(), error });
            done.is_ok() && goes_on()
        });
        done
    }

    fn write_entry(&mut self, db: DbIndex, entry: &Entry<'_>) -> Result<(), WriteError> {
        if entry.is_expired(self.now) {
            self.exported.expired += 1;
            return Ok(());
        }
        // A string that is LZF already stays so.
        if entry.is_compressed()
            && entry.kind == Type::String
            && let Ok(Stored { form: Form::Lzf, len, payload }) = Stored::parse(entry.value.bytes())
        {
            self.exported.keys += 1;
            return self.writer.lzf_entry(db.0, entry.key, entry.expire_at, payload, len);
        }
        let source = Source { dictionaries: &self.dictionaries, hasher: &self.hasher, limits: &self.limits };
        let Entry { key, kind, encoding, value, expire_at, .. } = self.decoder.show(source, *entry);
        let mut value = match kind {
            Type::String => Value::String(value.bytes().to_vec()),
            kind => match stored::of_collection(kind, encoding, value.stored()) {
                Some(value) => value,
                None => {
                    self.exported.formless += 1;
                    return Ok(());
                }
            },
        };
        if value.is_empty_collection() {
            self.exported.formless += 1;
            return Ok(());
        }
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

/// Where a pen writes.
pub(crate) type FileWriter = BufWriter<Sink>;

/// A file that is written from its beginning to its end.
pub(crate) struct Sink {
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
