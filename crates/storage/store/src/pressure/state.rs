//! How writers and flushes stand. `pressure` says what F1 is.

use base::KeyspaceId;
use engine::LeafStore;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What a write that needs a flush does after one has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlushFailure {
    /// It waits: the next flush may succeed.
    Wait,
    /// It is refused, for this reason.
    Refuse(Arc<str>),
}

/// Leaves of all keyspaces.
#[derive(Default)]
pub struct AllLeaves(RwLock<Vec<Arc<dyn LeafStore>>>);

impl AllLeaves {
    /// Their memory. It changes faster than that of the store of rows is said.
    #[cold]
    fn bytes(&self) -> u64 {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|leaves| (leaves.kept_bytes() + leaves.unflushed_bytes()) as u64).sum()
    }

    /// Memory of copies alone.
    #[cold]
    fn copy_bytes(&self) -> usize {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|leaves| leaves.kept_bytes()).sum()
    }
}

impl std::fmt::Debug for AllLeaves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AllLeaves").field(&self.bytes()).finish()
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct FlushPressure {
    pub(super) is_behind: AtomicBool,
    pub(super) is_wanted: AtomicBool,
    pub(super) is_failing: AtomicBool,
    pub(super) is_refusing: AtomicBool,
    /// Why the last flush has failed, if it has.
    pub(super) failure: RwLock<Option<Arc<str>>>,
    /// Memory of the store of rows, which counts against the budget.
    pub(super) row_store_bytes: AtomicU64,
    /// Leaves of large collections in the store of rows.
    pub(super) leaves: AllLeaves,
    /// The shard that is to lose copies of leaves next.
    pub(crate) hand: AtomicUsize,
    /// Keyspaces that are backed by rows.
    pub(super) spaces: RwLock<Vec<KeyspaceId>>,
}

impl FlushPressure {
    /// Sets whether writes to databases on disk wait, because unflushed changes are at their limit. Returns whether
    /// they did.
    pub fn set_behind(&self, is_behind: bool) -> bool {
        self.is_behind.swap(is_behind, Ordering::Relaxed)
    }

    /// Whether writes to databases on disk wait.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// Says why the last flush has failed, or that it succeeded (F1).
    pub fn set_failure(&self, why: Option<&str>) {
        *self.failure.write().unwrap_or_else(PoisonError::into_inner) = why.map(Arc::from);
        self.is_failing.store(why.is_some(), Ordering::Relaxed);
    }

    /// Sets whether writers that need a flush are refused and wait no longer (F1). Returns whether they were.
    pub fn set_refusing(&self, is_refusing: bool) -> bool {
        self.is_refusing.swap(is_refusing, Ordering::Relaxed)
    }

    /// What a write that needs a flush does; `None` when the last flush has not failed.
    pub fn failure(&self) -> Option<FlushFailure> {
        let why = self.failure.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(if self.is_refusing.load(Ordering::Relaxed) { FlushFailure::Refuse(why) } else { FlushFailure::Wait })
    }

    /// Whether the last flush has failed.
    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Whether a writer asks for a flush.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// The same, and forgets it.
    pub fn take_wanted(&self) -> bool {
        self.is_wanted.swap(false, Ordering::Relaxed)
    }

    /// Says how much memory the store of rows has, without that of leaves.
    pub fn set_row_store_bytes(&self, bytes: u64) {
        self.row_store_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Memory of the store of rows.
    pub fn row_store_bytes(&self) -> u64 {
        match self.row_store_bytes.load(Ordering::Relaxed) {
            0 => 0,
            bytes => bytes + self.leaves.bytes(),
        }
    }

    /// Whether leaves of large collections have copies in memory.
    pub(crate) fn has_copies(&self) -> bool {
        self.leaves.copy_bytes() > 0
    }

    /// Counts the memory of leaves of large collections, each store of them once.
    pub(crate) fn count_leaves(&self, leaves: Arc<dyn LeafStore>) {
        let mut all = self.leaves.0.write().unwrap_or_else(PoisonError::into_inner);
        if !all.iter().any(|counted| Arc::ptr_eq(counted, &leaves)) {
            all.push(leaves);
        }
    }

    /// The keyspaces that are backed by rows.
    pub fn spaces(&self) -> Vec<KeyspaceId> {
        self.spaces.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a keyspace is backed by rows.
    pub fn is_on_disk(&self, space: KeyspaceId) -> bool {
        self.spaces.read().unwrap_or_else(PoisonError::into_inner).contains(&space)
    }

    /// Notes a keyspace that is backed by rows.
    pub(crate) fn add(&self, space: KeyspaceId) {
        self.spaces.write().unwrap_or_else(PoisonError::into_inner).push(space);
    }

    /// Asks for a flush. False when the last one has failed (F1).
    pub fn want(&self) -> bool {
        self.is_wanted.store(true, Ordering::Relaxed);
        !self.is_failing()
    }
}
