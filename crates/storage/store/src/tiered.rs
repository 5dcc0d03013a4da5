//! Values on a tier: when they leave memory, and how code that needs them at once gets them.
//!
//! ```text
//! over a mark of the budget: workers demote in steps between turns
//! over the budget:           a write demotes what it brings and more, before anything is evicted
//! loading, replay:           the loader demotes, and writes the queued values itself
//! ```
//!
//! A demotion is no change: it is not logged, and takes no part in the commit path. Values that are away come back as
//! rows do (`wants`).

pub mod counts;

use crate::commit::Blocked;
use crate::shard::{Shard, ShardEngine};
use crate::store::Store;
use base::{KeyspaceId, ShardId};
use engine::tier::TierRecord;
use engine::{Encoding, Engine, Entry, Key, TierAddress, TierRefusal, Value, ValueTier};
use engine_mem::Demoted;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Demotion begins when less than one part of the budget in this many is left.
const MARK_PARTS: u64 = 16;

/// Values are promoted at their first read while more than one part of the budget in this many is left.
const ROOM_PARTS: u64 = 8;

/// Bytes that a write demotes at least, since demotions cost less together.
const DEMOTED_BYTES_MIN: u64 = 4 << 10;

/// Bytes demoted in one step between turns.
const STEP_BYTES: usize = 32 << 10;

/// Shards that a write looks at without finding anything before all are tried in turn.
const CHOICES_IN_VAIN_MAX: usize = 4;

/// Bytes that are demoted of a shard in one step of a load.
const LOAD_STEP_BYTES: usize = 64 << 10;

/// Units of cleaning after a demotion.
const CLEAN_STEP: usize = 256;

impl Store {
    /// Puts a tier under all databases. Before data is loaded; once.
    ///
    /// # Panics
    /// When there is one already, or the engine is another than the memory engine.
    pub fn attach_tier(&self, tier: &Arc<dyn ValueTier>) {
        assert!(self.tier.set(tier.clone()).is_ok(), "a store has one tier");
        self.compression.expect_tier();
        for id in self.shard_ids() {
            let mut held = self.lock_patiently(id);
            let ShardEngine::Memory(engine) = &mut held.engine else { panic!("only the memory engine has a tier") };
            engine.attach_tier(tier.clone(), id.index(), self.written.clone());
            self.unlock_one(held);
        }
    }

    /// The entry with its value, for code that cannot fetch: read into `buffer` if it is away. Waits for the device.
    ///
    /// # Errors
    /// When the value cannot be read.
    pub fn whole<'a>(&self, entry: Entry<'a>, buffer: &'a mut Vec<u8>) -> io::Result<Entry<'a>> {
        let (true, Some(tier), Some(address)) = (entry.is_away(), self.tier.get(), entry.fields.tier()) else {
            return Ok(entry);
        };
        buffer.clear();
        let encoding: Encoding = tier.get(entry.key, address, buffer)?;
        Ok(Entry { encoding, value: Value::Bytes(buffer), ..entry })
    }

    /// Demotes about `bytes` bytes of values of a shard, whatever the budget says. Returns how many values it demoted.
    pub fn demote(&self, shard: ShardId, bytes: usize) -> usize {
        let mut held = self.lock_patiently(shard);
        let step = self.demote_from(&mut held, bytes);
        self.unlock_one(held);
        step.count
    }

    /// Moves a record of the tier to another segment if an entry still has its address. Gives whether one had.
    ///
    /// # Errors
    /// The tier takes no more now.
    pub fn move_on_tier(&self, moved: &TierRecord<'_>) -> Result<bool, TierRefusal> {
        let shard = self.shard_of(&self.key(KeyspaceId(0), moved.record.key));
        let mut held = self.lock_patiently(shard);
        let result = match &mut held.engine {
            ShardEngine::Memory(engine) => engine.move_on_tier(moved),
            _ => Ok(false),
        };
        self.unlock_one(held);
        result
    }

    /// How many entries with this key have the address.
    pub fn count_on_tier(&self, key: &[u8], address: TierAddress) -> usize {
        let held = self.lock_patiently(self.shard_of(&self.key(KeyspaceId(0), key)));
        let count = match &held.engine {
            ShardEngine::Memory(engine) => engine.count_on_tier(key, address),
            _ => 0,
        };
        self.unlock_one(held);
        count
    }

    /// Whether workers are to demote values.
    pub fn wants_demotion(&self) -> bool {
        self.tier.get().is_some() && (self.is_over_mark() || self.written.any())
    }

    fn is_over_mark(&self) -> bool {
        let max = self.budget.max_bytes();
        max != u64::MAX && self.memory.total() > max - max / MARK_PARTS
    }

