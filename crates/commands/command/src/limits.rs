//! Settings that commands on keys look at: parts of the [`Host`](crate::Host) that configuration changes while they
//! run.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Longest glob pattern that KEYS and SCAN match against every key: matching takes time in proportion to it.
pub const PATTERN_BYTES_MAX: usize = 4096;

/// Longest reply that is put together from copies, by MGET, KEYS or EXEC: a request of some megabytes may ask for
/// gigabytes. Below the 256 MB that all clients may hold by default, so that the client gets the error and stays.
pub const REPLY_BYTES_MAX: usize = 192 << 20;

/// `proto-max-bulk-len`: how long a string may become.
#[derive(Debug)]
pub struct StringLimit(AtomicU64);

impl StringLimit {
    /// 512 MiB.
    pub const DEFAULT_BYTES: u64 = 512 << 20;

    /// The limit in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it, for the commands that follow.
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

impl Default for StringLimit {
    fn default() -> Self {
        Self(AtomicU64::new(Self::DEFAULT_BYTES))
    }
}

/// `hll-sparse-max-bytes`: how long a sparse HyperLogLog may become before it is made dense.
#[derive(Debug)]
pub struct SparseLimit(AtomicUsize);

impl SparseLimit {
    /// The limit in bytes.
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it, for the commands that follow.
    pub fn set(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

impl Default for SparseLimit {
    /// 3000, as in Valkey.
    fn default() -> Self {
        Self(AtomicUsize::new(3000))
    }
}

/// What the access stamps of entries mean, which follows from `maxmemory-policy`: when an entry was last used, or,
/// under the LFU policies, how often.
#[derive(Debug, Default)]
pub struct StampMeaning(AtomicBool);

impl StampMeaning {
    /// Whether stamps count uses.
    pub fn is_frequency(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it when the policy changes.
    pub fn set_frequency(&self, frequency: bool) {
        self.0.store(frequency, Ordering::Relaxed);
    }
}
