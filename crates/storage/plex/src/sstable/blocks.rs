//! Where the data blocks of an open table are, and which of them a key is in.
//!
//! ```text
//!   whole      top index | index block | index block ...   --> Blocks of all, made at the first read, and kept
//!   in parts   top index --> Parts, kept     index block   --> Blocks of a stretch, in the block cache
//! ```
//!
//! Twenty bytes for each block, so that a look-up goes straight to its block. Keys whose words are equal are
//! distinguished by the blocks themselves.

use std::ops::Range;
use std::path::Path;

use base::varint;

use super::block::{Block, BlockCursor};
use super::format::{Handle, TRAILER_LEN};
use crate::cache::Place;
use crate::error::{Error, Result};
use crate::fence::Fences;
use crate::prefetch::prefetch_item;

/// How tables keep their indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexes {
    /// Whole, and in memory from the first look into the table on: fastest, at 20 bytes for every block of data that is
    /// read.
    #[default]
    Full,
    /// In parts of about a block's length that are read through the block cache when they are needed; in memory stay
    /// about 60 bytes and a key for each, which is for some hundred blocks of data.
    Partitioned,
}

/// A stretch of a table's data blocks, or all of them. Blocks are numbered from the beginning of the table.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// The number of the first one.
    first: usize,
    /// Of each block the key in the index, which is not smaller than any in the block.
    fences: Fences,
    /// Where blocks begin, and where the last one's trailer ends.
    offsets: Box<[u64]>,
    /// Where the cache has them.
    places: Box<[Place]>,
}

impl Blocks {
    /// Goes through the whole index. `read` gives the block of a handle.
    ///
    /// # Errors
    /// Those of `read`; corruption, also if data blocks do not follow each other from the beginning of the file.
    pub(super) fn read(path: &Path, top: (Handle, Block), read: impl Fn(Handle) -> Result<Block>) -> Result<Self> {
        let mut all = Gathered { offsets: vec![0], ..Gathered::default() };
        for (_, value) in entries(path, &top)? {
            let index = Handle::decode(&value).ok_or_else(|| no_handle(path, top.0))?;
            all.add(path, (index, read(index)?))?;
        }
        Ok(all.blocks(0))
    }

    /// Those that one index block leads to.
    ///
    /// # Errors
    /// Corruption, also if they do not follow each other, reach beyond `data_end` or are not as many as the top index
    /// says.
    pub(super) fn of_part(path: &Path, index: (Handle, Block), numbers: Range<usize>, data_end: u64) -> Result<Self> {
        let (at, mut all) = (index.0, Gathered::default());
        all.add(path, index)?;
        if all.keys.len() != numbers.len() || all.offsets.last().is_none_or(|end| *end > data_end) {
            return Err(Error::corruption(path, at.offset, "the index leads to other blocks than its top says"));
        }
        Ok(all.blocks(numbers.start))
    }

    /// The numbers of its blocks.
    pub(super) fn numbers(&self) -> Range<usize> {
        self.first..self.first + self.places.len()
    }

    /// Where the first block begins, and where the last one's trailer ends.
    pub(super) fn extent(&self) -> Range<u64> {
        self.offsets[0]..self.offsets[self.offsets.len() - 1]
    }

    pub(super) fn place(&self, number: usize) -> &Place {
        &self.places[number - self.first]
    }

    /// Asks memory for a block's place, if the block is one of these.
    pub(super) fn prefetch_place(&self, number: usize) {
        prefetch_item(&self.places, number.wrapping_sub(self.first));
    }

    pub(super) fn handle(&self, number: usize) -> Handle {
        let at = number - self.first;
        let (offset, end) = (self.offsets[at], self.offsets[at + 1]);
        Handle { offset, len: end - offset - TRAILER_LEN as u64 }
    }

    /// Blocks before the range have only smaller keys. The first entry at or after the key is in the range, or else in
    /// the block after it; the range reaches to the end of these if there may be none.
    pub(super) fn find(&self, key: &[u8]) -> Range<usize> {
        let found = self.fences.find(key);
        self.first + found.start..self.first + found.end
    }

    /// Memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.fences.bytes() + size_of_val(&*self.offsets) + size_of_val(&*self.places)
    }
}

/// What index blocks say.
#[derive(Default)]
struct Gathered {
    keys: Vec<Vec<u8>>,
    offsets: Vec<u64>,
}

