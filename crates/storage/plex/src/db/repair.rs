//! Making a damaged database one that opens, with everything that still verifies.
//!
//! ```text
//!   manifest whole:    tables keep their places, damaged ones are left out
//!   manifest damaged:  all sound tables and logs are merged by sequence numbers into one new run
//!                 \
//!                  logs up to the first damage -> tables -> new manifest -> damaged files go to `lost/`
//! ```
//!
//! R1. Until the new manifest counts, nothing of before is changed, so a repair that is cut short is simply done again.
//! R2. No file with damage is removed: it is moved into the directory `lost`.
//! R3. Without its place, no table is said to be newer than another one: sequence numbers alone decide, entry by entry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use vfs::FileSystem;

use super::check::{Damages, read_manifest};
use super::found::{Files, Found, LogContents};
use super::recover::{self, Opening};
use super::{identity, table_path, wal_path};
use crate::cache::Fill;
use crate::compaction::{self, Visibility};
use crate::error::{Error, Result};
use crate::iter::Source;
use crate::key::{SEQNO_MAX, Seqno};
use crate::key_order::KeyOrder;
use crate::log::WalFile;
use crate::memtable::{Memtable, MemtableCursor};
use crate::options::Options;
use crate::sstable::Table;
use crate::version::manifest::{self, Manifest};
use crate::version::{Run, Version, VersionEdit};

/// Where damaged files go, inside of the database's directory.
const LOST: &str = "lost";

/// What a repair has found and made.
#[derive(Debug)]
#[non_exhaustive]
pub struct Repair {
    /// Everything damaged or missing, with file and offset, and what is lost by it.
    pub losses: Vec<Error>,
    /// The manifest was damaged, and all tables were merged into new ones. Deleted keys may be back that only tables
    /// already merged into others still held, and what was in key spaces whose names are lost is in the default one;
    /// if these had a time to live, values there end with the 8 bytes of their time.
    pub is_rebuilt: bool,
    /// Tables of the database now.
    pub tables: usize,
    /// Their entries, older versions and tombstones included.
    pub entries: u64,
}

/// Makes the closed database in this directory one that opens. Damaged tables are left out, so that their keys are gone
/// or show older values; of the log, everything after the first damage is lost. A sound database keeps its contents.
///
/// # Errors
/// [`vfs::FsError::Locked`] if it is open; a newer format; a file that cannot be read; a directory without any table,
/// log or manifest.
pub fn repair(dir: impl AsRef<Path>, options: &Options) -> Result<Repair> {
    let (dir, fs) = (dir.as_ref(), &options.fs);
    options.check()?;
    let chooser =
        options.policy.chooser(options.memtable_bytes as u64, options.table_bytes).map_err(Error::InvalidArgument)?;
    let _lock = fs.try_lock(&dir.join("LOCK"))?;
    let files = Files::list(&**fs, dir)?;
    if files.number_max() == 0 {
        return Err(Error::InvalidArgument(format!("{} holds no database", dir.display())));
    }
    let mut damages = Damages::default();
    let (found, places) = salvage_manifest(options, dir, &files, &mut damages)?;
    let next_number = AtomicU64::new(found.next_number.max(files.number_max() + 1));
    let cache = options.cache();
    let opening = Opening { dir, options, chooser: &*chooser, cache: &cache, found, next_number };
    let mut work = Work { opening, files, damages, aside: Vec::new() };
    let (version, last_seqno, lsn) = match places {
        Places::Known => work.keep()?,
        Places::Unknown => work.rebuild()?,
    };
    work.make_count(&version, last_seqno, lsn)?;
    let tables = || version.trees.values().flat_map(|tree| tree.tables());
    Ok(Repair {
        losses: work.damages.0,
        is_rebuilt: places == Places::Unknown,
        tables: tables().count(),
        entries: tables().map(|(_, _, table)| table.info.entry_count).sum(),
    })
}

/// Whether the manifest says where every table stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    Known,
    Unknown,
}

