//! The second reading: what was examined becomes a checkpoint, and the checkpoint a data directory.

use crate::build::Builder;
use crate::contents::Contents;
use crate::error::MigrateError;
use crate::examine::{Examination, examine};
use crate::sift::{Fate, Sieve};
use crate::source::Source;
use base::hash::KeyHasher;
use base::random::Entropy;
use base::{Clock, HistoryId, KeyspaceId, Lsn};
use checkpoint::{
    DataDir, Feed, FeedOptions, LogState, Manifest, ManifestFile, Name, SetHead, SetId, SetInfo, Writer, WriterOptions,
};
use engine::Backlog;
use rdb::{Item, RdbError, Reader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use vfs::FileSystem;

/// How long the reading waits before it looks again whether the disk has taken what was read.
const WAIT: Duration = Duration::from_millis(1);

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

/// Makes a data directory of a file. Calls `examined` with what is in the file before anything is written. Blocks for as long as
/// all takes.
///
/// # Errors
/// Every [`MigrateError`]; the directory holds no data then. [`MigrateError::NotEmpty`], [`MigrateError::Untaken`] and all that
/// concern the file come before anything was written.
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

    let dir = DataDir::open(Arc::clone(fs), dir)?;
    // Locked now; a server may have begun there meanwhile.
    refuse_files(&**fs, dir.path())?;
    let (now, history) = (examination.now, HistoryId::random(&mut entropy.rng()));
    let log = LogState { on: false, since: Lsn(0), since_ms: now };
    let set = write_set(&dir, &examination, &contents, history, entropy)?;
    let manifest = Manifest { sets: vec![set.clone()], ..Manifest::new(history, log) };
    ManifestFile::create(&dir, manifest)?;
    Ok(Imported { contents, set })
}

/// Refuses a directory with files, but for the lock file that a failed import leaves.
fn refuse_files(fs: &dyn FileSystem, dir: &Path) -> Result<(), MigrateError> {
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

fn write_set(
    dir: &DataDir,
    examination: &Examination<'_>,
    contents: &Contents,
    history: HistoryId,
    entropy: &dyn Entropy,
) -> Result<SetInfo, MigrateError> {
    let backlog = Arc::new(Backlog::default());
    let feed = Feed::new(FeedOptions::default(), Arc::clone(&backlog));
    let options = WriterOptions { expected_bytes: contents.end.len, ..WriterOptions::default() };
    let mut writer = Writer::create(dir, SetId(1), options, &feed)?;
    let spaces = (0..contents.databases_needed()).map(KeyspaceId).collect();
    writer.begin(SetHead { cut: Lsn(0), history, created_ms: examination.now, log_from: None, spaces })?;
    read_again(&feed, &backlog, examination, contents, entropy)?;
    Ok(writer.finish()?)
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
    let (source, len) = Source::open(&**fs, file)?;
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
        while !backlog.has_room_for_walk() && !feed.is_aborted() {
            thread::sleep(WAIT);
        }
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
