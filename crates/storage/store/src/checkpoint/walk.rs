//! The walk of a checkpoint that is in progress.

use engine::Backlog;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The walk in progress. `open` and the engines' marks are changed under the shards' locks; `left` follows `open` when
/// the sink has been finished or dropped.
pub(crate) struct Walk {
    /// Shards not yet walked to the end; 0 when no checkpoint is in the shards.
    pub(super) left: AtomicUsize,
    /// Whether each shard is part of the walk. Written under its lock.
    pub(super) open: Box<[AtomicBool]>,
    /// The shard to be walked next.
    pub(super) turn: AtomicUsize,
    pub(crate) backlog: Arc<Backlog>,
}

impl Walk {
    pub(crate) fn new(shard_count: usize, backlog: Backlog) -> Self {
        Self {
            left: AtomicUsize::new(0),
            open: (0..shard_count).map(|_| AtomicBool::new(false)).collect(),
            turn: AtomicUsize::new(0),
            backlog: Arc::new(backlog),
        }
    }
}