/// What the manifest still says.
fn salvage_manifest(options: &Options, dir: &Path, files: &Files, damages: &mut Damages) -> Result<(Found, Places)> {
    let fs = &*options.fs;
    if let Some(found) = damages.note(read_manifest(options, dir))? {
        let number = manifest::current(fs, dir)?.unwrap_or_default();
        let places = trust(fs, dir, number, &found, files, damages)?;
        return Ok((found, places));
    }
    let mut numbers = files.manifests.clone();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    let mut found = Found::default();
    if let Some(named) = damages_aside(manifest::current(fs, dir))?.flatten() {
        // One that is missing leaves an older one, if there is any; that one knows the key spaces and few of the
        // tables.
        let number = numbers.iter().find(|number| **number <= named);
        if let Some(&number) = number {
            found = add_up(manifest::salvage(fs, dir, number)?);
        }
    } else {
        // Nothing says which manifest counts: it is the newest that is complete enough to have been named.
        for number in numbers {
            let strict = manifest::read(fs, dir, number).and_then(|edits| recover::fold(dir, number, edits));
            if let Some(whole) = damages.note(strict)? {
                let places = trust(fs, dir, number, &whole, files, damages)?;
                return Ok((whole, places));
            }
            found = add_up(manifest::salvage(fs, dir, number)?);
            if found.database != 0 {
                break;
            }
        }
    }
    if found.database == 0 {
        found.database = options.rng().next_u64();
    }
    found.key_spaces.add(0, b"default".to_vec());
    found.next_key_space = found.next_key_space.max(1);
    Ok((found, Places::Unknown))
}

/// Whether the edits of a manifest are the last word. Damage in the last one looks like an edit that was never
/// finished, but then nothing that the edits before it need is gone.
fn trust(
    fs: &dyn FileSystem,
    dir: &Path,
    number: u64,
    found: &Found,
    files: &Files,
    damages: &mut Damages,
) -> Result<Places> {
    if let Some(error) = recover::edits_missing(fs, dir, number, found, files)? {
        damages.0.push(error);
        return Ok(Places::Unknown);
    }
    let (log, has_log) = found.wal;
    let is_complete =
        found.tables.keys().all(|table| files.tables.contains(table)) && (!has_log || files.wals.contains(&log));
    let Some(offset) = manifest::torn_at(fs, dir, number)?.filter(|_| !is_complete) else {
        return Ok(Places::Known);
    };
    let what = "damage in the last version edit, since files that the edits before it need are gone";
    damages.0.push(Error::corruption(&manifest::path(dir, number), offset, what));
    Ok(Places::Unknown)
}

/// Like [`Damages::note`], for damage that was noted before.
fn damages_aside<T>(result: Result<T>) -> Result<Option<T>> {
    Damages::default().note(result)
}

/// Adds up edits of which some are missing.
fn add_up(edits: Vec<VersionEdit>) -> Found {
    let mut found = Found::default();
    for edit in edits {
        found.note_key_spaces(&edit);
        found.database = edit.database.unwrap_or(found.database);
        found.next_number = edit.next_number.unwrap_or(0).max(found.next_number);
        found.last_seqno = edit.last_seqno.unwrap_or(0).max(found.last_seqno);
        found.wal = edit.wal.unwrap_or(found.wal).max(found.wal);
        found.flushed_lsn = edit.flushed_lsn.unwrap_or(0).max(found.flushed_lsn);
        found.note_key_order(edit.key_order);
        for place in edit.removed {
            found.tables.remove(&place.number);
        }
        found.tables.extend(edit.added.into_iter().map(|(place, info)| (place.number, (place, info))));
    }
    found
}

/// A repair under way.
struct Work<'a> {
    opening: Opening<'a>,
    files: Files,
    damages: Damages,
    /// Files that go to `lost` in the end.
    aside: Vec<PathBuf>,
}

