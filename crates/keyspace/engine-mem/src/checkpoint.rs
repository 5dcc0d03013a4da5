//! Handing every entry of a cut to a checkpoint, exactly once, while the shard keeps changing.
//!
//! The walk visits the databases by number and each one by hash, an extent at a time. A cell's *saved* bit says that
//! its entry has been handed over, or was created after the cut; it moves with its cell. A write that changes or
//! removes an entry that is not saved hands it over first. A database that is cleared during the walk is handed over
//! while it is dismantled.
//!
//! S1. While a checkpoint runs, the bit of an entry is set exactly when the sink has the entry or must not have it.
//! S2. Entries below the walk's position are saved. Extents are walked as a whole, so growing, splitting and
//!     displacement move no unsaved entry below the position; a merge may move the position into an extent, which is
//!     then walked again, its saved bits sparing it repetition.
//! S3. No saved bit that counts is older than the checkpoint: its mark is new to all buckets. Marks repeat after
//!     `Mark::COUNT` checkpoints; each complete walk renews all bits, and before a mark could repeat without one in
//!     between, all bits are forgotten at once.

pub(crate) mod handing;

use crate::bucket::{Bucket, Mark};
use crate::mem_engine::MemEngine;
use base::KeyspaceId;
use engine::{EntrySink, WalkProgress};
use handing::Checkpoint;

impl MemEngine {
    /// See [`engine::Engine::begin_checkpoint`].
    pub(crate) fn start_walk(&mut self, sink: Box<dyn EntrySink>) {
        assert!(self.checkpoint.is_none(), "one checkpoint at a time");
        self.mark = self.mark.next();
        self.marks_since_walk += 1;
        if self.marks_since_walk == Mark::COUNT - 1 {
            self.forget_saved();
        }
        self.checkpoint = Some(Checkpoint { sink, space: 0, from: 0 });
        self.look_who_watches();
    }

    /// See [`engine::Engine::walk_checkpoint`].
    pub(crate) fn walk(&mut self, budget: usize) -> WalkProgress {
        self.set_walking(true);
        let progress = self.walk_stretches(budget);
        self.set_walking(false);
        progress
    }

    fn set_walking(&mut self, walking: bool) {
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.sink.set_walking(walking);
        }
    }

    fn walk_stretches(&mut self, budget: usize) -> WalkProgress {
        let mut left = budget;
        while left > 0 {
            let Some(checkpoint) = &mut self.checkpoint else { return WalkProgress::Done };
            if checkpoint.space == self.spaces.len() {
                if !self.detached.iter().any(|detached| detached.in_cut) {
                    self.marks_since_walk = 0;
                    return WalkProgress::Done;
                }
                // What a cleared database held does not stay.
                self.set_walking(false);
                left = left.saturating_sub(self.dismantle_some());
                continue;
            }
            let id = KeyspaceId(checkpoint.space as u32);
            // A backed keyspace is no part of a checkpoint.
            let Some(space) = self.spaces[checkpoint.space].as_ref().filter(|space| space.backed.is_none()) else {
                (checkpoint.space, checkpoint.from) = (checkpoint.space + 1, 0);
                continue;
            };
            let stretch = space.table.stretch(&self.heap, checkpoint.from);
            let (heap, entries) = (&self.heap, &self.entries);
            let seen = checkpoint.hand_over_stretch(id, &space.table, heap, entries, stretch, self.mark);
            left = left.saturating_sub(seen + 1);
            (checkpoint.space, checkpoint.from) = match stretch.next {
                Some(next) => (checkpoint.space, next),
                None => (checkpoint.space + 1, 0),
            };
        }
        WalkProgress::More
    }

    /// See [`engine::Engine::end_checkpoint`].
    pub(crate) fn end_walk(&mut self) -> Option<Box<dyn EntrySink>> {
        self.detached.iter_mut().for_each(|detached| detached.in_cut = false);
        let ended = self.checkpoint.take();
        self.look_who_watches();
        ended.map(|checkpoint| checkpoint.sink)
    }

    /// Makes all saved bits old, so that marks can repeat (S3). Walks the whole table; needed once in thousands of
    /// checkpoints, and only if all of them were given up.
    fn forget_saved(&mut self) {
        for space in self.spaces.iter().flatten() {
            let mut from = Some(0);
            while let Some(bound) = from {
                let stretch = space.table.stretch(&self.heap, bound);
                space.table.buckets_of(&self.heap, stretch).for_each(Bucket::forget_saved);
                from = stretch.next;
            }
        }
        self.marks_since_walk = 0;
    }
}
