//! Rows of backed keyspaces in an LSM-tree (`plex`).
//!
//! ```text
//! engine-mem: table, changed keys --begin_flush--> sinks --Flush::install(lsn)--> plex: rows, counts, position
//!                  ^                                                               |
//!                  '--------------- Rows: get, scan (another thread) <-------------'
//! ```
//!
//! docs/formats/rows.md describes the bytes.
//!
//! D1. The rows and counts of one flush become durable together, with the position of the log up to which they hold
//!     all changes. The log of plex is off: the server's command log is the log.
//! D2. A flush that fails may leave rows that reads can see. Their keys still count as changed, so no read asks for
//!     them, and the next flush writes them again.
//! D3. Counts are by shard. With other shards than at the last flush, they are counted anew at the start.
//! D4. The counts in memory are those of the rows that reads of the tree can see, so that the flush after a failed one
//!     counts right. They are stored with each flush.
#![forbid(unsafe_code)]

mod counts;
mod flush;
mod rows;

pub use flush::Flush;

use base::{KeyspaceId, Lsn, ShardId};
use counts::Counted;
use engine::{Counts, RowError, Rows};
use parking_lot::{Mutex, RwLock};
use plex::{Background, Db, KeySpaceId, Options, Wal};
use rows::DiskRows;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use vfs::FileSystem;

/// The longest key of a row.
pub const KEY_BYTES_MAX: usize = plex::KEY_LEN_MAX;

/// Memory of a flush on its way to the tables: as much as there may be, since a part of one must not become durable.
const MEMTABLE_BYTES: usize = 8 << 30;

/// Why rows cannot be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The tree refused.
    #[error(transparent)]
    Tree(#[from] plex::Error),
    /// A stored row is none.
    #[error("the row of key '{key}': {source}")]
    Row {
        /// Its key.
        key: String,
        /// What is wrong.
        source: RowError,
    },
    /// The counts of a keyspace have another form.
    #[error("the counts of keyspace {0} have another form")]
    Counts(KeyspaceId),
    /// A row cannot have such a key.
    #[error("a key of {0} bytes is longer than {KEY_BYTES_MAX}, the most that a row can have")]
    LongKey(usize),
}

impl DiskError {
    /// The device or a quota is full.
    pub fn is_out_of_space(&self) -> bool {
        matches!(self, Self::Tree(error) if error.is_out_of_space())
    }
}

/// Says which shard a key belongs to.
pub type ShardOf = Arc<dyn Fn(&[u8]) -> ShardId + Send + Sync>;

/// The shards of the store.
#[derive(Clone)]
pub struct Shards {
    /// How many.
    pub count: u16,
    /// The shard of a key.
    pub of: ShardOf,
}

/// All backed keyspaces of a data directory.
pub struct Disk {
    db: Db,
    shards: Shards,
    spaces: RwLock<BTreeMap<KeyspaceId, KeySpaceId>>,
    counts_space: KeySpaceId,
    /// What the rows hold (D4).
    counted: Mutex<BTreeMap<KeyspaceId, Counted>>,
    /// The memtable has a part of a flush, which must not become durable without the rest.
    has_part: Mutex<bool>,
}

/// How rows are opened.
#[derive(Clone, Copy, Debug)]
pub struct DiskOptions {
    /// Whether the directory is made if it is missing.
    pub create: bool,
    /// Memory for blocks of tables, in bytes.
    pub block_cache_bytes: usize,
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self { create: true, block_cache_bytes: 64 << 20 }
    }
}

impl Disk {
    /// Opens the rows of a data directory. Nothing is flushed or merged but by calls.
    ///
    /// # Errors
    /// [`DiskError`] when the tree cannot be opened, or is missing and not to be made.
    pub fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        shards: Shards,
        options: DiskOptions,
    ) -> Result<Arc<Self>, DiskError> {
        let tree = Options::new().file_system(fs).wal(Wal::Off).background(Background::Manual);
        let tree = tree.create_if_missing(options.create).block_cache_bytes(options.block_cache_bytes);
        // Mapped pages would count as resident memory of the process.
        let tree = tree.mapped_reads(false);
        let db = tree.memtable_bytes(MEMTABLE_BYTES).open(dir)?;
        let counts_space = db.key_space("counts")?;
        let (spaces, counted) = Default::default();
        Ok(Arc::new(Self {
            db,
            shards,
            spaces: RwLock::new(spaces),
            counts_space,
            counted: Mutex::new(counted),
            has_part: Mutex::new(false),
        }))
    }

    /// Opens the rows of a keyspace, or makes them.
    ///
    /// # Errors
    /// [`DiskError`] when its counts have another form.
    pub fn open_space(&self, space: KeyspaceId) -> Result<(), DiskError> {
        let rows = self.db.key_space(&format!("e{space}"))?;
        let counted = counts::load(&self.db, self.counts_space, space, rows, &self.shards)?;
        self.counted.lock().insert(space, counted);
        self.spaces.write().insert(space, rows);
        Ok(())
    }

    fn space(&self, space: KeyspaceId) -> Option<KeySpaceId> {
        self.spaces.read().get(&space).copied()
    }

    /// The position up to which the rows held all changes when they were opened.
    pub fn recovered_lsn(&self) -> Lsn {
        Lsn(self.db.recovered_lsn())
    }

    /// The rows of a keyspace in a shard, and what they hold; `None` for a keyspace that was not opened.
    pub fn rows(&self, shard: ShardId, space: KeyspaceId) -> Option<(Arc<dyn Rows>, Counts)> {
        let rows = DiskRows::new(self.db.clone(), self.space(space)?, shard, self.shards.of.clone());
        let counts = self.counted.lock().get(&space).map(|counted| counted.of(shard)).unwrap_or_default();
        Some((Arc::new(rows), counts))
    }

    /// Begins to collect the rows of a flush.
    pub fn begin_flush(self: &Arc<Self>) -> Flush {
        Flush::new(self.clone())
    }

    /// Does one merge of tables; false when none is due.
    ///
    /// # Errors
    /// [`DiskError::Tree`]
    pub fn compact_step(&self) -> Result<bool, DiskError> {
        Ok(self.db.compact_step()?)
    }

    /// Memory of tables and of flushes on their way, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let stats = self.db.stats();
        stats.memtable_bytes + stats.filter_bytes + stats.index_bytes + stats.cache_bytes
    }

    /// Gives back some space of what is deleted; false when there is none, or while a flush collects.
    ///
    /// # Errors
    /// [`DiskError::Tree`]
    pub fn reclaim_step(&self) -> Result<bool, DiskError> {
        // Held meanwhile: the step may write the memtable to a table.
        let has_part = self.has_part.lock();
        if *has_part { Ok(false) } else { Ok(self.db.reclaim_step()?) }
    }
}
