//! Locks of shards under schedules that shuttle chooses: built with `--cfg shuttle`, empty otherwise.
//!
//! At every access to a lock's word another thread may run, and a thread that waits to be woken waits forever, without
//! the time limit of a worker's loop: a deadlock, a lost wake-up or two holders of one lock fail the test.
//! SHUTTLE_SCHEDULES says how many schedules to try; a failing one is printed and repeats with `shuttle::replay`.
#![cfg(shuttle)]

use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{DbIndex, Lsn, ShardId};
use engine::{Effect, Encoding, Keyspace, Value};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle::{Config, Runner, thread};
use std::sync::Arc;
use std::sync::Mutex as PlainMutex;
use std::sync::atomic::AtomicU64 as PlainAtomicU64;
use store::lock::ShardLock;
use store::shard::ShardEngine;
use store::{At, Blocked, LockSet, RecordSink, Scratch, Store, StoreOptions, Wake, WorkerSet, WriteClass};

/// Changes of the running thread that the schedules of PCT have room for.
const PCT_DEPTH: usize = 4;

/// Half of the schedules are drawn evenly, half by PCT (Burckhardt et al., ASPLOS 2010), which finds what needs few
/// changes of thread in special places. `ONGGI_TEST_SEED` gives others.
fn check(test: fn()) {
    let schedules: usize = std::env::var("SHUTTLE_SCHEDULES").map_or(1_000, |count| count.parse().expect("a number"));
    let mut config = Config::new();
    config.stack_size = 256 * 1024;
    // Shuttle's atomics are sequentially consistent; weaker orders are for Miri and ThreadSanitizer to judge.
    config.silence_warnings = true;
    let seed: u64 = std::env::var("ONGGI_TEST_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    Runner::new(RandomScheduler::new_from_seed(seed, schedules / 2), config.clone()).run(test);
    Runner::new(PctScheduler::new_from_seed(seed, PCT_DEPTH, schedules / 2), config).run(test);
}

/// Waits of workers, each ended by a wake-up and by nothing else.
struct Bells(Vec<(Mutex<bool>, Condvar)>);

impl Bells {
    fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| (Mutex::new(false), Condvar::new())).collect())
    }

    /// Returns when the worker has been woken since its last wait.
    fn wait(&self, worker: usize) {
        let (rung, condition) = &self.0[worker];
        let mut rung = rung.lock().expect("no test panics while holding it");
        while !*rung {
            rung = condition.wait(rung).expect("no test panics while holding it");
        }
        *rung = false;
    }
}

impl Wake for Bells {
    fn wake(&self, workers: WorkerSet) {
        for (worker, (rung, condition)) in self.0.iter().enumerate() {
            if workers.contains(worker) {
                *rung.lock().expect("no test panics while holding it") = true;
                condition.notify_one();
            }
        }
    }
}

