//! A checkpoint's passage through the shards: the cut, the walk, the end.
//!
//! ```text
//! cut:  all locks at once (try for a millisecond) -> a mark and a sink for every shard -> the log's position -> unlock
//! walk: one shard's lock at a time, some entries, unlock           (workers, in slices, at the caller's pace)
//!       commands meanwhile: what they change and the walk has not reached is handed over first, by the engine
//! end:  a shard that is walked to its end finishes its sink
//! ```
//!
//! C1. The sinks get exactly the entries as of the cut's position, since records reach the log under the locks that the
//!     cut holds.
//! C2. A write does not begin while the [`Backlog`] is full, and nor do the walk and the cleaning of cleared databases.

pub(crate) mod walk;

use crate::lock::WorkerSet;
use crate::log::AllLocked;
use crate::store::Store;
use base::{DbIndex, KeyspaceId, Lsn, ShardId, UnixMs};
use engine::{Backlog, Engine, EntrySink, Libraries, WalkProgress};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One exact moment of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The log's position: the sinks get the effect of every record up to here and of none after.
    pub lsn: Lsn,
    /// When it was.
    pub at_ms: UnixMs,
    /// The keyspace of every SELECT number, up to the last one that holds keys or was exchanged by SWAPDB. So a server
    /// with fewer databases can load the checkpoint.
    pub spaces: Vec<KeyspaceId>,
    /// The libraries of functions.
    pub libraries: Arc<Libraries>,
    /// Where a replica is in the stream of its primary, as text; empty without that.
    pub position: Vec<u8>,
}

impl AllLocked<'_> {
    /// Begins a checkpoint of the present moment, with a sink for every shard. `None`, with no sink made, while another
    /// one is in the shards.
    pub fn cut(
        &mut self,
        mut sink: impl FnMut(ShardId) -> Box<dyn EntrySink>,
        lsn: impl FnOnce() -> Lsn,
    ) -> Option<Cut> {
        let store = self.store;
        if store.walk.left.load(Ordering::Acquire) > 0 {
            return None;
        }
        for (shard, id) in self.held.iter_mut().zip(store.shard_ids()) {
            shard.engine.begin_checkpoint(sink(id));
            store.walk.open[id.index()].store(true, Ordering::Relaxed);
        }
        store.walk.left.store(store.walk.open.len(), Ordering::Release);
        let databases = (0..store.spaces.count() as u32).map(DbIndex);
        let mut spaces: Vec<KeyspaceId> = databases.filter_map(|db| store.spaces.get(db)).collect();
        while let [_, .., last] = *spaces
            && last.0 as usize == spaces.len() - 1
            && self.held.iter_mut().all(|shard| shard.engine.len(last) == 0)
        {
            spaces.pop();
        }
        let (libraries, position) = (store.libraries.get(), store.position.get());
        Some(Cut { lsn: lsn(), at_ms: store.clock.now_ms(), spaces, libraries, position })
    }
}

impl Store {
    /// [`AllLocked::cut`] under locks of its own. `None` when they cannot be had within a millisecond, or when another
    /// checkpoint is in the shards: the caller tries again later.
    pub fn try_cut(&self, sink: impl FnMut(ShardId) -> Box<dyn EntrySink>, lsn: impl FnOnce() -> Lsn) -> Option<Cut> {
        self.try_lock_all()?.cut(sink, lsn)
    }

    /// Walks the next shard of a running checkpoint by about `budget` entries (an extent, up to 1,200 entries, is not
    /// divided). True when there may be more to do at once; false when no shard is left, or while the backlog has no
    /// room. A shard that is locked is left for later. Called by workers; the pace is theirs.
    ///
    /// Shards take turns, so that blocks which follow each other in a file are of different shards, and the threads of
    /// a load do not meet at one lock.
    pub fn walk_checkpoint(&self, budget: usize) -> bool {
        let walk = &self.walk;
        if walk.left.load(Ordering::Acquire) == 0 || !walk.backlog.has_room_for_walk() {
            return false;
        }
        let count = walk.open.len();
        let first = walk.turn.load(Ordering::Relaxed);
        let mut shards = (0..count).map(|n| (first + n) % count);
        let Some(shard) = shards.find(|&shard| walk.open[shard].load(Ordering::Relaxed)) else { return false };
        walk.turn.store((shard + 1) % count, Ordering::Relaxed);
        self.walk_shard(ShardId(shard as u16), budget);
        walk.left.load(Ordering::Relaxed) > 0
    }

    /// Walks one shard, unless its lock is taken.
    fn walk_shard(&self, id: ShardId, budget: usize) {
        let Some(mut shard) = self.shard(id).lock.spin_lock() else { return };
        let open = &self.walk.open[id.index()];
        // Another worker may have ended it before this one had the lock.
        let is_done = open.load(Ordering::Relaxed) && shard.engine.walk_checkpoint(budget) == WalkProgress::Done;
        if !is_done {
            return self.unlock_one(shard);
        }
        let sink = shard.engine.end_checkpoint();
        open.store(false, Ordering::Relaxed);
        self.unlock_one(shard);
        if let Some(mut sink) = sink {
            sink.finish();
        }
        self.walk.left.fetch_sub(1, Ordering::Release);
    }

    /// Shards that a running checkpoint has still to walk; 0 when none is in the shards.
    pub fn checkpoint_shards_left(&self) -> usize {
        self.walk.left.load(Ordering::Acquire)
    }

    /// Gives a running checkpoint up: its sinks are dropped unfinished. Waits for each shard's lock in turn. Does
    /// nothing when none is running.
    pub fn abandon_checkpoint(&self) {
        for id in self.shard_ids() {
            let mut shard = self.lock_patiently(id);
            let was_open = self.walk.open[id.index()].swap(false, Ordering::Relaxed);
            let sink = shard.engine.end_checkpoint();
            self.unlock_one(shard);
            drop(sink);
            if was_open {
                self.walk.left.fetch_sub(1, Ordering::Release);
            }
        }
    }

    /// Memory of a checkpoint's entries that are not written yet. The thread that writes them counts there; while it is
    /// full, writes wait.
    pub fn backlog(&self) -> &Arc<Backlog> {
        &self.walk.backlog
    }

    /// Whether a write has to wait until the checkpoint has room; the worker is woken then.
    #[inline]
    pub(crate) fn waits_for_checkpoint(&self, worker: usize) -> bool {
        self.walk.backlog.must_wait(WorkerSet::one(worker).bits())
    }
}
