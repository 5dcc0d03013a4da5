//! Which entry goes first when memory is short.
//!
//! Victims are chosen by sampling, after Redis (`maxmemory-samples`, and the pool of Redis 3.0): each choice looks at
//! the cells of one random bucket, about nine entries, and keeps the best sixteen seen so far in a pool; the best of
//! the pool is the victim, if it has not been used since it was seen. Policies over entries that expire sample the
//! expiration index when such entries are few, and `volatile-ttl` takes what the index holds for the nearest times.
//!
//! V1. A candidate is a hash and a score, never a handle: entries move. It is looked up and scored again before it is
//!     given.
//! V2. While there is an entry in the policy's scope, a victim is found.

pub(crate) mod pool;

use crate::bucket::{CELL_COUNT, cells};
use crate::mem_engine::MemEngine;
use crate::space::Space;
use crate::table::Found;
use crate::wheel::Item;
use base::slot::slot_of;
use base::{KeyspaceId, UnixMs};
use engine::Key;
use pool::{Candidate, Pool, pool_of};
pub use pool::{EvictionOrder, EvictionPolicies, EvictionPolicy, EvictionScope};

/// Items of the expiration index looked at for one choice.
const ITEM_SAMPLES: usize = 10;

/// Random buckets looked at for one choice before the pool is trusted; more while it is empty.
const BUCKET_SAMPLES: usize = 1;
const BUCKET_SAMPLES_MAX: usize = 64;

/// Among entries that expire in less than this share, the index finds candidates faster than random buckets do.
const EXPIRING_SHARE: u64 = 4;

/// Where one choice looks: in the keyspaces that have this policy.
#[derive(Clone, Copy)]
struct Scope<'p> {
    policies: &'p EvictionPolicies,
    policy: EvictionPolicy,
}

impl Scope<'_> {
    fn has(self, space: KeyspaceId) -> bool {
        self.policies.of(space) == Some(self.policy)
    }
}

