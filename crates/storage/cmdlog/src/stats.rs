//! Figures of the log, for INFO and for people.

/// Figures of the log. Sizes are in bytes, times in microseconds unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Segments on disk.
    pub segments: usize,
    /// Bytes of the stream in these segments, written or not.
    pub size_bytes: u64,
    /// `size_bytes` at the last [`remove_before`](crate::Log::remove_before), or at the beginning.
    pub base_size_bytes: u64,
    /// Bytes appended and not written yet.
    pub pending_bytes: u64,
    /// Bytes appended and not durable yet.
    pub unsynced_bytes: u64,
    /// Age of the oldest record that is not durable, in milliseconds; 0 if there is none.
    pub oldest_unsynced_ms: u64,
    /// Syncs that ended, with success or not.
    pub syncs: u64,
    /// Duration of the last sync.
    pub last_sync_us: u64,
    /// Duration of all syncs together.
    pub sync_us: u64,
    /// Duration of the longest sync.
    pub sync_us_max: u64,
    /// Whether the last write succeeded.
    pub last_write_ok: bool,
    /// Whether the last sync succeeded.
    pub last_sync_ok: bool,
    /// How often writes began to wait because a sync was late (`aof_delayed_fsync`).
    pub delayed_syncs: u64,
    /// Failures of writes, syncs and new segments.
    pub failures: u64,
    /// New segments filled from memory after a failure.
    pub rotations: u64,
    /// Memory of the rings, and of by-reference records that are not durable.
    pub memory_bytes: u64,
}

/// Counters of the flush.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    pub syncs: u64,
    pub last_sync_ns: u64,
    pub sync_ns: u64,
    pub sync_ns_max: u64,
    pub write_ok: bool,
    pub sync_ok: bool,
    pub failures: u64,
    pub rotations: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            syncs: 0,
            last_sync_ns: 0,
            sync_ns: 0,
            sync_ns_max: 0,
            write_ok: true,
            sync_ok: true,
            failures: 0,
            rotations: 0,
        }
    }
}

impl Counters {
    pub fn add_sync_time(&mut self, ns: u64) {
        self.last_sync_ns = ns;
        self.sync_ns += ns;
        self.sync_ns_max = self.sync_ns_max.max(ns);
    }
}
