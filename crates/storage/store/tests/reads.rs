//! The fast path of reads, and lookups made ahead of a command: while other workers move cells and entries, a read
//! shows what the key holds then, never what it held before.
#![cfg(not(shuttle))]

use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{DbIndex, KeyspaceId, Rng};
use engine::{Effect, Encoding, Key, Keyspace, NotifyClass, Seen, Type, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::shard::ShardEngine;
use store::{At, LockSet, Scratch, Store, StoreOptions, Wake, Way, WorkerSet, WriteClass};
use value::list;

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

fn store(shard_count: usize) -> Store {
    Store::new(StoreOptions {
        shard_count,
        database_count: 2,
        clock: Arc::new(ManualClock::new(1_000)),
        entropy: Arc::new(SeededEntropy::new(5)),
        wake: Arc::new(NobodyWaits),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    })
}

fn at(worker: usize, writes: WriteClass) -> At {
    At { now: 1_000, db: DbIndex(0), touch: true, worker, writes }
}

/// Goes the way to a key as far as it can be gone without a lock.
fn way_to(store: &Store, key: &Key<'_>) -> Way {
    let shard = store.shard_of(key);
    let mut way = store.prefetch_bucket(shard, key.space, key.hash);
    if !store.prefetch_entry(&mut way, shard, key.hash) {
        store.prefetch_second_bucket(&mut way, shard, key.space, key.hash);
        store.prefetch_entry(&mut way, shard, key.hash);
    }
    way
}

/// What the key holds, by the short way; `None` when that cannot be gone.
fn read(store: &Store, scratch: &mut Scratch, key: &Key<'_>, way: &Way) -> Option<Option<Vec<u8>>> {
    let at = at(1, WriteClass::Nothing);
    store.read_one(scratch, (store.shard_of(key), *key, way), &at, |seen| match seen {
        Seen::Entry(entry) => Some(entry.map(|entry| entry.value.bytes().to_vec())),
        Seen::Away(_) => None,
    })
}

fn apply(store: &Store, scratch: &mut Scratch, effect: &Effect<'_>, key: &Key<'_>) {
    let set = LockSet::One(store.shard_of(key));
    let run = |txn: &mut store::Txn<'_>| {
        txn.apply(effect);
        Ok(())
    };
    while store.commit(scratch, &set, &at(0, WriteClass::Any), run).is_err() {
        std::thread::yield_now();
    }
}

/// The number in front of a value.
fn number_of(value: &[u8]) -> u64 {
    let digits = value.split(|byte| *byte == b' ').next().unwrap();
    std::str::from_utf8(digits).unwrap().parse().unwrap()
}

const KEYS: u64 = 400;
const CHANGES: u64 = if cfg!(miri) { 300 } else { 150_000 };

/// One thread stores values of all lengths and removes keys, so that tables grow and shrink and entries move; another
/// goes ways, and reads where they lead a moment later. Each change of a key has a number, odd when it removes: a read
/// never shows an older one than was finished before it, nor one that was not begun.
#[test]
fn what_was_found_ahead_is_there_or_not_used() {
    let store = store(2);
    let numbers: Vec<[AtomicU64; 2]> = (0..KEYS).map(|_| [AtomicU64::new(1), AtomicU64::new(1)]).collect();
    let names: Vec<String> = (0..KEYS).map(|key| format!("key:{key}")).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut scratch, mut rng) = (Scratch::default(), Rng::new(1));
            for change in 0..CHANGES {
                // The number of keys rises and falls, which is what has tables split and merge.
                let key = rng.below(if change / 1_000 % 2 == 0 { KEYS } else { KEYS / 8 });
                let [begun, finished] = &numbers[key as usize];
                let number = begun.load(Ordering::Relaxed) + 1;
                begun.store(number, Ordering::SeqCst);
                let key = store.key(KeyspaceId(0), names[key as usize].as_bytes());
                let value = format!("{number} {}", "v".repeat(rng.below(300) as usize));
                let effect = match number % 2 {
                    0 => Effect::Set {
                        key,
                        value: Value::Bytes(value.as_bytes()),
                        encoding: Encoding::PLAIN,
                        expire_at: None,
                    },
                    _ => Effect::Delete { key },
                };
                apply(&store, &mut scratch, &effect, &key);
                finished.store(number, Ordering::SeqCst);
                if change % 64 == 0 {
                    store.shard_ids().for_each(|shard| {
                        store.upkeep(shard, 0, &mut scratch);
                    });
                }
            }
            is_over.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            let (mut scratch, mut rng, mut shown) = (Scratch::default(), Rng::new(2), 0);
            while !is_over.load(Ordering::SeqCst) {
                let chosen: [usize; 8] = std::array::from_fn(|_| rng.below(KEYS) as usize);
                let keys = chosen.map(|key| store.key(KeyspaceId(0), names[key].as_bytes()));
                let ways = keys.map(|key| way_to(&store, &key));
                for ((key, way), chosen) in keys.iter().zip(&ways).zip(chosen) {
                    let [begun, finished] = &numbers[chosen];
                    let before = finished.load(Ordering::SeqCst);
                    let Some(value) = read(&store, &mut scratch, key, way) else { continue };
                    let after = begun.load(Ordering::SeqCst);
                    match value {
                        Some(value) => {
                            let number = number_of(&value);
                            assert!(
                                (before..=after).contains(&number) && number.is_multiple_of(2),
                                "{before} {number} {after}"
                            );
                            shown += 1;
                        }
                        None => {
                            assert!(before % 2 == 1 || after > before, "{before} {after}: a key that was there is not")
                        }
                    }
                }
            }
            assert!(shown > 0, "nothing was read");
        });
    });
}

