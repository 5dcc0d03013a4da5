//! A table's filter, whole or in partitions.
//!
//! ```text
//!   whole         filter: all lines                                in memory while the table is open
//!   partitions    lines | lines | lines ...                        in the block cache
//!                 filter: first data block and handle of each      in memory
//! ```
//!
//! A partition has the keys of a stretch of data blocks, so a look-up asks it after the index has said which block the
//! key would be in. That is an index search for each run where a whole filter costs one cache miss; in return memory
//! holds the filters of what is read, and not of all data.

use base::varint;

use super::filter::Filter;
use super::format::Handle;
use crate::cache::Place;

/// How tables keep their filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filters {
    /// Whole, and in memory as long as the table is open: fastest, at `filter_bits_per_key` for every key on disk.
    #[default]
    Full,
    /// In partitions of 4 KiB that are read through the block cache when they are needed; in memory stay 32 bytes for
    /// each.
    Partitioned,
}

/// Length from which on a partition ends with its block, in bytes.
const PARTITION_BYTES: usize = 4 << 10;

/// Gathers the keys of a table being written.
pub(super) struct FilterBuilder {
    bits_per_key: u32,
    /// Keys at which a partition ends; `None` for a whole filter.
    keys_max: Option<usize>,
    hashes: Vec<u64>,
    /// The data block that the current partition begins with.
    first_block: u32,
    done: Vec<(u32, Filter)>,
}

/// What is written.
pub(super) enum BuiltFilter {
    Full(Filter),
    /// With the first data block of each.
    Partitions(Vec<(u32, Filter)>),
}

impl FilterBuilder {
    pub fn new(filters: Filters, bits_per_key: u32) -> Self {
        let is_whole = filters == Filters::Full || bits_per_key == 0;
        let keys_max = (!is_whole).then(|| (PARTITION_BYTES * 8 / bits_per_key as usize).max(1));
        Self { bits_per_key, keys_max, hashes: Vec::new(), first_block: 0, done: Vec::new() }
    }

    /// Whether no key is in the current partition: then even one that was in the one before must be added.
    pub fn is_at_start(&self) -> bool {
        self.hashes.is_empty()
    }

    pub fn is_whole(&self) -> bool {
        self.keys_max.is_none()
    }

    pub fn add(&mut self, hash: u64) {
        self.hashes.push(hash);
    }

    /// A data block has ended, the next one will have this number.
    pub fn end_block(&mut self, next: u32) {
        if self.keys_max.is_some_and(|max| self.hashes.len() >= max) {
            self.end_partition(next);
        }
    }

    fn end_partition(&mut self, next: u32) {
        self.done.push((self.first_block, Filter::build(&self.hashes, self.bits_per_key)));
        self.hashes.clear();
        self.first_block = next;
    }

    pub fn finish(mut self) -> BuiltFilter {
        if self.keys_max.is_none() {
            return BuiltFilter::Full(Filter::build(&self.hashes, self.bits_per_key));
        }
        if !self.hashes.is_empty() {
            self.end_partition(0);
        }
        BuiltFilter::Partitions(self.done)
    }
}

/// The part that stays in memory: where the partitions of an open table lie.
#[derive(Debug)]
pub(super) struct Partitions {
    /// Ascending, from 0.
    first_blocks: Box<[u32]>,
    handles: Box<[Handle]>,
    places: Box<[Place]>,
}

impl Partitions {
    /// As it stands in a table.
    pub fn encode(partitions: &[(u32, Handle)]) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put(&mut out, partitions.len() as u64);
        for (first_block, handle) in partitions {
            varint::put(&mut out, u64::from(*first_block));
            handle.put(&mut out);
        }
        out
    }

    /// Undoes [`encode`](Self::encode).
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        let (mut first_blocks, mut handles) = (Vec::new(), Vec::new());
        for _ in 0..varint::take(rest)? {
            first_blocks.push(u32::try_from(varint::take(rest)?).ok()?);
            handles.push(Handle::take(rest)?);
        }
        let is_sound = rest.is_empty()
            && first_blocks.is_sorted_by(|a, b| a < b)
            && first_blocks.first().is_none_or(|first| *first == 0);
        let places = handles.iter().map(|_| Place::new()).collect();
        is_sound.then(|| Self { first_blocks: first_blocks.into(), handles: handles.into(), places })
    }

    pub fn len(&self) -> usize {
        self.handles.len()
    }

    pub fn handle(&self, at: usize) -> Handle {
        self.handles[at]
    }

    pub fn place(&self, at: usize) -> &Place {
        &self.places[at]
    }

    /// The partitions that have the keys of this data block and of the next one; `len()` and more for none.
    pub fn of_block_and_next(&self, block: usize) -> [usize; 2] {
        [block, block + 1].map(|block| {
            let behind = self.first_blocks.partition_point(|first| *first as usize <= block);
            behind.checked_sub(1).unwrap_or(usize::MAX)
        })
    }

    /// Memory it takes, in bytes.
    pub fn bytes(&self) -> u64 {
        (self.len() * (size_of::<u32>() + size_of::<Handle>() + size_of::<Place>())) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was encoded comes back; every cut, every gap at the front and every wrong order is refused.
    #[test]
    fn encoding() {
        let handle = |offset| Handle { offset, len: 64 };
        let bytes = Partitions::encode(&[(0, handle(100)), (7, handle(300))]);
        let partitions = Partitions::decode(&bytes).expect("it is whole");
        assert_eq!((partitions.len(), partitions.handle(1)), (2, handle(300)));
        assert_eq!([0, 5, 6, 7].map(|block| partitions.of_block_and_next(block)), [[0, 0], [0, 0], [0, 1], [1, 1]]);
        assert!((0..bytes.len()).all(|len| Partitions::decode(&bytes[..len]).is_none()));
        assert!(Partitions::decode(&Partitions::encode(&[(1, handle(0))])).is_none());
        assert!(Partitions::decode(&Partitions::encode(&[(0, handle(0)), (0, handle(0))])).is_none());
        assert_eq!(Partitions::decode(&Partitions::encode(&[])).expect("none is fine").len(), 0);
    }
}
