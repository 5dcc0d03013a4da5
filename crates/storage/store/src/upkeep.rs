//! What shards need without anybody asking: expired entries removed, pages cleaned. Done by workers in small steps.

use crate::commit::Blocked;
use crate::lock_set::LockSet;
use crate::shard::ShardEngine;
use crate::store::Store;
use crate::txn::{At, Scratch, Txn};
use base::{DbIndex, ShardId};
use engine::{Due, Effect, Engine, Key, Keyspace, NotifyClass, Type, WriteClass};
use std::sync::atomic::Ordering;
use types::apply::Engines as _;
use value::hash::{Change, View};

/// Expired entries removed under one locking.
const EXPIRE_STEP: usize = 32;

/// Due fields of one hash deleted at once.
const FIELD_STEP: usize = 32;

/// Units of cleaning done under one locking.
const CLEAN_STEP: usize = 64;

impl Store {
    /// Whether upkeep removes expired entries; on by default (DEBUG SET-ACTIVE-EXPIRE). When off they take memory and
    /// count in DBSIZE until they are overwritten, but no read finds them.
    pub fn set_active_expiration(&self, on: bool) {
        self.active_expiration.store(on, Ordering::Relaxed);
    }

    /// Whether [`Store::merge_pages`] has something to do. It waits while data is loaded: the loader needs new memory,
    /// and would wait for the merge too.
    #[inline]
    pub fn has_pages_to_merge(&self) -> bool {
        self.arena.has_ready() && !self.gate.is_loading()
    }

    /// Puts the small pages of 2 MiB that have been filled into one huge page, which takes a millisecond or two; false
    /// when there are none.
    pub fn merge_pages(&self) -> bool {
        self.arena.merge_one()
    }

    /// One step of upkeep of a shard; true when there is more to do. A shard that is locked is left for later.
    pub fn upkeep(&self, shard: ShardId, worker: usize, scratch: &mut Scratch) -> bool {
        if self.gate.is_loading() {
            return false;
        }
        scratch.client = 0;
        let may_expire = self.active_expiration.load(Ordering::Relaxed) && !self.gate.is_replica();
        let now = self.clock.now_ms();
        let at = |writes| At { now, db: DbIndex(0), touch: false, worker, writes };
        let expire_step = if may_expire { EXPIRE_STEP } else { 0 };
        let class = if may_expire { WriteClass::Frees } else { WriteClass::Nothing };
        match self.upkeep_step(shard, &at(class), expire_step, scratch) {
            // What has expired stays for now, and no read finds it; pages are cleaned all the same.
            Err(Blocked::Log | Blocked::Refused) => self.upkeep_step(shard, &at(WriteClass::Nothing), 0, scratch),
            result => result,
        }
        .unwrap_or(false)
    }

    /// The same without what changes entries: nothing expires.
    pub fn upkeep_of_pages(&self, shard: ShardId, worker: usize, scratch: &mut Scratch) -> bool {
        if self.gate.is_loading() {
            return false;
        }
        let at = At { now: self.clock.now_ms(), db: DbIndex(0), touch: false, worker, writes: WriteClass::Nothing };
        self.upkeep_step(shard, &at, 0, scratch).unwrap_or(false)
    }

    fn upkeep_step(&self, shard: ShardId, at: &At, expire_step: usize, scratch: &mut Scratch) -> Result<bool, Blocked> {
        self.commit(scratch, &LockSet::One(shard), at, |txn| {
            // The keys are copied out, since their entries are removed while they are named.
            let mut all: Vec<(Vec<u8>, base::KeyspaceId, Due)> = Vec::new();
            let engine = &mut txn.held.get(shard).engine;
            let found = engine.due(expire_step, &mut |key, due| all.push((key.bytes.to_vec(), key.space, due)));
            for (bytes, space, due) in &all {
                let key = self.key(*space, bytes);
                match due {
                    Due::Entry => {
                        txn.apply(&Effect::Delete { key });
                        txn.notify(NotifyClass::EXPIRED, "expired", &key);
                        txn.scratch.expired += 1;
                    }
                    Due::Elements => delete_due_fields(txn, &key),
                }
            }
            txn.held.get(shard).watch.upkeep(at.now);
            txn.held.get(shard).waits.upkeep(at.now);
            let engine = &mut txn.held.get(shard).engine;
            // Cleaning hands what a cleared database held to a running checkpoint.
            let cleaned = !self.backlog().is_full()
                && match *engine {
                    // What is free in pages counts against the budget.
                    ShardEngine::Memory(ref mut engine) if self.is_over_budget() => engine.clean_closely(CLEAN_STEP),
                    ref mut engine => engine.clean(CLEAN_STEP),
                };
            // Items that turn out not to be due yet are only sorted again, so more may be due after a short find.
            let more_due = matches!(engine, ShardEngine::Memory(engine) if engine.has_due());
            Ok(expire_step > 0 && (found == expire_step || more_due) || cleaned)
        })
    }
}

/// Deletes fields of a hash that are due: some, if they are many. The engine names the key again until none is left.
fn delete_due_fields(txn: &mut Txn<'_>, key: &Key<'_>) {
    let (now, mut changes) = (txn.now(), txn.take_buffer());
    // A row that has to be fetched is named again, too.
    if let Ok(Some(entry)) = txn.engine(key).read(key, false) {
        let mut left = FIELD_STEP;
        View::of(entry.encoding, entry.value.stored()).due(now, &mut |cell| {
            Change::Delete(cell.field).put(&mut changes);
            left -= 1;
            left > 0
        });
    }
    if !changes.is_empty() {
        txn.apply(&Effect::Edit { key: *key, kind: Type::Hash, changes: &changes });
        txn.notify(NotifyClass::HASH, "hexpired", key);
        if !txn.engine(key).may_hold(key) {
            txn.notify(NotifyClass::GENERIC, "del", key);
        }
    }
    txn.give_buffer(changes);
}
