//! What the shards' memory is used for, counted as it is taken from and given back to the system.

use crate::compressed::{CompressedCounters, CompressedUse};
use codec::DictionaryNumber;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in use by kind, shared by all shards of a store. Changed per system line or large allocation, never per
/// command, so it follows resident memory and costs a command nothing.
#[derive(Debug, Default)]
pub struct MemoryUse {
    values: AtomicU64,
    table: AtomicU64,
    index: AtomicU64,
    large: AtomicU64,
    thawed: AtomicU64,
    /// Sticky entries, and what they take; it is in the others.
    sticky_items: AtomicU64,
    sticky_bytes: AtomicU64,
    /// Values that are stored compressed; what they take is in the others.
    pub(crate) compressed: CompressedCounters,
}

/// What memory is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Pages of entries.
    Values,
    /// Directories, extents.
    Table,
    /// The expiration index.
    Index,
    /// Values that are allocations of their own.
    Large,
    /// The thawed copies of compressed leaves of collections.
    Thawed,
}

impl MemoryKind {
    const ALL: [Self; 5] = [Self::Values, Self::Table, Self::Index, Self::Large, Self::Thawed];
}

impl MemoryUse {
    /// Bytes used for everything.
    pub fn total(&self) -> u64 {
        MemoryKind::ALL.iter().map(|&kind| self.of(kind)).sum()
    }

    /// Bytes used for one kind.
    pub fn of(&self, kind: MemoryKind) -> u64 {
        self.counter(kind).load(Ordering::Relaxed)
    }

    /// Values that are stored compressed.
    pub fn compressed(&self) -> CompressedUse {
        self.compressed.read()
    }

    /// How many of them need which dictionary. Exact while no value comes or goes, that is under the locks of all
    /// shards.
    pub fn values_by_dictionary(&self) -> BTreeMap<DictionaryNumber, u64> {
        self.compressed.by_dictionary()
    }

    /// Counts a stored form of bytes that are not a whole value of an entry: of a leaf.
    pub fn add_stored(&self, bytes: &[u8]) {
        self.compressed.add_stored(bytes);
    }

    /// Counts that it goes.
    pub fn sub_stored(&self, bytes: &[u8]) {
        self.compressed.sub_stored(bytes);
    }

    /// How many entries are sticky, and what they take; of each shard, the one that is changing is missing.
    pub fn sticky(&self) -> (u64, u64) {
        (self.sticky_items.load(Ordering::Relaxed), self.sticky_bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn add_sticky(&self, items: u64, bytes: u64) {
        self.sticky_items.fetch_add(items, Ordering::Relaxed);
        self.sticky_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn sub_sticky(&self, items: u64, bytes: u64) {
        self.sticky_items.fetch_sub(items, Ordering::Relaxed);
        self.sticky_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts bytes taken.
    pub fn add(&self, kind: MemoryKind, bytes: usize) {
        self.counter(kind).fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes given back.
    pub fn sub(&self, kind: MemoryKind, bytes: usize) {
        let before = self.counter(kind).fetch_sub(bytes as u64, Ordering::Relaxed);
        debug_assert!(before >= bytes as u64, "{kind:?}: {bytes} bytes given back of {before}");
    }

    fn counter(&self, kind: MemoryKind) -> &AtomicU64 {
        match kind {
            MemoryKind::Values => &self.values,
            MemoryKind::Table => &self.table,
            MemoryKind::Index => &self.index,
            MemoryKind::Large => &self.large,
            MemoryKind::Thawed => &self.thawed,
        }
    }
}
