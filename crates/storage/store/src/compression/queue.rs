//! Strings and leaves that wait for the thread of long values.

use base::KeyspaceId;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Longer strings are compressed by writes alone: while one is compressed, its bytes are there up to three times.
pub(super) const LONG_LEN_MAX: usize = 64 << 20;

/// Longer leaves stay as they are: a worker that reads an element of a leaf waits until the leaf is decompressed.
pub(super) const LEAF_LEN_MAX: usize = 1 << 20;

/// Values that wait. Strings beyond are left to the next pass that looks at all of them, leaves to the next pass.
pub(super) const WAITING_MAX: usize = 16 << 10;

/// A long value that may have to change.
pub(super) struct Long {
    pub(super) space: KeyspaceId,
    pub(super) key: Box<[u8]>,
    /// Of a collection, the leaf.
    pub(super) leaf: Option<LongLeaf>,
}

/// Which leaf of a collection is long.
pub(super) struct LongLeaf {
    /// One of its elements, as leaves are looked for.
    pub(super) at: u64,
    /// Whether the pass that found it looks at all.
    pub(super) is_full: bool,
}

/// Long values that may have to change.
#[derive(Default)]
pub(super) struct Queue(Mutex<VecDeque<Long>>);

impl Queue {
    pub(super) fn push(&self, long: Long) {
        let mut waiting = self.lock();
        if waiting.len() < WAITING_MAX {
            waiting.push_back(long);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, VecDeque<Long>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
