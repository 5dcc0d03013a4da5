//! fjall.

use std::path::Path;

use fjall::config::{BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions};

use super::{BLOCK_CACHE_BYTES, Engine, FILTER_BITS_PER_KEY, Failure, Settings, TableBytes};

pub struct FjallEngine {
    keys: Keyspace,
    _database: Database,
}

impl FjallEngine {
    pub fn open(dir: &Path, settings: &Settings) -> Result<Self, Failure> {
        let database = Database::builder(dir).cache_size(BLOCK_CACHE_BYTES as u64).open()?;
        let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(FILTER_BITS_PER_KEY as f32));
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(settings.memtable_bytes as u64)
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
                .filter_policy(FilterPolicy::all(filter))
        };
        Ok(Self { keys: database.keyspace("keys", options)?, _database: database })
    }
}

impl Engine for FjallEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.keys.insert(key, value)?)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        let value = self.keys.get(key)?;
        if let Some(value) = &value {
            see(value);
        }
        Ok(value.is_some())
    }

    fn scan(&self, from: &[u8], count: usize) -> Result<usize, Failure> {
        let mut pairs = 0;
        for pair in self.keys.range(from..).take(count) {
            std::hint::black_box(pair.into_inner()?);
            pairs += 1;
        }
        Ok(pairs)
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.keys.rotate_memtable_and_wait()?)
    }

    fn table_bytes(&self) -> Result<Option<TableBytes>, Failure> {
        Ok(None)
    }
}