/// Three threads take one lock over and over: never two at once (L1), and an enlisted thread is woken (L2).
#[test]
fn a_taken_lock_wakes_who_enlisted() {
    const WORKERS: usize = 3;
    const ROUNDS: u64 = 3;
    check(|| {
        let lock = Arc::new(ShardLock::new(0u64));
        let bells = Arc::new(Bells::new(WORKERS));
        let threads: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (lock, bells) = (lock.clone(), bells.clone());
                thread::spawn(move || {
                    for _ in 0..ROUNDS {
                        let mut held = loop {
                            match lock.lock_or_enlist(worker) {
                                Some(held) => break held,
                                None => bells.wait(worker),
                            }
                        };
                        let before = *held;
                        thread::yield_now();
                        *held = before + 1;
                        bells.wake(held.unlock());
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("workers do not fail"));
        let held = lock.try_lock().expect("the lock is open when nobody holds it");
        assert_eq!(*held, WORKERS as u64 * ROUNDS);
        assert!(held.unlock().is_empty(), "whoever enlisted has been served");
    });
}

const SHARDS: u16 = 4;
const WORKERS: usize = 3;
const REQUESTS: usize = 3;

fn store(bells: &Arc<Bells>) -> Store {
    Store::new(StoreOptions {
        shard_count: SHARDS as usize,
        database_count: 1,
        clock: Arc::new(ManualClock::new(1_700_000_000_000)),
        entropy: Arc::new(SeededEntropy::new(1)),
        wake: bells.clone(),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    })
}

/// Any set of locks: one, several, all.
fn random_set() -> LockSet {
    match thread_rng().gen_range(0..8) {
        0 => LockSet::All,
        1 | 2 => LockSet::One(ShardId(thread_rng().gen_range(0..SHARDS))),
        _ => {
            let mut set = LockSet::None;
            // In any order: the set sorts them.
            (0..thread_rng().gen_range(2..4)).for_each(|_| set.insert(ShardId(thread_rng().gen_range(0..SHARDS))));
            set
        }
    }
}

fn shards_of(set: &LockSet) -> Vec<ShardId> {
    match set {
        LockSet::None => Vec::new(),
        LockSet::One(shard) => vec![*shard],
        LockSet::Several(shards) => shards.to_vec(),
        LockSet::All => (0..SHARDS).map(ShardId).collect(),
    }
}

/// Workers run commands over sets of shards that overlap, all shards included: every command runs once, alone on its
/// shards (D1, D2), and a blocked one is woken. Between them shards are visited one by one, scanned across their
/// borders and kept up, as INFO, SCAN and the upkeep do.
#[test]
fn sets_of_locks_do_not_deadlock() {
    check(|| {
        let bells = Arc::new(Bells::new(WORKERS));
        let store = Arc::new(store(&bells));
        // A count per shard that is read and written in two steps: without exclusion, counts get lost.
        let counts: Arc<Vec<AtomicU64>> = Arc::new((0..SHARDS).map(|_| AtomicU64::new(0)).collect());
        let threads: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (store, bells, counts) = (store.clone(), bells.clone(), counts.clone());
                thread::spawn(move || {
                    let mut scratch = Scratch::default();
                    let mut run = [0u64; SHARDS as usize];
                    for _ in 0..REQUESTS {
                        let set = random_set();
                        commit(&store, &bells, worker, &mut scratch, &set, &counts);
                        shards_of(&set).iter().for_each(|shard| run[shard.index()] += 1);
                        match thread_rng().gen_range(0..6) {
                            0 => drop(store.len(DbIndex(0))),
                            1 => drop(store.upkeep(ShardId(thread_rng().gen_range(0..SHARDS)), worker, &mut scratch)),
                            2 => scan(&store, &bells, worker, &mut scratch),
                            _ => {}
                        }
                    }
                    run
                })
            })
            .collect();
        let mut expected = [0; SHARDS as usize];
        for thread in threads {
            let run = thread.join().expect("workers do not fail");
            expected.iter_mut().zip(run).for_each(|(sum, one)| *sum += one);
        }
        let counted: Vec<u64> = counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        assert_eq!(counted, expected);
        assert_eq!(store.len(DbIndex(0)), (0, 0), "every lock is open again");
    });
}

/// How often all shards were locked in the middle of a command, and how often another command did so then.
static GROWN: PlainAtomicU64 = PlainAtomicU64::new(0);
static REFUSED: PlainAtomicU64 = PlainAtomicU64::new(0);

/// Commands lock all shards in their middle, as scripts do with keys that they have not declared, next to others over
/// sets that overlap: each runs alone on what it has locked by then, and none waits forever (D3).
#[test]
fn locks_that_grow_do_not_deadlock() {
    check(|| {
        let bells = Arc::new(Bells::new(WORKERS));
        let store = Arc::new(store(&bells));
        let counts: Arc<Vec<AtomicU64>> = Arc::new((0..SHARDS).map(|_| AtomicU64::new(0)).collect());
        let threads: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (store, bells, counts) = (store.clone(), bells.clone(), counts.clone());
                thread::spawn(move || {
                    let mut scratch = Scratch::default();
                    let mut run = [0u64; SHARDS as usize];
                    for _ in 0..REQUESTS {
                        let set = random_set();
                        let grown = grow(&store, &bells, worker, &mut scratch, &set, &counts);
                        for shard in shards_of(&set).into_iter().chain(grown) {
                            run[shard.index()] += 1;
                        }
                    }
                    run
                })
            })
            .collect();
        let mut expected = [0; SHARDS as usize];
        for thread in threads {
            let run = thread.join().expect("workers do not fail");
            expected.iter_mut().zip(run).for_each(|(sum, one)| *sum += one);
        }
        let counted: Vec<u64> = counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        assert_eq!(counted, expected);
        assert_eq!(store.len(DbIndex(0)), (0, 0), "every lock is open again");
    });
    let [grown, refused] = [&GROWN, &REFUSED].map(|count| count.load(Ordering::SeqCst));
    assert!(grown > 0 && refused > 0, "all locks were taken {grown} times, and refused {refused} times");
}

/// One command over a set of shards that locks all in its middle, half of the time. Gives the shards on which it has
/// counted after that.
fn grow(
    store: &Store,
    bells: &Bells,
    worker: usize,
    scratch: &mut Scratch,
    set: &LockSet,
    counts: &[AtomicU64],
) -> Vec<ShardId> {
    let grows = thread_rng().gen_range(0..2) == 0;
    loop {
        let result = store.commit(scratch, set, &at(worker), |txn| {
            count(&shards_of(set), counts);
            let shards = match grows {
                false => Vec::new(),
                true if txn.lock_all() => shards_of(&LockSet::All),
                true => shards_of(set),
            };
            if grows {
                let seen = if txn.has_all_locks() { &GROWN } else { &REFUSED };
                seen.fetch_add(1, Ordering::SeqCst);
            }
            count(&shards, counts);
            Ok(shards)
        });
        match result {
            Ok(shards) => return shards,
            Err(Blocked::Shard) => bells.wait(worker),
            Err(other) => unreachable!("memory answers at once, and there is no log: {other:?}"),
        }
    }
}

