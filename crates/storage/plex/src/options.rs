//! Options, with defaults that need no thought.

use std::sync::Arc;

use base::clock::SystemClock;
use base::random::OsEntropy;
use base::{Clock, Entropy, Rng};
use vfs::{FileSystem, OpenOptions, RealFs};

use crate::cache::BlockCache;
use crate::compaction::{CompactionFilter, Policy};
use crate::error::{Error, Result};
use crate::key_order::KeyOrder;
use crate::key_space_options::KeySpaceOptions;
use crate::open_files;
use crate::sstable::{self, Compression, Filters, Indexes, TableOptions};

/// With a batch of the greatest length on top, what a memtable surely has places for: 14 GiB (`memtable::arena`).
const MEMTABLE_BYTES_MAX: u64 = 8 << 30;

/// What a write has reached when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wal {
    /// The medium: a power cut loses nothing. Writers that arrive together share one sync.
    Sync,
    /// The operating system: a killed process loses nothing, a power cut the last moments (a suffix of the history).
    /// [`Db::sync`](crate::Db::sync) brings everything to the medium.
    Async,
    /// Nowhere: what was not flushed is lost. For data that another log holds; see
    /// [`WriteBatch::set_lsn`](crate::WriteBatch::set_lsn).
    Off,
}

/// Which threads flush and compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Threads of their own.
    Threads,
    /// The writing thread itself, as soon as a memtable is full: slow writes now and then, the same files every time.
    Inline,
    /// The caller, with [`Db::flush`](crate::Db::flush) and [`Db::compact_step`](crate::Db::compact_step); memtables
    /// pile up until then.
    Manual,
}

/// The source of time.
#[derive(Clone)]
pub(crate) struct TimeSource(Arc<dyn Clock>);

impl std::fmt::Debug for TimeSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl TimeSource {
    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.0.now_ms()).unwrap_or(0)
    }
}

