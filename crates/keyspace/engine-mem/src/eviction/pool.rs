//! The policies, and the candidates seen so far.

use base::KeyspaceId;

/// Candidates remembered between choices.
pub(super) const POOL_LEN: usize = 16;

/// Which entries may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionScope {
    /// All (`allkeys-...`).
    All,
    /// Those with an expiration (`volatile-...`).
    Expiring,
}

/// Which of them goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionOrder {
    /// The one not used for longest; needs [`crate::StampMode::Recency`].
    Lru,
    /// The one used least often; needs [`crate::StampMode::Frequency`].
    Lfu,
    /// Any.
    Random,
    /// The one that expires first. Entries without expiration are never in its scope.
    Ttl,
}

/// A `maxmemory-policy` other than `noeviction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionPolicy {
    /// Which entries may go.
    pub scope: EvictionScope,
    /// Which of them goes first.
    pub order: EvictionOrder,
}

impl EvictionPolicy {
    pub(super) fn only_expiring(self) -> bool {
        self.scope == EvictionScope::Expiring || self.order == EvictionOrder::Ttl
    }
}

/// Which policy each keyspace has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvictionPolicies {
    pub(super) others: Option<EvictionPolicy>,
    pub(super) exceptions: Vec<(KeyspaceId, Option<EvictionPolicy>)>,
}

impl EvictionPolicies {
    /// The policies of some keyspaces, and that of all others. `None` keeps all entries.
    pub fn new(others: Option<EvictionPolicy>, exceptions: Vec<(KeyspaceId, Option<EvictionPolicy>)>) -> Self {
        Self { others, exceptions }
    }

    /// The policy of a keyspace.
    pub(super) fn of(&self, space: KeyspaceId) -> Option<EvictionPolicy> {
        self.exceptions.iter().find(|(other, _)| *other == space).map_or(self.others, |(_, policy)| *policy)
    }
}

impl From<Option<EvictionPolicy>> for EvictionPolicies {
    fn from(policy: Option<EvictionPolicy>) -> Self {
        Self::new(policy, Vec::new())
    }
}

/// What may be evicted next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The higher, the sooner it goes.
    pub(super) score: u64,
    pub(super) space: KeyspaceId,
    pub(super) hash: u64,
}

/// The best candidates seen so far under one policy, worst first.
pub struct Pool {
    pub(super) policy: EvictionPolicy,
    pub(super) candidates: Vec<Candidate>,
}

/// The pool of a policy.
pub(super) fn pool_of(pools: &mut Vec<Pool>, policy: EvictionPolicy) -> &mut Pool {
    let place = pools.iter().position(|pool| pool.policy == policy).unwrap_or_else(|| {
        pools.push(Pool { policy, candidates: Vec::new() });
        pools.len() - 1
    });
    &mut pools[place]
}

impl Pool {
    pub(super) fn wants(&self, score: u64) -> bool {
        self.candidates.len() < POOL_LEN || self.candidates[0].score < score
    }

    pub(super) fn offer(&mut self, candidate: Candidate) {
        let known = |other: &Candidate| other.space == candidate.space && other.hash == candidate.hash;
        if !self.wants(candidate.score) || self.candidates.iter().any(known) {
            return;
        }
        if self.candidates.len() == POOL_LEN {
            self.candidates.remove(0);
        }
        // Among equals the one seen first goes first: it has had the longest time to be used again.
        let place = self.candidates.partition_point(|other| other.score < candidate.score);
        self.candidates.insert(place, candidate);
    }
}
