//! The memory budget: how much, by which policy, and which shard was the largest.

use base::DbIndex;
use engine_mem::{EvictionPolicy, SharedStampMode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The memory budget.
pub struct Budget {
    /// Bytes; `u64::MAX` without a limit.
    pub(super) max_bytes: AtomicU64,
    /// What others hold that counts as the engines' memory does.
    pub(super) others: OnceLock<Box<dyn Fn() -> u64 + Send + Sync>>,
    pub(super) policies: RwLock<Arc<Policies>>,
    /// How access is stamped, so that the policy can choose victims. Shards follow it.
    pub(crate) stamps: Arc<SharedStampMode>,
    /// Counts choices of a shard: each draws its chance from the number.
    pub(super) choices: AtomicU64,
    /// The shard with most bytes of entries and how many these are, looked up from time to time.
    pub(super) largest: (AtomicU64, AtomicU64),
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_bytes: AtomicU64::new(u64::MAX),
            others: OnceLock::new(),
            policies: RwLock::default(),
            stamps: Arc::default(),
            choices: AtomicU64::default(),
            largest: Default::default(),
        }
    }
}

impl Budget {
    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes.load(Ordering::Relaxed)
    }

    /// The policies; `None` when no database may lose entries.
    pub(super) fn policies(&self) -> Option<Arc<Policies>> {
        let policies = Arc::clone(&self.policies.read().unwrap_or_else(PoisonError::into_inner));
        policies.evicts().then_some(policies)
    }
}

/// Which policy each database has; `None` keeps all its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// Of databases with one of their own.
    pub databases: Vec<(DbIndex, Option<EvictionPolicy>)>,
    /// Of all others.
    pub others: Option<EvictionPolicy>,
}

impl Policies {
    pub(super) fn evicts(&self) -> bool {
        self.others.is_some() || self.databases.iter().any(|(_, policy)| policy.is_some())
    }
}

impl From<Option<EvictionPolicy>> for Policies {
    fn from(others: Option<EvictionPolicy>) -> Self {
        Self { databases: Vec::new(), others }
    }
}
