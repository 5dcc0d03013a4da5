//! Numbers about the log, for INFO and for people.

/// The log in numbers. Sizes are in bytes, times in microseconds unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Segments on disk.
    pub segments: usize,
    /// Bytes of the stream that are in these segments or on the way there.
    pub size_bytes: u64,
    /// `size_bytes` at the last [`remove_before`](crate::Log::remove_before), or at the beginning.
    pub base_size_bytes: u64,
    /// Appended and not yet written.
    pub pending_bytes: u64,
    /// Appended and not yet durable.
    pub unsynced_bytes: u64,
    /// Age of the oldest record that is not durable, in milliseconds; 0 if there is none.
    pub oldest_unsynced_ms: u64,
    /// Syncs that ended, well or not.
    pub syncs: u64,
    /// How long the last one took.
    pub last_sync_us: u64,
    /// How long all of them took together.
    pub sync_us: u64,
    /// How long the longest took.
    pub sync_us_max: u64,
    /// Whether the last write succeeded.
    pub last_write_ok: bool,
    /// Whether the last sync succeeded.
    pub last_sync_ok: bool,
    /// Times that writes began to wait because a sync was late (`aof_delayed_fsync`).
    pub delayed_syncs: u64,
    /// Failures of writes, syncs and new segments.
    pub failures: u64,
    /// New segments filled from memory after a failure.
    pub rotations: u64,
    /// Memory of the rings, and of records by reference that are not durable.
    pub memory_bytes: u64,
}

/// What the flush counts.
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
