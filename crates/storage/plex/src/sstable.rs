//! Sorted immutable files.
//!
//! ```text
//!   TableBuilder --> file --> Table (filter, sketch and index, or the tops of these, in memory) --> get, TableCursor
//! ```
//!
//! S1. Entries are in the order of [`crate::key`]; all versions of a key are in one table of a run.
//! S2. Nothing is used before its checksum, which covers the file's identity and the place in it, has been verified.
//! S3. A table is never changed. Its file goes when no version names it and no reader holds it.
//!
//! Format: docs/formats/sstable.md.

mod block;
mod blocks;
mod builder;
mod compression;
mod cursor;
mod file;
mod filter;
mod first_reads;
mod format;
mod partitions;
mod read_ahead;
mod sample;
mod spare;
mod table;

pub(crate) use block::Block;
pub(crate) use blocks::Blocks;
pub use blocks::Indexes;
pub(crate) use builder::TableBuilder;
pub use compression::Compression;
pub(crate) use cursor::TableCursor;
pub(crate) use filter::{Filter, Probe};
pub use partitions::Filters;
pub(crate) use table::{BYTES_PER_DELETED_STEP, BYTES_PER_SCAN, Table, missing};

use crate::key::{KEY_LEN_MAX, Seqno};
use crate::range_tombstone::RangeTombstone;

/// How tables are built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableOptions {
    /// Length at which a block ends, in bytes.
    pub block_bytes: usize,
    pub filter_bits_per_key: u32,
    pub filters: Filters,
    pub indexes: Indexes,
    pub compression: Compression,
    /// Length of the prefixes that a whole filter knows, in bytes; 0 for none.
    pub prefix_bytes: usize,
    /// Written past the page cache, where the system lets it.
    pub is_direct: bool,
    /// Whether values end with the time of their write.
    pub has_times: bool,
}

/// The shortest block, in bytes.
pub(crate) const BLOCK_BYTES_MIN: usize = 64;

/// # Errors
/// The option that is out of range.
pub(crate) fn check_options(
    block_bytes: usize,
    filter_bits_per_key: u32,
    prefix_bytes: usize,
    compression: &[Compression],
) -> Result<(), &'static str> {
    if !(BLOCK_BYTES_MIN..=1 << 20).contains(&block_bytes) {
        return Err("block_bytes is not within 64 and 1 MiB");
    }
    if filter_bits_per_key > 64 {
        return Err("filter_bits_per_key is above 64");
    }
    if prefix_bytes > KEY_LEN_MAX {
        return Err("prefix_filter_bytes is longer than any key");
    }
    if !compression.iter().all(|compression| compression.is_known()) {
        return Err("a level of zstd is not within -7 and 19");
    }
    Ok(())
}

/// What the manifest keeps of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableInfo {
    /// Stands in the file, too, and in all its checksums.
    pub identity: u64,
    /// Length of the file.
    pub bytes: u64,
    pub entry_count: u64,
    /// No entry and no deleted range begins before.
    pub smallest: Vec<u8>,
    /// No entry and no deleted range reaches beyond.
    pub largest: Vec<u8>,
    /// Whether `largest` itself lies outside, being the end of a deleted range.
    pub largest_is_excluded: bool,
    /// The sequence number of all entries, of a file that was taken in as it was and has number 0 everywhere; 0 for a
    /// table with numbers of its own.
    pub given_seqno: Seqno,
    /// `None` in manifests before version 5.
    pub summary: Option<Summary>,
}

/// What of a table's end the manifest keeps, so that an open and a choice of merges need not read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Entries and deleted ranges that only hide others.
    pub tombstone_count: u64,
    /// Lengths of keys and values, added up.
    pub user_bytes: u64,
    pub seqno_min: Seqno,
    pub seqno_max: Seqno,
    pub has_ranges: bool,
    /// When the first and the last of the values were written.
    pub times: Option<(u64, u64)>,
}

impl TableInfo {
    /// Sets the bounds to those of the entries (first and last key, if there are any) and of the deleted ranges.
    pub fn set_bounds(&mut self, keys: Option<(&[u8], &[u8])>, ranges: &[RangeTombstone]) {
        let starts = ranges.iter().map(|t| &t.start[..]);
        self.smallest = starts.chain(keys.map(|(first, _)| first)).min().unwrap_or_default().to_vec();
        let last = keys.map(|(_, last)| last);
        let end = ranges.iter().map(|t| &t.end[..]).max();
        // A range that ends at the last key or before it does not reach beyond that key.
        self.largest_is_excluded = end > last || last.is_none();
        self.largest = end.max(last).unwrap_or_default().to_vec();
    }

    /// Everything in the table lies before the key.
    pub fn ends_before(&self, key: &[u8]) -> bool {
        if self.largest_is_excluded { *self.largest <= *key } else { *self.largest < *key }
    }

    /// The ranges of keys of both have a key in common.
    pub fn overlaps(&self, other: &TableInfo) -> bool {
        !self.ends_before(&other.smallest) && !other.ends_before(&self.smallest)
    }
}

#[cfg(test)]
mod tests;
