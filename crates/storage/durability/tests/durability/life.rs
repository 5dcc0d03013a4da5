//! One life of a server's store with its durability: from a start to an ordered stop, or to a crash.

use crate::model::Model;
use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{Clock, UnixMs};
use checkpoint::Retention;
use cmdlog::{LogMode, OnSyncError};
use durability::{Cause, Durability, DurabilityError, Parts, Policy, Recovered, Tell};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::shard::ShardEngine;
use store::{Scratch, Store, StoreOptions, Wake, WorkerSet};
use vfs::SimFs;

/// The data directory of every life.
pub const DIR: &str = "/data";

/// When every life begins.
pub const START_MS: UnixMs = 1_700_000_000_000;

/// Databases, unless a test says otherwise.
pub const DATABASES: u32 = 4;

/// Far more than anything takes: a test that waits this long has found a hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// A clock whose wall time moves only when a test advances it, while durations pass, so that the log's windows do.
pub struct TestClock {
    wall: ManualClock,
    start: Instant,
    skipped_ns: AtomicU64,
}

impl TestClock {
    /// Moves both forward.
    pub fn advance_ms(&self, ms: u64) {
        self.wall.advance_ms(ms);
        self.skipped_ns.fetch_add(ms * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> UnixMs {
        self.wall.now_ms()
    }

    fn monotonic_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64 + self.skipped_ns.load(Ordering::Relaxed)
    }

    fn wall_us(&self) -> i64 {
        self.wall.wall_us()
    }
}

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

/// Keeps the reports it receives.
#[derive(Default)]
pub struct Told(pub Mutex<Vec<String>>);

impl Tell for Told {
    fn say(&self, text: &str) {
        self.0.lock().push(text.to_owned());
    }

    fn stop(&self, text: &str) {
        self.0.lock().push(format!("stop: {text}"));
    }
}

/// Everything on: small segments, so that there are many; two files a checkpoint; no automatic checkpoints.
pub fn policy() -> Policy {
    Policy {
        log_wanted: true,
        mode: LogMode::Sync,
        window_ms: 1,
        on_sync_error: OnSyncError::Rotate,
        segment_bytes: 8 << 10,
        buffer_bytes: 1 << 18,
        feed_bytes: 32 << 20,
        save_points: Vec::new(),
        growth_percent: 0,
        growth_bytes_min: 0,
        stop_writes_on_error: true,
        threads: 2,
        retention: Retention::default(),
        disk_databases: Vec::new(),
        ordered_databases: Vec::new(),
        flush_bytes: 1 << 20,
        flush_error_wait_ms: 100,
        block_cache_bytes: 1 << 20,
        parts_from: 128,
        tier: None,
    }
}

/// A policy with the log off.
pub fn log_off() -> Policy {
    Policy { log_wanted: false, ..policy() }
}

/// A store with its durability, and the threads that a server would have.
pub struct Life {
    pub fs: SimFs,
    pub clock: Arc<TestClock>,
    pub store: Arc<Store>,
    pub durability: Arc<Durability>,
    pub told: Arc<Told>,
    pub scratch: Scratch,
    pub recovered: Recovered,
    /// Changes by commands, as the server counts them.
    pub changes: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// A store and its durability before their start.
pub struct Unstarted {
    clock: Arc<TestClock>,
    pub store: Arc<Store>,
    pub durability: Arc<Durability>,
    told: Arc<Told>,
    changes: Arc<AtomicU64>,
}

impl Unstarted {
    pub fn open(fs: &SimFs, policy: Policy, databases: u32) -> Result<Self, DurabilityError> {
        let clock = Arc::new(TestClock {
            wall: ManualClock::new(START_MS),
            start: Instant::now(),
            skipped_ns: AtomicU64::new(1),
        });
        // Histories have to differ from life to life, whatever the seed of the test.
        static LIVES: AtomicU64 = AtomicU64::new(1);
        let entropy = Arc::new(SeededEntropy::new(LIVES.fetch_add(1, Ordering::Relaxed)));
        let store = Arc::new(Store::new(StoreOptions {
            shard_count: 8,
            database_count: databases,
            clock: clock.clone(),
            entropy: entropy.clone(),
            wake: Arc::new(NobodyWaits),
            log: None,
            engine: |engine| ShardEngine::Memory(Box::new(engine)),
        }));
        store.gate.begin_loading(START_MS);
        let (told, changes) = (Arc::new(Told::default()), Arc::new(AtomicU64::new(0)));
        let counted = changes.clone();
        let parts = Parts {
            fs: Arc::new(fs.clone()),
            clock: clock.clone(),
            entropy,
            dir: PathBuf::from(DIR),
            store: store.clone(),
            workers: 2,
            tell: told.clone(),
            changes: Box::new(move || counted.load(Ordering::Relaxed)),
        };
        let durability = Durability::open(parts, policy)?;
        Ok(Self { clock, store, durability, told, changes })
    }

