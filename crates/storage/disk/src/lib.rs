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
mod due;
mod flush;
mod leaves;
mod long_keys;
mod names;
pub mod offline;
mod parts;
mod rows;

pub use flush::Flush;

use base::{KeyspaceId, Lsn, ShardId};
use counts::Counted;
use due::{Due, Walks};
use engine::{Counts, LeafStore as _, Row, RowError, Rows};
use leaves::Leaves;
use parking_lot::{Mutex, RwLock};
use parts::Cuts;
use plex::{Background, Db, KeySpaceId, Options, Wal};
use rows::{DiskRows, Places, RowReads};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vfs::FileSystem;

/// The longest key that is a key of the tree. Rows of longer ones are in a key space of their own ([`long_keys`]).
const KEY_BYTES_MAX: usize = plex::KEY_LEN_MAX;

/// Memory of a flush on its way to the tables: as much as there may be, since a part of one must not become durable.
const MEMTABLE_BYTES: usize = 8 << 30;

/// Bytes from which on a row is in parts.
pub const PARTS_FROM: usize = 64 << 10;

/// Why rows cannot be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The tree refused.
    #[error(transparent)]
    Tree(#[from] plex::Error),
    /// A file of rows cannot be copied.
    #[error(transparent)]
    File(#[from] vfs::FsError),
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
    /// The list of a keyspace's leaves has another form.
    #[error("the list of leaves of keyspace {0} has another form")]
    Leaves(KeyspaceId),
    /// A leaf of a collection is missing or another.
    #[error("the row of key '{key}': {source}")]
    Leaf {
        /// The row's key.
        key: String,
        /// Why it cannot be read.
        source: std::io::Error,
    },
    /// The rows of long keys have another form.
    #[error("the rows of keys above {KEY_BYTES_MAX} bytes have another form")]
    LongKeys,
    /// A row in parts is malformed.
    #[error("the row of key '{0}' is none: it should list its parts")]
    Parts(String),
    /// A part of a row is missing or another.
    #[error("the row of key '{key}': part {at} of collection {number} is missing or damaged")]
    Part {
        /// The row's key.
        key: String,
        /// What its parts are found by.
        number: u64,
        /// Which of them, from 0 on.
        at: usize,
    },
}

impl DiskError {
    /// A stored row that is none.
    fn row(key: &[u8], source: RowError) -> Self {
        Self::Row { key: key.escape_ascii().to_string(), source }
    }

    /// The device or a quota is full.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Tree(error) => error.is_out_of_space(),
            Self::File(error) => error.is_out_of_space(),
            _ => false,
        }
    }

    /// The device or the system refuses, and what is stored may be whole.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::File(_) | Self::Tree(plex::Error::Fs(_)))
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

/// The key spaces of a keyspace's rows.
#[derive(Clone)]
struct RowSpaces {
    /// By key.
    short: KeySpaceId,
    /// By the hash of keys above [`KEY_BYTES_MAX`].
    long: KeySpaceId,
    /// By the time at which they expire ([`due`]); `None` for rows that are only read.
    times: Option<KeySpaceId>,
    /// The parts of large rows ([`parts`]); `None` where there were none when they were opened to be read only.
    parts: Option<KeySpaceId>,
    /// Leaves of large collections ([`leaves`]); `None` where there were none when they were opened to be read only.
    leaves: Option<Arc<Leaves>>,
    due: Arc<Due>,
    /// Names at which scans in order continue.
    names: Arc<Mutex<Places>>,
}

impl RowSpaces {
    fn get(&self, db: &Db, key: &[u8]) -> Result<Option<Vec<u8>>, DiskError> {
        if key.len() <= KEY_BYTES_MAX {
            let stored = db.get_in(self.short, key)?;
            if !stored.as_deref().is_some_and(parts::is_parted) {
                return Ok(stored);
            }
            // A flush may replace parts meanwhile.
            let whole = parts::whole(&db.view(), (self.short, self.parts), key, false)?;
            return Ok(whole.map(|(row, _)| row));
        }
        let Some(entry) = db.get_in(self.long, &long_keys::stored_key(key))? else { return Ok(None) };
        let pairs = long_keys::pairs(&entry).ok_or(DiskError::LongKeys)?;
        Ok(pairs.into_iter().find(|(other, _)| *other == key).map(|(_, row)| row.to_vec()))
    }

    /// What is stored of a row, which may be in parts.
    fn stored(&self, db: &Db, key: &[u8]) -> Result<Option<Vec<u8>>, DiskError> {
        if key.len() <= KEY_BYTES_MAX { Ok(db.get_in(self.short, key)?) } else { self.get(db, key) }
    }

