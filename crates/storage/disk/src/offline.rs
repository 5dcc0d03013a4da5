//! Rows that no server has open: the copies that belong to checkpoints, and the rows of a stopped server.
//!
//! ```text
//! server: lsm --Disk::copy_to (hard links)--> lsm-<set>          a checkpoint
//! tools:  lsm-<set> --copy--> NEW/lsm-<set> --copy--> NEW/lsm    a backup or a restore
//! ```
//!
//! O1. No program writes into a copy, so its tables can be shared by hard links, and a copy of its other files is
//!     whole.
//! O2. A table's name is never used again for other contents, in a copy or in its original.

use crate::leaves::{self, Leaves};
use crate::{DiskError, long_keys, parts};
use base::{KeyspaceId, Lsn};
use engine::Row;
use plex::{Background, Db, IterOptions, KeySpaceId, Options, Wal};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use vfs::FileSystem;

/// What the names of tables end with.
const TABLE_SUFFIX: &str = ".sst";

/// The lock file of a tree, which is no part of it.
const LOCK: &str = "LOCK";

/// What a directory of rows holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The position of the log up to which it has all changes.
    pub lsn: Lsn,
    /// The keyspaces, ascending.
    pub spaces: Vec<KeyspaceId>,
    /// Bytes of its tables.
    pub bytes: u64,
    /// Parts that no row has. They take space, and nothing else is wrong with them.
    pub unused_parts: u64,
}

