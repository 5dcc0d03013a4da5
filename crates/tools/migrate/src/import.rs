//! The second reading: what was examined becomes a checkpoint, and the checkpoint a data directory.

use crate::appendonly::{self, Log};
use crate::build::Builder;
use crate::contents::Contents;
use crate::error::MigrateError;
use crate::examine::{Examination, examine};
use crate::room::wait_for_room;
use crate::sift::{Fate, Sieve};
use base::hash::KeyHasher;
use base::random::Entropy;
use base::{Clock, HistoryId, KeyspaceId, Lsn, UnixMs};
use checkpoint::{
    DataDir, Feed, FeedOptions, LogState, Manifest, ManifestFile, Name, SetHead, SetId, SetInfo, Writer, WriterOptions,
};
use engine::{Backlog, Libraries};
use rdb::{Item, RdbError, Reader};
use replication::Source;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::FileSystem;

/// What is to be imported, and how.
#[derive(Clone, Debug)]
pub struct Import<'a> {
    /// The file system of all paths.
    pub fs: &'a Arc<dyn FileSystem>,
    /// The file.
    pub file: &'a Path,
    /// The data directory to make; empty or missing.
    pub dir: &'a Path,
    /// What cannot be taken is left out.
    pub is_partial: bool,
    /// See [`Examination::scratch`].
    pub scratch: PathBuf,
}

/// What was imported.
#[derive(Clone, Debug)]
pub struct Imported {
    /// What the file holds.
    pub contents: Contents,
    /// The checkpoint.
    pub set: SetInfo,
}

/// Makes a data directory of a file. Calls `examined` with what is in the file before anything is written. Blocks for
/// as long as all takes.
///
/// # Errors
/// Every [`MigrateError`]; the directory holds no data then. [`MigrateError::NotEmpty`], [`MigrateError::Untaken`] and
/// all that concern the file come before anything was written.
pub fn import(
    import: &Import<'_>,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
    examined: &mut dyn FnMut(&Contents),
) -> Result<Imported, MigrateError> {
    let Import { fs, file, dir, is_partial, ref scratch } = *import;
    refuse_files(&**fs, dir)?;
    let examination = Examination { fs, file, now: clock.now_ms(), scratch: scratch.clone() };
    let contents = examine(&examination, entropy)?;
    examined(&contents);
    if !is_partial && !contents.untaken.is_nothing() {
        return Err(MigrateError::Untaken { path: file.to_owned(), untaken: contents.untaken.into() });
    }

    let set = Set {
        now: examination.now,
        history: HistoryId::random(&mut entropy.rng()),
        databases: contents.databases_needed(),
        libraries: Arc::new(contents.libraries.clone()),
        expected_bytes: contents.end.len,
    };
    let save = |feed: &Feed, backlog: &Backlog| read_again(feed, backlog, &examination, &contents, entropy);
    let set = write_directory(fs, dir, &set, save)?;
    Ok(Imported { contents, set })
}

/// What was imported of an append-only log.
#[derive(Clone, Debug)]
pub struct ImportedLog {
    /// What the log holds.
    pub log: Log,
    /// The checkpoint.
    pub set: SetInfo,
}

/// As [`import`], of the append-only log at [`Import::file`].
///
/// # Errors
/// As there.
pub fn import_log(
    import: &Import<'_>,
    clock: &dyn Clock,
    entropy: &Arc<dyn Entropy>,
    examined: &mut dyn FnMut(&Log),
) -> Result<ImportedLog, MigrateError> {
    let Import { fs, file, dir, is_partial, ref scratch } = *import;
    refuse_files(&**fs, dir)?;
    let examination = Examination { fs, file, now: clock.now_ms(), scratch: scratch.clone() };
    let played = appendonly::play(&examination, entropy)?;
    let log = &played.log;
    examined(log);
    if !is_partial && !log.untaken.is_nothing() {
        return Err(MigrateError::Untaken { path: file.to_owned(), untaken: log.untaken.clone().into() });
    }
    let kept = Kept {
        now: examination.now,
        databases: log.databases_needed(),
        libraries: Arc::new(log.libraries.clone()),
        expected_bytes: log.bytes(),
    };
    let set = keep(fs, dir, &kept, &**entropy, &played)?;
    Ok(ImportedLog { log: played.log, set })
}

