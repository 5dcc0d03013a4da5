//! Keeping within `maxmemory`: entries evicted by the policy, and their pages cleaned until memory comes back.
//!
//! Memory is counted in pages, so an eviction makes room inside pages first and gives pages back only after cleaning. A
//! write over the budget therefore evicts what it brings and as much again, and cleans: the excess shrinks with every
//! write, and no more is evicted than that.

use crate::commit::Blocked;
use crate::lock_set::LockSet;
use crate::shard::ShardEngine;
use crate::store::Store;
use crate::txn::{At, Scratch};
use base::{DbIndex, Rng, ShardId};
use engine::{Effect, Engine, Keyspace, NotifyClass, WriteClass};
use engine_mem::{EvictionPolicy, SharedStampMode, StampMode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The memory budget.
pub struct Budget {
    /// Bytes; `u64::MAX` without a limit.
    max_bytes: AtomicU64,
    /// What others hold that counts as the engines' memory does.
    others: OnceLock<Box<dyn Fn() -> u64 + Send + Sync>>,
    policy: RwLock<Option<EvictionPolicy>>,
    /// How access is stamped, so that the policy can tell what goes first. Shards follow it.
    pub(crate) stamps: Arc<SharedStampMode>,
    /// Counts choices of a shard: each draws its chance from the number.
    choices: AtomicU64,
    /// The shard with most bytes of entries and how many these are, looked up every [`CHOICES_PER_LOOK`] choices.
    largest: (AtomicU64, AtomicU64),
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_bytes: AtomicU64::new(u64::MAX),
            others: OnceLock::new(),
            policy: RwLock::default(),
            stamps: Arc::default(),
            choices: AtomicU64::default(),
            largest: Default::default(),
        }
    }
}

