//! What eviction leaves: memory full of entries, not of holes, and shards of every size alike.
#![cfg(not(shuttle))]

use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{DbIndex, KeyspaceId, ShardId};
use engine::{Effect, Encoding, Engine, Key, Keyspace, Type, Value};
use engine_mem::{EvictionOrder, EvictionPolicy, EvictionScope, StampMode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::evict::Policies;
use store::shard::ShardEngine;
use store::{At, Blocked, LockSet, Scratch, Store, StoreOptions, Wake, WorkerSet, WriteClass};
use value::set;

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

const SHARDS: usize = 8;
const MAX_BYTES: u64 = 8 << 20;
const KEYS: u64 = 200_000;
const LRU: EvictionPolicy = EvictionPolicy { scope: EvictionScope::All, order: EvictionOrder::Lru };

fn set_string(store: &Store, scratch: &mut Scratch, name: &str) -> ShardId {
    set_string_in(store, scratch, DbIndex(0), name)
}

fn set_string_in(store: &Store, scratch: &mut Scratch, db: DbIndex, name: &str) -> ShardId {
    let value = [b'v'; 100];
    write_in(store, scratch, db, name, value.len(), |key| Effect::Set {
        key,
        value: Value::Bytes(&value),
        encoding: Encoding::PLAIN,
        expire_at: None,
    })
}

fn write<'e>(
    store: &Store,
    scratch: &mut Scratch,
    name: &'e str,
    bytes: usize,
    effect: impl FnOnce(Key<'e>) -> Effect<'e>,
) -> ShardId {
    write_in(store, scratch, DbIndex(0), name, bytes, effect)
}

/// Evicts if there is need, and applies one effect of about `bytes` bytes.
fn write_in<'e>(
    store: &Store,
    scratch: &mut Scratch,
    db: DbIndex,
    name: &'e str,
    bytes: usize,
    effect: impl FnOnce(Key<'e>) -> Effect<'e>,
) -> ShardId {
    while store.is_over_budget() {
        match store.evict(name.len() + bytes, 0, scratch) {
            Ok(has_room) => {
                assert!(has_room, "there is something to evict");
                break;
            }
            Err(blocked) => assert_eq!(blocked, Blocked::Memory),
        }
    }
    let shard = store.shard_of_bytes(name.as_bytes());
    let at = At { now: 1_000, db, touch: false, worker: 0, writes: WriteClass::Any };
    let done = store.commit(scratch, &LockSet::One(shard), &at, |txn| {
        let key = txn.key(name.as_bytes());
        txn.apply(&effect(key));
        Ok(())
    });
    assert!(done.is_ok(), "nobody else holds the lock");
    shard
}

/// A store of few shards that evicts whatever was not used for longest.
fn bounded() -> Store {
    let store = Store::new(StoreOptions {
        shard_count: SHARDS,
        database_count: 3,
        clock: Arc::new(ManualClock::new(1_000)),
        entropy: Arc::new(SeededEntropy::new(5)),
        wake: Arc::new(NobodyWaits),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    });
    store.set_budget(MAX_BYTES, Some(LRU), StampMode::Recency);
    store
}

fn len(store: &Store) -> u64 {
    store.each_shard(|shard| shard.engine.len(KeyspaceId::default())).sum()
}

/// A stream of new keys three times as long as what fits. What is held stays what fitted at first, and each shard holds
/// its share of it: shards are of different sizes, and were they to lose equally many, small ones would soon be empty.
#[test]
fn memory_stays_full_and_shards_alike() {
    let store = bounded();
    let mut scratch = Scratch::default();
    let (mut given, mut full_len) = ([0u64; SHARDS], None);
    for number in 0..KEYS {
        given[set_string(&store, &mut scratch, &format!("key:{number:012}")).index()] += 1;
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

/// Trees count with all they have allocated, also as they grow, and give it back when they are evicted.
#[test]
fn big_collections_are_evicted() {
    const MEMBERS: u64 = 500;
    let store = bounded();
    let mut scratch = Scratch::default();
    let (mut changes, mut fitted) = (Vec::new(), None);
    for number in 0..3_000 {
        changes.clear();
        (0..MEMBERS).for_each(|member| set::Change::Add(format!("member:{member}").as_bytes()).put(&mut changes));
        let name = format!("set:{number}");
        write(&store, &mut scratch, &name, changes.len(), |key| Effect::Edit {
            key,
            kind: Type::Set,
            changes: &changes,
        });
        if fitted.is_none() && store.is_over_budget() {
            fitted = Some(number);
        }
        assert!(store.used_bytes() <= MAX_BYTES + MAX_BYTES / 10, "{} bytes", store.used_bytes());
    }
    let fitted: u64 = fitted.expect("more was written than fits");
    assert!(fitted > MAX_BYTES / (MEMBERS * 30), "{fitted} sets fitted");
    let held: u64 = store.each_shard(|shard| shard.engine.len(KeyspaceId::default())).sum();
    assert!(held * 10 >= fitted * 8, "{held} sets are held, {fitted} fitted at first");
}

/// What is held elsewhere counts at once, and so does what a checkpoint holds.
#[test]
fn what_others_hold_counts_as_of_now() {
    let store = bounded();
    let clients = Arc::new(AtomicU64::new(0));
    let held = clients.clone();
    store.count_others(move || held.load(Ordering::Relaxed));
    let used = store.used_bytes();
    clients.store(MAX_BYTES - used, Ordering::Relaxed);
    assert!(store.used_bytes() == MAX_BYTES && !store.is_over_budget());
    store.backlog().charge(1, 0);
    assert!(store.is_over_budget());
    store.backlog().discharge(1, 0);
    clients.store(0, Ordering::Relaxed);
    assert_eq!(store.used_bytes(), used);
}

/// A budget that is lowered is reached without a write, by steps; about as much is evicted as has to be.
#[test]
fn a_lower_budget_is_reached_without_writes() {
    let store = bounded();
    let mut scratch = Scratch::default();
    for number in 0..60_000 {
        set_string(&store, &mut scratch, &format!("key:{number:012}"));
    }
    assert!(store.used_bytes() <= MAX_BYTES && store.used_bytes() > MAX_BYTES / 2);
    let (full_bytes, full_len) = (store.used_bytes(), len(&store));
    let lower_bytes = MAX_BYTES / 4;
    store.set_budget(lower_bytes, Some(LRU), StampMode::Recency);
    let mut steps = 0;
    while store.work_off_excess(0, &mut scratch) {
        steps += 1;
        assert!(steps < 100_000, "eviction does not end");
    }
    assert!(store.used_bytes() <= lower_bytes, "{} bytes", store.used_bytes());
    let fitting = full_len * lower_bytes / full_bytes;
    assert!(len(&store) * 10 >= fitting * 8, "{} entries are left, about {fitting} fit", len(&store));
}

/// Far over the budget a write waits; it is refused when nothing is left to evict.
#[test]
fn a_write_far_over_the_budget_waits_until_there_is_room() {
    let store = bounded();
    let mut scratch = Scratch::default();
    for number in 0..60_000 {
        set_string(&store, &mut scratch, &format!("key:{number:012}"));
    }
    store.set_budget(MAX_BYTES / 4, Some(LRU), StampMode::Recency);
    assert_eq!(store.evict(100, 0, &mut scratch), Err(Blocked::Memory));
    let end = (0..100_000).map(|_| store.evict(100, 0, &mut scratch)).find(|room| *room != Err(Blocked::Memory));
    assert_eq!(end, Some(Ok(true)));
    assert!(store.excess_bytes() <= MAX_BYTES / 4 / 64 && len(&store) > 0);
    store.set_budget(1, Some(LRU), StampMode::Recency);
    let end = (0..100_000).map(|_| store.evict(100, 0, &mut scratch)).find(|room| *room != Err(Blocked::Memory));
    assert_eq!((end, len(&store)), (Some(Ok(false)), 0));
    assert!(!store.work_off_excess(0, &mut scratch), "there is nothing more to do");
}

/// What was freed is available: after a few keys of a full store are deleted, or all are, a write waits for the pages
/// and then runs, without eviction.
#[test]
fn freed_memory_is_not_refused() {
    let store = bounded();
    let mut scratch = Scratch::default();
    for number in 0..60_000 {
        set_string(&store, &mut scratch, &format!("key:{number:012}"));
    }
    while store.shard_ids().any(|shard| store.upkeep(shard, 0, &mut scratch)) {}
    let used = store.used_bytes();
    store.set_budget(used - 1, None, StampMode::Recency);
    let room = |scratch: &mut Scratch| {
        (0..100_000).map(|_| store.evict(100, 0, scratch)).find(|room| *room != Err(Blocked::Memory))
    };
    let full = (0..).map(|_| room(&mut scratch)).find(|room| *room == Some(Ok(false)) || store.used_bytes() < used);
    assert!(full.is_some());
    // Nothing more can be cleaned: the store is as full as it says.
    store.set_budget(store.used_bytes() - 1, None, StampMode::Recency);
    assert_eq!(room(&mut scratch), Some(Ok(false)), "nothing was freed");
    let at = At { now: 1_000, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    for number in (0..60_000).step_by(100) {
        let name = format!("key:{number:012}");
        let shard = store.shard_of_bytes(name.as_bytes());
        let done = store.commit(&mut scratch, &LockSet::One(shard), &at, |txn| {
            let key = txn.key(name.as_bytes());
            txn.apply(&Effect::Delete { key });
            Ok(())
        });
        assert!(done.is_ok());
    }
    assert_eq!(room(&mut scratch), Some(Ok(true)), "1 % was deleted");
    store.set_budget(1 << 20, None, StampMode::Recency);
    let done = store.commit(&mut scratch, &LockSet::All, &at, |txn| {
        txn.apply(&Effect::Clear { space: KeyspaceId::default() });
        Ok(())
    });
    assert!(done.is_ok());
    assert_eq!(room(&mut scratch), Some(Ok(true)), "all was deleted");
}

/// A database that may lose entries makes room for all. One with `noeviction` keeps every key, under whatever number
/// SWAPDB gives its keyspace: the policy is that of the number.
#[test]
fn each_database_has_its_own_policy() {
    let store = bounded();
    let mut scratch = Scratch::default();
    let lens = || [0, 1, 2].map(|space| store.each_shard(|shard| shard.engine.len(KeyspaceId(space))).sum::<u64>());
    let policies = Policies { databases: vec![(DbIndex(1), Some(LRU))], others: None };
    store.set_budget(MAX_BYTES, policies.clone(), StampMode::Recency);
    for number in 0..10_000 {
        set_string_in(&store, &mut scratch, DbIndex(0), &format!("kept:{number:012}"));
    }
    for number in 0..60_000 {
        set_string_in(&store, &mut scratch, DbIndex(1), &format!("cached:{number:012}"));
    }
    let [kept, cached, _] = lens();
    assert!(kept == 10_000 && cached > 10_000 && cached < 55_000, "{kept} and {cached} entries");
    // A database without eviction takes the room of the one with it.
    for number in 0..10_000 {
        set_string_in(&store, &mut scratch, DbIndex(2), &format!("kept:{number:012}"));
    }
    assert!(lens()[0] == 10_000 && lens()[1] < cached && lens()[2] == 10_000, "{:?} entries", lens());
    store.spaces.swap(KeyspaceId(0), KeyspaceId(1));
    let before = lens();
    for number in 0..1_000 {
        set_string_in(&store, &mut scratch, DbIndex(2), &format!("more:{number:012}"));
    }
    assert!(lens()[0] < before[0] && lens()[1] == before[1], "{before:?} and then {:?} entries", lens());
    store.set_budget(1, policies, StampMode::Recency);
    let end = (0..100_000).map(|_| store.evict(100, 0, &mut scratch)).find(|room| *room != Err(Blocked::Memory));
    assert_eq!((end, lens()), (Some(Ok(false)), [0, before[1], 11_000]), "only database 1 may lose entries");
}
