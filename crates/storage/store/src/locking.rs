//! Taking the shards of a command, all or none.
//!
//! D1. Locks are taken in ascending order of shard.
//! D2. While holding one, a worker waits at most `Patience` for the next; then it opens all and starts over, having
//!     changed nothing. No holder ever sleeps, so there is no deadlock.

use crate::lock::Held;
use crate::lock_set::LockSet;
use crate::shard::Shard;
use crate::store::Store;
use crate::sync::{Patience, yield_now};
use base::ShardId;
use std::sync::atomic::Ordering;

/// The locks, held.
#[derive(Default)]
pub(crate) enum HeldShards<'s> {
    /// None.
    #[default]
    None,
    /// One.
    One(ShardId, Held<'s, Shard>),
    /// Several, ascending.
    Several(Vec<(ShardId, Held<'s, Shard>)>),
}

impl HeldShards<'_> {
    /// The shard, which has to be among those held (K2).
    #[inline]
    pub(crate) fn get(&mut self, shard: ShardId) -> &mut Shard {
        match self {
            Self::One(id, held) if *id == shard => held,
            Self::Several(all) => {
                let at = all.binary_search_by_key(&shard, |(id, _)| *id);
                &mut all[at.unwrap_or_else(|_| not_locked(shard))].1
            }
            _ => not_locked(shard),
        }
    }

    /// Whether all of this many shards are.
    pub(crate) fn are_all(&self, count: usize) -> bool {
        match self {
            Self::None => count == 0,
            Self::One(..) => count == 1,
            Self::Several(all) => all.len() == count,
        }
    }

    /// Whether the shard is among them.
    pub(crate) fn has(&self, shard: ShardId) -> bool {
        match self {
            Self::None => false,
            Self::One(held, _) => *held == shard,
            Self::Several(all) => all.binary_search_by_key(&shard, |(held, _)| *held).is_ok(),
        }
    }

    /// Which they are.
    pub(crate) fn set(&self) -> LockSet {
        match self {
            Self::None => LockSet::None,
            Self::One(shard, _) => LockSet::One(*shard),
            Self::Several(all) => LockSet::Several(all.iter().map(|(shard, _)| *shard).collect()),
        }
    }

    /// Every shard held.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Shard> {
        let (one, several) = match self {
            Self::None => (None, [].iter_mut()),
            Self::One(_, held) => (Some(&mut **held), [].iter_mut()),
            Self::Several(all) => (None, all.iter_mut()),
        };
        one.into_iter().chain(several.map(|(_, held)| &mut **held))
    }
}

#[cold]
fn not_locked(shard: ShardId) -> ! {
    panic!("shard {shard} is not locked: the command's key specification does not name its key");
}

impl Store {
    /// Takes every lock of the set or none; `None` after enlisting `worker` with a lock that was taken.
    #[inline]
    pub(crate) fn lock(&self, set: &LockSet, worker: usize) -> Option<HeldShards<'_>> {
        match set {
            LockSet::None => Some(HeldShards::None),
            LockSet::One(shard) => Some(HeldShards::One(*shard, self.lock_one(*shard, worker)?)),
            LockSet::Several(shards) => self.lock_several(shards.iter().copied(), worker),
            LockSet::All => self.lock_several(self.shard_ids(), worker),
        }
    }

    /// Takes one lock; `None` after enlisting `worker` with it.
    #[inline]
    pub(crate) fn lock_one(&self, shard: ShardId, worker: usize) -> Option<Held<'_, Shard>> {
        let lock = &self.shard(shard).lock;
        lock.spin_lock().or_else(|| lock.lock_or_enlist(worker))
    }

    /// Every shard held, if all could be taken within `patience`; else none.
    pub(crate) fn lock_all_within(&self, mut patience: Patience) -> Option<HeldShards<'_>> {
        let mut all: Vec<(ShardId, Held<'_, Shard>)> = Vec::with_capacity(self.shard_ids().len());
        for shard in self.shard_ids() {
            let held = loop {
                if let Some(held) = self.shard(shard).lock.spin_lock() {
                    break Some(held);
                }
                if patience.is_over() {
                    break None;
                }
            };
            let Some(held) = held else {
                all.into_iter().for_each(|(_, held)| self.unlock_one(held));
                return None;
            };
            all.push((shard, held));
        }
        Some(HeldShards::Several(all))
    }

    fn lock_several(&self, shards: impl Iterator<Item = ShardId>, worker: usize) -> Option<HeldShards<'_>> {
        let mut all: Vec<(ShardId, Held<'_, Shard>)> = Vec::with_capacity(shards.size_hint().0);
        for shard in shards {
            let lock = &self.shard(shard).lock;
            let mut patience = Patience::for_a_command();
            let held = loop {
                if let Some(held) = lock.spin_lock() {
                    break Some(held);
                }
                if all.is_empty() || patience.is_over() {
                    break None;
                }
            };
            let Some(held) = held else {
                all.into_iter().for_each(|(_, held)| self.unlock_one(held));
                // If it has come free meanwhile, wake the worker at once so that it retries.
                if let Some(held) = lock.lock_or_enlist(worker) {
                    self.unlock_one(held);
                    self.wake(crate::lock::WorkerSet::one(worker));
                }
                return None;
            };
            all.push((shard, held));
        }
        Some(HeldShards::Several(all))
    }

    /// Locks all shards that are not among those held, which stay so. `None`, with those held, while another does.
    ///
    /// D3. It waits while it holds locks, as long as others hold theirs. All other holders release theirs in the end:
    ///     none waits for locks while it holds some, but for [`Patience`], and only one worker at a time does this.
    #[cold]
    pub(crate) fn lock_rest<'s>(&'s self, held: HeldShards<'s>) -> Result<HeldShards<'s>, HeldShards<'s>> {
        if self.is_growing.swap(true, Ordering::Acquire) {
            return Err(held);
        }
        let mut before = match held {
            HeldShards::None => Vec::new(),
            HeldShards::One(shard, held) => vec![(shard, held)],
            HeldShards::Several(all) => all,
        };
        before.reverse();
        let mut all: Vec<(ShardId, Held<'_, Shard>)> = Vec::with_capacity(self.shard_ids().len());
        for shard in self.shard_ids() {
            if let Some(held) = before.pop_if(|(held, _)| *held == shard) {
                all.push(held);
                continue;
            }
            let held = loop {
                match self.shard(shard).lock.spin_lock() {
                    Some(held) => break held,
                    None => yield_now(),
                }
            };
            all.push((shard, held));
        }
        self.is_growing.store(false, Ordering::Release);
        Ok(HeldShards::Several(all))
    }

    /// Opens the locks and wakes the workers that waited for them.
    #[inline]
    pub(crate) fn unlock(&self, held: HeldShards<'_>) {
        match held {
            HeldShards::None => {}
            HeldShards::One(_, held) => self.unlock_one(held),
            HeldShards::Several(all) => all.into_iter().for_each(|(_, held)| self.unlock_one(held)),
        }
    }

    #[inline]
    pub(crate) fn unlock_one(&self, held: Held<'_, Shard>) {
        let waiters = held.unlock();
        if !waiters.is_empty() {
            self.wake(waiters);
        }
    }
}
