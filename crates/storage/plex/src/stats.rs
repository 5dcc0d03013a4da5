//! What a database has done since it was opened, and what it takes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Running counters; read as [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub user_bytes: AtomicU64,
    pub wal_bytes: AtomicU64,
    pub flush_bytes: AtomicU64,
    pub flushes: AtomicU64,
    pub ingest_bytes: AtomicU64,
    pub compaction_bytes_read: AtomicU64,
    pub compaction_bytes_written: AtomicU64,
    pub manifest_bytes: AtomicU64,
    pub compactions: AtomicU64,
    pub compaction_parts: AtomicU64,
    pub dropped: AtomicU64,
    pub stalls: AtomicU64,
    pub stalled_us: AtomicU64,
    pub delays: AtomicU64,
    pub delayed_us: AtomicU64,
}

impl Counters {
    pub fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Relaxed);
    }
}

/// Counters since the open, and sizes now. Bytes unless named otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Lengths of keys and values that were written.
    pub user_bytes: u64,
    /// Written to the log.
    pub wal_bytes: u64,
    /// Written by flushes.
    pub flush_bytes: u64,
    /// Number of flushes.
    pub flushes: u64,
    /// Written for sorted files that were taken in; those that only got a second name are not counted.
    pub ingest_bytes: u64,
    /// Read by compactions.
    pub compaction_bytes_read: u64,
    /// Written by compactions.
    pub compaction_bytes_written: u64,
    /// Written to manifests.
    pub manifest_bytes: u64,
    /// Number of compactions.
    pub compactions: u64,
    /// Merges that they did, each counted by the parts that it was split into; tables that only move are none.
    pub compaction_parts: u64,
    /// Versions and tombstones dropped by flushes and compactions.
    pub dropped: u64,
    /// Times a writer had to wait for a flush or a compaction.
    pub stalls: u64,
    /// How long all writers waited so, added up, in microseconds.
    pub stalled_us: u64,
    /// Times a writer was slowed down, since flushes or compactions began to lag: pauses that grow with the lag, so
    /// that writers need not wait for long.
    pub delays: u64,
    /// How long all writers paused so, added up, in microseconds.
    pub delayed_us: u64,
    /// How far flushes and compactions lag, now: writers are slowed down above 0 and wait from 1 on.
    pub lag: f64,
    /// In memtables, now.
    pub memtable_bytes: u64,
    /// In tables, now.
    pub table_bytes: u64,
    /// In log files, now.
    pub wal_file_bytes: u64,
    /// Number of tables, now.
    pub tables: usize,
    /// Those of which nothing was read since the open, now ([`Options::tables_read_at_open`]).
    ///
    /// [`Options::tables_read_at_open`]: crate::Options::tables_read_at_open
    pub unread_tables: usize,
    /// Tables that were found to be damaged or missing at their first read. Reads that need them answer an error that
    /// names the file.
    pub damaged_tables: u64,
    /// Moments that read views pin, now. Versions that they see are kept, so they cost space.
    pub views: usize,
    /// The sequence number of the oldest of them.
    pub oldest_view: Option<u64>,
    /// Memory for filters of tables, charged to the block cache, now.
    pub filter_bytes: u64,
    /// Memory for indexes of tables, charged to the block cache, now. A whole index is read at the first look into its
    /// table.
    pub index_bytes: u64,
    /// Memory for sketches of tables and samples of their keys, charged to the block cache, now.
    pub sketch_bytes: u64,
    /// Per key space and level, the number of runs and their bytes, now.
    pub levels: Vec<(u32, Vec<(usize, u64)>)>,
    /// Look-ups of blocks, and of parts of filters and indexes, that the cache answered.
    pub cache_hits: u64,
    /// Look-ups of these that went to a file.
    pub cache_misses: u64,
    /// Blocks in the block cache, now.
    pub cache_bytes: u64,
}

impl Stats {
    /// Bytes written to files, of whatever kind, per byte of keys and values; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        let tables = self.flush_bytes + self.compaction_bytes_written + self.ingest_bytes;
        let written = self.wal_bytes + tables + self.manifest_bytes;
        if self.user_bytes == 0 { 0.0 } else { written as f64 / self.user_bytes as f64 }
    }

    /// Bytes of tables and log files, now.
    pub fn file_bytes(&self) -> u64 {
        self.table_bytes + self.wal_file_bytes
    }
}
