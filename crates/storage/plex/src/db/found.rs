//! What an open finds: files, what the manifest says, what the log holds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use vfs::{FileSystem, OpenOptions};

use super::key_spaces::KeySpaces;
use super::wal_path;
use crate::error::Result;
use crate::key::Seqno;
use crate::key_order::KeyOrder;
use crate::log::Before;
use crate::memtable::Memtable;
use crate::sstable::TableInfo;
use crate::version::{TablePlace, VersionEdit};

/// What a manifest's edits add up to.
#[derive(Default)]
pub(super) struct Found {
    pub database: u64,
    pub next_number: u64,
    pub last_seqno: Seqno,
    pub wal: (u64, bool),
    pub flushed_lsn: u64,
    pub tables: BTreeMap<u64, (TablePlace, TableInfo)>,
    pub key_spaces: KeySpaces,
    /// Key spaces from this number on were never used.
    pub next_key_space: u32,
    pub key_order: KeyOrder,
}

impl Found {
    /// Takes over what an edit says of key spaces.
    pub fn note_key_spaces(&mut self, edit: &VersionEdit) {
        let used = edit.key_spaces.iter().map(|(id, _)| id.saturating_add(1)).chain(edit.next_key_space);
        self.next_key_space = used.chain([self.next_key_space]).max().unwrap_or(0);
        self.key_spaces.change(edit);
    }

    /// Only the first edit of a manifest says it.
    pub fn note_key_order(&mut self, order: KeyOrder) {
        if order == KeyOrder::Hash {
            self.key_order = order;
        }
    }
}

/// Files of the directory by kind, with their numbers.
#[derive(Default)]
pub(super) struct Files {
    pub tables: Vec<u64>,
    pub wals: Vec<u64>,
    pub manifests: Vec<u64>,
}

impl Files {
    pub fn list(fs: &dyn FileSystem, dir: &Path) -> Result<Self> {
        let mut files = Self::default();
        for item in fs.read_dir(dir)? {
            let Some(name) = item.name.to_str() else { continue };
            if let Some(number) = name.strip_suffix(".sst").and_then(|n| n.parse().ok()) {
                files.tables.push(number);
            } else if let Some(number) = name.strip_suffix(".wal").and_then(|n| n.parse().ok()) {
                files.wals.push(number);
            } else if let Some(number) = name.strip_prefix("MANIFEST-").and_then(|n| n.parse().ok()) {
                files.manifests.push(number);
            }
        }
        files.wals.sort_unstable();
        Ok(files)
    }

    pub fn number_max(&self) -> u64 {
        self.tables.iter().chain(&self.wals).chain(&self.manifests).copied().max().unwrap_or(0)
    }
}

/// What log files hold, in memory.
#[derive(Default)]
pub(super) struct LogContents {
    /// One for each file with its number, oldest first.
    pub memtables: Vec<(u64, Arc<Memtable>)>,
    pub last_seqno: Seqno,
    /// The files that are one history, each with where it ends.
    pub files: Vec<(u64, u64)>,
}

/// What the log had beyond the tables.
pub(super) struct Recovered {
    pub last_seqno: Seqno,
    /// Positions of an external log: up to which everything is here, and up to which it is in tables.
    pub lsn: u64,
    pub flushed_lsn: u64,
    /// Newest first.
    pub memtables: Vec<Arc<Memtable>>,
    /// The files that hold the memtables, oldest first, each with where it ends.
    pub logs: Vec<(u64, u64)>,
}

impl Recovered {
    /// What a new log continues from.
    pub fn before(&self, fs: &dyn FileSystem, dir: &Path) -> Result<Before> {
        let Some(&end) = self.logs.last() else { return Ok(Before::default()) };
        // It is unknown how far they were synced.
        let open = |(number, _): &(u64, u64)| Ok(fs.open(&wal_path(dir, *number), OpenOptions::write())?);
        let unnamed = self.logs.first().map(|(number, _)| *number);
        Ok(Before { end, unsynced: self.logs.iter().map(open).collect::<Result<_>>()?, unnamed })
    }
}
