//! Opening: manifest, tables, log, and a new manifest that makes what was found the state. The mirror of a write.
//!
//! ```text
//!   lock -> CURRENT -> manifest -> tables -> log files -> their memtables -> new log -> new manifest -> clean
//! ```
//!
//! What the log had is flushed like any full memtable, later, and its files stay until then; the new log continues from
//! them. Without a log ([`Wal::Off`]) it becomes tables at once, since nothing would keep the files in order with what
//! follows.
//!
//! Nothing that counted before is removed or changed until the new manifest does, so an open that is cut short anywhere
//! is simply done again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

use parking_lot::{Mutex, RwLock};
use vfs::FileSystem;

use super::begin::{self, Access, Begun};
use super::found::{Files, Found, LogContents, Recovered};
use super::key_spaces::KeySpaces;
use super::lag::Lag;
use super::live::Writer;
use super::write::apply_all;
use super::{Inner, State, identity, table_path, wal_path};
use crate::cache::BlockCache;
use crate::compaction::{self, Choose, OutputSettings, Visibility};
use crate::error::{Error, Result};
use crate::fence;
use crate::key::Seqno;
use crate::key_order::KeyOrder;
use crate::limiter::Limiter;
use crate::log::{self, WalFile};
use crate::memtable::Memtable;
use crate::names::Names;
use crate::options::{Options, Wal};
use crate::spans::span;
use crate::sstable::{Table, TableInfo, missing};
use crate::version::manifest::{self, CURRENT};
use crate::version::{ApplyError, TablePlace, Tree, Version, VersionEdit};

/// What the steps of an open share.
pub(super) struct Opening<'a> {
    pub dir: &'a Path,
    pub options: &'a Options,
    pub chooser: &'a dyn Choose,
    pub cache: &'a Arc<BlockCache>,
    pub found: Found,
    pub next_number: AtomicU64,
}

pub(super) fn open(dir: &Path, options: Options, access: Access) -> Result<Inner> {
    span!("open", dir = tracing::field::display(dir.display()));
    options.check()?;
    let chooser =
        options.policy.chooser(options.memtable_bytes as u64, options.table_bytes).map_err(Error::InvalidArgument)?;
    let fs = options.fs.clone();
    if options.create_if_missing && access == Access::Writing {
        vfs::create_dirs_synced(&*fs, dir)?;
    }
    let lock = begin::lock(&*fs, dir, access)?;
    let files = Files::list(&*fs, dir)?;
    let found = match manifest::current(&*fs, dir)? {
        Some(number) => fold(dir, number, manifest::read(&*fs, dir, number)?)?,
        None => new_database(dir, &options, &files, access)?,
    };
    check_key_order(&options, found.key_order)?;
    let cache = options.cache();
    let next_number = AtomicU64::new(found.next_number.max(files.number_max() + 1));
    let opening = Opening { dir, options: &options, chooser: &*chooser, cache: &cache, found, next_number };
    let mut version = opening.open_tables(Some(&files))?;
    opening.check_complete(&files)?;
    let recovered = opening.replay(&files, &mut version, access)?;
    if access == Access::Writing {
        // Not before everything that the manifest names was found: if its last edit is damaged, these are what that one
        // named.
        opening.remove_orphans(&files);
    }
    let Opening { found, next_number, .. } = opening;

    let names = Names::default();
    let begun = match access {
        Access::ReadingOnly => Begun::nothing(),
        Access::Writing => {
            let (found, recovered, version) = (&found, &recovered, &version);
            let (options, names, next_number) = (&options, &names, &next_number);
            begin::Begin { dir, options, found, recovered, version, names, next_number }.write()?
        }
    };
    if let Some(file) = &begun.manifest.file {
        clean(&*fs, dir, &files, &recovered.logs, file.number);
    }
    let Begun { wal, log_state, before, manifest, halted } = begun;
    let memtable_wal = wal.as_ref().map_or(0, |wal| wal.number);
    let has_unread = version.trees.values().flat_map(|tree| tree.tables()).any(|(_, _, table)| !table.is_read());
    let of_tree = |tree: &Tree| compaction::lag(&*chooser, tree, &[]);
    let lag = Lag::default().after(&Version::default(), &version, of_tree);
    Ok(Inner {
        dir: dir.to_owned(),
        chooser,
        cache,
        database: found.database,
        next_number,
        writer: Mutex::new(Writer {
            wal,
            log_state,
            before,
            next_seqno: recovered.last_seqno + 1,
            last_lsn: 0,
            old_wals: recovered.logs,
            dropping: BTreeSet::new(),
        }),
        syncing: Mutex::new(()),
        state: RwLock::new(Arc::new(State {
            memtable: Arc::new(Memtable::new(memtable_wal)),
            immutables: recovered.memtables,
            version: Arc::new(version),
            lag,
            spaces: found.key_spaces.options().clone(),
        })),
        spare_wal: Mutex::new(None),
        visible: AtomicU64::new(recovered.last_seqno),
        views: Mutex::default(),
        manifest: Mutex::new(manifest),
        key_spaces: RwLock::new(found.key_spaces),
        next_key_space: AtomicU32::new(found.next_key_space),
        key_order: found.key_order,
        making_key_space: Mutex::new(()),
        flushing: Mutex::new(()),
        next_merged: AtomicU32::new(0),
        merging: Default::default(),
        names,
        halted: RwLock::new(halted),
        trouble: Mutex::new(None),
        recovered_lsn: recovered.lsn,
        flushed_lsn: AtomicU64::new(recovered.flushed_lsn),
        counters: Default::default(),
        bell: Arc::default(),
        has_unread,
        limiter: Limiter::new(options.merge_bytes_per_second),
        delay_owed_ns: AtomicI64::new(0),
        is_closing: false.into(),
        options,
        _lock: lock,
    })
}