    /// Drops a value that came back from the tier for its first read, when memory is near the mark: a value is promoted
    /// at its second read, or while there is room.
    pub(crate) fn drop_if_read_once(&self, held: &mut Shard, key: &Key<'_>) {
        let max = self.budget.max_bytes();
        let is_near = max != u64::MAX && self.memory.total() > max - max / ROOM_PARTS;
        if !self.tier.get().is_some_and(|tier| is_near || tier.takes_written()) {
            return;
        }
        if let ShardEngine::Memory(engine) = &mut held.engine
            && engine.drop_read_once(key)
        {
            self.tier_counts.promoted.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// One step of demotion between turns; true when there is more to do at once.
    pub fn demote_step(&self, worker: usize) -> bool {
        if !self.wants_demotion() || self.gate.is_loading() {
            return false;
        }
        let written = self.written.take();
        let shard = written.map_or_else(|| self.choose_shard(), |shard| ShardId(shard as u16));
        let Some(mut held) = self.lock_one(shard, worker) else {
            written.into_iter().for_each(|shard| self.written.mark(shard));
            return true;
        };
        let step = match self.is_over_mark() {
            true => self.demote_from(&mut held, STEP_BYTES),
            false => self.demote_written_of(&mut held),
        };
        self.unlock_one(held);
        step.refusal.is_none() && (step.count > 0 || step.goes_on) && self.wants_demotion()
    }

    /// Makes room for a write of about `bytes` bytes while over the budget. `None` when nothing can be demoted: without
    /// a tier, with a full one, and when no value in memory qualifies.
    ///
    /// # Errors
    /// [`Blocked::Memory`] while room is being made: retry the write.
    pub(crate) fn demote_for(&self, bytes: usize, excess: u64, worker: usize) -> Result<Option<bool>, Blocked> {
        if self.tier.get().is_none() {
            return Ok(None);
        }
        let wanted = (bytes as u64 * 2).max(DEMOTED_BYTES_MIN).max(excess) as usize;
        let (mut freed, mut in_vain, mut goes_on) = (0, 0, false);
        while freed < wanted && in_vain < CHOICES_IN_VAIN_MAX + self.shard_ids().len() && self.is_over_budget() {
            let shard = match in_vain.checked_sub(CHOICES_IN_VAIN_MAX) {
                None => self.choose_shard(),
                Some(turn) => ShardId(turn as u16),
            };
            let Some(mut held) = self.lock_one(shard, worker) else {
                (in_vain, goes_on) = (in_vain + 1, true);
                continue;
            };
            let step = self.demote_from(&mut held, wanted - freed);
            self.unlock_one(held);
            match step.refusal {
                // Some of what waits is being written.
                Some(TierRefusal::Busy) => return Err(Blocked::Memory),
                Some(TierRefusal::Full) => break,
                None => {}
            }
            goes_on |= step.goes_on || step.count > 0;
            in_vain = if step.count == 0 { in_vain + 1 } else { 0 };
            freed += step.bytes;
        }
        match () {
            () if !self.is_over_budget() => Ok(Some(true)),
            () if !goes_on => Ok(None),
            () if excess > 0 => Err(Blocked::Memory),
            () => Ok(Some(true)),
        }
    }

    /// Demotes values of a shard that were written, with a tier that takes them at once.
    fn demote_written_of(&self, held: &mut Shard) -> Step {
        held.engine.set_time(self.clock.now_ms());
        let ShardEngine::Memory(engine) = &mut held.engine else { return Step::default() };
        let mut done = Demoted::default();
        engine.demote_written(STEP_BYTES, &mut done);
        self.tier_counts.demoted.fetch_add(done.count as u64, Ordering::Relaxed);
        Step { count: done.count, bytes: done.bytes, refusal: done.refusal, goes_on: true }
    }

    /// Demotes about `bytes` bytes of values of a shard, and cleans its pages.
    fn demote_from(&self, held: &mut Shard, bytes: usize) -> Step {
        held.engine.set_time(self.clock.now_ms());
        let ShardEngine::Memory(engine) = &mut held.engine else { return Step::default() };
        // Rows of databases on disk and values for the tier share the budget, so both make room.
        engine.drop_clean_anywhere(bytes);
        let done = engine.demote(bytes);
        self.tier_counts.demoted.fetch_add(done.count as u64, Ordering::Relaxed);
        // Cleaning hands what a cleared database held to a running checkpoint.
        let goes_on = !self.backlog().is_full() && engine.clean_closely(CLEAN_STEP);
        Step { count: done.count, bytes: done.bytes, refusal: done.refusal, goes_on }
    }

    /// Keeps to the budget while data is loaded into a shard: demotes, and writes what waits to be written.
    pub(crate) fn demote_while_loading(&self, shard: ShardId) {
        // A step that finds nothing looks at many entries, so the next one waits until there is more.
        let (vain_at, total) = (&self.tier_counts.vain_at, self.memory.total());
        let since = vain_at.load(Ordering::Relaxed);
        if since != 0 && total < since.saturating_add(LOAD_STEP_BYTES as u64) || !self.wants_demotion() {
            return;
        }
        let mut held = self.lock_patiently(shard);
        let step = self.demote_from(&mut held, LOAD_STEP_BYTES);
        self.unlock_one(held);
        vain_at.store(if step.count == 0 { total } else { 0 }, Ordering::Relaxed);
        if let (Some(TierRefusal::Busy), Some(tier)) = (step.refusal, self.tier.get()) {
            tier.relieve();
        }
    }
}

/// What a step has done.
#[derive(Default)]
struct Step {
    count: usize,
    bytes: usize,
    refusal: Option<TierRefusal>,
    /// There is more to clean.
    goes_on: bool,
}
