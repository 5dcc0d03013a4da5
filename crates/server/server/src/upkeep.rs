//! A worker's share of the store's upkeep, in slices between turns of its loop.

use crate::executor::Executor;
use crate::pace::{Need, Pace, Shares};
use admin::Explanations;
use base::ShardId;
use durability::Durability;
use memcached::Sweeps;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;
use store::compression::Pass;

/// Longest stretch of upkeep between two turns.
const SLICE: Duration = Duration::from_micros(100);

/// Time between the beginnings of two rounds over the shards. Together with a tick of the expiration index it is less
/// than the tenth of a second within which an expired entry is removed.
const PERIOD: Duration = Duration::from_millis(50);

const _: () = assert!(engine_mem::EXPIRATION_TICK_MS as u128 + PERIOD.as_millis() < 100);

/// Rounds between two calls of what is done ten times a second.
const ROUNDS_PER_CALL: u32 = 2;

/// While clients are served, expiration and cleaning have one part in this many of the worker's time.
const SHARE: u32 = 4;

/// The shards one worker looks after.
pub struct Upkeep {
    shards: Vec<ShardId>,
    /// The next shard; `None` between rounds.
    next: Option<usize>,
    round_at: Instant,
    /// When clients have had their share of the time since the last slice.
    rest_until: Instant,
    /// Called ten times a second.
    each_round: Box<dyn FnMut() + Send>,
    rounds: u32,
    /// What is to be saved, and by whom.
    durability: Option<Arc<Durability>>,
    /// How much of the time that gets.
    saving: Pace,
    /// Where strings are compressed.
    store: Arc<Store>,
    pass: Pass,
    /// How much of the time clients need meanwhile.
    need: Need,
    /// What is to be explained.
    explanations: Arc<Explanations>,
    /// How much of the time that gets.
    explaining: Pace,
    /// Walks over the entries of memcached clients, and how much of the time they get. One worker makes them.
    sweeps: Option<Arc<Sweeps>>,
    sweeping: Pace,
    /// How much of the time merging pages gets.
    merging: Pace,
    /// How much of the time working off what is over the memory budget gets.
    evicting: Pace,
    /// When that is looked at again, after nothing could be evicted.
    evict_again_at: Instant,
}

impl Upkeep {
    /// Looks after these shards, and calls `each_round` ten times a second.
    pub fn new(
        store: Arc<Store>,
        shards: Vec<ShardId>,
        each_round: Box<dyn FnMut() + Send>,
        durability: Option<Arc<Durability>>,
        explanations: Arc<Explanations>,
    ) -> Self {
        let now = Instant::now();
        Self {
            sweeps: None,
            sweeping: Pace::new(now, Shares::WAITED_FOR),
            store,
            pass: Pass::new(shards.clone()),
            need: Need::new(now),
            shards,
            next: None,
            round_at: now,
            rest_until: now,
            each_round,
            rounds: 0,
            durability,
            saving: Pace::new(now, Shares::WAITED_FOR),
            explanations,
            explaining: Pace::new(now, Shares::WAITED_FOR),
            merging: Pace::new(now, Shares::AT_LEISURE),
            evicting: Pace::new(now, Shares::WAITED_FOR),
            evict_again_at: now,
        }
    }

    /// Has this worker make the walks over the entries of memcached clients.
    pub fn with_sweeps(mut self, sweeps: Arc<Sweeps>) -> Self {
        self.sweeps = Some(sweeps);
        self
    }

    /// One slice of working off what is over the memory budget, as [`Upkeep::slice`].
    pub fn evict(&mut self, executor: &mut Executor, has_clients: bool) -> bool {
        let is_needed = self.store.excess_bytes() > 0 || self.store.wants_demotion() || self.store.has_copies_to_drop();
        if !is_needed || Instant::now() < self.evict_again_at {
            return false;
        }
        let goes_on = slice_of(&mut self.evicting, has_clients, || executor.work_off_excess());
        if !goes_on {
            self.evict_again_at = Instant::now() + PERIOD;
        }
        goes_on
    }

