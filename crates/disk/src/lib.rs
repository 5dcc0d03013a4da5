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
#![forbid(unsafe_code)]

mod counts;
mod flush;
mod rows;

pub use flush::Flush;

use base::{KeyspaceId, Lsn, ShardId};
use counts::Counted;
use engine::{Counts, RowError, Rows};
use parking_lot::Mutex;
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
    spaces: BTreeMap<KeyspaceId, KeySpaceId>,
    counts_space: KeySpaceId,
    /// What the rows hold as of the last flush.
    counted: Mutex<BTreeMap<KeyspaceId, Counted>>,
}

impl Disk {
    /// Opens the rows of these keyspaces, or makes them. Nothing is flushed or merged but by calls.
    ///
    /// # Errors
    /// [`DiskError`] when the tree cannot be opened, or has counts of another form.
    pub fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        spaces: impl IntoIterator<Item = KeyspaceId>,
        shards: Shards,
    ) -> Result<Arc<Self>, DiskError> {
        let options = Options::new().file_system(fs).wal(Wal::Off).background(Background::Manual);
        let db = options.memtable_bytes(MEMTABLE_BYTES).open(dir)?;
        let spaces = spaces.into_iter().map(|space| Ok((space, db.key_space(&format!("e{space}"))?)));
        let spaces: BTreeMap<_, _> = spaces.collect::<Result<_, DiskError>>()?;
        let counts_space = db.key_space("counts")?;
        let mut counted = BTreeMap::new();
        for (space, rows) in &spaces {
            counted.insert(*space, counts::load(&db, counts_space, *space, *rows, &shards)?);
        }
        Ok(Arc::new(Self { db, shards, spaces, counts_space, counted: Mutex::new(counted) }))
    }

    /// The position up to which the rows held all changes when they were opened.
    pub fn recovered_lsn(&self) -> Lsn {
        Lsn(self.db.recovered_lsn())
    }

    /// The rows of a keyspace in a shard, and what they hold; `None` for a keyspace that was not opened.
    pub fn rows(&self, shard: ShardId, space: KeyspaceId) -> Option<(Arc<dyn Rows>, Counts)> {
        let rows = DiskRows::new(self.db.clone(), *self.spaces.get(&space)?, shard, self.shards.of.clone());
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
}