    /// The numbers of the leaves that a stored row refers to.
    fn leaves_of(&self, db: &Db, key: &[u8], stored: Option<&[u8]>) -> Result<BTreeSet<u64>, DiskError> {
        let Some(stored) = stored else { return Ok(BTreeSet::new()) };
        let error = |source| DiskError::row(key, source);
        if !parts::is_parted(stored) {
            return Ok(leaves::numbers(&Row::read(stored).map_err(error)?));
        }
        let parted = parts::Parted::of_key(stored, key)?;
        if !Row::read(parted.head).map_err(error)?.has_addresses {
            return Ok(BTreeSet::new());
        }
        let whole = self.get(db, key)?.unwrap_or_default();
        Ok(leaves::numbers(&Row::read(&whole).map_err(error)?))
    }

    fn may_have(&self, db: &Db, key: &[u8]) -> bool {
        match key.len() <= KEY_BYTES_MAX {
            true => db.may_have(self.short, key),
            false => db.may_have(self.long, &long_keys::stored_key(key)),
        }
    }
}

/// All backed keyspaces of a data directory.
pub struct Disk {
    db: Db,
    shards: Shards,
    spaces: RwLock<BTreeMap<KeyspaceId, RowSpaces>>,
    counts_space: KeySpaceId,
    /// What the rows hold (D4).
    counted: Mutex<BTreeMap<KeyspaceId, Counted>>,
    /// The memtable has a part of a flush, which must not become durable without the rest.
    has_part: Mutex<bool>,
    reads: Arc<RowReads>,
    walks: Walks,
    is_read_only: bool,
    cuts: Cuts,
    /// Parts that flushes have written, and those that were stored already.
    parts_written: AtomicU64,
    parts_kept: AtomicU64,
}

/// What rows take and what was done with them since the start. Bytes unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskStats {
    /// Of tables.
    pub table_bytes: u64,
    /// Number of tables.
    pub tables: usize,
    /// Of keys and rows that flushes have written.
    pub flushed_bytes: u64,
    /// Number of parts of large rows that flushes have written.
    pub parts_written: u64,
    /// Number of parts that flushes found stored already.
    pub parts_kept: u64,
    /// Number of leaves of large collections that were stored as rows of their own.
    pub leaves_written: u64,
    /// Number of such leaves that were read.
    pub leaves_read: u64,
    /// Written to tables, by flushes and merges.
    pub written_bytes: u64,
    /// Number of merges.
    pub merges: u64,
    /// Memory of filters, indexes and cached blocks, and of flushes on their way.
    pub memory_bytes: u64,
    /// Rows that were read.
    pub reads: u64,
    /// How long these reads took, in microseconds.
    pub read_us: u64,
    /// Reads that failed.
    pub read_errors: u64,
}