impl MemEngine {
    /// The key to evict next under the policies; the caller logs its deletion and removes it. `None` when nothing is in
    /// the scope of any. Each policy is as likely as there are entries in its scope.
    pub fn victim(&mut self, policies: &EvictionPolicies) -> Option<Key<'_>> {
        self.close_sticky();
        let policy = policies.of(self.random_space(|id| policies.of(id))?)?;
        let scope = Scope { policies, policy };
        let (space, handle) = match policy.order {
            EvictionOrder::Random => self.random_victim(scope)?,
            _ => self.pooled_victim(scope)?,
        };
        let bytes = self.entries.key(handle);
        Some(Key { bytes, hash: self.hasher.hash(bytes), slot: slot_of(bytes), space })
    }

    fn pooled_victim(&mut self, scope: Scope<'_>) -> Option<(KeyspaceId, u32)> {
        let mut pools = std::mem::take(&mut self.pools);
        let pool = pool_of(&mut pools, scope.policy);
        let mut sampled = 0;
        let victim = loop {
            if sampled < BUCKET_SAMPLES || pool.candidates.is_empty() {
                if sampled == BUCKET_SAMPLES_MAX {
                    break self.any_in_scope(scope);
                }
                sampled += 1;
                self.sample(scope, pool);
                continue;
            }
            let candidate = pool.candidates.pop().expect("it is not empty");
            if let Some(handle) = self.still_stands(scope, candidate) {
                break Some((candidate.space, handle));
            }
        };
        self.pools = pools;
        victim
    }

    /// Offers entries of a random database to the pool.
    fn sample(&mut self, scope: Scope<'_>, pool: &mut Pool) {
        let policy = scope.policy;
        let Some(id) = self.random_space_of(scope) else { return };
        let space = self.spaces[id.index()].as_mut().expect("a space with entries");
        let Self { heap, entries, stamps, hasher, rng, .. } = self;
        let has_sticky = self.sticky.is_some();
        let mut offer = |handle: u32| {
            if has_sticky && entries.entry(handle).is_sticky() {
                return;
            }
            let Some(score) = score(policy, entries.stamp(handle), || entries.expiration(handle), stamps) else {
                return;
            };
            if pool.wants(score) {
                pool.offer(Candidate { score, space: id, hash: hasher.hash(entries.key(handle)) });
            }
        };
        if policy.order == EvictionOrder::Ttl {
            // Items are taken out, and only those of entries put back: the nearest lists would else fill with items of
            // entries that were evicted.
            for _ in 0..ITEM_SAMPLES {
                let Some(item) = space.take_soonest(rng) else { return };
                let mut soonest: Option<UnixMs> = None;
                space.table.find_item(heap, item, |handle| {
                    let it_is = Item::of(hasher.hash(entries.key(handle))) == item;
                    if let Some(at) = entries.due_at(handle).filter(|_| it_is) {
                        soonest = Some(soonest.map_or(at, |soonest| soonest.min(at)));
                        offer(handle);
                    }
                });
                if let Some(at) = soonest {
                    space.requeue(item, at);
                }
            }
        } else if samples_index(space, policy) {
            let Some(wheel) = space.wheel() else { return };
            let items = (0..ITEM_SAMPLES).filter_map(|_| wheel.random(rng));
            items.for_each(|item| space.table.find_item(heap, item, &mut offer));
        } else {
            let bucket = space.table.random_bucket(heap, rng);
            cells(bucket.occupied()).for_each(|cell| entries.prefetch(bucket.handle(cell)));
            // From a random cell on: the pool has room for one or two of equal ones, and new entries take the cells of
            // those that went. From the first on, it would be the newest that go, again and again (LFU, where many are
            // equal).
            let start = rng.below(u64::from(CELL_COUNT)) as u32;
            let (before, after) = (bucket.occupied() & ((1 << start) - 1), bucket.occupied() >> start << start);
            cells(after).chain(cells(before)).for_each(|cell| offer(bucket.handle(cell)));
        }
    }

    /// The entry of a candidate, if it is there and as good a victim as when it was seen.
    fn still_stands(&self, scope: Scope<'_>, candidate: Candidate) -> Option<u32> {
        if !scope.has(candidate.space) {
            return None;
        }
        let space = self.space(candidate.space)?;
        let is_it = |handle| self.hasher.hash(self.entries.key(handle)) == candidate.hash;
        let Found { handle, .. } = space.table.find_where(&self.heap, candidate.hash, is_it)?;
        if self.is_kept(handle) {
            return None;
        }
        let expiration = || self.entries.expiration(handle);
        let score = score(scope.policy, self.entries.stamp(handle), expiration, &self.stamps)?;
        (score >= candidate.score).then_some(handle)
    }

    fn random_victim(&mut self, scope: Scope<'_>) -> Option<(KeyspaceId, u32)> {
        let policy = scope.policy;
        for _ in 0..BUCKET_SAMPLES_MAX {
            let id = self.random_space_of(scope)?;
            let space = self.spaces[id.index()].as_ref().expect("a space with entries");
            let mut chosen = None;
            if samples_index(space, policy) {
                let item = space.wheel().and_then(|wheel| wheel.random(&mut self.rng));
                if let Some(item) = item {
                    space.table.find_item(&self.heap, item, |handle| chosen = Some(handle));
                }
            } else {
                chosen = space.table.random(&self.heap, &mut self.rng);
            }
            if let Some(handle) = chosen
                && (!policy.only_expiring() || self.entries.expiration(handle).is_some())
                && !self.is_kept(handle)
            {
                return Some((id, handle));
            }
        }
        self.any_in_scope(scope)
    }

    /// A keyspace in scope, as likely as it has entries in scope.
    fn random_space_of(&mut self, scope: Scope<'_>) -> Option<KeyspaceId> {
        self.random_space(|id| scope.has(id).then_some(scope.policy))
    }

    /// A keyspace, as likely as it has entries in the scope of its policy.
    fn random_space(&mut self, policy_of: impl Fn(KeyspaceId) -> Option<EvictionPolicy>) -> Option<KeyspaceId> {
        let total: u64 = self.populations(&policy_of).map(|(_, population)| population).sum();
        if total == 0 {
            return None;
        }
        let mut place = self.rng.below(total);
        self.populations(&policy_of).find_map(|(id, population)| match place.checked_sub(population) {
            Some(rest) => {
                place = rest;
                None
            }
            None => Some(id),
        })
    }

    /// The keyspaces that have a policy, with the number of entries in its scope.
    fn populations(
        &self,
        policy_of: impl Fn(KeyspaceId) -> Option<EvictionPolicy>,
    ) -> impl Iterator<Item = (KeyspaceId, u64)> {
        self.spaces.iter().enumerate().filter_map(move |(id, space)| {
            let id = KeyspaceId(id as u32);
            Some((id, self.population(id, space.as_ref()?, policy_of(id)?)))
        })
    }

    /// Entries in scope. None of a backed keyspace: its entries are dropped, never evicted. A sticky one does not
    /// expire.
    fn population(&self, id: KeyspaceId, space: &Space, policy: EvictionPolicy) -> u64 {
        match policy.only_expiring() {
            _ if space.backed.is_some() => 0,
            true => space.expiring,
            false => space.table.len() - self.sticky_items(id),
        }
    }

    fn is_kept(&self, handle: u32) -> bool {
        self.sticky.is_some() && self.entries.entry(handle).is_sticky()
    }

    /// Some entry in scope, found by walking from a random place on: what is left when sampling has no luck (V2).
    fn any_in_scope(&mut self, scope: Scope<'_>) -> Option<(KeyspaceId, u32)> {
        let policy = scope.policy;
        let id = self.random_space_of(scope)?;
        let table = &self.spaces[id.index()].as_ref()?.table;
        let start = self.rng.next_u64();
        let mut from = start;
        loop {
            let stretch = table.stretch(&self.heap, from);
            let in_scope = |found: &Found| {
                let expires = || self.entries.expiration(found.handle).is_some();
                (!policy.only_expiring() || expires()) && !self.is_kept(found.handle)
            };
            if let Some(found) = table.entries_of(&self.heap, stretch).find(in_scope) {
                return Some((id, found.handle));
            }
            from = stretch.next.unwrap_or(0);
            if table.stretch(&self.heap, from) == table.stretch(&self.heap, start) {
                return None;
            }
        }
    }
}

fn samples_index(space: &Space, policy: EvictionPolicy) -> bool {
    policy.only_expiring() && space.expiring * EXPIRING_SHARE < space.table.len()
}

/// How soon an entry should go; `None` when it is not in scope.
fn score(
    policy: EvictionPolicy,
    stamp: u32,
    expiration: impl Fn() -> Option<UnixMs>,
    stamps: &crate::stamp::Stamps,
) -> Option<u64> {
    let expire_at = if policy.only_expiring() { Some(expiration()?) } else { None };
    Some(match policy.order {
        EvictionOrder::Lru => stamps.idle_seconds(stamp),
        EvictionOrder::Lfu => u64::from(u8::MAX - stamps.frequency(stamp)),
        EvictionOrder::Random => 0,
        EvictionOrder::Ttl => u64::MAX - expire_at.unwrap_or(UnixMs::MAX).max(0) as u64,
    })
}
