//! Sorted files from outside: written anywhere, at any time, and taken into a database whole by
//! [`Db::ingest`](crate::Db::ingest).

use std::path::Path;

use crate::error::{Error, Result};
use crate::key::{KEY_LEN_MAX, Kind, VALUE_LEN_MAX};
use crate::options::Options;
use crate::sstable::TableBuilder;

/// A sorted file being written. It is a table of which no entry has a sequence number yet.
pub struct SortedFile {
    builder: TableBuilder,
    last_key: Option<Vec<u8>>,
}

impl std::fmt::Debug for SortedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SortedFile").field("last_key", &self.last_key).finish_non_exhaustive()
    }
}

impl SortedFile {
    /// Creates the file, which must not exist. Of the options, file system, blocks, filters and the first level's
    /// compression count.
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        options.check()?;
        let identity = options.rng().next_u64();
        let builder = TableBuilder::new(&*options.fs, path.as_ref(), identity, options.of_tables(0, None))?;
        Ok(Self { builder, last_key: None })
    }

    /// Adds a key, which must be larger than all before.
    ///
    /// # Errors
    /// Invalid argument, for a key out of order, or a key or value that is too long.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let wrong = |what: &str| Err(Error::InvalidArgument(what.into()));
        if key.len() > KEY_LEN_MAX || value.len() > VALUE_LEN_MAX {
            return wrong("a key has more than 65,535 bytes, or a value more than 1 GiB");
        }
        if self.last_key.as_ref().is_some_and(|last| **last >= *key) {
            return wrong("a sorted file takes keys in ascending order, each once");
        }
        self.builder.add(key, 0, Kind::Put, value)?;
        let last_key = self.last_key.get_or_insert_default();
        last_key.clear();
        last_key.extend_from_slice(key);
        Ok(())
    }

    /// Writes what is left and syncs the file.
    pub fn finish(self) -> Result<()> {
        self.builder.finish().map(drop)
    }
}
