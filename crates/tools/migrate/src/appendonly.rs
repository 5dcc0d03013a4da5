//! Append-only files of Redis and Valkey: the commands that changed the data since the last RDB file, which stands
//! before them or in a file of its own.
//!
//! ```text
//! FILE or manifest --read: every command, nothing run--> Parts --play--> store --report--> what is inside
//!                                                                         '--entries--> prdb-* --> MANIFEST
//! ```
//!
//! A value is what all commands about it have made of it, so the data is in memory before it is written: as much as on
//! a server.

mod manifest;
mod play;

use crate::contents::{Contents, Database, Untaken};
use crate::error::MigrateError;
use crate::examine::{Examination, examine_rdb_part};
use crate::room::wait_for_room;
use base::UnixMs;
use base::random::Entropy;
use checkpoint::Feed;
use engine::{Backlog, Engine, Entry, Libraries};
use play::Player;
pub(crate) use play::empty_store;
use rdb::{Item, RdbError, Reader};
use replication::Source;
use replication::record::{Bad, Next, Records};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;
use vfs::{FileKind, FileSystem};

/// What the name of a manifest ends with.
const MANIFEST: &str = ".manifest";

/// Longest manifest: a line for each file.
const MANIFEST_LEN_MAX: u64 = 1 << 20;

/// Remarks by which an RDB part says that commands follow it.
const BEFORE_COMMANDS: [&[u8]; 2] = [b"aof-base", b"aof-preamble"];

/// One of the files of a log.
#[derive(Clone, Debug)]
pub struct Part {
    /// The file.
    pub path: PathBuf,
    /// What its RDB part holds, if it has one.
    pub rdb: Option<Contents>,
    /// Commands after that.
    pub commands: u64,
    /// Bytes of the file that are read.
    pub bytes: u64,
    /// Bytes at its end that are left out: a command, or a transaction, that was not written to its end.
    pub cut_bytes: u64,
    /// When the first and the last commands were written, in seconds, where the file says so.
    pub times: Option<(i64, i64)>,
    /// When the first commands count as written: by the first annotation, or at the latest when the file was changed
    /// last.
    pub begin: UnixMs,
}

/// What a log has come to.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Its files.
    pub parts: Vec<Part>,
    /// What is taken, by database.
    pub databases: BTreeMap<u32, Database>,
    /// Keys whose time has come.
    pub expired: u64,
    /// Libraries of functions.
    pub libraries: Libraries,
    /// What cannot be taken.
    pub untaken: Untaken,
}

/// Whether a path is that of an append-only log: a directory or a manifest, a file of commands, or an RDB file that
/// says of itself that commands follow.
///
/// # Errors
/// When it cannot be read.
pub fn is_append_only(fs: &dyn FileSystem, path: &Path) -> Result<bool, MigrateError> {
    if is_directory(fs, path)? || is_manifest(path) {
        return Ok(true);
    }
    let (mut source, len) = Source::open(fs, path, 0)?;
    let mut first = [0];
    match source.read(&mut first).map_err(|source| read_error(path, 0, source))? {
        0 => return Ok(false),
        _ if matches!(first, [b'*' | b'#']) => return Ok(true),
        _ => {}
    }
    let (source, _) = Source::open(fs, path, 0)?;
    // What is wrong with it is found when all of it is read.
    let Ok(mut reader) = Reader::new(source, Some(len)) else { return Ok(false) };
    while let Ok(Some(Item::Aux { name, value })) = reader.next_item() {
        if BEFORE_COMMANDS.contains(&name.as_slice()) {
            return Ok(value == b"1");
        }
    }
    Ok(false)
}

fn is_directory(fs: &dyn FileSystem, path: &Path) -> Result<bool, MigrateError> {
    Ok(fs.metadata(path)?.kind == FileKind::Dir)
}

fn is_manifest(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(MANIFEST.as_bytes())
}

/// A log in memory.
pub(crate) struct Played {
    pub log: Log,
    store: Store,
    now: UnixMs,
}

/// As [`examine`](crate::examine()), of the append-only log at [`Examination::file`]: all its commands are run, in
/// memory.
///
/// # Errors
/// As there.
pub fn examine_log(examination: &Examination<'_>, entropy: &Arc<dyn Entropy>) -> Result<Log, MigrateError> {
    Ok(play(examination, entropy)?.log)
}

