//! The store: all shards, the map of databases, and the parts every command shares.

use crate::checkpoint::walk::Walk;
use crate::compression::Compression;
use crate::evict::budget::Budget;
use crate::gate::Gate;
use crate::libraries::LibrarySlot;
use crate::lock::{Held, ShardLock, WorkerSet};
use crate::notices::Notices;
use crate::position_slot::PositionSlot;
use crate::pressure::state::FlushPressure;
use crate::record_sink::{LogSlot, RecordSink};
use crate::recovery_points::RecoveryPoints;
use crate::shard::{Shard, ShardEngine};
use crate::slots::SlotMap;
use crate::spaces::Spaces;
use crate::tiered::counts::TierCounts;
use crate::waits::{AwaitedKeys, WaitTable};
use crate::watch::WatchTable;
use base::hash::KeyHasher;
use base::{Clock, DbIndex, Entropy, KeyspaceId, ShardId};
use engine::tier::WrittenShards;
use engine::{Backlog, Engine, Entry, Key, Value, ValueTier};
use engine_mem::{MemEngine, MemHints, MemoryArena, MemoryUse, Way};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock, RwLock};
use types::Source;
use value::Limits;

/// Wakes workers that wait for a shard lock. The code that runs the workers provides it.
pub trait Wake: Send + Sync {
    /// These workers try their parked connections again.
    fn wake(&self, workers: WorkerSet);
}

/// How a store is made.
pub struct StoreOptions {
    /// Shards, 1 to [`SlotMap::SHARD_COUNT_MAX`].
    pub shard_count: usize,
    /// Databases.
    pub database_count: u32,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where the secret of the key hash comes from.
    pub entropy: Arc<dyn Entropy>,
    /// Wakes workers.
    pub wake: Arc<dyn Wake>,
    /// Where records go at first; `None` means the log is off and no record is built. See
    /// [`AllLocked::set_log`](crate::AllLocked::set_log).
    pub log: Option<Arc<dyn RecordSink>>,
    /// Puts another engine around or in place of the memory engine: tests of the engine contract.
    pub engine: fn(MemEngine) -> ShardEngine,
}

/// A lock on its own cache lines, after what is read without it. In this order, and that of the parts, the way to an
/// entry reads one cache line here. With 64 shards the per-shard cache lines no longer fit in L1.
#[repr(C, align(128))]
pub(crate) struct ShardCell {
    hints: Arc<MemHints>,
    pub(crate) lock: ShardLock<Shard>,
}

/// All entries of all databases.
pub struct Store {
    shards: Box<[ShardCell]>,
    slots: SlotMap,
    /// Database numbers.
    pub spaces: Spaces,
    /// The key hash, with its secret.
    pub hasher: KeyHasher,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What entries, tables and indexes take.
    pub memory: Arc<MemoryUse>,
    pub(crate) arena: MemoryArena,
    wake: Arc<dyn Wake>,
    pub(crate) budget: Budget,
    /// Which values are compressed, and how.
    pub compression: Compression,
    /// Limits up to which collections are packed.
    pub packed: Arc<Limits>,
    /// Whether upkeep removes expired entries; see [`Store::set_active_expiration`].
    pub(crate) active_expiration: AtomicBool,
    pub(crate) log: LogSlot,
    /// How many keys commands wait for.
    pub awaited_keys: Arc<AwaitedKeys>,
    pub(crate) walk: Walk,
    /// Notices for clients.
    pub notices: Notices,
    /// What refuses commands: loading, failing writes, a busy script.
    pub gate: Gate,
    /// From where on the log counts; set before replay.
    pub(crate) recovery_points: RwLock<RecoveryPoints>,
    /// Times that a database with keys was emptied (FLUSHALL, FLUSHDB). Changed under all locks.
    pub flushes: AtomicU64,
    /// Flushes of databases on disk.
    pub pressure: FlushPressure,
    /// The libraries of functions.
    pub libraries: LibrarySlot,
    /// Where a replica is in the stream of its primary.
    pub position: PositionSlot,
    /// A script takes the locks that it lacks, after a change.
    pub(crate) is_growing: crate::sync::AtomicBool,
    /// Where values go that memory has no room for.
    pub(crate) tier: OnceLock<Arc<dyn ValueTier>>,
    /// What has gone there and come back.
    pub tier_counts: TierCounts,
    /// Shards with values that go to a tier at once.
    pub(crate) written: Arc<WrittenShards>,
}