impl Gathered {
    /// Adds an index block that continues where the one before ended.
    fn add(&mut self, path: &Path, index: (Handle, Block)) -> Result<()> {
        for (key, value) in entries(path, &index)? {
            let data = Handle::decode(&value).ok_or_else(|| no_handle(path, index.0))?;
            if *self.offsets.last().unwrap_or(&data.offset) != data.offset {
                return Err(Error::corruption(path, index.0.offset, "the index leaves a gap between blocks"));
            }
            if self.offsets.is_empty() {
                self.offsets.push(data.offset);
            }
            let end = data.offset.checked_add(data.len + TRAILER_LEN as u64);
            self.offsets.push(end.ok_or_else(|| no_handle(path, index.0))?);
            self.keys.push(key);
        }
        Ok(())
    }

    fn blocks(mut self, first: usize) -> Blocks {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        let places = self.keys.iter().map(|_| Place::new()).collect();
        let fences = Fences::new(self.keys.iter().map(|key| &key[..]));
        Blocks { first, fences, offsets: self.offsets.into(), places }
    }
}

/// The parts of an index that is not kept whole: what the top index says, searchable.
///
/// T1. Parts before the one of a key have only smaller keys; the first entry at or after a key is in its part, or in a
///     later one if the part ends with that very key.
#[derive(Debug)]
pub(super) struct Parts {
    fences: Fences,
    /// Not smaller than any key of the part.
    keys: Box<[Box<[u8]>]>,
    handles: Box<[Handle]>,
    /// Numbers after each part's last data block.
    ends: Box<[u32]>,
    /// Where the cache has them.
    places: Box<[Place]>,
}

impl Parts {
    /// From a top index that counts blocks.
    ///
    /// # Errors
    /// Corruption.
    pub fn new(path: &Path, top: &(Handle, Block)) -> Result<Self> {
        let (mut keys, mut handles, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (key, value) in entries(path, top)? {
            let rest = &mut &value[..];
            handles.push(Handle::take(rest).ok_or_else(|| no_handle(path, top.0))?);
            let end = varint::take(rest).and_then(|end| u32::try_from(end).ok()).filter(|_| rest.is_empty());
            let is_next = end.is_some_and(|end| end > *ends.last().unwrap_or(&0));
            let end = end.filter(|_| is_next);
            ends.push(end.ok_or_else(|| Error::corruption(path, top.0.offset, "the top index does not count"))?);
            keys.push(key.into_boxed_slice());
        }
        let fences = Fences::new(keys.iter().map(|key| &key[..]));
        let places = keys.iter().map(|_| Place::new()).collect();
        Ok(Self { fences, keys: keys.into(), handles: handles.into(), ends: ends.into(), places })
    }

    pub fn len(&self) -> usize {
        self.handles.len()
    }

    /// Data blocks of all parts.
    pub fn block_count(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }

    /// Where the last data block's trailer ends: the index blocks follow.
    pub fn data_end(&self) -> u64 {
        self.handles.first().map_or(0, |handle| handle.offset)
    }

    pub fn handle(&self, part: usize) -> Handle {
        self.handles[part]
    }

    pub fn place(&self, part: usize) -> &Place {
        &self.places[part]
    }

    /// The numbers of a part's data blocks.
    pub fn numbers(&self, part: usize) -> Range<usize> {
        let first = part.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        first..self.ends[part] as usize
    }

    /// The part that this data block is in.
    pub fn part_of(&self, block: usize) -> usize {
        self.ends.partition_point(|end| *end as usize <= block)
    }

    /// The parts of a key (T1): the first, then as many as end with that very key, and one more; `len()` and none if
    /// all keys are smaller.
    pub fn find(&self, key: &[u8]) -> Range<usize> {
        let ties = self.fences.find(key);
        let first = ties.start + self.keys[ties].partition_point(|end| **end < *key);
        let same = self.keys[first..].partition_point(|end| **end == *key);
        first..(first + same + 1).min(self.len())
    }

    /// Memory it takes, in bytes.
    pub fn bytes(&self) -> u64 {
        let keys: usize = self.keys.iter().map(|key| size_of_val(key) + key.len()).sum();
        let others = size_of_val(&*self.handles) + size_of_val(&*self.ends) + size_of_val(&*self.places);
        (self.fences.bytes() + keys + others) as u64
    }
}

fn no_handle(path: &Path, at: Handle) -> Error {
    Error::corruption(path, at.offset, "an index entry is not a handle")
}

/// Keys and values of an index block.
fn entries(path: &Path, (at, block): &(Handle, Block)) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let (mut cursor, mut entries) = (BlockCursor::new(block.clone()), Vec::new());
    let mut moved = cursor.seek_to_first();
    while moved.is_ok() && cursor.valid() {
        entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
        moved = cursor.next();
    }
    moved.map(|()| entries).map_err(|_| Error::corruption(path, at.offset, "entry in a block; the block is lost"))
}