/// Reads and runs all of a log. Writes nothing.
///
/// # Errors
/// All of [`MigrateError`] that concern its files but [`MigrateError::Untaken`], which [`Log::untaken`] returns.
pub(crate) fn play(examination: &Examination<'_>, entropy: &Arc<dyn Entropy>) -> Result<Played, MigrateError> {
    let Examination { fs, file, now, .. } = *examination;
    let files = files(&**fs, file)?;
    let last = files.len().saturating_sub(1);
    let mut parts = Vec::new();
    for (at, path) in files.into_iter().enumerate() {
        parts.push(read(examination, &**entropy, path, at == last)?);
    }

    let mut player = Player::new(Arc::clone(entropy));
    for part in &parts {
        run(&**fs, part, &mut player)?;
    }
    let Player { store, mut untaken, .. } = player;
    parts.iter().filter_map(|part| part.rdb.as_ref()).for_each(|rdb| untaken.add(&rdb.untaken));
    let libraries = (*store.libraries.get()).clone();
    let mut log = Log { parts, untaken, libraries, ..Log::default() };
    each_entry(&store, &mut |db, entry| {
        if entry.is_expired(now) {
            log.expired += 1;
        } else {
            log.databases.entry(db).or_default().count(entry);
        }
    });
    Ok(Played { log, store, now })
}

impl Log {
    /// Keys that are taken.
    pub fn keys(&self) -> u64 {
        self.databases.values().map(Database::keys).sum()
    }