impl Store {
    /// An empty store.
    pub fn new(options: StoreOptions) -> Self {
        let mut rng = options.entropy.rng();
        let hasher = KeyHasher::new(&mut rng);
        let slots = SlotMap::new(options.shard_count);
        let memory = Arc::new(MemoryUse::default());
        let arena = MemoryArena::reserve(options.shard_count);
        let budget = Budget::default();
        let packed = Arc::<Limits>::default();
        let awaited_keys = Arc::<AwaitedKeys>::default();
        let shards = (0..options.shard_count)
            .map(|shard| {
                let rng = base::Rng::new(rng.next_u64());
                let mut engine = MemEngine::in_arena(hasher.clone(), rng, memory.clone(), &arena, shard);
                engine.follow_stamp_mode(&budget.stamps);
                engine.follow_limits(&packed);
                let hints = engine.hints();
                let engine = (options.engine)(engine);
                ShardCell {
                    lock: ShardLock::new(Shard {
                        engine,
                        watch: WatchTable::default(),
                        waits: WaitTable::new(awaited_keys.clone()),
                        holds: None,
                    }),
                    hints,
                }
            })
            .collect();
        let compression = Compression::new(options.clock.clone(), base::Rng::new(rng.next_u64()), &memory);
        let wake = options.wake.clone();
        let backlog = Backlog::new(move |workers| wake.wake(WorkerSet::from_bits(workers)));
        let walk = Walk::new(options.shard_count, backlog);
        let store = Self {
            shards,
            slots,
            spaces: Spaces::new(options.database_count),
            hasher,
            clock: options.clock,
            memory,
            arena,
            wake: options.wake,
            budget,
            compression,
            packed,
            active_expiration: AtomicBool::new(true),
            log: LogSlot::default(),
            awaited_keys,
            walk,
            notices: Notices::default(),
            gate: Gate::default(),
            recovery_points: RwLock::default(),
            flushes: AtomicU64::new(0),
            pressure: FlushPressure::default(),
            libraries: LibrarySlot::default(),
            position: PositionSlot::default(),
            is_growing: crate::sync::AtomicBool::new(false),
            tier: OnceLock::new(),
            tier_counts: TierCounts::default(),
            written: Arc::new(WrittenShards::new(options.shard_count)),
        };
        if let (Some(log), Some(mut all)) = (options.log, store.try_lock_all()) {
            all.set_log(Some(log));
        }
        store
    }

    /// Which shard a slot is in.
    pub fn slots(&self) -> &SlotMap {
        &self.slots
    }

    /// The shard a key lives in.
    #[inline]
    pub fn shard_of(&self, key: &Key<'_>) -> ShardId {
        self.slots.shard_of(key.slot)
    }

    /// The shard of a key, from its bytes alone.
    pub fn shard_of_bytes(&self, key: &[u8]) -> ShardId {
        self.slots.shard_of(base::slot::slot_of(key))
    }

    /// The shard a scan cursor is in; the first when the cursor is not one of this server.
    pub fn shard_of_cursor(&self, cursor: u64) -> ShardId {
        let shard = ShardId(cursor as u16);
        if shard.index() < self.shards.len() { shard } else { ShardId(0) }
    }

    /// Shards, ascending.
    pub fn shard_ids(&self) -> impl ExactSizeIterator<Item = ShardId> + use<> {
        (0..self.shards.len() as u16).map(ShardId)
    }

    #[inline]
    pub(crate) fn shard(&self, shard: ShardId) -> &ShardCell {
        &self.shards[shard.index()]
    }

    /// Has these workers look again at what waits: for a lock, for the log, for output that may go now.
    pub fn wake(&self, workers: WorkerSet) {
        self.wake.wake(workers);
    }

