//! Commands that wait for keys, under schedules that shuttle chooses: built with `--cfg shuttle`, empty otherwise.
//!
//! A key holds one token or none. Pushers put tokens where none is; takers wait for one of two keys, movers for one to
//! carry to another key. Waits also time out, at any moment. A token left on a key that a command waits for, one that
//! is lost or doubled, and a wait that nothing ends fail the test. SHUTTLE_SCHEDULES says how many schedules to try.
#![cfg(shuttle)]

use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{DbIndex, Lsn};
use engine::{Effect, Encoding, Fetch, Keyspace, Serve, Type, Unblock, Value, WaitEnd, WaitNumber, WaitState, Waiter};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle::{Config, Runner, thread};
use std::any::Any;
use std::sync::Arc;
use std::sync::Mutex as PlainMutex;
use store::shard::ShardEngine;
use store::{At, Blocked, LockSet, Scratch, Store, StoreOptions, Wake, WorkerSet, WriteClass};

/// Changes of the running thread that the schedules of PCT have room for.
const PCT_DEPTH: usize = 4;

const KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];
const PUSHERS: usize = 2;
const PUSHES: usize = 2;
const WAITERS: usize = 2;

/// Half of the schedules are drawn evenly, half by PCT (Burckhardt et al., ASPLOS 2010).
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

/// Waits of threads, each ended by a wake-up and by nothing else.
struct Bells(Vec<(Mutex<bool>, Condvar)>);

impl Bells {
    fn ring(&self, number: usize) {
        let (rung, condition) = &self.0[number];
        *rung.lock().expect("no test panics while holding it") = true;
        condition.notify_one();
    }

    fn wait(&self, number: usize) {
        let (rung, condition) = &self.0[number];
        let mut rung = rung.lock().expect("no test panics while holding it");
        while !*rung {
            rung = condition.wait(rung).expect("no test panics while holding it");
        }
        *rung = false;
    }
}

impl Wake for Bells {
    fn wake(&self, workers: WorkerSet) {
        (0..self.0.len()).filter(|worker| workers.contains(*worker)).for_each(|worker| self.ring(worker));
    }
}

/// Waits for a token at its first key, to carry it to the second if it has one, or at either of two keys, to take it.
struct Wait {
    keys: [&'static [u8]; 2],
    is_mover: bool,
    state: Arc<WaitState>,
    number: WaitNumber,
    thread: usize,
    bells: Arc<Bells>,
}

impl Wait {
    /// The key whose token is for it now.
    fn find(&self, ks: &mut dyn Keyspace) -> Result<Option<&'static [u8]>, Fetch> {
        let keys = self.keys.map(|bytes| ks.key(bytes));
        let there = [ks.read(&keys[0])?.is_some(), ks.read(&keys[1])?.is_some()];
        Ok(match (self.is_mover, there) {
            (true, [true, false]) | (false, [true, _]) => Some(self.keys[0]),
            (false, [false, true]) => Some(self.keys[1]),
            _ => None,
        })
    }

    /// Runs it: whether there was something for it.
    fn run(&self, ks: &mut dyn Keyspace) -> Result<bool, Fetch> {
        let Some(from) = self.find(ks)? else { return Ok(false) };
        let key = ks.key(from);
        ks.apply(&Effect::Delete { key });
        if self.is_mover {
            put(ks, self.keys[1]);
        }
        Ok(true)
    }
}

fn put(ks: &mut dyn Keyspace, key: &[u8]) {
    let key = ks.key(key);
    ks.apply(&Effect::Set { key, value: Value::Bytes(b"token"), encoding: Encoding::PLAIN, expire_at: None });
}

impl Waiter for Wait {
    fn db(&self) -> DbIndex {
        DbIndex(0)
    }

    fn visit_keys(&self, visit: &mut dyn FnMut(&[u8], bool)) {
        visit(self.keys[0], true);
        // A mover also waits for its target key to become free.
        visit(self.keys[1], true);
    }

    fn is_open(&self) -> bool {
        self.state.is_open(self.number)
    }

    fn wants(&self, found: Option<Type>) -> bool {
        found.is_some() || self.is_mover
    }

    fn settle(&self, _wrote: Option<Lsn>, _hold: Option<Lsn>) {
        self.state.finish(self.number, true);
    }

    fn wake(&self) {
        self.bells.ring(self.thread);
    }
}

struct Server;

impl Serve for Server {
    fn serve(&self, ks: &mut dyn Keyspace, waiter: &dyn Waiter) -> bool {
        let waiter: &dyn Any = waiter;
        let wait: &Wait = waiter.downcast_ref().expect("there are no others");
        if !wait.state.claim(wait.number) {
            return false;
        }
        let is_served = wait.run(ks).expect("everything is in memory");
        if !is_served {
            wait.state.finish(wait.number, false);
        }
        is_served
    }
}

fn locks(store: &Store, keys: &[&[u8]]) -> LockSet {
    let mut set = LockSet::None;
    keys.iter().for_each(|key| set.insert(store.shard_of_bytes(key)));
    set
}

