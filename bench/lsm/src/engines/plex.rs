//! Plex under each of its policies.

use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use plex::{Db, Filters, Indexes, IterOptions, KeySpaceId, KeySpaceOptions, ManualClock, Options, Policy, Wal};

use super::{BLOCK_CACHE_BYTES, Engine, FILTER_BITS_PER_KEY, Failure, Name, Settings, TableBytes};

/// Options of plex's policies.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Dials {
    /// Of plex: bytes of tables per live byte.
    #[arg(long, default_value_t = 1.42)]
    pub space_amp_target: f64,
    /// Of plex: runs over one range.
    #[arg(long, default_value_t = 20)]
    pub runs_max: usize,
    /// Of plex-tiered, plex-ldc and plex-trie: runs per level, or node of it.
    #[arg(long, default_value_t = 8)]
    pub runs_per_level: usize,
    /// Of plex-ldc: entries per distinct key at which a level is merged.
    #[arg(long, default_value_t = 1.6)]
    pub duplicates_max: f64,
    /// Of all of plex's: filters in partitions, read through the block cache.
    #[arg(long)]
    pub partitioned_filters: bool,
    /// Of all of plex's: indexes in parts, read through the block cache.
    #[arg(long)]
    pub partitioned_indexes: bool,
    /// Of all of plex's: tables read and written past the page cache.
    #[arg(long)]
    pub direct_io: bool,
}

impl Dials {
    /// As arguments of a command line.
    pub fn arguments(&self) -> Vec<String> {
        let Self {
            space_amp_target,
            runs_max,
            runs_per_level,
            duplicates_max,
            partitioned_filters,
            partitioned_indexes,
            direct_io,
        } = self;
        let mut arguments = vec![
            format!("--space-amp-target={space_amp_target}"),
            format!("--runs-max={runs_max}"),
            format!("--runs-per-level={runs_per_level}"),
            format!("--duplicates-max={duplicates_max}"),
        ];
        arguments.extend(partitioned_filters.then(|| "--partitioned-filters".into()));
        arguments.extend(partitioned_indexes.then(|| "--partitioned-indexes".into()));
        arguments.extend(direct_io.then(|| "--direct-io".into()));
        arguments
    }

    fn policy(&self, name: Name) -> Policy {
        let Self { space_amp_target, runs_max, runs_per_level, duplicates_max, .. } = *self;
        match name {
            Name::PlexLeveled => Policy::leveled(),
            Name::PlexTiered => Policy::Tiered { runs_per_level },
            Name::PlexLdc => Policy::Ldc { runs_per_level, duplicates_max },
            Name::PlexTrie => Policy::Trie { runs_per_node: runs_per_level },
            _ => Policy::LdcRanged { space_amp_target, runs_max },
        }
    }
}

pub struct PlexEngine {
    db: Db,
    name: Name,
    clock: Arc<ManualClock>,
    spaces: RwLock<Vec<KeySpaceId>>,
}

impl PlexEngine {
    pub fn open(name: Name, dir: &Path, settings: &Settings) -> Result<Self, Failure> {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000));
        let db = Options::new()
            .clock(clock.clone())
            .memtable_bytes(settings.memtable_bytes)
            .block_cache_bytes(BLOCK_CACHE_BYTES)
            .filter_bits_per_key(FILTER_BITS_PER_KEY)
            .filters(if settings.dials.partitioned_filters { Filters::Partitioned } else { Filters::Full })
            .indexes(if settings.dials.partitioned_indexes { Indexes::Partitioned } else { Indexes::Full })
            .direct_reads(settings.dials.direct_io)
            .direct_writes(settings.dials.direct_io)
            .policy(settings.dials.policy(name))
            .wal(Wal::Async)
            .open(dir)?;
        Ok(Self { db, name, clock, spaces: RwLock::default() })
    }
}

impl Engine for PlexEngine {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.db.put(key, value)?)
    }

    fn delete(&self, key: &[u8]) -> Result<(), Failure> {
        Ok(self.db.delete(key)?)
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<bool, Failure> {
        self.db.delete_range(from..to)?;
        Ok(true)
    }

    fn hold_view(&self) -> Result<Box<dyn std::any::Any>, Failure> {
        Ok(Box::new(self.db.view()))
    }

    fn make_spaces(&self, count: usize) -> Result<(), Failure> {
        let made = (0..count).map(|number| self.db.key_space(&number.to_string()));
        *self.spaces.write().expect("no thread panics") = made.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn put_in(&self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let space = self.spaces.read().expect("no thread panics")[space];
        Ok(self.db.put_in(space, key, value)?)
    }

    fn make_expiring(&self, ttl_ms: u64) -> Result<bool, Failure> {
        let options = KeySpaceOptions::new().ttl(Duration::from_millis(ttl_ms));
        *self.spaces.write().expect("no thread panics") = vec![self.db.key_space_with("expiring", &options)?];
        Ok(true)
    }

    fn pass_ms(&self, ms: u64) {
        self.clock.advance_ms(ms);
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        let value = self.db.get(key)?;
        if let Some(value) = &value {
            see(value);
        }
        Ok(value.is_some())
    }

    fn can_scan(&self) -> bool {
        self.name != Name::PlexTrie
    }

    fn scan(&self, from: &[u8], count: usize) -> Result<usize, Failure> {
        let (mut pairs, mut iter) = (0, self.db.iter(IterOptions::default())?);
        iter.seek(from)?;
        while pairs < count
            && let Some(pair) = iter.entry()
        {
            std::hint::black_box(pair);
            pairs += 1;
            iter.step_forward()?;
        }
        Ok(pairs)
    }

    fn flush(&self) -> Result<(), Failure> {
        self.db.flush()?;
        Ok(self.db.settle()?)
    }

    fn table_bytes(&self) -> Result<Option<TableBytes>, Failure> {
        let stats = self.db.stats();
        Ok(Some(TableBytes { flush: stats.flush_bytes, compaction: stats.compaction_bytes_written }))
    }
}
