//! The random commands of the differential test, logged and saved to a simulated disk, and loaded again: the whole
//! state is equal, with times, from the log alone, from a checkpoint alone, and from both.

use crate::harness::{SHARDS, memory, store};
use crate::replay::{Side, request_of};
use base::random::{SeededEntropy, splitmix64};
use base::{Rng, UnixMs};
use checkpoint::Retention;
use cmdlog::{LogMode, OnSyncError};
use differential::generate::Generator;
use differential::grammar;
use differential::step::Step;
use durability::{Cause, Durability, Parts, Policy, Tell};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::Store;
use vfs::{Outage, SimFs};

const ROUNDS: u64 = 9;
const REQUESTS: usize = 700;

/// Requests between two moves of the clock.
const TIME_EVERY: usize = 100;

pub struct Nobody;

impl Tell for Nobody {
    fn say(&self, _: &str) {}

    fn stop(&self, text: &str) {
        panic!("{text}");
    }
}

fn policy(log_wanted: bool) -> Policy {
    Policy {
        log_wanted,
        // Nothing waits for a clock that only the test moves; an ordered end makes all of it durable.
        mode: LogMode::WrittenOnly,
        window_ms: 1_000,
        on_sync_error: OnSyncError::Stop,
        segment_bytes: 64 << 10,
        buffer_bytes: 64 << 20,
        feed_bytes: 32 << 20,
        save_points: Vec::new(),
        growth_percent: 0,
        growth_bytes_min: 0,
        stop_writes_on_error: false,
        threads: 2,
        retention: Retention::default(),
        disk_databases: Vec::new(),
        ordered_databases: Vec::new(),
        flush_bytes: 1 << 20,
        flush_error_wait_ms: 0,
        block_cache_bytes: 1 << 20,
        parts_from: 256,
        tier: None,
    }
}

fn open(fs: &SimFs, store: &Arc<Store>, log_wanted: bool, seed: u64) -> Arc<Durability> {
    let parts = Parts {
        fs: Arc::new(fs.clone()),
        clock: store.clock.clone(),
        entropy: Arc::new(SeededEntropy::new(seed)),
        dir: PathBuf::from("/data"),
        store: store.clone(),
        workers: 1,
        tell: Arc::new(Nobody),
        changes: Box::new(|| 0),
    };
    Durability::open(parts, policy(log_wanted)).expect("the directory opens")
}

/// Runs the steps, and lets time pass.
fn run(side: &mut Side, rng: &mut Rng, steps: &[Step]) {
    for (number, step) in steps.iter().enumerate() {
        match request_of(step) {
            Some(bytes) => drop(side.run(step.connection, &bytes)),
            None => side.reopen(step.connection),
        }
        if number % TIME_EVERY == 0 {
            side.server.pass_ms(rng.below(5_000));
        }
    }
}

/// Takes the log out of the store, which otherwise keep each other.
fn unlink(store: &Store) {
    store.try_lock_all().expect("nobody else runs").set_log(None);
}

/// Loads what the disk holds into an empty store and compares.
fn assert_comes_back(fs: &SimFs, side: &Side, seed: u64, what: &str) {
    let recovered = Arc::new(store(&side.server.clock, SHARDS, None, memory));
    let durability = open(fs, &recovered, false, seed + 1_000);
    let found = durability.recover().unwrap_or_else(|error| panic!("{what}: {error}"));
    // Entries that have expired and were not removed count on both sides.
    let digest = |store: &Store| store.digest(UnixMs::MIN);
    assert_eq!(digest(&recovered), digest(&side.server.store), "{what}: {found:?}");
}

