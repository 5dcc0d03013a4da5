//! Where the data blocks of an open table lie, and which of them a key is in.
//!
//! Made from the index blocks when the table is first read, and kept: twenty bytes for each block, so that a look-up goes
//! straight to its block. Keys whose words are equal are told apart by the blocks themselves.

use std::ops::Range;
use std::path::Path;

use super::block::{Block, BlockCursor};
use super::format::{Handle, TRAILER_LEN};
use crate::cache::Place;
use crate::error::{Error, Result};
use crate::fence::Fences;
use crate::prefetch::prefetch_item;

/// See the module.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Of each block the key in the index, which is not smaller than any in the block.
    fences: Fences,
    /// Where blocks begin, and where the last one's trailer ends.
    offsets: Box<[u64]>,
    /// Where the cache has them.
    places: Box<[Place]>,
}

impl Blocks {
    /// Goes through the index. `read` gives the block of a handle.
    ///
    /// # Errors
    /// Those of `read`; corruption, also if data blocks do not follow each other from the beginning of the file.
    pub fn read(path: &Path, top: (Handle, Block), read: impl Fn(Handle) -> Result<Block>) -> Result<Self> {
        let (mut keys, mut offsets) = (Vec::new(), vec![0]);
        for (index, _) in entries(path, top)? {
            for (data, key) in entries(path, (index, read(index)?))? {
                if offsets.last() != Some(&data.offset) {
                    return Err(Error::corruption(path, index.offset, "the index leaves a gap between blocks"));
                }
                offsets.push(data.offset + data.len + TRAILER_LEN as u64);
                keys.push(key);
            }
        }
        let places = keys.iter().map(|_| Place::new()).collect();
        Ok(Self { fences: Fences::new(keys.iter().map(|key| &key[..])), offsets: offsets.into(), places })
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Where the last data block's trailer ends.
    pub fn data_end(&self) -> u64 {
        self.offsets[self.offsets.len() - 1]
    }

    pub fn place(&self, number: usize) -> &Place {
        &self.places[number]
    }

    /// Asks memory for a block's place, if there is such a block.
    pub fn prefetch_place(&self, number: usize) {
        prefetch_item(&self.places, number);
    }

    pub fn handle(&self, number: usize) -> Handle {
        let (offset, end) = (self.offsets[number], self.offsets[number + 1]);
        Handle { offset, len: end - offset - TRAILER_LEN as u64 }
    }

    /// Blocks before the range have only smaller keys. The first entry at or behind the key is in the range, or else in
    /// the block behind it; the range reaches to the number of blocks if there may be none.
    pub fn find(&self, key: &[u8]) -> Range<usize> {
        self.fences.find(key)
    }
}

/// What an index block leads to, with the keys.
fn entries(path: &Path, (at, block): (Handle, Block)) -> Result<Vec<(Handle, Vec<u8>)>> {
    let wrong = |what: &str| Error::corruption(path, at.offset, what);
    let (mut cursor, mut entries) = (BlockCursor::new(block), Vec::new());
    let mut moved = cursor.seek_to_first();
    while moved.is_ok() && cursor.valid() {
        let handle = Handle::decode(cursor.value()).ok_or_else(|| wrong("an index entry is not a handle"))?;
        entries.push((handle, cursor.key().to_vec()));
        moved = cursor.next();
    }
    moved.map(|()| entries).map_err(|_| wrong("entry in a block; the block is lost"))
}
