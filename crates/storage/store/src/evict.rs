//! Keeping within `maxmemory`: entries evicted by the policy, and their pages cleaned until memory comes back.
//!
//! Memory is counted in pages, so an eviction makes room inside pages first and gives pages back only after cleaning. A
//! write over the budget therefore evicts what it brings and as much again, and cleans: the excess shrinks with every
//! write, and no more is evicted than that.
//!
//! An excess that no single write has caused (a lower `maxmemory`, one huge value) is worked off in steps, by workers
//! between their turns and by the writes that meet it. Such a write waits until little of it is left. A write is
//! refused only when there is nothing to evict and nothing to clean.

pub(crate) mod budget;

use crate::commit::Blocked;
use crate::lock_set::LockSet;
use crate::shard::ShardEngine;
use crate::store::Store;
use crate::txn::{At, Scratch, Txn};
use base::{DbIndex, Rng, ShardId};
use engine::{Effect, Engine, Keyspace, NotifyClass, WriteClass};
use engine_mem::{Droppable, EvictionPolicies, StampMode};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

pub use budget::Policies;

/// Bytes evicted in addition to what a write brings: a small entry and its share of the table.
const EVICTION_BYTES_MIN: u64 = 128;

/// Victims taken under one locking, and for one write at most.
const VICTIMS_PER_LOCKING: usize = 16;
const VICTIMS_MAX: usize = 1024;

/// Bytes evicted in one step of working off an excess.
const EXCESS_STEP_BYTES: u64 = 16 << 10;

/// The part of the budget by which writes may be beyond it, while each evicts more than it brings.
const SLACK_PARTS: u64 = 64;

/// Shards cleaned without evicting in one step, at most.
const CLEANINGS_MAX: usize = 4;

/// Units of cleaning of each shard in one try of a write that waits for it.
const RECLAIM_STEP: usize = 32;

/// What is to be evicted.
struct Eviction {
    policies: Arc<Policies>,
    /// About how many bytes to evict.
    wanted: u64,
    /// Nothing is evicted from a shard that has pages to clean.
    cleans_first: bool,
}

/// What came of it.
struct Evicted {
    /// There was, or may have been, something to evict or to clean.
    goes_on: bool,
}

/// What one shard gave.
#[derive(Default)]
struct FromShard {
    bytes: u64,
    count: usize,
    /// There is more to clean, or the shard was locked.
    goes_on: bool,
}

impl Txn<'_> {
    /// Cleans pages of a shard for a step; true when there is more to do.
    fn clean_closely(&mut self, shard: ShardId) -> bool {
        match &mut self.held.get(shard).engine {
            ShardEngine::Memory(engine) => engine.clean_closely(CLEAN_STEP),
            other => other.clean(CLEAN_STEP),
        }
    }
}

/// Bytes of entries that rows hold as well, dropped of each shard by a write that waits for memory.
const RECLAIM_BYTES: usize = 64 << 10;

/// Units of cleaning after an eviction.
const CLEAN_STEP: usize = 256;

/// After how many choices of a shard it is looked up again which is the largest.
const CHOICES_PER_LOOK: u64 = 256;

/// Shards drawn for a choice, until one is taken.
const DRAWS_MAX: usize = 16;

/// Shards chosen without finding a victim before all are tried in turn.
const CHOICES_IN_VAIN_MAX: usize = 4;