impl Budget {
    fn policy(&self) -> Option<EvictionPolicy> {
        *self.policy.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes evicted beside what a write brings: a small entry and its share of the table.
const EVICTION_BYTES_MIN: u64 = 128;

/// Victims taken under one locking, and for one write at most.
const VICTIMS_PER_LOCKING: usize = 16;
const VICTIMS_MAX: usize = 1024;

/// Units of cleaning after an eviction.
const CLEAN_STEP: usize = 256;

/// After how many choices of a shard it is looked up again which is the largest.
const CHOICES_PER_LOOK: u64 = 256;

/// Shards drawn for a choice, until one is taken.
const DRAWS_MAX: usize = 16;

/// Shards chosen without finding a victim before all are tried in turn.
const CHOICES_IN_VAIN_MAX: usize = 4;

impl Store {
    /// Sets `maxmemory` (0 for none) and its policy (`None` for `noeviction`), and how access is stamped for it. Takes no
    /// shard lock, so it may be called from a command.
    pub fn set_budget(&self, max_bytes: u64, policy: Option<EvictionPolicy>, stamps: StampMode) {
        self.budget.max_bytes.store(if max_bytes == 0 { u64::MAX } else { max_bytes }, Ordering::Relaxed);
        *self.budget.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
        self.budget.stamps.set(stamps);
    }

    /// Has bytes counted against the budget that are held elsewhere, as connections do. `bytes` is asked by every write while there is a
    /// budget, so it is a few loads; said once, further calls change nothing.
    pub fn count_others(&self, bytes: impl Fn() -> u64 + Send + Sync + 'static) {
        self.budget.others.get_or_init(|| Box::new(bytes));
    }

    /// What counts against the budget, as of now: the engines' memory, that of a running checkpoint, and what
    /// [`Store::count_others`] was told of.
    #[inline]
    pub fn used_bytes(&self) -> u64 {
        let others = self.budget.others.get().map_or(0, |bytes| bytes());
        self.memory.total().saturating_add(self.backlog().memory().now).saturating_add(others)
    }

    /// Whether memory in use is beyond the budget.
    #[inline]
    pub fn is_over_budget(&self) -> bool {
        let max = self.budget.max_bytes.load(Ordering::Relaxed);
        max != u64::MAX && self.used_bytes() > max
    }

    /// Whether less than a sixteenth of the budget is left.
    pub fn is_near_budget(&self) -> bool {
        let max = self.budget.max_bytes.load(Ordering::Relaxed);
        max != u64::MAX && self.used_bytes() > max - max / 16
    }

    /// Makes room for a write of about so many bytes while over the budget. False when the policy finds nothing to evict: the
    /// write is to be refused.
    ///
    /// # Errors
    /// [`Blocked::Log`] when the log has no room for what would be evicted: the write is to be tried again.
    #[cold]
    pub fn evict(&self, bytes: usize, worker: usize, scratch: &mut Scratch) -> Result<bool, Blocked> {
        let Some(policy) = self.budget.policy() else { return Ok(false) };
        scratch.client = 0;
        let wanted = (bytes as u64 * 2).max(EVICTION_BYTES_MIN);
        let (mut freed, mut victims, mut in_vain) = (0, 0, 0);
        let in_vain_max = CHOICES_IN_VAIN_MAX + self.shard_ids().len();
        while freed < wanted && victims < VICTIMS_MAX && in_vain < in_vain_max && self.is_over_budget() {
            let shard = match in_vain.checked_sub(CHOICES_IN_VAIN_MAX) {
                None => self.choose_shard(),
                Some(turn) => ShardId(turn as u16),
            };
            let at = At { now: self.clock.now_ms(), db: DbIndex(0), touch: false, worker, writes: WriteClass::Frees };
            let evicted = self.commit(scratch, &LockSet::One(shard), &at, |txn| {
                let (mut bytes, mut count) = (0, 0);
                while count < VICTIMS_PER_LOCKING && freed + bytes < wanted {
                    let ShardEngine::Memory(engine) = &mut txn.held.get(shard).engine else { break };
                    let Some(key) = engine.victim(policy) else { break };
                    let (name, space) = (key.bytes.to_vec(), key.space);
                    let key = self.key(space, &name);
                    bytes += txn.cost_bytes(&key).unwrap_or(0);
                    txn.apply(&Effect::Delete { key });
                    txn.notify(NotifyClass::EVICTED, "evicted", &key);
                    count += 1;
                }
                match &mut txn.held.get(shard).engine {
                    ShardEngine::Memory(engine) => engine.clean_closely(CLEAN_STEP),
                    other => other.clean(CLEAN_STEP),
                };
                Ok((bytes, count))
            });
            let (bytes, count) = match evicted {
                Ok(evicted) => evicted,
                Err(Blocked::Log) => return Err(Blocked::Log),
                Err(Blocked::Refused) => break,
                // A shard that is locked gives its victim another time.
                Err(Blocked::Shard | Blocked::Fetch) => (0, 0),
            };
            in_vain = if count == 0 { in_vain + 1 } else { 0 };
            freed += bytes;
            victims += count;
            scratch.evicted += count as u64;
        }
        Ok(victims > 0 || !self.is_over_budget())
    }

    /// The shard to take a victim from: each as likely as it holds bytes, so that all lose what has been used as little.
    /// Were they taken in turn, small ones would lose what large ones keep.
    fn choose_shard(&self) -> ShardId {
        let Budget { choices, largest: (largest, largest_bytes), .. } = &self.budget;
        let choice = choices.fetch_add(1, Ordering::Relaxed);
        if choice.is_multiple_of(CHOICES_PER_LOOK)
            && let Some((bytes, shard)) = self.shard_ids().map(|shard| (self.entry_bytes(shard), shard)).max()
        {
            largest.store(u64::from(shard.0), Ordering::Relaxed);
            largest_bytes.store(bytes, Ordering::Relaxed);
        }
        let largest_bytes = largest_bytes.load(Ordering::Relaxed);
        let mut rng = Rng::new(choice);
        for _ in 0..DRAWS_MAX {
            let shard = ShardId(rng.below(self.shard_ids().len() as u64) as u16);
            if rng.below(largest_bytes.max(1)) <= self.entry_bytes(shard) {
                return shard;
            }
        }
        // The others are small beside it.
        ShardId(largest.load(Ordering::Relaxed) as u16)
    }
}