#[test]
fn random_commands_come_back_whole() {
    let generator = Generator::new(&grammar::load(&grammar::families()).expect("the grammars parse"), false);
    let rounds = std::env::var("ONGGI_CRASH_ROUNDS").map_or(1, |rounds| rounds.parse().expect("a number"));
    let first: u64 = std::env::var("ONGGI_TEST_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    for round in 0..ROUNDS * rounds {
        let seed = splitmix64(&mut (first.rotate_left(32) ^ round));
        let mut rng = Rng::new(seed);
        let steps = generator.sequence(&mut rng, REQUESTS);
        let (log, checkpoint) = [(true, false), (false, true), (true, true)][(round % 3) as usize];
        let what = format!("round {round}, seed {first}, log {log}, checkpoint {checkpoint}");
        let mut side = Side::new(memory);
        let fs = kept(&mut side, (log, seed, round), |side, durability| {
            let (half, rest) = steps.split_at(REQUESTS / 2);
            run(side, &mut rng, half);
            let rest = if log { rest } else { run_all(side, &mut rng, rest) };
            let mut left = rest.chunks(10);
            if checkpoint {
                let task = durability.schedule(Cause::Asked);
                while task.outcome().is_none() {
                    // With a log, commands run meanwhile.
                    match left.next() {
                        Some(steps) => run(side, &mut rng, steps),
                        None => std::thread::yield_now(),
                    }
                }
                assert_eq!(task.outcome(), Some(&Ok(())), "{what}");
            }
            left.for_each(|steps| run(side, &mut rng, steps));
        });
        assert_comes_back(&fs, &side, round, &what);
    }
}

/// Has what a server does logged, or saved, until `run` is over and it ends in order, and gives the disk after a power
/// cut.
fn kept(
    side: &mut Side,
    (log, seed, entropy): (bool, u64, u64),
    run: impl FnOnce(&mut Side, &Arc<Durability>),
) -> SimFs {
    let fs = SimFs::new(seed);
    // Instead of the replica of the harness, the log, if there is one.
    unlink(&side.server.store);
    let durability = open(&fs, &side.server.store, log, entropy);
    durability.recover().expect("the directory is empty");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| durability.run());
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if !durability.work() {
                    std::thread::park_timeout(Duration::from_micros(200));
                }
            }
        });
        run(side, &durability);
        durability.end();
        stop.store(true, Ordering::Relaxed);
    });
    durability.close().expect("the disk works");
    unlink(&side.server.store);
    drop(durability);
    fs.recover(Outage::PowerCut { seed })
}

/// A collection that was packed with a long element is called what it was called, from the log and from a checkpoint.
#[test]
fn long_elements_are_remembered() {
    let long = "x".repeat(100);
    for log in [true, false] {
        let mut side = Side::new(memory);
        let fs = kept(&mut side, (log, 7, 7), |side, durability| {
            let client = side.server.connect();
            for (add, remove) in [
                (vec!["HSET", "hash", &long, "v", "f", "v"], ["HDEL", "hash"]),
                (vec!["SADD", "set", &long, "m"], ["SREM", "set"]),
                (vec!["ZADD", "zset", "1", &long, "2", "m"], ["ZREM", "zset"]),
            ] {
                side.server.run(client, &add);
                assert_eq!(side.server.run(client, &[remove[0], remove[1], &long]), ":1\r\n");
            }
            let task = (!log).then(|| durability.schedule(Cause::Asked));
            while task.as_ref().is_some_and(|task| task.outcome().is_none()) {
                std::thread::yield_now();
            }
        });
        let mut again = Side::new(memory);
        unlink(&again.server.store);
        let durability = open(&fs, &again.server.store, false, 8);
        durability.recover().expect("the disk is whole");
        let client = again.server.connect();
        for (key, name) in [("hash", "hashtable"), ("set", "hashtable"), ("zset", "skiplist")] {
            let encoding = again.server.run(client, &["OBJECT", "ENCODING", key]);
            assert_eq!(encoding, format!("${}\r\n{name}\r\n", name.len()), "{key}, log {log}");
        }
        unlink(&again.server.store);
    }
}

/// Runs the steps and leaves none.
fn run_all<'s>(side: &mut Side, rng: &mut Rng, steps: &'s [Step]) -> &'s [Step] {
    run(side, rng, steps);
    &steps[steps.len()..]
}
