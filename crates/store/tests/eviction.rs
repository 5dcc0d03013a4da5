//! What eviction leaves: memory full of entries, not of holes, and shards of every size alike.
#![cfg(not(shuttle))]

use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{DbIndex, KeyspaceId, ShardId};
use engine::{Effect, Encoding, Engine, Keyspace, Value};
use engine_mem::{EvictionOrder, EvictionPolicy, EvictionScope, StampMode};
use std::sync::Arc;
use store::shard::ShardEngine;
use store::{At, LockSet, Scratch, Store, StoreOptions, Wake, WorkerSet, WriteClass};

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

const SHARDS: usize = 8;
const MAX_BYTES: u64 = 8 << 20;
const KEYS: u64 = 200_000;

fn set(store: &Store, scratch: &mut Scratch, name: &str) -> ShardId {
    let value = [b'v'; 100];
    if store.is_over_budget() {
        assert_eq!(store.evict(name.len() + value.len(), 0, scratch), Ok(true), "there is something to evict");
    }
    let shard = store.shard_of_bytes(name.as_bytes());
    let at = At { now: 1_000, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    let done = store.commit(scratch, &LockSet::One(shard), &at, |txn| {
        let key = txn.key(name.as_bytes());
        let value = Value::Bytes(&value);
        txn.apply(&Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None });
        Ok(())
    });
    assert!(done.is_ok(), "nobody else holds the lock");
    shard
}

/// A stream of new keys three times as long as what fits. What is held stays what fitted at first, and each shard holds its
/// share of it: shards are of different sizes, and were they to lose equally many, small ones would soon be empty.
#[test]
fn memory_stays_full_and_shards_alike() {
    let store = Store::new(StoreOptions {
        shard_count: SHARDS,
        database_count: 1,
        clock: Arc::new(ManualClock::new(1_000)),
        entropy: Arc::new(SeededEntropy::new(5)),
        wake: Arc::new(NobodyWaits),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    });
    let policy = EvictionPolicy { scope: EvictionScope::All, order: EvictionOrder::Lru };
    store.set_budget(MAX_BYTES, Some(policy), StampMode::Recency);
    let mut scratch = Scratch::default();
    let (mut given, mut full_len) = ([0u64; SHARDS], None);
    for number in 0..KEYS {
        given[set(&store, &mut scratch, &format!("key:{number:012}")).index()] += 1;
        if full_len.is_none() && store.is_over_budget() {
            full_len = Some(number + 1);
        }
        if number % 2_000 == 0 {
            store.shard_ids().for_each(|shard| while store.upkeep(shard, 0, &mut scratch) {});
        }
    }
    let full_len = full_len.expect("three times as much was written as fits");
    let held: Vec<u64> = store.each_shard(|shard| shard.engine.len(KeyspaceId::default())).collect();
    let len: u64 = held.iter().sum();
    assert!(len * 100 >= full_len * 95, "{len} entries are held, {full_len} fitted at first");
    for (shard, (held, given)) in held.iter().zip(given).enumerate() {
        let (share, expected) = (*held as f64 / len as f64, given as f64 / KEYS as f64);
        let ratio = share / expected;
        assert!((0.85..1.15).contains(&ratio), "shard {shard} holds {share:.3} and was given {expected:.3}");
    }
    assert!(store.used_bytes() <= MAX_BYTES + MAX_BYTES / 50, "{} bytes", store.used_bytes());
}