impl Store {
    /// Sets `maxmemory` (0 for none) and what may be evicted for it (`None` for nothing), and how access is stamped.
    /// Takes no shard lock, so it may be called from a command.
    pub fn set_budget(&self, max_bytes: u64, policies: impl Into<Policies>, stamps: StampMode) {
        self.budget.max_bytes.store(if max_bytes == 0 { u64::MAX } else { max_bytes }, Ordering::Relaxed);
        *self.budget.policies.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policies.into());
        self.budget.stamps.set(stamps);
    }

    /// Has bytes counted against the budget that are held elsewhere, as connections do. `bytes` is asked by every write
    /// while there is a budget, so it is a few loads; said once, further calls change nothing.
    pub fn count_others(&self, bytes: impl Fn() -> u64 + Send + Sync + 'static) {
        self.budget.others.get_or_init(|| Box::new(bytes));
    }

    /// Bytes that count against the budget now: the memory of the engines and of a running checkpoint, and what the
    /// callback of [`Store::count_others`] reports.
    #[inline]
    pub fn used_bytes(&self) -> u64 {
        let others = self.budget.others.get().map_or(0, |bytes| bytes());
        let rows = self.pressure.row_store_bytes();
        self.memory.total().saturating_add(self.backlog().memory().now).saturating_add(others).saturating_add(rows)
    }

    /// The budget; `u64::MAX` without one.
    pub fn budget_bytes(&self) -> u64 {
        self.budget.max_bytes()
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

    /// Whether less than half of the budget is left.
    pub(crate) fn is_half_full(&self) -> bool {
        let max = self.budget.max_bytes.load(Ordering::Relaxed);
        max != u64::MAX && self.used_bytes() > max / 2
    }

    /// Bytes of data beyond the budget. Memory of clients and of a running checkpoint is not included: it is temporary,
    /// and evicting an entry that a checkpoint has yet to write frees nothing.
    #[inline]
    pub fn excess_bytes(&self) -> u64 {
        let max = self.budget.max_bytes.load(Ordering::Relaxed);
        if max == u64::MAX { 0 } else { self.memory.total().saturating_sub(max) }
    }

    /// Whether the excess is more than single writes work off.
    fn is_far_over_budget(&self) -> bool {
        self.excess_bytes() > self.budget.max_bytes.load(Ordering::Relaxed) / SLACK_PARTS
    }

    /// Makes room for a write of about `bytes` bytes while over the budget. False when there is nothing to evict and
    /// nothing to clean: refuse the write.
    ///
    /// # Errors
    /// [`Blocked::Memory`] while there is, and [`Blocked::Log`] when the log has no room for the evictions: retry the
    /// write.
    #[cold]
    pub fn evict(&self, bytes: usize, worker: usize, scratch: &mut Scratch) -> Result<bool, Blocked> {
        let excess = if self.is_far_over_budget() { self.excess_bytes().min(EXCESS_STEP_BYTES) } else { 0 };
        if let Some(has_room) = self.demote_for(bytes, excess, worker)? {
            return Ok(has_room);
        }
        if self.gate.keeps_all() {
            return Ok(true);
        }
        let Some(policies) = self.budget.policies() else { return self.reclaim(worker) };
        let wanted = (bytes as u64 * 2).max(EVICTION_BYTES_MIN).max(excess);
        let evicted = self.evict_some(&Eviction { policies, wanted, cleans_first: excess > 0 }, worker, scratch)?;
        match () {
            () if !self.is_over_budget() => Ok(true),
            () if !evicted.goes_on => self.reclaim(worker),
            () if self.is_far_over_budget() => Err(Blocked::Memory),
            () => Ok(true),
        }
    }

    /// One step of working off what is over the budget; true when there is more to do at once.
    pub fn work_off_excess(&self, worker: usize, scratch: &mut Scratch) -> bool {
        if self.demote_step(worker) || self.has_copies_to_drop() && self.drop_copies(worker) {
            return true;
        }
        if self.excess_bytes() == 0 || self.gate.is_loading() || self.gate.keeps_all() {
            return false;
        }
        let Some(policies) = self.budget.policies() else { return false };
        let wanted = self.excess_bytes().min(EXCESS_STEP_BYTES);
        let evicted = self.evict_some(&Eviction { policies, wanted, cleans_first: true }, worker, scratch);
        evicted.is_ok_and(|evicted| evicted.goes_on) && self.excess_bytes() > 0
    }

    /// Whether copies of leaves are to leave memory: reads bring them, and only writes make room.
    pub fn has_copies_to_drop(&self) -> bool {
        self.notices.ask_leaves() && self.is_over_budget() && self.pressure.has_copies()
    }

    /// Has clean rows and copies of leaves of a shard leave memory, a step; true when there is more to do at once.
    fn drop_copies(&self, worker: usize) -> bool {
        let shards = self.shard_ids().len();
        for _ in 0..shards {
            let shard = ShardId((self.pressure.hand.load(Ordering::Relaxed) % shards) as u16);
            let Some(mut held) = self.lock_one(shard, worker) else { return true };
            let dropped = held.engine.drop_clean(RECLAIM_BYTES);
            self.unlock_one(held);
            if dropped > 0 {
                return self.has_copies_to_drop();
            }
            self.pressure.hand.fetch_add(1, Ordering::Relaxed);
        }
        false
    }

    /// Gives back what is free in pages, a step, while over the budget; true when it is no longer.
    ///
    /// # Errors
    /// [`Blocked::Memory`] while there is more to clean or to drop, and [`Blocked::Log`] while a checkpoint has no room
    /// for it, or a flush makes more droppable.
    fn reclaim(&self, worker: usize) -> Result<bool, Blocked> {
        if self.backlog().is_full() {
            // Cleaning hands what a cleared database held to a running checkpoint.
            return if self.waits_for_checkpoint(worker) { Err(Blocked::Log) } else { Err(Blocked::Memory) };
        }
        let (mut goes_on, mut droppable) = (false, Droppable::default());
        for shard in self.shard_ids() {
            match self.lock_one(shard, worker) {
                None => goes_on = true,
                Some(mut held) => {
                    goes_on |= held.engine.drop_clean(RECLAIM_BYTES) > 0;
                    self.notices.look_for_leaves(&held.engine);
                    goes_on |= match &mut held.engine {
                        ShardEngine::Memory(engine) => engine.clean_thoroughly(RECLAIM_STEP),
                        other => other.clean(RECLAIM_STEP),
                    };
                    if !goes_on {
                        let of_shard = held.engine.droppable();
                        droppable.now |= of_shard.now;
                        droppable.after_flush |= of_shard.after_flush;
                    }
                    self.unlock_one(held);
                }
            }
            if !self.is_over_budget() {
                return Ok(true);
            }
        }
        match () {
            () if goes_on => Err(Blocked::Memory),
            // The end of the flush wakes the worker.
            () if droppable.after_flush && self.pressure.want() => Err(Blocked::Log),
            () if droppable.now => Err(Blocked::Memory),
            () => Ok(false),
        }
    }

    /// Evicts about as many bytes as `eviction` wants while over the budget, and cleans.
    fn evict_some(&self, eviction: &Eviction, worker: usize, scratch: &mut Scratch) -> Result<Evicted, Blocked> {
        scratch.client = 0;
        let (mut freed, mut victims, mut in_vain) = (0, 0, 0);
        let (mut has_progress, mut cleanings) = (false, 0);
        let in_vain_max = CHOICES_IN_VAIN_MAX + self.shard_ids().len();
        while freed < eviction.wanted && victims < VICTIMS_MAX && in_vain < in_vain_max && self.is_over_budget() {
            let shard = match in_vain.checked_sub(CHOICES_IN_VAIN_MAX) {
                None => self.choose_shard(),
                Some(turn) => ShardId(turn as u16),
            };
            let left = eviction.wanted - freed;
            let from_shard = match self.evict_from(shard, eviction, left, worker, scratch) {
                Ok(from_shard) => from_shard,
                Err(Blocked::Refused) => break,
                // A shard that is locked gives its victim another time.
                Err(Blocked::Shard | Blocked::Fetch | Blocked::Memory) => {
                    FromShard { goes_on: true, ..Default::default() }
                }
                Err(Blocked::Log) => return Err(Blocked::Log),
            };
            has_progress |= from_shard.count > 0 || from_shard.goes_on;
            if from_shard.count == 0 && from_shard.goes_on {
                cleanings += 1;
                if cleanings == CLEANINGS_MAX {
                    break;
                }
            }
            in_vain = if from_shard.count == 0 { in_vain + 1 } else { 0 };
            freed += from_shard.bytes;
            victims += from_shard.count;
            scratch.evicted += from_shard.count as u64;
        }
        Ok(Evicted { goes_on: has_progress })
    }

    /// Evicts from one shard, and cleans it.
    fn evict_from(
        &self,
        shard: ShardId,
        eviction: &Eviction,
        wanted: u64,
        worker: usize,
        scratch: &mut Scratch,
    ) -> Result<FromShard, Blocked> {
        let at = At { now: self.clock.now_ms(), db: DbIndex(0), touch: false, worker, writes: WriteClass::Frees };
        self.commit(scratch, &LockSet::One(shard), &at, |txn| {
            let mut done = FromShard::default();
            if eviction.cleans_first && txn.clean_closely(shard) {
                // What was evicted before has not come back yet; evicting more would be too much.
                return Ok(FromShard { goes_on: true, ..done });
            }
            done.bytes += txn.held.get(shard).engine.drop_clean(wanted as usize) as u64;
            self.notices.look_for_leaves(&txn.held.get(shard).engine);
            let has_dropped = done.bytes > 0;
            // SWAPDB waits for this shard's lock, so the keyspaces keep their numbers.
            let policies = self.policies_of_spaces(&eviction.policies);
            while done.count < VICTIMS_PER_LOCKING && done.bytes < wanted {
                let ShardEngine::Memory(engine) = &mut txn.held.get(shard).engine else { break };
                let Some(key) = engine.victim(&policies) else { break };
                let (name, space) = (key.bytes.to_vec(), key.space);
                let key = self.key(space, &name);
                done.bytes += txn.cost_bytes(&key).unwrap_or(0);
                txn.apply(&Effect::Delete { key });
                txn.notify(NotifyClass::EVICTED, "evicted", &key);
                done.count += 1;
            }
            done.goes_on = txn.clean_closely(shard) || has_dropped;
            Ok(done)
        })
    }

    fn policies_of_spaces(&self, policies: &Policies) -> EvictionPolicies {
        let space_of = |(db, policy): &(DbIndex, _)| Some((self.spaces.get(*db)?, *policy));
        EvictionPolicies::new(policies.others, policies.databases.iter().filter_map(space_of).collect())
    }

    /// The shard to take a victim from: each as likely as it holds bytes, so that all lose what has been used as
    /// little. Were they taken in turn, small ones would lose what large ones keep.
    pub(crate) fn choose_shard(&self) -> ShardId {
        let budget::Budget { choices, largest: (largest, largest_bytes), .. } = &self.budget;
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
        // The others are small compared with it.
        ShardId(largest.load(Ordering::Relaxed) as u16)
    }
}