/// Refuses a directory with files, but for the lock file that a failed import leaves.
pub(crate) fn refuse_files(fs: &dyn FileSystem, dir: &Path) -> Result<(), MigrateError> {
    if !fs.exists(dir)? {
        return Ok(());
    }
    match fs.read_dir(dir)?.into_iter().find(|entry| Name::parse(&entry.name) != Name::Lock) {
        Some(entry) => {
            let found = entry.name.to_string_lossy().into_owned();
            Err(MigrateError::NotEmpty { path: dir.to_owned(), found })
        }
        None => Ok(()),
    }
}

/// What is kept of a store.
pub(crate) struct Kept {
    pub now: UnixMs,
    pub databases: u32,
    pub libraries: Arc<Libraries>,
    pub expected_bytes: u64,
}

/// Makes a data directory of a store.
pub(crate) fn keep(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    kept: &Kept,
    entropy: &dyn Entropy,
    played: &appendonly::Played,
) -> Result<SetInfo, MigrateError> {
    let Kept { now, databases, ref libraries, expected_bytes } = *kept;
    let history = HistoryId::random(&mut entropy.rng());
    let set = Set { now, history, databases, libraries: Arc::clone(libraries), expected_bytes };
    write_directory(fs, dir, &set, |feed: &Feed, backlog: &Backlog| {
        played.save(feed, backlog);
        Ok(())
    })
}

/// What a set says of itself, and how much will be in it about.
struct Set {
    now: UnixMs,
    history: HistoryId,
    databases: u32,
    libraries: Arc<Libraries>,
    expected_bytes: u64,
}

/// Writes the only set of a directory, of the entries that `save` gives to the feed.
fn write_set(
    dir: &DataDir,
    set: &Set,
    save: impl FnOnce(&Feed, &Backlog) -> Result<(), MigrateError>,
) -> Result<SetInfo, MigrateError> {
    let Set { now, history, databases, ref libraries, expected_bytes } = *set;
    let backlog = Arc::new(Backlog::default());
    let feed = Feed::new(FeedOptions::default(), Arc::clone(&backlog));
    let options = WriterOptions { expected_bytes, ..WriterOptions::default() };
    let mut writer = Writer::create(dir, SetId(1), options, &feed)?;
    let spaces = (0..databases).map(KeyspaceId).collect();
    let libraries = Arc::clone(libraries);
    let position = Vec::new();
    writer.begin(SetHead { cut: Lsn(0), history, created_ms: now, log_from: None, spaces, libraries, position })?;
    save(&feed, &backlog)?;
    Ok(writer.finish()?)
}

/// Makes a data directory of one set.
fn write_directory(
    fs: &Arc<dyn FileSystem>,
    path: &Path,
    set: &Set,
    save: impl FnOnce(&Feed, &Backlog) -> Result<(), MigrateError>,
) -> Result<SetInfo, MigrateError> {
    let dir = DataDir::open(Arc::clone(fs), path)?;
    // Locked now; a server may have begun there meanwhile.
    refuse_files(&**fs, dir.path())?;
    let log = LogState { on: false, since: Lsn(0), since_ms: set.now };
    let written = write_set(&dir, set, save)?;
    let manifest = Manifest { sets: vec![written.clone()], ..Manifest::new(set.history, log) };
    ManifestFile::create(&dir, manifest)?;
    Ok(written)
}

/// Gives everything that is taken to the feed. Ends early, and well, when the feed was aborted: the writer knows why.
fn read_again(
    feed: &Feed,
    backlog: &Backlog,
    examination: &Examination<'_>,
    contents: &Contents,
    entropy: &dyn Entropy,
) -> Result<(), MigrateError> {
    let &Examination { fs, file, now, .. } = examination;
    let mut sink = feed.sink();
    let mut builder = Builder::new(KeyHasher::new(&mut entropy.rng()));
    let mut keys: u64 = 0;
    let (source, len) = Source::open(&**fs, file, 0)?;
    let failed = |keys| move |error: RdbError| MigrateError::File { path: file.to_owned(), keys, error };
    let mut reader = Reader::new(source, Some(len)).map_err(failed(0))?.keeping_lzf();
    let sieve = Sieve::new(now);
    while let Some(item) = reader.next_item().map_err(failed(keys))? {
        let Item::Entry(mut entry) = item else { continue };
        if sieve.sift(&mut entry).0 != Fate::Taken || entry.db >= contents.databases_needed() {
            continue;
        }
        keys += 1;
        builder.save(*entry, &mut *sink);
        wait_for_room(feed, backlog);
        if feed.is_aborted() {
            break;
        }
    }
    if !feed.is_aborted() && (keys, reader.end()) != (contents.keys(), Some(contents.end)) {
        return Err(MigrateError::Changed { path: file.to_owned() });
    }
    sink.finish();
    Ok(())
}