    /// Asks the processor for the table's line that leads to the key, without a lock.
    #[inline]
    pub fn prefetch_bucket(&self, shard: ShardId, space: KeyspaceId, hash: u64) -> Way {
        let cell = self.shard(shard);
        cell.hints.prefetch_bucket(space, hash, || cell.lock.is_open())
    }

    /// The same for a key that [`Store::prefetch_entry`] did not find in its first bucket.
    pub fn prefetch_second_bucket(&self, way: &mut Way, shard: ShardId, space: KeyspaceId, hash: u64) {
        self.shard(shard).hints.prefetch_second_bucket(way, space, hash);
    }

    /// Asks for the entry itself, once the line has come. False when the bucket in it seems not to have it.
    #[inline]
    pub fn prefetch_entry(&self, way: &mut Way, shard: ShardId, hash: u64) -> bool {
        self.shard(shard).hints.prefetch_entry(way, hash)
    }

    /// Whether values may lie on a mapped tier.
    #[inline]
    pub fn has_mapped_tier(&self) -> bool {
        self.tier.get().is_some_and(|tier| tier.is_mapped())
    }

    /// Asks for the value on a mapped tier of an entry that has come, if its shard is free.
    #[cold]
    pub fn prefetch_away(&self, way: &Way, shard: ShardId) {
        let Some(held) = self.shard(shard).lock.spin_lock() else { return };
        if let ShardEngine::Memory(engine) = &held.engine {
            engine.prefetch_away(way);
        }
        self.unlock_one(held);
    }

    /// Prefetches what requests for elements of a collection will read, if it is a big one and its shard is free: only
    /// a hint. See [`value::Big::load`].
    pub fn load_elements(&self, shard: ShardId, key: &Key<'_>, requests: &[[&[u8]; 2]], is_edit: bool) {
        let Some(mut held) = self.shard(shard).lock.spin_lock() else { return };
        // Absent leaves would stop what cannot run again.
        if let Ok(Some(Entry { value: Value::Big(big), .. })) = held.engine.read(key, false)
            && !big.may_have_rows()
        {
            big.load(requests, is_edit);
        }
        self.unlock_one(held);
    }

    /// Bytes of a shard's entries, as it reported last.
    pub(crate) fn entry_bytes(&self, shard: ShardId) -> u64 {
        self.shard(shard).hints.live_bytes() as u64
    }

    /// A key of a keyspace.
    #[inline]
    pub fn key<'k>(&self, space: KeyspaceId, bytes: &'k [u8]) -> Key<'k> {
        Key::new(&self.hasher, space, bytes)
    }

    /// What it takes to read the values that are stored compressed.
    #[inline]
    pub fn source(&self) -> Source<'_> {
        let dictionaries = &self.compression.dictionaries;
        Source { dictionaries, hasher: &self.hasher, limits: &self.packed }
    }

    /// Entries, and among them those with an expiration, of a database. Takes one lock after the other, so the sum is
    /// of slightly different moments; shards whose lock is taken longer than a spin are waited for.
    pub fn len(&self, db: DbIndex) -> (u64, u64) {
        let Some(space) = self.spaces.get(db) else { return (0, 0) };
        self.each_shard(|shard| (shard.engine.len(space), shard.engine.expiring_len(space)))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Visits every shard under its lock, one after the other. For figures and settings, not for commands.
    pub fn each_shard<R>(&self, mut visit: impl FnMut(&mut Shard) -> R) -> impl Iterator<Item = R> {
        self.shard_ids().map(move |shard| {
            let mut held = self.lock_patiently(shard);
            let result = visit(&mut held);
            self.unlock_one(held);
            result
        })
    }

    /// Takes a shard's lock, waiting until it is free. Not while holding another: see D2 of `locking.rs`.
    pub(crate) fn lock_patiently(&self, shard: ShardId) -> Held<'_, Shard> {
        loop {
            match self.shard(shard).lock.spin_lock() {
                Some(held) => return held,
                None => std::thread::yield_now(),
            }
        }
    }
}