/// Anything out of the ordinary is left to the path of all commands, with nothing done: no access counted, no lock
/// kept.
#[test]
fn what_is_not_plain_is_left_alone() {
    let store = store(1);
    let mut scratch = Scratch::default();
    let (here, there) = (store.key(KeyspaceId(0), b"key"), store.key(KeyspaceId(1), b"key"));
    let set = |key| Effect::Set { key, value: Value::Bytes(b"7 "), encoding: Encoding::PLAIN, expire_at: None };
    apply(&store, &mut scratch, &set(here), &here);
    let way = way_to(&store, &here);
    assert_eq!(read(&store, &mut scratch, &here, &way), Some(Some(b"7 ".to_vec())));
    // A key hashed for another database is looked for in the one selected, and what was found on the way there does not
    // count.
    assert_eq!(read(&store, &mut scratch, &there, &way_to(&store, &there)), Some(Some(b"7 ".to_vec())));
    assert_eq!((scratch.hits, scratch.misses), (2, 0));
    apply(&store, &mut scratch, &Effect::Delete { key: here }, &here);
    assert_eq!(read(&store, &mut scratch, &here, &way), Some(None), "the way is old");
    assert_eq!((scratch.hits, scratch.misses), (2, 1));
    let mut changes = Vec::new();
    (0..1_000).for_each(|_| list::Change::Push { end: list::End::Tail, value: &[b'e'; 100] }.put(&mut changes));
    apply(&store, &mut scratch, &Effect::Edit { key: here, kind: Type::List, changes: &changes }, &here);
    assert!(read(&store, &mut scratch, &here, &way_to(&store, &here)).is_some(), "a tree is shown as it is");
    assert_eq!((scratch.hits, scratch.misses), (3, 1));
    let mut stored = Vec::new();
    // Nothing decompresses it here.
    assert!(codec::stored::put_lzf(b"\x04aaaaa", 40, &mut stored));
    let (value, encoding) = (Value::Bytes(&stored), Encoding::PLAIN.compressed());
    apply(&store, &mut scratch, &Effect::Set { key: here, value, encoding, expire_at: None }, &here);
    assert_eq!(read(&store, &mut scratch, &here, &way_to(&store, &here)), None, "a compressed string");
    apply(&store, &mut scratch, &set(here), &here);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let at = at(1, WriteClass::Nothing);
        store.read_one(&mut scratch, (store.shard_of(&here), here, &Way::NONE), &at, |_| -> Option<()> {
            panic!("on purpose")
        })
    }));
    assert!(caught.is_err());
    assert!(read(&store, &mut scratch, &here, &Way::NONE).is_some(), "the lock is open again");
    store.notices.ask_for_events(NotifyClass::all());
    assert_eq!(read(&store, &mut scratch, &here, &Way::NONE), None, "somebody may want to be told");
    assert_eq!((scratch.hits, scratch.misses), (4, 1));
}