fn check_key_order(options: &Options, found: KeyOrder) -> Result<()> {
    let wrong = |what: &str| Err(Error::InvalidArgument(what.into()));
    match found {
        order if order == options.policy.key_order() => Ok(()),
        KeyOrder::Hash => wrong("the database keeps its keys by their hashes, which only Policy::Trie does"),
        KeyOrder::Bytes => wrong("Policy::Trie needs a database that was made for it"),
    }
}

fn new_database(dir: &Path, options: &Options, files: &Files, access: Access) -> Result<Found> {
    if let Some(table) = files.tables.first() {
        let what = format!("the file is missing, and table {table} is there");
        return Err(Error::corruption(&dir.join(CURRENT), 0, what));
    }
    if !options.create_if_missing || access == Access::ReadingOnly {
        return Err(Error::InvalidArgument(format!("{} holds no database", dir.display())));
    }
    let database = options.rng().next_u64();
    let mut key_spaces = KeySpaces::default();
    key_spaces.add(0, b"default".to_vec());
    let key_order = options.policy.key_order();
    Ok(Found { database, next_number: 1, key_spaces, next_key_space: 1, key_order, ..Found::default() })
}

pub(super) fn fold(dir: &Path, number: u64, edits: Vec<VersionEdit>) -> Result<Found> {
    let wrong = |what: String| Error::corruption(&manifest::path(dir, number), 0, what);
    let mut found = Found::default();
    for edit in edits {
        found.note_key_spaces(&edit);
        found.database = edit.database.unwrap_or(found.database);
        found.next_number = edit.next_number.unwrap_or(0).max(found.next_number);
        found.last_seqno = edit.last_seqno.unwrap_or(0).max(found.last_seqno);
        found.wal = edit.wal.unwrap_or(found.wal);
        found.flushed_lsn = edit.flushed_lsn.unwrap_or(0).max(found.flushed_lsn);
        found.note_key_order(edit.key_order);
        for place in edit.removed {
            let gone = found.tables.remove(&place.number);
            if gone.is_none_or(|(there, _)| there != place) {
                return Err(wrong(format!("an edit removes table {}, which is not there", place.number)));
            }
        }
        for (place, info) in edit.added {
            if found.tables.insert(place.number, (place, info)).is_some() {
                return Err(wrong(format!("an edit adds table {} again", place.number)));
            }
        }
    }
    Ok(found)
}

/// The error of a manifest that lacks edits at its end; `None` where there is no sign of that.
pub(super) fn edits_missing(
    fs: &dyn FileSystem,
    dir: &Path,
    number: u64,
    found: &Found,
    files: &Files,
) -> Result<Option<Error>> {
    let newer = files.tables.iter().copied().filter(|table| *table >= found.next_number);
    let Some(table) = newer.into_iter().find(|table| Table::read_info(fs, &table_path(dir, *table)).is_ok()) else {
        return Ok(None);
    };
    let Some(offset) = manifest::ends_unmarked_at(fs, dir, number)? else { return Ok(None) };
    let what = format!(
        "version edits are missing at the end, since table {table} is newer than all of them; `plex repair` makes a \
         database of all tables"
    );
    Ok(Some(Error::corruption(&manifest::path(dir, number), offset, what)))
}

