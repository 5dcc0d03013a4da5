//! How many strings are stored compressed, and what that saves.

use engine::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

/// Strings that are stored compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompressedUse {
    /// How many there are.
    pub values: u64,
    /// Bytes stored for them, headers of the stored form included.
    pub stored_bytes: u64,
    /// Bytes of the strings.
    pub logical_bytes: u64,
}

impl CompressedUse {
    /// Of this entry alone.
    pub(crate) fn of(entry: &Entry<'_>) -> Self {
        if !entry.is_compressed() {
            return Self::default();
        }
        let bytes = entry.value.bytes();
        let logical = codec::stored::Stored::parse(bytes).map_or(0, |stored| stored.len);
        Self { values: 1, stored_bytes: bytes.len() as u64, logical_bytes: logical as u64 }
    }
}

/// [`CompressedUse`] of all shards of a store, counted as such strings come and go.
#[derive(Debug, Default)]
pub(crate) struct CompressedCounters {
    values: AtomicU64,
    stored_bytes: AtomicU64,
    logical_bytes: AtomicU64,
}

impl CompressedCounters {
    pub(crate) fn add(&self, entry: &Entry<'_>) {
        let CompressedUse { values, stored_bytes, logical_bytes } = CompressedUse::of(entry);
        self.values.fetch_add(values, Ordering::Relaxed);
        self.stored_bytes.fetch_add(stored_bytes, Ordering::Relaxed);
        self.logical_bytes.fetch_add(logical_bytes, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, entry: &Entry<'_>) {
        let CompressedUse { values, stored_bytes, logical_bytes } = CompressedUse::of(entry);
        self.values.fetch_sub(values, Ordering::Relaxed);
        self.stored_bytes.fetch_sub(stored_bytes, Ordering::Relaxed);
        self.logical_bytes.fetch_sub(logical_bytes, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> CompressedUse {
        CompressedUse {
            values: self.values.load(Ordering::Relaxed),
            stored_bytes: self.stored_bytes.load(Ordering::Relaxed),
            logical_bytes: self.logical_bytes.load(Ordering::Relaxed),
        }
    }
}