/// Opens rows for reading alone. Nothing is written but a lock file.
fn open(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<Db, DiskError> {
    let tree = Options::new().file_system(fs.clone()).wal(Wal::Off).background(Background::Manual);
    Ok(tree.mapped_reads(false).open_read_only(dir)?)
}

/// The key spaces of keyspaces: of short keys, of long ones, of the parts of rows, and of leaves.
fn spaces_of(db: &Db) -> BTreeMap<KeyspaceId, [Option<KeySpaceId>; 4]> {
    let mut spaces: BTreeMap<_, [Option<KeySpaceId>; 4]> = BTreeMap::new();
    for (name, id) in db.key_spaces() {
        let parsed = name.split_at_checked(1).and_then(|(kind, number)| Some((kind, number.parse().ok()?)));
        match parsed {
            Some(("e", number)) => spaces.entry(KeyspaceId(number)).or_default()[0] = Some(id),
            Some(("l", number)) => spaces.entry(KeyspaceId(number)).or_default()[1] = Some(id),
            Some(("n", number)) => spaces.entry(KeyspaceId(number)).or_default()[2] = Some(id),
            Some(("p", number)) => spaces.entry(KeyspaceId(number)).or_default()[3] = Some(id),
            _ => {}
        }
    }
    spaces
}

/// What is in a directory of rows, from its manifest alone.
///
/// # Errors
/// There are none, or they cannot be opened.
pub fn look(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<Found, DiskError> {
    let db = open(fs, dir)?;
    let spaces = spaces_of(&db).into_keys().collect();
    Ok(Found { lsn: Lsn(db.recovered_lsn()), spaces, bytes: db.stats().table_bytes, unused_parts: 0 })
}

/// Reads all tables whole, verifies every checksum, and gives every row. `see` gets the keyspace, the key and the row.
///
/// # Errors
/// The first damage, or a row that is none.
pub fn verify(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    see: &mut dyn FnMut(KeyspaceId, &[u8], Row<'_>),
) -> Result<Found, DiskError> {
    let db = open(fs, dir)?;
    db.verify()?;
    let (all, view, mut unused_parts) = (spaces_of(&db), db.view(), 0_u64);
    for (space, [short, long, parts, leaves]) in &all {
        let leaves = leaves.map(|leaves| (leaves, Leaves::to_be_read(&db, leaves, *space)));
        let (mut used, mut used_leaves) = (0, BTreeSet::new());
        let mut each = |key: &[u8], row: &[u8]| -> Result<(), DiskError> {
            let read = Row::read(row).map_err(|source| DiskError::row(key, source))?;
            match &leaves {
                Some((_, leaves)) if read.has_addresses => {
                    used_leaves.append(&mut leaves::numbers(&read));
                    let whole = leaves.whole(key, &read)?;
                    see(*space, key, Row::read(&whole).map_err(|source| DiskError::row(key, source))?);
                }
                _ => see(*space, key, read),
            }
            Ok(())
        };
        for (tree, is_long) in [(short, false), (long, true)] {
            let Some(tree) = tree else { continue };
            for pair in db.iter_in(*tree, IterOptions::range::<'static>(..))? {
                let (key, row) = pair?;
                if parts::is_parted(&row) && !is_long {
                    if let Some((row, count)) = parts::whole(&view, (*tree, *parts), &key, true)? {
                        each(&key, &row)?;
                        used += count as u64;
                    }
                    continue;
                }
                if !is_long {
                    each(&key, &row)?;
                    continue;
                }
                for (key, row) in long_keys::pairs(&row).ok_or(DiskError::LongKeys)? {
                    each(key, row)?;
                }
            }
        }
        if let Some((leaves, _)) = leaves {
            for pair in db.iter_in(leaves, IterOptions::range::<'static>(..))? {
                pair?;
                unused_parts += 1;
            }
            unused_parts = unused_parts.saturating_sub(used_leaves.len() as u64);
        }
        let Some(parts) = parts else { continue };
        for pair in db.iter_in(*parts, IterOptions::range::<'static>(..))? {
            pair?;
            unused_parts += 1;
        }
        unused_parts = unused_parts.saturating_sub(used);
    }
    let spaces = all.into_keys().collect();
    Ok(Found { lsn: Lsn(db.recovered_lsn()), spaces, bytes: db.stats().table_bytes, unused_parts })
}

/// What a copy has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Tables.
    pub tables: u64,
    /// Those that share their bytes with the original.
    pub linked: u64,
    /// Bytes of all tables.
    pub bytes: u64,
}

/// Copies rows that no program writes to a directory, which is empty or missing; tables by hard links, if asked for
/// and possible. Durable when it returns.
///
/// # Errors
/// The operating system's error: then the target holds no rows.
pub fn copy(fs: &Arc<dyn FileSystem>, from: &Path, into: &Path, links: bool) -> Result<Copied, DiskError> {
    let mut copied = Copied::default();
    vfs::create_dirs_synced(&**fs, into)?;
    // What makes them count comes last.
    let (tables, others): (Vec<_>, Vec<_>) = fs
        .read_dir(from)?
        .into_iter()
        .map(|entry| entry.name)
        .filter(|name| name != LOCK)
        .partition(|name| name.to_string_lossy().ends_with(TABLE_SUFFIX));
    for name in tables {
        let (from, to) = (from.join(&name), into.join(&name));
        let is_linked = vfs::link_or_copy(&**fs, &from, &to, links)?;
        copied.tables += 1;
        copied.linked += u64::from(is_linked);
        copied.bytes += fs.metadata(&to)?.len;
    }
    fs.sync_dir(into)?;
    for name in others {
        vfs::copy_file(&**fs, &from.join(&name), &into.join(&name))?;
    }
    fs.sync_dir(into)?;
    Ok(copied)
}

/// Makes rows of these keyspaces that are empty at a position of the log.
///
/// # Errors
/// The operating system's error.
pub fn create_empty(fs: &Arc<dyn FileSystem>, dir: &Path, spaces: &[KeyspaceId], lsn: Lsn) -> Result<(), DiskError> {
    let shards = crate::Shards { count: 1, of: Arc::new(|_| base::ShardId(0)) };
    let disk = crate::Disk::open(fs.clone(), dir, shards, crate::DiskOptions::default())?;
    spaces.iter().try_for_each(|space| disk.open_space(*space))?;
    disk.begin_flush().install(lsn).map(drop)
}

/// Bytes of the tables of copies of rows that the rows in use do not have: what the copies alone take.
///
/// # Errors
/// The operating system's error.
pub fn bytes_of_copies_alone(fs: &dyn FileSystem, rows: &Path, copies: &[&Path]) -> Result<u64, DiskError> {
    let in_use: Vec<_> = fs.read_dir(rows)?.into_iter().map(|entry| entry.name).collect();
    let mut alone = BTreeMap::new();
    for copy in copies {
        for entry in fs.read_dir(copy)? {
            if entry.name.to_string_lossy().ends_with(TABLE_SUFFIX) && in_use.binary_search(&entry.name).is_err() {
                let bytes = fs.metadata(&copy.join(&entry.name))?.len;
                alone.insert(entry.name, bytes);
            }
        }
    }
    Ok(alone.into_values().sum())
}