/// Counts on each shard, in two steps.
fn count(shards: &[ShardId], counts: &[AtomicU64]) {
    for shard in shards {
        let before = counts[shard.index()].load(Ordering::SeqCst);
        counts[shard.index()].store(before + 1, Ordering::SeqCst);
    }
}

fn at(worker: usize) -> At {
    At { now: 1_700_000_000_000, db: DbIndex(0), touch: true, worker, writes: WriteClass::Any }
}

/// One command: counts on each of its shards, in two steps.
fn commit(store: &Store, bells: &Bells, worker: usize, scratch: &mut Scratch, set: &LockSet, counts: &[AtomicU64]) {
    loop {
        let result = store.commit(scratch, set, &at(worker), |_| {
            count(&shards_of(set), counts);
            Ok(())
        });
        match result {
            Ok(()) => return,
            Err(Blocked::Shard) => bells.wait(worker),
            Err(other) => unreachable!("memory answers at once, and there is no log: {other:?}"),
        }
    }
}

/// A scan from the first shard over the border to the next.
fn scan(store: &Store, bells: &Bells, worker: usize, scratch: &mut Scratch) {
    let mut cursor = 0;
    for _ in 0..2 {
        let set = LockSet::One(store.shard_of_cursor(cursor));
        let result = store.commit(scratch, &set, &at(worker), |txn| {
            let space = txn.space();
            let first = txn.scan(space, cursor, &mut |_| {});
            Ok(first.next.and_then(|next| txn.scan(space, next, &mut |_| {}).next))
        });
        match result {
            Ok(next) => cursor = next.unwrap_or(0),
            Err(_) => bells.wait(worker),
        }
    }
}

/// Keeps the records it is given.
#[derive(Default)]
struct Records(PlainMutex<Vec<Vec<u8>>>);

impl RecordSink for Records {
    fn append(&self, _: usize, payload: &[u8]) -> Lsn {
        let mut records = self.0.lock().expect("no test panics while holding it");
        records.push(payload.to_vec());
        Lsn(records.len() as u64)
    }

    fn durable(&self) -> Lsn {
        Lsn(0)
    }

    fn end(&self) -> Lsn {
        Lsn(self.0.lock().expect("no test panics while holding it").len() as u64)
    }
}

/// The log is replaced while workers write: every record is in exactly one, and the first ends where the second begins
/// (G1), so that replaying one after the other gives what is stored.
#[test]
fn no_record_falls_between_two_logs() {
    check(|| {
        let bells = Arc::new(Bells::new(WORKERS));
        let store = Arc::new(store(&bells));
        let (first, second) = (Arc::new(Records::default()), Arc::new(Records::default()));
        store.try_lock_all().expect("nobody else is there yet").set_log(Some(first.clone()));
        let writers: Vec<_> = (0..2)
            .map(|worker| {
                let (store, bells) = (store.clone(), bells.clone());
                thread::spawn(move || {
                    let mut scratch = Scratch::default();
                    for round in 0..REQUESTS {
                        set(&store, &bells, worker, &mut scratch, &format!("{worker}:{round}"));
                    }
                })
            })
            .collect();
        loop {
            if let Some(mut all) = store.try_lock_all() {
                all.set_log(Some(second.clone()));
                break;
            }
            thread::yield_now();
        }
        writers.into_iter().for_each(|thread| thread.join().expect("workers do not fail"));
        let replayed = self::store(&bells);
        for log in [&first, &second] {
            for record in &*log.0.lock().expect("no test panics while holding it") {
                replayed.replay(&mut Scratch::default(), Lsn(1), record).expect("a record replays");
            }
        }
        assert_eq!(first.end().0 + second.end().0, 2 * REQUESTS as u64);
        assert_eq!(replayed.digest(0), store.digest(0));
    });
}

/// Stores a value under a key that all workers write, in whichever order.
fn set(store: &Store, bells: &Bells, worker: usize, scratch: &mut Scratch, value: &str) {
    let locks = LockSet::One(store.shard_of_bytes(b"k"));
    loop {
        let result = store.commit(scratch, &locks, &at(worker), |txn| {
            let key = txn.key(b"k");
            let value = Value::Bytes(value.as_bytes());
            txn.apply(&Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None });
            Ok(())
        });
        match result {
            Ok(()) => return,
            Err(Blocked::Shard) => bells.wait(worker),
            Err(other) => unreachable!("the log admits everything: {other:?}"),
        }
    }
}