    /// Time until the next round begins; nothing while one is under way.
    pub fn until_next_round(&self) -> Duration {
        if self.next.is_some() { Duration::ZERO } else { PERIOD.saturating_sub(self.round_at.elapsed()) }
    }

    /// Whether workers are asked for anything by a checkpoint.
    pub fn is_saving(&self) -> bool {
        self.durability.as_ref().is_some_and(|durability| durability.has_work())
    }

    /// One slice of what a checkpoint asks of workers, as [`Upkeep::slice`].
    pub fn save(&mut self, has_clients: bool) -> bool {
        let Some(durability) = &self.durability else { return false };
        durability.has_work() && slice_of(&mut self.saving, has_clients, || durability.work())
    }

    /// Whether strings of the worker's shards are to be compressed or decompressed.
    pub fn is_compressing(&mut self) -> bool {
        self.pass.has_work(&self.store)
    }

    /// One slice of that, as far as its share of the time goes; true when there is more to do at once.
    pub fn compress(&mut self, has_clients: bool) -> bool {
        if !self.pass.has_work(&self.store) {
            return false;
        }
        let start = Instant::now();
        let needed_percent = match self.store.is_near_budget() {
            // Or entries would be evicted instead.
            true => 0,
            false => self.need.look(start, has_clients),
        };
        let goes_on = self.pass.slice(&self.store, SLICE.as_nanos() as u64, needed_percent);
        self.need.leave_out(start, start.elapsed());
        goes_on
    }

    /// One slice of MEMORY EXPLAIN, as [`Upkeep::slice`].
    pub fn explain(&mut self, has_clients: bool) -> bool {
        let explanations = &self.explanations;
        explanations.has_work() && slice_of(&mut self.explaining, has_clients, || explanations.work())
    }

    /// One slice of walks over the entries of memcached clients, as [`Upkeep::slice`].
    pub fn sweep(&mut self, executor: &mut Executor, has_clients: bool) -> bool {
        let Some(sweeps) = self.sweeps.as_ref().filter(|sweeps| sweeps.has_work()) else { return false };
        slice_of(&mut self.sweeping, has_clients, || executor.sweep(sweeps))
    }

    /// Merges the pages of one huge page, unless clients have not had their share of the time since the last; true when
    /// it has. More is left for a later turn: no thread waits for it.
    pub fn merge(&mut self, executor: &Executor, has_clients: bool) -> bool {
        if !self.store.has_pages_to_merge() {
            return false;
        }
        let start = Instant::now();
        if !self.merging.may_begin(start, has_clients) {
            return false;
        }
        let has_merged = executor.merge_pages();
        self.merging.has_taken(start, start.elapsed());
        has_merged
    }

    /// One slice, unless the worker has clients to serve and they have not had their share; true when there is more to
    /// do at once.
    pub fn slice(&mut self, executor: &mut Executor, has_clients: bool) -> bool {
        let start = Instant::now();
        let mut next = match self.next {
            Some(_) if has_clients && start < self.rest_until => return true,
            Some(next) => next,
            None if start.duration_since(self.round_at) < PERIOD => return false,
            None => {
                self.round_at = start;
                self.rounds = self.rounds.wrapping_add(1);
                if self.rounds.is_multiple_of(ROUNDS_PER_CALL) {
                    (self.each_round)();
                }
                0
            }
        };
        // A shard with more to do keeps its place; the round continues in the next slice.
        while let Some(shard) = self.shards.get(next) {
            if !executor.upkeep(*shard) {
                next += 1;
            }
            let spent = start.elapsed();
            if spent >= SLICE {
                self.next = Some(next);
                self.rest_until = start + spent * SHARE;
                return true;
            }
        }
        self.next = None;
        false
    }
}

/// Works until a slice is full or `work` says that there is no more, unless clients have not had their share of the
/// time yet; true when there is more to do at once.
fn slice_of(pace: &mut Pace, has_clients: bool, mut work: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    if !pace.may_begin(start, has_clients) {
        return true;
    }
    while work() {
        let spent = start.elapsed();
        if spent >= SLICE {
            pace.has_taken(start, spent);
            return true;
        }
    }
    false
}
