//! fjall.

use std::path::Path;
use std::sync::RwLock;

use fjall::config::{BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions};

use super::{BLOCK_CACHE_BYTES, Engine, FILTER_BITS_PER_KEY, Failure, Settings, TableBytes};

pub struct FjallEngine {
    keys: Keyspace,
    database: Database,
    memtable_bytes: u64,
    spaces: RwLock<Vec<Keyspace>>,
}

fn options(memtable_bytes: u64) -> KeyspaceCreateOptions {
    let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(FILTER_BITS_PER_KEY as f32));
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes)
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
        .filter_policy(FilterPolicy::all(filter))
}

impl FjallEngine {
    pub fn open(dir: &Path, settings: &Settings) -> Result<Self, Failure> {
        let database = Database::builder(dir).cache_size(BLOCK_CACHE_BYTES as u64).open()?;
        let memtable_bytes = settings.memtable_bytes as u64;
        let keys = database.keyspace("keys", || options(memtable_bytes))?;
        Ok(Self { keys, database, memtable_bytes, spaces: RwLock::default() })
    }
}

impl Engine for FjallEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.keys.insert(key, value)?)
    }

    fn delete(&self, key: &[u8]) -> Result<(), Failure> {
        Ok(self.keys.remove(key)?)
    }

    fn hold_view(&self) -> Result<Box<dyn std::any::Any>, Failure> {
        Ok(Box::new(self.database.snapshot()))
    }

    fn make_spaces(&self, count: usize) -> Result<(), Failure> {
        let made =
            (0..count).map(|number| self.database.keyspace(&number.to_string(), || options(self.memtable_bytes)));
        *self.spaces.write().expect("no thread panics") = made.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn put_in(&self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.spaces.read().expect("no thread panics")[space].insert(key, value)?)
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