impl Work<'_> {
    /// Leaves damaged tables out and everything else where it is. The version, its last sequence number and position of
    /// the external log.
    fn keep(&mut self) -> Result<(Version, Seqno, u64)> {
        for (number, (_, info)) in self.opening.found.tables.clone() {
            let verified = self.opening.open_table(number, &info).and_then(|table| table.verify());
            let verified = verified.map_err(|error| match error {
                Error::Corruption { path, offset, what } => {
                    let (count, first, last) = (info.entry_count, text(&info.smallest), text(&info.largest));
                    let what = format!("{what}; the table's {count} entries, from {first} to {last}, are left out");
                    Error::Corruption { path, offset, what }
                }
                other => other,
            });
            if self.damages.note(verified)?.is_none() {
                self.opening.found.tables.remove(&number);
                self.aside.push(table_path(self.opening.dir, number));
            }
        }
        let mut version = self.opening.open_tables(None)?;
        let needed = self.opening.needed_logs(&self.files);
        let (first, _) = self.opening.found.wal;
        let logs = match self.damages.note(needed)? {
            Some(logs) => logs,
            None => {
                // What comes after the missing file builds on it.
                let later = self.files.wals.iter().filter(|number| **number > first);
                self.aside.extend(later.map(|number| wal_path(self.opening.dir, *number)));
                Vec::new()
            }
        };
        let contents = self.read_logs(&logs)?;
        let last_seqno = contents.last_seqno.max(self.opening.last_seqno(&version));
        let lsn = self.opening.flush_logs(&contents, &mut version, last_seqno)?;
        Ok((version, last_seqno, lsn))
    }

    /// Reads logs up to the first damage.
    fn read_logs(&mut self, logs: &[WalFile]) -> Result<LogContents> {
        let mut contents = LogContents::default();
        let read = self.opening.read_logs(logs, &mut contents);
        if self.damages.note(read)?.is_none() {
            let damaged = self.damages.0.last().and_then(|damage| match damage {
                Error::Corruption { path, .. } => logs.iter().position(|log| log.path == *path),
                _ => None,
            });
            self.aside.extend(logs[damaged.unwrap_or(0)..].iter().map(|log| log.path.clone()));
        }
        Ok(contents)
    }

    /// Merges everything that verifies into a new run per key space (R3).
    fn rebuild(&mut self) -> Result<(Version, Seqno, u64)> {
        let (dir, fs) = (self.opening.dir, &self.opening.options.fs);
        let mut tables: BTreeMap<u32, Vec<Arc<Table>>> = BTreeMap::new();
        for &number in &self.files.tables {
            let path = table_path(dir, number);
            // Only the manifest knows it; without, what was taken in as it was is older than all else.
            let given_seqno = self.opening.found.tables.get(&number).map_or(0, |(_, info)| info.given_seqno);
            let opened = Table::open_unnamed(fs, self.opening.cache, path.clone(), number, given_seqno);
            match self.damages.note(opened.and_then(|table| table.verify().map(|()| table)))? {
                Some(table) => {
                    let space = self.opening.found.tables.get(&number).map_or(0, |(place, _)| place.key_space);
                    tables.entry(space).or_default().push(table);
                }
                None => self.aside.push(path),
            }
        }
        for number in self.opening.found.tables.keys().filter(|number| !self.files.tables.contains(number)) {
            let what = "a table that the manifest names is missing: merged into others since, or lost";
            self.damages.0.push(Error::corruption(&table_path(dir, *number), 0, what));
        }
        let contents = self.read_all_logs()?;
        let table_key = tables.values().flatten().find(|table| table.info.entry_count > 0);
        let table_key = table_key.map(|table| table.info.smallest.clone());
        let first_key = table_key.or_else(|| contents.memtables.iter().find_map(|(_, memtable)| first_key(memtable)));
        self.opening.found.note_key_order(first_key.map_or(KeyOrder::Bytes, |key| KeyOrder::of(&key)));
        let spaces: std::collections::BTreeSet<u32> =
            tables.keys().copied().chain(contents.memtables.iter().flat_map(|(_, m)| m.key_spaces())).collect();
        let mut edit = VersionEdit::default();
        for space in spaces {
            let mut newest_first = tables.remove(&space).unwrap_or_default();
            newest_first.sort_unstable_by_key(|table| std::cmp::Reverse(table.number));
            let (mut sources, mut ranges) = (Vec::new(), Vec::new());
            for (_, memtable) in contents.memtables.iter().rev() {
                sources.push(Source::Memtable(MemtableCursor::new(memtable.clone(), space)));
                ranges.extend(memtable.range_tombstones(space));
            }
            for table in newest_first {
                ranges.extend(table.ranges().iter().cloned());
                sources.push(Source::run(Arc::new(Run::new(table.number, vec![table])), Fill::Pass));
            }
            let next_table = || self.opening.next_table();
            let settings = self.opening.output_settings(&next_table);
            let visibility = Visibility { views: vec![SEQNO_MAX], watched: 0 };
            let run = self.opening.number();
            edit.added.extend(compaction::rebuild(&settings, &visibility, sources, &ranges, space, run)?.edit.added);
        }
        self.opening.found.tables = edit.added.into_iter().map(|(place, info)| (place.number, (place, info))).collect();
        let version = self.opening.open_tables(None)?;
        let last_seqno = contents.last_seqno.max(self.opening.last_seqno(&version));
        let lsn = contents.memtables.iter().map(|(_, memtable)| memtable.lsn());
        Ok((version, last_seqno, lsn.chain([self.opening.found.flushed_lsn]).max().unwrap_or(0)))
    }

    /// Reads the logs that may be needed, each as far as it goes; key spaces whose names are lost get new ones.
    fn read_all_logs(&mut self) -> Result<LogContents> {
        let (first, _) = self.opening.found.wal;
        let needed = self.files.wals.iter().filter(|number| **number >= first);
        let paths: Vec<PathBuf> = needed.clone().map(|number| wal_path(self.opening.dir, *number)).collect();
        for path in &paths {
            let seen = crate::log::read_file(&*self.opening.options.fs, path, |_, batch| {
                for (space, _) in batch.iter().flat_map(|(_, batch)| batch.changes()) {
                    if !self.opening.found.key_spaces.has(space) {
                        self.opening.found.key_spaces.add(space, format!("lost-{space}").into_bytes());
                        let next = &mut self.opening.found.next_key_space;
                        *next = (*next).max(space.saturating_add(1));
                    }
                }
            });
            // What is wrong with it, the reading that counts notes.
            damages_aside(seen)?;
        }
        // Only the file itself knows its identity, the number it was made from being lost with the manifest.
        let logs: Vec<WalFile> =
            needed.zip(paths).map(|(&number, path)| WalFile { number, identity: None, path }).collect();
        self.read_logs(&logs)
    }

    /// Writes a manifest of this version, and moves aside what it does not name.
    fn make_count(&self, version: &Version, last_seqno: Seqno, lsn: u64) -> Result<()> {
        let Opening { dir, options, found, .. } = &self.opening;
        let (wal, number) = (self.opening.number(), self.opening.number());
        let whole = VersionEdit {
            database: Some(found.database),
            next_number: Some(self.opening.number()),
            last_seqno: Some(last_seqno),
            wal: Some((wal, false)),
            flushed_lsn: Some(lsn),
            key_spaces: found.key_spaces.as_made(),
            key_space_options: found.key_spaces.options_as_set(),
            next_key_space: Some(found.next_key_space),
            key_order: found.key_order,
            ..version.as_edit()
        };
        let fs = &*options.fs;
        Manifest::create(fs, dir, number, identity(found.database, number), &whole)?;
        set_aside(fs, dir, &self.aside)
    }
}

/// Moves files into `lost`; one that is not there stays away.
fn set_aside(fs: &dyn FileSystem, dir: &Path, files: &[PathBuf]) -> Result<()> {
    let lost = dir.join(LOST);
    for path in files {
        let Some(name) = path.file_name().filter(|_| fs.exists(path).unwrap_or(false)) else { continue };
        vfs::create_dirs_synced(fs, &lost)?;
        fs.rename(path, &lost.join(name))?;
        fs.sync_dir(&lost)?;
    }
    Ok(fs.sync_dir(dir)?)
}

/// A key of the memtable, if it has any.
fn first_key(memtable: &Arc<Memtable>) -> Option<Vec<u8>> {
    memtable.key_spaces().into_iter().find_map(|space| {
        let mut cursor = MemtableCursor::new(memtable.clone(), space);
        cursor.seek_to_first();
        cursor.valid().then(|| cursor.key().to_vec())
    })
}

/// A key for people.
fn text(key: &[u8]) -> String {
    format!("\"{}\"", key.escape_ascii())
}