    /// How many databases a server needs for it.
    pub fn databases_needed(&self) -> u32 {
        self.databases.last_key_value().map_or(1, |(db, _)| db.saturating_add(1))
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

impl Played {
    /// What a store has, without a log that it is from.
    pub fn of(store: Store, now: UnixMs) -> Self {
        Self { log: Log::default(), store, now }
    }

    /// Gives all entries that are taken to the feed. Ends early, and well, when the feed was aborted: the writer knows
    /// why.
    pub fn save(&self, feed: &Feed, backlog: &Backlog) {
        let mut sink = feed.sink();
        each_entry(&self.store, &mut |db, entry| {
            if entry.is_expired(self.now) || feed.is_aborted() {
                return;
            }
            sink.save(base::KeyspaceId(db), &Entry { stamp: 0, ..*entry });
            wait_for_room(feed, backlog);
        });
        sink.finish();
    }
}

fn each_entry(store: &Store, visit: &mut dyn FnMut(u32, &Entry<'_>)) {
    for db in 0..store.spaces.count() as u32 {
        let Some(space) = store.spaces.get(base::DbIndex(db)) else { continue };
        let walk = store.each_shard(|shard| {
            let mut from = Some(0);
            while let Some(bound) = from {
                from = shard.engine.survey(space, bound, &mut |entry, _cost| visit(db, entry)).next;
            }
        });
        walk.for_each(drop);
    }
}

/// The files of a log, in the order in which a server loads them.
fn files(fs: &dyn FileSystem, path: &Path) -> Result<Vec<PathBuf>, MigrateError> {
    let manifest = if is_directory(fs, path)? {
        let names = fs.read_dir(path)?.into_iter().map(|entry| path.join(entry.name));
        let mut manifests: Vec<PathBuf> = names.filter(|path| is_manifest(path)).collect();
        match (manifests.pop(), manifests.is_empty()) {
            (Some(manifest), true) => manifest,
            (found, _) => {
                let count = manifests.len() + usize::from(found.is_some());
                return Err(MigrateError::AppendOnlyDirectory { path: path.to_owned(), count });
            }
        }
    } else if is_manifest(path) {
        path.to_owned()
    } else {
        return Ok(vec![path.to_owned()]);
    };
    let mut text = String::new();
    let (source, _) = Source::open(fs, &manifest, 0)?;
    source.take(MANIFEST_LEN_MAX).read_to_string(&mut text).map_err(|source| read_error(&manifest, 0, source))?;
    manifest::parse(&manifest, &text)
}

fn read_error(path: &Path, offset: u64, source: std::io::Error) -> MigrateError {
    MigrateError::File { path: path.to_owned(), keys: 0, error: RdbError::Io { offset, source } }
}

fn refuse(path: &Path, bad: Bad, offset: u64) -> MigrateError {
    match bad {
        Bad::Io(source) => read_error(path, offset, source),
        Bad::Form { offset, expected } => MigrateError::AppendOnly { path: path.to_owned(), offset, expected },
    }
}

/// Reads a file to its last byte. Only the last one of a log may have been cut while it was written.
fn read(
    examination: &Examination<'_>,
    entropy: &dyn Entropy,
    path: PathBuf,
    is_last: bool,
) -> Result<Part, MigrateError> {
    let fs = &**examination.fs;
    let rdb = if begins_with_rdb(fs, &path)? {
        // Nothing expires while a server loads the RDB part of a log.
        let part = Examination { file: &path, now: UnixMs::MIN, ..examination.clone() };
        Some(examine_rdb_part(&part, entropy)?.0)
    } else {
        None
    };
    let begin = rdb.as_ref().map_or(0, |contents| contents.end.len);
    let (source, len) = Source::open(fs, &path, begin)?;
    let mut records = Records::new(source, begin);
    let (mut commands, mut times, mut whole, mut transaction) = (0, None, begin, None);
    loop {
        let offset = records.offset();
        match records.next().map_err(|bad| refuse(&path, bad, offset))? {
            Next::End | Next::Cut => break,
            Next::Time(at) => times = Some((times.map_or(at, |(first, _)| first), at)),
            Next::Annotation => {}
            Next::Command => {
                if records.is_named("multi") {
                    transaction = Some(commands);
                } else if records.is_named("exec") {
                    transaction = None;
                } else {
                    commands += 1;
                }
            }
        }
        if transaction.is_none() {
            whole = records.offset();
        }
    }
    if len > whole && !is_last {
        return Err(MigrateError::AppendOnlyCut { path, offset: whole });
    }
    let commands = transaction.unwrap_or(commands);
    let begin = match times {
        Some((first, _)) => end_of_second(first),
        // Without any time, the commands may be as new as this.
        None => fs.metadata(&path)?.modified_ms.unwrap_or(examination.now),
    };
    Ok(Part { path, rdb, commands, bytes: whole, cut_bytes: len - whole, times, begin })
}

/// The last moment of an annotation's second. Commands after it were written in that second.
fn end_of_second(seconds: i64) -> UnixMs {
    seconds.saturating_mul(1000).saturating_add(999)
}

fn begins_with_rdb(fs: &dyn FileSystem, path: &Path) -> Result<bool, MigrateError> {
    let (source, _) = Source::open(fs, path, 0)?;
    let mut magic = Vec::new();
    source.take(5).read_to_end(&mut magic).map_err(|source| read_error(path, 0, source))?;
    Ok(magic == b"REDIS" || magic == b"VALKE")
}

/// Loads and runs a file that was read.
fn run(fs: &dyn FileSystem, part: &Part, player: &mut Player) -> Result<(), MigrateError> {
    let path = &part.path;
    player.begin_file(part.begin);
    let changed = || MigrateError::Changed { path: path.clone() };
    let mut begin = 0;
    if let Some(contents) = &part.rdb {
        let (source, len) = Source::open(fs, path, 0)?;
        let mut reader = Reader::new(source, Some(len)).map_err(|_| changed())?.keeping_lzf();
        while let Some(item) = reader.next_item().map_err(|_| changed())? {
            match item {
                Item::Entry(entry) => player.load(*entry),
                Item::Function(source) => _ = script::load_library(&player.store, &source),
                _ => {}
            }
        }
        if reader.end() != Some(contents.end) {
            return Err(changed());
        }
        begin = contents.end.len;
    }
    let (source, _) = Source::open(fs, path, begin)?;
    let mut records = Records::new(source, begin);
    while records.offset() < part.bytes {
        let offset = records.offset();
        match records.next().map_err(|_| changed())? {
            Next::Command => {
                let (words, spans) = records.command();
                player.run(words, spans, || format!("offset {offset} of {}", path.display()));
            }
            Next::Time(at) => player.time = end_of_second(at),
            Next::Annotation => {}
            Next::End | Next::Cut => return Err(changed()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
