//! The engines, with the few calls that the workload makes. All are set alike: no compression, filters of 16 bits a
//! key, a block cache of 64 MiB, a log that is not synced, everything else as the engine has it by default.

#[cfg(any(feature = "leveldb", feature = "rocksdb"))]
mod c;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "leveldb")]
mod leveldb;
mod plex;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use std::path::Path;

pub use plex::Dials;

/// Why a step stopped.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Of all engines, in bytes.
const BLOCK_CACHE_BYTES: usize = 64 << 20;

/// Of all engines.
const FILTER_BITS_PER_KEY: u32 = 16;

/// Engines, and the policies of plex, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Name {
    /// Its default policy.
    Plex,
    PlexLdc,
    PlexLeveled,
    PlexTiered,
    /// Cannot scan.
    PlexTrie,
    #[cfg(feature = "leveldb")]
    Leveldb,
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    #[cfg(feature = "rocksdb")]
    RocksdbUniversal,
    #[cfg(feature = "fjall")]
    Fjall,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = clap::ValueEnum::to_possible_value(self).expect("no name is skipped");
        f.write_str(value.get_name())
    }
}

/// An engine with its dials, and what a report calls it.
#[derive(Clone, Debug)]
pub struct Contender {
    pub label: String,
    pub name: Name,
    pub dials: Dials,
}

impl Contender {
    pub fn new(name: Name, dials: Dials) -> Self {
        Self { label: name.to_string(), name, dials }
    }
}

/// Bytes of tables by the work that wrote them.
#[derive(Clone, Copy, Debug)]
pub struct TableBytes {
    pub flush: u64,
    pub compaction: u64,
}

/// An open database.
pub trait Engine: Send + Sync {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    fn delete(&self, key: &[u8]) -> Result<(), Failure>;

    /// Deletes from a key (included) to another (excluded); `false` if the engine has no ranges, and nothing was done.
    fn delete_range(&self, _from: &[u8], _to: &[u8]) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Holds everything as of now for as long as the process lives, or until the value is dropped.
    fn hold_view(&self) -> Result<Box<dyn std::any::Any>, Failure>;

    /// Makes key spaces for [`put_in`](Self::put_in).
    fn make_spaces(&self, count: usize) -> Result<(), Failure>;

    fn put_in(&self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Makes one key space whose values live for `ttl_ms` of [`pass_ms`](Self::pass_ms); `false` if the engine has no
    /// expirations by a clock of the caller.
    fn make_expiring(&self, _ttl_ms: u64) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Lets time pass.
    fn pass_ms(&self, _ms: u64) {}

    /// Whether the key is there; its value, copied out of the engine, is looked at by `see`.
    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, Failure>;

    /// Whether it keeps an order.
    fn can_scan(&self) -> bool {
        true
    }

    /// Reads up to `count` pairs in order, from the first key that is not below `from`; how many there were.
    fn scan(&self, from: &[u8], count: usize) -> Result<usize, Failure>;

    /// Flushes where the engine has a call for it; merges may continue in the background.
    fn flush(&self) -> Result<(), Failure>;

    /// What the engine reports of its tables since this open; `None` if it keeps no such count.
    fn table_bytes(&self) -> Result<Option<TableBytes>, Failure>;
}

/// How all engines are opened.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub memtable_bytes: usize,
    /// Of plex alone.
    pub dials: Dials,
}

/// Opens or makes the database in this directory, which exists.
pub fn open(name: Name, dir: &Path, settings: &Settings) -> Result<Box<dyn Engine>, Failure> {
    Ok(match name {
        Name::Plex | Name::PlexLdc | Name::PlexLeveled | Name::PlexTiered | Name::PlexTrie => {
            Box::new(plex::PlexEngine::open(name, dir, settings)?)
        }
        #[cfg(feature = "leveldb")]
        Name::Leveldb => Box::new(leveldb::LevelDb::open(dir, settings)?),
        #[cfg(feature = "rocksdb")]
        Name::Rocksdb => Box::new(rocksdb::RocksDb::open(dir, settings, rocksdb::Style::Leveled)?),
        #[cfg(feature = "rocksdb")]
        Name::RocksdbUniversal => Box::new(rocksdb::RocksDb::open(dir, settings, rocksdb::Style::Universal)?),
        #[cfg(feature = "fjall")]
        Name::Fjall => Box::new(fjall::FjallEngine::open(dir, settings)?),
    })
}