/// Runs a command of a worker, however often its locks are taken.
fn commit<R>(
    store: &Store,
    bells: &Bells,
    worker: usize,
    keys: &[&[u8]],
    mut run: impl FnMut(&mut dyn Keyspace) -> Result<R, Fetch>,
) -> R {
    let mut scratch = Scratch::default();
    scratch.serve_with(Arc::new(Server));
    let at = At { now: 1_700_000_000_000, db: DbIndex(0), touch: true, worker, writes: WriteClass::Any };
    loop {
        match store.commit(&mut scratch, &locks(store, keys), &at, |txn| run(txn)) {
            Ok(result) => return result,
            Err(Blocked::Shard) => bells.wait(worker),
            Err(other) => unreachable!("memory answers at once, and there is no log: {other:?}"),
        }
    }
}

/// Puts tokens where there are none; gives how many it put.
fn push(store: &Store, bells: &Bells, worker: usize) -> usize {
    let one = || {
        let key = KEYS[thread_rng().gen_range(0..KEYS.len())];
        commit(store, bells, worker, &[key], |ks| {
            let stored = ks.key(key);
            let is_free = ks.read(&stored)?.is_none();
            if is_free {
                put(ks, key);
            }
            Ok(usize::from(is_free))
        })
    };
    (0..PUSHES).map(|_| one()).sum()
}

/// What the threads share in addition to the store.
#[derive(Default)]
struct Waiting {
    states: [Arc<WaitState>; WAITERS],
    enlisted: PlainMutex<Vec<Arc<Wait>>>,
    done: AtomicUsize,
}

/// Waits until it is served, stopped, or tired of it; returns how many tokens it took.
fn wait(store: &Store, bells: &Arc<Bells>, thread: usize, waiting: &Waiting) -> usize {
    let taken = wait_once(store, bells, thread, waiting);
    waiting.done.fetch_add(1, Ordering::SeqCst);
    taken
}

fn wait_once(store: &Store, bells: &Arc<Bells>, thread: usize, waiting: &Waiting) -> usize {
    let state = &waiting.states[thread - PUSHERS];
    let first = thread_rng().gen_range(0..KEYS.len());
    let keys = [KEYS[first], KEYS[(first + 1) % KEYS.len()]];
    let is_mover = thread_rng().gen_range(0..2) == 0;
    let (state, bells) = (state.clone(), bells.clone());
    let wait = Arc::new(Wait { keys, is_mover, number: state.begin(), state, thread, bells: bells.clone() });
    let is_done = commit(store, &bells, thread, &keys, |ks| {
        let is_done = wait.run(ks)?;
        if !is_done {
            ks.wait(wait.clone());
            waiting.enlisted.lock().expect("no test panics while holding it").push(wait.clone());
        }
        Ok(is_done)
    });
    if is_done {
        wait.state.end(wait.number, true);
        return usize::from(!is_mover);
    }
    let is_tired = thread_rng().gen_range(0..3) == 0;
    let end = loop {
        match wait.state.end(wait.number, is_tired) {
            Some(end) => break end,
            None if is_tired => thread::yield_now(),
            None => bells.wait(thread),
        }
    };
    if end != WaitEnd::Served {
        store.forget_waiter(&*wait);
    }
    usize::from(end == WaitEnd::Served && !is_mover)
}

#[test]
fn every_token_is_taken_once_or_left_where_nobody_waits() {
    check(|| {
        let threads = PUSHERS + WAITERS;
        let bells = Arc::new(Bells((0..threads).map(|_| (Mutex::new(false), Condvar::new())).collect()));
        let store = Arc::new(Store::new(StoreOptions {
            shard_count: 4,
            database_count: 1,
            clock: Arc::new(ManualClock::new(1_700_000_000_000)),
            entropy: Arc::new(SeededEntropy::new(1)),
            wake: bells.clone(),
            log: None,
            engine: |engine| ShardEngine::Memory(Box::new(engine)),
        }));
        let waiting = Arc::new(Waiting::default());
        let waiters: Vec<_> = (PUSHERS..threads)
            .map(|number| {
                let (store, bells, waiting) = (store.clone(), bells.clone(), waiting.clone());
                thread::spawn(move || wait(&store, &bells, number, &waiting))
            })
            .collect();
        let pushers: Vec<_> = (0..PUSHERS)
            .map(|number| {
                let (store, bells) = (store.clone(), bells.clone());
                thread::spawn(move || push(&store, &bells, number))
            })
            .collect();
        let put: usize = pushers.into_iter().map(|thread| thread.join().expect("pushers do not fail")).sum();
        commit(&store, &bells, 0, &KEYS, |ks| {
            for wait in waiting.enlisted.lock().expect("no test panics while holding it").iter() {
                let found = wait.find(ks)?;
                // One that was served and not notified yet cannot be claimed any more, though its wait is not over.
                let is_waiting = wait.state.claim(wait.number);
                if is_waiting {
                    wait.state.finish(wait.number, false);
                }
                assert!(!is_waiting || found.is_none(), "a token lies where somebody waits for it");
            }
            Ok(())
        });
        while waiting.done.load(Ordering::SeqCst) < WAITERS {
            waiting.states.iter().for_each(|state| drop(state.unblock(Unblock::Timeout)));
            (PUSHERS..threads).for_each(|number| bells.ring(number));
            thread::yield_now();
        }
        let taken: usize = waiters.into_iter().map(|thread| thread.join().expect("waiters do not fail")).sum();
        let left = store.len(DbIndex(0)).0 as usize;
        assert_eq!(put, taken + left, "tokens are neither lost nor doubled");
    });
}