    /// Takes store and log apart, which know each other.
    pub fn forget(self) {
        unlink(&self.store);
    }
}

/// A start of a server that is to end before everything is loaded.
pub fn give_up(fs: &SimFs, policy: Policy) -> Result<Recovered, DurabilityError> {
    let unstarted = Unstarted::open(fs, policy, DATABASES)?;
    unstarted.durability.end();
    let recovered = unstarted.durability.recover();
    unstarted.forget();
    recovered
}

fn unlink(store: &Store) {
    loop {
        if let Some(mut all) = store.try_lock_all() {
            return all.set_log(None);
        }
        std::thread::yield_now();
    }
}

impl Life {
    /// As a worker's loop does after every turn: what was appended may be synced.
    ///
    /// Of the log that the commands went to: `Store::log` would not give it before it counts, and the sync of what they
    /// appended would never be asked for.
    pub fn end_turn(&mut self) {
        if let Some(log) = self.store.log_of(&mut self.scratch) {
            log.end_turn(0);
        }
    }

    /// A start.
    pub fn start(fs: &SimFs, policy: Policy) -> Result<Self, DurabilityError> {
        Self::start_with(fs, policy, DATABASES)
    }

    /// A start with this many databases.
    pub fn start_with(fs: &SimFs, policy: Policy, databases: u32) -> Result<Self, DurabilityError> {
        let unstarted = Unstarted::open(fs, policy, databases)?;
        let recovered = match unstarted.durability.recover() {
            Ok(recovered) => recovered,
            Err(error) => {
                unstarted.forget();
                return Err(error);
            }
        };
        let has_rows = !unstarted.durability.disk_databases().is_empty();
        if let Err(error) = unstarted.durability.add_databases() {
            unstarted.forget();
            return Err(error);
        }
        // As a server does, once the log that it wants counts.
        unstarted.store.gate.end_loading();
        let Unstarted { clock, store, durability, told, changes } = unstarted;
        let stop = Arc::new(AtomicBool::new(false));
        let keeper = std::thread::spawn({
            let durability = durability.clone();
            move || durability.run()
        });
        let walker = std::thread::spawn({
            let (durability, stop) = (durability.clone(), stop.clone());
            move || {
                while !stop.load(Ordering::Relaxed) {
                    if !durability.work() {
                        std::thread::park_timeout(Duration::from_micros(200));
                    }
                }
            }
        });
        let (fs, mut threads) = (fs.clone(), vec![keeper, walker]);
        if has_rows {
            let (flusher, compactor, expirer) = (durability.clone(), durability.clone(), durability.clone());
            threads.push(std::thread::spawn(move || expirer.look_for_due_rows()));
            threads.push(std::thread::spawn(move || flusher.flush_databases(|_| {})));
            threads.push(std::thread::spawn(move || compactor.compact_databases()));
        }
        let scratch = Scratch::default();
        Ok(Self { fs, clock, store, durability, told, scratch, recovered, changes, stop, threads })
    }

    /// Begins a checkpoint and waits for its end.
    pub fn checkpoint(&self, cause: Cause) -> Result<(), String> {
        let task = loop {
            if let Ok(task) = self.durability.begin(cause) {
                break task;
            }
            std::thread::yield_now();
        };
        self.wait_until(|| task.outcome().is_some());
        task.outcome().expect("it is over").clone()
    }

    /// Waits for something that other threads bring about.
    #[track_caller]
    pub fn wait_until(&self, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition() {
            assert!(
                Instant::now() < deadline,
                "hangs; told {:?}, status {:?}",
                self.told.0.lock(),
                self.durability.status()
            );
            std::thread::park_timeout(Duration::from_micros(50));
        }
    }

    /// Waits until the keeper has nothing in hand.
    pub fn wait_for_rest(&self) {
        self.wait_until(|| self.durability.status().running.is_none());
    }

    /// Lets time pass until a log that has failed works again, and nothing is in hand that may have met a fault and has
    /// not said so yet.
    pub fn heal(&self) {
        self.wait_until(|| {
            let is_durable = self.store.log().is_none_or(|log| log.durable() == log.end());
            if is_durable && self.durability.status().log.is_none_or(|log| log.failure.is_none()) {
                return true;
            }
            self.clock.advance_ms(2_000);
            // A client that asks for a sync makes the log try again.
            let _ = self.checkpoint(Cause::Rewrite);
            false
        });
    }

    /// Waits until the log is on, or off, as the settings ask.
    pub fn wait_for_log(&self, is_on: bool) {
        let is_reached = || {
            let status = self.durability.status();
            status.log.is_some() == is_on && !status.is_switching_on && status.running.is_none()
        };
        self.wait_until(is_reached);
    }

    /// An ordered stop.
    pub fn stop(mut self) {
        self.end_threads();
        self.durability.close().expect("the log ends in order");
    }

    /// The process ends in the middle of everything. What the disk keeps is the caller's choice.
    pub fn crash(self) {
        self.fs.crash();
    }

    fn end_threads(&mut self) {
        self.durability.end();
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("no thread panics");
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.end_threads();
        unlink(&self.store);
    }
}

/// The state that a start finds, without continuing the log. Nothing but the start runs.
pub fn found(fs: &SimFs, policy: Policy) -> Result<store::Digest, DurabilityError> {
    let unstarted = Unstarted::open(fs, policy, DATABASES)?;
    let result = unstarted.durability.recover().map(|_| Model::digest(&unstarted.store));
    unstarted.forget();
    result
}