/// How to open a database.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) clock: TimeSource,
    pub(crate) seed: Option<u64>,
    pub(crate) create_if_missing: bool,
    pub(crate) wal: Wal,
    pub(crate) background: Background,
    pub(crate) policy: Policy,
    pub(crate) compaction_filter: Option<Arc<dyn CompactionFilter>>,
    pub(crate) memtable_bytes: usize,
    pub(crate) immutable_memtables_max: usize,
    pub(crate) merge_bytes_per_second: u64,
    pub(crate) merge_parts_max: usize,
    pub(crate) merges_max: usize,
    pub(crate) reclaim_when_idle: Option<bool>,
    pub(crate) block_bytes: usize,
    pub(crate) table_bytes: u64,
    pub(crate) filter_bits_per_key: u32,
    pub(crate) filters: Filters,
    pub(crate) indexes: Indexes,
    pub(crate) prefix_filter_bytes: usize,
    pub(crate) block_cache_bytes: usize,
    pub(crate) open_files_max: Option<usize>,
    pub(crate) tables_read_at_open: usize,
    pub(crate) mapped_reads: bool,
    pub(crate) direct_reads: bool,
    pub(crate) direct_writes: bool,
    /// By level; the last also of all deeper ones.
    pub(crate) compression: Vec<Compression>,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// The defaults, which stand at each method.
    pub fn new() -> Self {
        Self {
            fs: Arc::new(RealFs),
            clock: TimeSource(Arc::new(SystemClock::new())),
            seed: None,
            create_if_missing: true,
            wal: Wal::Async,
            background: Background::Threads,
            policy: Policy::default(),
            compaction_filter: None,
            memtable_bytes: 64 << 20,
            immutable_memtables_max: 2,
            merge_bytes_per_second: 0,
            merge_parts_max: 1,
            merges_max: 1,
            reclaim_when_idle: None,
            block_bytes: 4 << 10,
            table_bytes: 8 << 20,
            filter_bits_per_key: 16,
            filters: Filters::Full,
            indexes: Indexes::Full,
            prefix_filter_bytes: 0,
            block_cache_bytes: 64 << 20,
            open_files_max: None,
            tables_read_at_open: 4096,
            mapped_reads: true,
            direct_reads: false,
            direct_writes: false,
            compression: Vec::new(),
        }
    }

    /// Where files live. Default: the real file system.
    pub fn file_system(mut self, fs: Arc<dyn FileSystem>) -> Self {
        self.fs = fs;
        self
    }

    /// The time by which values expire ([`KeySpaceOptions::ttl`]). Default: the system's, which follows a jump of the
    /// machine's clock slowly.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = TimeSource(clock);
        self
    }

    /// Makes everything random follow from this number. Default: the operating system's entropy.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Whether a missing database is made. Default: yes.
    pub fn create_if_missing(mut self, create: bool) -> Self {
        self.create_if_missing = create;
        self
    }

    /// What a write waits for. Default: [`Wal::Async`].
    pub fn wal(mut self, wal: Wal) -> Self {
        self.wal = wal;
        self
    }

    /// Which threads flush and compact. Default: [`Background::Threads`].
    pub fn background(mut self, background: Background) -> Self {
        self.background = background;
        self
    }

    /// How tables are chosen for merging. Default: [`Policy::ldc_ranged`]. It may differ from open to
    /// open, but for [`Policy::Trie`], which has databases of its own.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// What else may go when tables are written. Default: nothing.
    pub fn compaction_filter(mut self, filter: Arc<dyn CompactionFilter>) -> Self {
        self.compaction_filter = Some(filter);
        self
    }

    /// Memory of a memtable at which it is flushed, in bytes, from 1 KiB to 8 GiB. Default: 64 MiB.
    pub fn memtable_bytes(mut self, bytes: usize) -> Self {
        self.memtable_bytes = bytes;
        self
    }

    /// Full memtables at which writers wait for a flush, at least 1; with one fewer they are slowed down while the last
    /// one fills. Default: 2.
    pub fn immutable_memtables_max(mut self, count: usize) -> Self {
        self.immutable_memtables_max = count;
        self
    }

    /// Most bytes that merges write in a second, 0 for any number. Flushes are not held back, and a database that
    /// closes does not wait. Where merges cannot keep up with what is written, writers are slowed down. Default: 0.
    pub fn merge_bytes_per_second(mut self, bytes: u64) -> Self {
        self.merge_bytes_per_second = bytes;
        self
    }

    /// Parts that one merge is split into by key, at most, from 1 to 64: with [`Background::Threads`] a thread each
    /// does them, else one after the other. A part has at least [`table_bytes`](Self::table_bytes) of input and begins
    /// with a table of its own, so tables become somewhat smaller. It is for devices that are faster than one core
    /// merges. Default: 1.
    pub fn merge_parts_max(mut self, count: usize) -> Self {
        self.merge_parts_max = count;
        self
    }

    /// Merges that run side by side, at most, from 1 to 64: of ranges of keys that have nothing in common, with
    /// [`Policy::LdcRanged`], and of different key spaces, with any policy. With [`Background::Threads`] a thread each
    /// does them. Each needs room for old and new of its range. It is for devices that are faster than one core merges.
    /// Default: 1.
    pub fn merges_max(mut self, count: usize) -> Self {
        self.merges_max = count;
        self
    }

    /// Whether a database with threads that was not written to for ten seconds gives back the space of everything that
    /// is deleted, as [`Db::reclaim`](crate::Db::reclaim) does. Each range of keys with a deletion is written anew
    /// once. Default: yes with [`Policy::LdcRanged`] and [`Policy::Leveled`], where a range is a small part of the
    /// tree. No with the policies of papers: these keep to what the papers say, and one deletion would have everything
    /// older merged.
    pub fn reclaim_when_idle(mut self, reclaims: bool) -> Self {
        self.reclaim_when_idle = Some(reclaims);
        self
    }

    /// Length at which a block of a table ends, in bytes, from 64 to 1 MiB. Default: 4 KiB.
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// Length at which a table ends, in bytes, from 1 KiB, where the policy has no length of its own. Default: 8 MiB.
    pub fn table_bytes(mut self, bytes: u64) -> Self {
        self.table_bytes = bytes;
        self
    }

    /// Bits of filter per key, up to 64; 0 for no filters. Default: 16.
    pub fn filter_bits_per_key(mut self, bits: u32) -> Self {
        self.filter_bits_per_key = bits;
        self
    }

    /// How new tables keep their filters; old ones stay as they are. Default: [`Filters::Full`].
    pub fn filters(mut self, filters: Filters) -> Self {
        self.filters = filters;
        self
    }

    /// How new tables keep their indexes; old ones stay as they are. Default: [`Indexes::Full`].
    pub fn indexes(mut self, indexes: Indexes) -> Self {
        self.indexes = indexes;
        self
    }

    /// Length of prefixes that whole filters of new tables know, in bytes, up to 65,535; 0 for none. A scan of which
    /// all keys begin with the same prefix of that length skips tables that have no such key. Such scans are those of
    /// [`IterOptions::prefix`](crate::IterOptions::prefix) with at least that length, and ranges within one prefix. It
    /// costs `filter_bits_per_key` for each prefix of a table. Default: 0.
    pub fn prefix_filter_bytes(mut self, bytes: usize) -> Self {
        self.prefix_filter_bytes = bytes;
        self
    }

    /// Memory for blocks of tables and for parts of filters and indexes, in bytes. Whole filters and indexes, the tops
    /// of others and sketches of open tables count as well. They stay in memory if they are larger; a quarter of this
    /// is always left to blocks. Default: 64 MiB.
    pub fn block_cache_bytes(mut self, bytes: usize) -> Self {
        self.block_cache_bytes = bytes;
        self
    }

    /// Files of tables that are open at a time, at least 8. Tables beyond that are opened again when they are read,
    /// which takes some microseconds. Files in use are not counted, nor are those of log and manifest. Default: half of
    /// what the process may have open (the soft limit RLIMIT_NOFILE when the database is opened), or 512 where that is
    /// not known.
    pub fn open_files_max(mut self, count: usize) -> Self {
        self.open_files_max = Some(count);
        self
    }

    /// Number of tables up to which an open reads the end of each, about 0.2 ms, with what stays of it in memory: its
    /// filter, for instance. So damage there is found at once. A database that has more reads a table when it is first
    /// needed. At the open it finds missing files only; damage is an error of the read that meets it, which names the
    /// file, and counts in [`Stats::damaged_tables`](crate::Stats::damaged_tables). `usize::MAX` reads all at once, 0
    /// as few as it may: tables with deleted ranges, those of a database that was last opened by an earlier release,
    /// and all with [`Policy::Ldc`], which counts their keys. Default: 4,096.
    pub fn tables_read_at_open(mut self, count: usize) -> Self {
        self.tables_read_at_open = count;
        self
    }

    /// A cache for the blocks and files of tables.
    pub(crate) fn cache(&self) -> Arc<BlockCache> {
        let open_files_max = self.open_files_max.unwrap_or_else(open_files::default_max);
        Arc::new(BlockCache::new(self.block_cache_bytes, self.block_bytes).with_open_files(open_files_max))
    }

    /// Whether blocks of tables that are in the page cache are copied out of a mapping, where the file system offers
    /// one, instead of by a system call each. Default: yes, since a get then takes two thirds of the time. That is safe
    /// for a database: what was copied is verified, and a medium that fails gives an error as with a call, since the
    /// first table of a process installs a handler of SIGBUS ([`OpenOptions::mapped`] says what other handlers must do:
    /// say no here if they cannot). Mapped pages are the page cache's, which the system takes back when it needs them;
    /// tools count them as resident memory that is shared. With [`direct_reads`](Self::direct_reads) it has no effect.
    pub fn mapped_reads(mut self, is_mapped: bool) -> Self {
        self.mapped_reads = is_mapped;
        self
    }

    /// Whether tables are read past the page cache of the operating system, where the file system lets it: memory then
    /// holds what the block cache does, and nothing twice. The block cache should be large, for each block that it
    /// lacks is read from the device. Default: no.
    pub fn direct_reads(mut self, is_direct: bool) -> Self {
        self.direct_reads = is_direct;
        self
    }

    /// Whether flushes and merges write tables past the page cache, where the file system lets it: what is written once
    /// does not push out what others read. The log and the manifest go through it. Default: no.
    pub fn direct_writes(mut self, is_direct: bool) -> Self {
        self.direct_writes = is_direct;
        self
    }

    /// How tables are compressed, by level from that of flushed memtables on; the last one given is also that of all
    /// deeper levels. A table that moves to another level keeps its compression. Default: none anywhere.
    pub fn compression(mut self, by_level: impl IntoIterator<Item = Compression>) -> Self {
        self.compression = by_level.into_iter().collect();
        self
    }

    /// How tables of a level are built, in a key space with options of its own or without.
    pub(crate) fn of_tables(&self, level: usize, own: Option<&KeySpaceOptions>) -> TableOptions {
        let of_database = self.of_all_tables(level);
        own.map_or(of_database, |own| own.of_tables(level, of_database, self.policy.key_order() == KeyOrder::Bytes))
    }

    fn of_all_tables(&self, level: usize) -> TableOptions {
        let compression = self.compression.get(level).or(self.compression.last()).copied().unwrap_or_default();
        TableOptions {
            block_bytes: self.block_bytes,
            filter_bits_per_key: self.filter_bits_per_key,
            filters: self.filters,
            indexes: self.indexes,
            compression,
            prefix_bytes: if self.policy.key_order() == KeyOrder::Hash { 0 } else { self.prefix_filter_bytes },
            is_direct: self.direct_writes,
            has_times: false,
        }
    }

    /// How tables are opened.
    pub(crate) fn table_reads(&self) -> OpenOptions {
        match self {
            Self { direct_reads: true, .. } => OpenOptions::read().direct(),
            Self { mapped_reads: true, .. } => OpenOptions::read().mapped(),
            _ => OpenOptions::read(),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::InvalidArgument(what.into()));
        if !(1 << 10..=MEMTABLE_BYTES_MAX).contains(&(self.memtable_bytes as u64)) {
            return wrong("memtable_bytes is not within 1 KiB and 8 GiB");
        }
        if self.immutable_memtables_max == 0 {
            return wrong("immutable_memtables_max is 0");
        }
        if self.open_files_max.is_some_and(|count| count < 8) {
            return wrong("open_files_max is below 8");
        }
        if !(1..=64).contains(&self.merge_parts_max) {
            return wrong("merge_parts_max is not within 1 and 64");
        }
        if !(1..=64).contains(&self.merges_max) {
            return wrong("merges_max is not within 1 and 64");
        }
        if self.table_bytes < 1 << 10 {
            return wrong("table_bytes is below 1 KiB");
        }
        let (bits, prefix) = (self.filter_bits_per_key, self.prefix_filter_bytes);
        sstable::check_options(self.block_bytes, bits, prefix, &self.compression).or_else(wrong)
    }

    pub(crate) fn rng(&self) -> Rng {
        self.seed.map_or_else(|| OsEntropy.rng(), Rng::new)
    }
}