impl Opening<'_> {
    /// Looks whether edits are missing at the manifest's end.
    ///
    /// # Errors
    /// Corruption: the manifest ends without a mark, and a whole table is newer than all that it says.
    pub fn check_complete(&self, files: &Files) -> Result<()> {
        // What an open without a log makes of an earlier log are tables that no manifest names yet.
        if self.options.wal == Wal::Off && self.found.wal.1 {
            return Ok(());
        }
        let Some(number) = manifest::current(&*self.options.fs, self.dir)? else { return Ok(()) };
        match edits_missing(&*self.options.fs, self.dir, number, &self.found, files)? {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Tables that no durable manifest ever named: their numbers may be used again.
    fn remove_orphans(&self, files: &Files) {
        for number in files.tables.iter().filter(|number| !self.found.tables.contains_key(number)) {
            // Not needed for anything: if it stays, the next open tries again.
            let _ = self.options.fs.remove_file(&table_path(self.dir, *number));
        }
    }

    pub fn open_table(&self, number: u64, info: &TableInfo) -> Result<Arc<Table>> {
        let path = table_path(self.dir, number);
        match Table::open(&self.options.fs, self.cache, path.clone(), number, info.clone(), self.options.table_reads())
        {
            Ok(table) => Ok(Arc::new(table)),
            Err(Error::Fs(error)) if error.is_not_found() => Err(missing(&path)),
            Err(error) => Err(error),
        }
    }

    /// The tables of a database that has more than an open reads ([`Options::tables_read_at_open`]); but none may be
    /// missing.
    fn note_table(&self, number: u64, info: &TableInfo, files: &BTreeSet<u64>) -> Result<Arc<Table>> {
        let path = table_path(self.dir, number);
        if !files.contains(&number) {
            return Err(missing(&path));
        }
        match Table::unread(&self.options.fs, self.cache, path, number, info, self.options.table_reads()) {
            Some(table) => Ok(Arc::new(table)),
            None => self.open_table(number, info),
        }
    }

    /// All tables. With the files of the directory, some of them are not read yet.
    pub fn open_tables(&self, files: Option<&Files>) -> Result<Version> {
        // In the order in which a version has them, so that none is searched for its place.
        let rank = |table| {
            let (TablePlace { key_space, level, run, .. }, info): &(TablePlace, TableInfo) = table;
            ((*key_space, *level, *run, fence::leading(&info.smallest)), table)
        };
        let mut tables: Vec<_> = self.found.tables.values().map(rank).collect();
        tables.sort_unstable_by(|(a, (_, a_info)), (b, (_, b_info))| {
            a.cmp(b).then_with(|| a_info.smallest.cmp(&b_info.smallest))
        });
        let tables = tables.into_iter().map(|(_, table)| table);
        let is_large = tables.len() > self.options.tables_read_at_open && self.chooser.does_without_ends();
        let version = match files.filter(|_| is_large) {
            Some(files) => {
                let there: BTreeSet<u64> = files.tables.iter().copied().collect();
                Version::of(tables, |number, info| self.note_table(number, info, &there))
            }
            None => Version::of(tables, |number, info| self.open_table(number, info)),
        };
        version.map_err(|error| self.unfit(error))
    }

    fn next_version(&self, version: &Version, edit: &VersionEdit) -> Result<Version> {
        let applied = version.apply(edit, |number, info| self.open_table(number, info));
        applied.map(|(next, _)| next).map_err(|error| self.unfit(error))
    }

    fn unfit(&self, error: ApplyError) -> Error {
        match error {
            ApplyError::Table(error) => error,
            other => Error::corruption(&self.dir.join(CURRENT), 0, other.to_string()),
        }
    }

    /// Brings what the log has beyond the tables into memory, or without a log into tables: a run per log file.
    fn replay(&self, files: &Files, version: &mut Version, access: Access) -> Result<Recovered> {
        span!("recover", log_files = files.wals.len());
        let mut contents = LogContents::default();
        self.read_logs(&self.needed_logs(files)?, &mut contents)?;
        let last_seqno = contents.last_seqno.max(self.last_seqno(version));
        let mut flushed_lsn = self.found.flushed_lsn;
        if self.options.wal == Wal::Off && access == Access::Writing {
            flushed_lsn = self.flush_logs(&contents, version, last_seqno)?;
            contents = LogContents::default();
        }
        let LogContents { memtables, files: mut logs, .. } = contents;
        // A file without batches before or after all others is not needed.
        let numbers = memtables.first().zip(memtables.last()).map(|(first, last)| first.0..=last.0);
        logs.retain(|(number, _)| numbers.as_ref().is_some_and(|numbers| numbers.contains(number)));
        let memtables: Vec<Arc<Memtable>> = memtables.into_iter().rev().map(|(_, memtable)| memtable).collect();
        let lsn = memtables.iter().map(|memtable| memtable.lsn()).chain([flushed_lsn]).max().unwrap_or(0);
        Ok(Recovered { last_seqno, lsn, flushed_lsn, memtables, logs })
    }

    /// The log files that hold what tables do not.
    ///
    /// # Errors
    /// Corruption, if the first of them is missing.
    pub fn needed_logs(&self, files: &Files) -> Result<Vec<WalFile>> {
        let (first, is_there) = self.found.wal;
        if is_there && !files.wals.contains(&first) {
            let what = "the log file that the manifest names is missing; what it held is lost";
            return Err(Error::corruption(&wal_path(self.dir, first), 0, what));
        }
        let needed = files.wals.iter().filter(|number| is_there && **number >= first);
        let file = |&number: &u64| WalFile {
            number,
            identity: Some(identity(self.found.database, number)),
            path: wal_path(self.dir, number),
        };
        Ok(needed.map(file).collect())
    }

    /// Reads log files into memory. After an error, `contents` has what came before the damage.
    pub fn read_logs(&self, logs: &[WalFile], contents: &mut LogContents) -> Result<()> {
        // A log from before a key space was dropped may still be needed for others.
        let is_known = |space| space < self.found.next_key_space;
        contents.files = log::replay(&*self.options.fs, logs, is_known, |number, portion| {
            if contents.memtables.last().is_none_or(|(n, _)| *n != number) {
                contents.memtables.push((number, Arc::new(Memtable::new(number))));
            }
            if let (Some((_, memtable)), Some((_, last, _))) = (contents.memtables.last(), portion.changes.last()) {
                contents.last_seqno = contents.last_seqno.max(*last);
                apply_all(memtable, portion);
            }
        })?;
        Ok(())
    }

    /// The largest sequence number of the tables.
    pub fn last_seqno(&self, version: &Version) -> Seqno {
        let tables = version.trees.values().flat_map(|tree| tree.tables());
        tables.map(|(_, _, table)| table.seqno_max()).max().unwrap_or(0).max(self.found.last_seqno)
    }

    /// Makes a run of each log file; the position of the external log that is reached.
    pub fn flush_logs(&self, contents: &LogContents, version: &mut Version, last_seqno: Seqno) -> Result<u64> {
        let mut lsn = self.found.flushed_lsn;
        for (_, memtable) in &contents.memtables {
            let edit = self.flush(memtable, version, last_seqno)?;
            *version = self.next_version(version, &edit)?;
            lsn = lsn.max(memtable.lsn());
        }
        Ok(lsn)
    }

    pub fn number(&self) -> u64 {
        self.next_number.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    /// Number, identity and path of a table to be written.
    pub fn next_table(&self) -> (u64, u64, PathBuf) {
        let number = self.number();
        (number, identity(self.found.database, number), table_path(self.dir, number))
    }

    /// How tables are written.
    pub fn output_settings<'b>(
        &'b self,
        next_table: &'b (dyn Fn() -> (u64, u64, PathBuf) + Sync),
    ) -> OutputSettings<'b> {
        OutputSettings {
            fs: &*self.options.fs,
            options: self.options,
            table_bytes: self.options.table_bytes,
            filter: None,
            spaces: self.found.key_spaces.options().clone(),
            now_ms: self.options.clock.now_ms(),
            key_order: self.found.key_order,
            limiter: None,
            next_table,
            unsynced: None,
            parts_max: 1,
            has_threads: false,
        }
    }

    fn flush(&self, memtable: &Arc<Memtable>, version: &Version, last_seqno: Seqno) -> Result<VersionEdit> {
        let next_table = || self.next_table();
        let settings = self.output_settings(&next_table);
        let visibility = Visibility { views: vec![last_seqno], watched: 0 };
        let mut edit = VersionEdit::default();
        let is_there = |space: &u32| self.found.key_spaces.has(*space);
        for space in memtable.key_spaces().into_iter().filter(is_there) {
            let shape = self.chooser.flush_shape(version.tree(space).map_or(&Tree::default(), |tree| &**tree));
            let one = compaction::flush(&settings, &visibility, memtable, space, self.number(), &shape)?;
            edit.added.extend(one.edit.added);
        }
        Ok(edit)
    }
}

/// Removes the files of before that the new manifest does not need. What stays is removed by the next open.
fn clean(fs: &dyn FileSystem, dir: &Path, files: &Files, logs: &[(u64, u64)], manifest_number: u64) {
    for number in files.wals.iter().filter(|number| logs.iter().all(|(kept, _)| kept != *number)) {
        let _ = fs.remove_file(&wal_path(dir, *number));
    }
    for number in files.manifests.iter().filter(|number| **number != manifest_number) {
        let _ = fs.remove_file(&manifest::path(dir, *number));
    }
}
