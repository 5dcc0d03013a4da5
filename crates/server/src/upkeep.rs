//! A worker's share of the store's upkeep, in slices between turns of its loop.

use crate::executor::Executor;
use base::ShardId;
use std::time::{Duration, Instant};

/// Longest stretch of upkeep between two turns.
const SLICE: Duration = Duration::from_micros(100);

/// Time between the beginnings of two rounds over the shards: an expired entry's memory is back after a little more.
const PERIOD: Duration = Duration::from_millis(100);

/// The shards one worker looks after.
pub struct Upkeep {
    shards: Vec<ShardId>,
    /// The shard to go on with; 0 between rounds.
    next: usize,
    round_at: Instant,
    /// Called once a round.
    each_round: Box<dyn FnMut() + Send>,
}

impl Upkeep {
    /// Looks after these shards, and calls `each_round` ten times a second.
    pub fn new(shards: Vec<ShardId>, each_round: Box<dyn FnMut() + Send>) -> Self {
        Self { shards, next: 0, round_at: Instant::now(), each_round }
    }

    /// One slice; true when there is more to do at once.
    pub fn slice(&mut self, executor: &mut Executor) -> bool {
        let start = Instant::now();
        if self.next == 0 {
            if start.duration_since(self.round_at) < PERIOD {
                return false;
            }
            self.round_at = start;
            (self.each_round)();
        }
        // A shard with more to do is stayed with; the round goes on in the next slice.
        while let Some(shard) = self.shards.get(self.next) {
            if !executor.upkeep(*shard) {
                self.next += 1;
            }
            if start.elapsed() >= SLICE {
                return true;
            }
        }
        self.next = 0;
        false
    }
}