/// How rows are opened.
#[derive(Clone, Copy, Debug)]
pub struct DiskOptions {
    /// Whether the directory is made if it is missing.
    pub create: bool,
    /// Memory for blocks of tables, in bytes.
    pub block_cache_bytes: usize,
    /// Whether nothing is to be written: flushes fail.
    pub is_read_only: bool,
    /// Rows of this many bytes are stored in parts, of which a change writes only those that it touches.
    pub parts_from: usize,
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self { create: true, block_cache_bytes: 64 << 20, is_read_only: false, parts_from: PARTS_FROM }
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
        let tree = tree.memtable_bytes(MEMTABLE_BYTES);
        let db = if options.is_read_only { tree.open_read_only(dir)? } else { tree.open(dir)? };
        let counts_space = db.key_space("counts")?;
        let (spaces, counted) = Default::default();
        Ok(Arc::new(Self {
            db,
            shards,
            spaces: RwLock::new(spaces),
            counts_space,
            counted: Mutex::new(counted),
            has_part: Mutex::new(false),
            reads: Arc::default(),
            walks: Walks::default(),
            is_read_only: options.is_read_only,
            cuts: Cuts::new(options.parts_from),
            parts_written: AtomicU64::new(0),
            parts_kept: AtomicU64::new(0),
        }))
    }

    /// Opens the rows of a keyspace, or makes them.
    ///
    /// # Errors
    /// [`DiskError`] when its counts have another form.
    pub fn open_space(&self, space: KeyspaceId) -> Result<(), DiskError> {
        let short = self.db.key_space(&format!("e{space}"))?;
        let long = self.db.key_space(&format!("l{space}"))?;
        let times = if self.is_read_only { None } else { Some(self.db.key_space(&format!("t{space}"))?) };
        let parts = format!("n{space}");
        let parts = match self.is_read_only {
            true => self.db.key_spaces().into_iter().find(|(name, _)| *name == parts).map(|(_, id)| id),
            false => Some(self.db.key_space(&parts)?),
        };
        let leaves = format!("p{space}");
        let leaves = match self.is_read_only {
            true => self.db.key_spaces().into_iter().find(|(name, _)| *name == leaves).map(|(_, id)| id),
            false => Some(self.db.key_space(&leaves)?),
        };
        let leaves = leaves.map(|leaves| Leaves::open(&self.db, (leaves, self.counts_space), space, self.is_read_only));
        let leaves = leaves.transpose()?;
        let due = Arc::new(Due::new(self.shards.count));
        let rows = RowSpaces { short, long, times, parts, leaves, due, names: Arc::default() };
        let counted = counts::load(&self.db, self.counts_space, space, &rows, &self.shards)?;
        self.counted.lock().insert(space, counted);
        self.spaces.write().insert(space, rows);
        Ok(())
    }

    /// Leaves of large collections that are in memory of the tree, in bytes.
    pub fn unflushed_leaf_bytes(&self) -> u64 {
        self.leaves().map(|(_, leaves)| leaves.unflushed_bytes() as u64).sum()
    }

    /// Memory of leaves of large collections: copies, and leaves that are not flushed.
    pub fn leaf_bytes(&self) -> u64 {
        self.leaves().map(|(_, leaves)| (leaves.kept_bytes() + leaves.unflushed_bytes()) as u64).sum()
    }

    /// The leaves of each keyspace.
    fn leaves(&self) -> impl Iterator<Item = (KeyspaceId, Arc<Leaves>)> {
        let spaces = self.spaces.read();
        let leaves = spaces.iter().filter_map(|(id, rows)| Some((*id, rows.leaves.clone()?)));
        leaves.collect::<Vec<_>>().into_iter()
    }

    fn space(&self, space: KeyspaceId) -> Option<RowSpaces> {
        self.spaces.read().get(&space).cloned()
    }

    /// The position up to which the rows held all changes when they were opened.
    pub fn recovered_lsn(&self) -> Lsn {
        Lsn(self.db.recovered_lsn())
    }

    /// The rows of a keyspace in a shard, and what they hold; `None` for a keyspace that was not opened.
    pub fn rows(&self, shard: ShardId, space: KeyspaceId) -> Option<(Arc<dyn Rows>, Counts)> {
        let rows =
            DiskRows::new(self.db.clone(), self.space(space)?, shard, self.shards.of.clone(), self.reads.clone());
        let counts = self.counted.lock().get(&space).map(|counted| counted.of(shard)).unwrap_or_default();
        Some((Arc::new(rows), counts))
    }

    /// Begins to collect the rows of a flush.
    pub fn begin_flush(self: &Arc<Self>) -> Flush {
        Flush::new(self.clone())
    }

    /// Makes a copy of the rows in a directory, which is empty or missing, by hard links. Gives the position up to
    /// which it has all changes. `None` while a flush collects, or after one that failed: the rows in the tree's
    /// memory are not to become durable then.
    ///
    /// # Errors
    /// [`DiskError::Tree`]; the directory holds no rows then.
    pub fn copy_to(&self, dir: &Path) -> Result<Option<Lsn>, DiskError> {
        // Held meanwhile: the copy writes the memtable to a table.
        let has_part = self.has_part.lock();
        if *has_part {
            return Ok(None);
        }
        self.db.clone_to(dir)?;
        Ok(Some(Lsn(self.db.flushed_lsn())))
    }

    /// Does one merge of tables; false when none is due.
    ///
    /// # Errors
    /// [`DiskError::Tree`]
    pub fn compact_step(&self) -> Result<bool, DiskError> {
        Ok(self.db.compact_step()?)
    }

    /// See [`DiskStats`].
    pub fn stats(&self) -> DiskStats {
        let stats = self.db.stats();
        let of_leaves = |figure: &dyn Fn(&Leaves) -> u64| self.leaves().map(|(_, leaves)| figure(&leaves)).sum::<u64>();
        DiskStats {
            table_bytes: stats.table_bytes,
            tables: stats.tables,
            flushed_bytes: stats.user_bytes,
            parts_written: self.parts_written.load(Ordering::Relaxed),
            parts_kept: self.parts_kept.load(Ordering::Relaxed),
            leaves_written: of_leaves(&|leaves| leaves.written.load(Ordering::Relaxed)),
            leaves_read: of_leaves(&|leaves| leaves.read.load(Ordering::Relaxed)),
            written_bytes: stats.flush_bytes + stats.compaction_bytes_written,
            merges: stats.compactions,
            memory_bytes: stats.memtable_bytes
                + stats.filter_bytes
                + stats.index_bytes
                + stats.cache_bytes
                + of_leaves(&|leaves| leaves.kept_bytes() as u64),
            reads: self.reads.count.load(Ordering::Relaxed),
            read_us: self.reads.us.load(Ordering::Relaxed),
            read_errors: self.reads.failed.load(Ordering::Relaxed),
        }
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
