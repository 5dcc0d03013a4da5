//! Walks over a whole keyspace that hold no lock between two steps, as KEYS does: others change the store meanwhile.
#![cfg(not(shuttle))]

use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{DbIndex, KeyspaceId};
use engine::{Effect, Encoding, Entry, Keyspace, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::shard::ShardEngine;
use store::{At, LockSet, Scratch, Store, StoreOptions, Wake, WorkerSet, WriteClass};

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

const KEPT: u64 = 20_000;

fn at(worker: usize) -> At {
    At { now: 1_000, db: DbIndex(0), touch: false, worker, writes: WriteClass::Any }
}

/// Sets or deletes one key, under its shard's lock.
fn change(store: &Store, scratch: &mut Scratch, worker: usize, name: &str, set: bool) {
    let locks = LockSet::One(store.shard_of_bytes(name.as_bytes()));
    let run = |txn: &mut store::Txn<'_>| {
        let key = txn.key(name.as_bytes());
        let value = Value::Bytes(b"value");
        let set_effect = Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None };
        txn.apply(&if set { set_effect } else { Effect::Delete { key } });
        Ok(())
    };
    while store.commit(scratch, &locks, &at(worker), run).is_err() {}
}

/// Every key that is there throughout is visited exactly once, while tables grow and split under another thread's
/// hands; and the figures of a command without locks are those of all shards.
#[test]
fn a_walk_without_locks_meets_every_key_once() {
    let store = Store::new(StoreOptions {
        shard_count: 8,
        database_count: 1,
        clock: Arc::new(ManualClock::new(1_000)),
        entropy: Arc::new(SeededEntropy::new(5)),
        wake: Arc::new(NobodyWaits),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    });
    let mut scratch = Scratch::default();
    (0..KEPT).for_each(|n| change(&store, &mut scratch, 0, &format!("kept:{n}"), true));
    let counted = store.commit(&mut scratch, &LockSet::None, &at(0), |txn| Ok(txn.len(KeyspaceId::default())));
    assert_eq!(counted, Ok(KEPT));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut scratch = Scratch::default();
            let mut n = 0u64;
            while !done.load(Ordering::Relaxed) {
                change(&store, &mut scratch, 1, &format!("passing:{n}"), true);
                // Half of them stay, so that tables grow.
                change(&store, &mut scratch, 1, &format!("passing:{}", n / 2), false);
                n += 1;
            }
        });
        for _ in 0..20 {
            let mut visits: HashMap<Vec<u8>, u32> = HashMap::new();
            let walked = store.commit(&mut scratch, &LockSet::None, &at(0), |txn| {
                let mut visit = |entry: &Entry<'_>| *visits.entry(entry.key.to_vec()).or_default() += 1;
                types::walk::all(txn, &mut visit);
                Ok(())
            });
            assert!(walked.is_ok());
            for n in 0..KEPT {
                assert_eq!(visits.get(format!("kept:{n}").as_bytes()), Some(&1), "kept:{n}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
