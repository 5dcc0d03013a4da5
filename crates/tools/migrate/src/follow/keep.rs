//! The copy's store, with log and checkpoints in its directory, and the threads that these need.

use super::Follow;
use super::place::Place;
use crate::contents::Contents;
use crate::error::MigrateError;
use base::random::Entropy;
use base::{Clock, DbIndex};
use checkpoint::{Name, Retention};
use cmdlog::{LogMode, OnSyncError};
use durability::{Cause, Durability, Parts, Policy, Tell};
use engine::{Effect, Keyspace, WriteClass};
use parking_lot::Mutex;
use rdb::{Item, Reader};
use replication::Source;
use replication::load::load;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use store::lock::WorkerSet;
use store::shard::ShardEngine;
use store::{At, LockSet, Scratch, Store, StoreOptions, Wake};

/// A wait between two looks at what another thread does.
const LOOK: Duration = Duration::from_millis(1);

/// How long a change of the log may wait for the lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// Keys between two calls that say how many are loaded.
const KEYS_PER_CALL: u64 = 10_000;

/// The thread that applies, and the one that walks checkpoints.
const WORKERS: usize = 2;

/// Threads poll often enough to need no wake-up.
struct Nothing;

impl Wake for Nothing {
    fn wake(&self, _workers: WorkerSet) {}
}

/// Keeps sentences until they are taken.
#[derive(Default)]
struct Said(Mutex<Vec<String>>);

impl Tell for Said {
    fn say(&self, text: &str) {
        self.0.lock().push(text.to_owned());
    }

    fn stop(&self, text: &str) {
        self.say(text);
    }
}

/// The store of a copy.
pub(super) struct Kept {
    pub store: Arc<Store>,
    pub place: Place,
    dir: PathBuf,
    durability: Arc<Durability>,
    policy: Policy,
    said: Arc<Said>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Kept {
    /// Opens the directory, and loads what an earlier call has left there.
    ///
    /// # Errors
    /// [`MigrateError::NotEmpty`] for a directory with other data, and all that a start of a server can meet.
    pub fn open(follow: &Follow<'_>, clock: &Arc<dyn Clock>, entropy: &Arc<dyn Entropy>) -> Result<Self, MigrateError> {
        let is_fresh = is_fresh(follow)?;
        let store = Arc::new(Store::new(StoreOptions {
            shard_count: 1,
            database_count: follow.databases + 1,
            clock: Arc::clone(clock),
            entropy: Arc::clone(entropy),
            wake: Arc::new(Nothing),
            log: None,
            engine: |engine| ShardEngine::Memory(Box::new(engine)),
        }));
        store.gate.begin_loading(clock.now_ms());
        let said = Arc::new(Said::default());
        let parts = Parts {
            fs: Arc::clone(follow.fs),
            clock: Arc::clone(clock),
            entropy: Arc::clone(entropy),
            dir: follow.dir.to_owned(),
            store: Arc::clone(&store),
            workers: WORKERS,
            tell: Arc::clone(&said) as Arc<dyn Tell>,
            // No save points ask for them.
            changes: Box::new(|| 0),
        };
        // A copy is loaded before its log begins.
        let policy = policy(!is_fresh);
        let durability = Durability::open(parts, policy.clone())?;
        let stop = Arc::new(AtomicBool::new(false));
        let place = Place::new(&store, follow);
        let mut kept =
            Self { store, place, dir: follow.dir.to_owned(), durability, policy, said, stop, threads: Vec::new() };
        if let Err(error) = kept.durability.recover() {
            kept.close()?;
            return Err(error.into());
        }
        kept.store.gate.end_loading();
        kept.start_threads();
        Ok(kept)
    }

    fn start_threads(&mut self) {
        let durability = Arc::clone(&self.durability);
        self.threads.push(thread::spawn(move || durability.run()));
        let (durability, stop) = (Arc::clone(&self.durability), Arc::clone(&self.stop));
        self.threads.push(thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                if !durability.work() {
                    thread::sleep(LOOK);
                }
            }
        }));
    }

    /// Switches the log on, with a checkpoint of everything, or off; waits until that is done.
    pub fn set_log(&mut self, is_on: bool) -> Result<(), MigrateError> {
        self.policy.log_wanted = is_on;
        self.durability.set_policy(self.policy.clone(), PATIENCE).map_err(|error| self.not_kept(error.to_string()))?;
        if is_on {
            return self.durability.wait_for_log().map_err(|why| self.not_kept(why));
        }
        while self.durability.status().log.is_some() {
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Takes a checkpoint, and waits for it.
    pub fn checkpoint(&self) -> Result<(), MigrateError> {
        let task = self.durability.schedule(Cause::Asked);
        loop {
            match task.outcome() {
                Some(outcome) => return outcome.clone().map_err(|why| self.not_kept(why)),
                None => thread::sleep(LOOK),
            }
        }
    }

    /// Removes everything, while there is no log.
    pub fn clear(&self) -> Result<(), MigrateError> {
        let mut scratch = Scratch::default();
        let at = At { now: 0, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
        let spaces: Vec<_> = (0..self.databases()).filter_map(|db| self.store.spaces.get(DbIndex(db))).collect();
        loop {
            let cleared = self.store.commit(&mut scratch, &LockSet::All, &at, |txn| {
                spaces.iter().for_each(|space| txn.apply(&Effect::Clear { space: *space }));
                let libraries = self.store.libraries.get();
                libraries.iter().for_each(|(name, _)| txn.apply(&Effect::Library { name, code: b"" }));
                Ok(())
            });
            if cleared.is_ok() {
                return Ok(());
            }
            thread::sleep(LOOK);
        }
    }

    /// Loads a copy that was examined.
    pub fn load(
        &self,
        follow: &Follow<'_>,
        file: &Path,
        contents: &Contents,
        loaded: &mut dyn FnMut(u64),
    ) -> Result<(), MigrateError> {
        let failed = |keys| move |error| MigrateError::File { path: file.to_owned(), keys, error };
        if contents.databases_needed() > follow.databases {
            let why = format!("the primary has keys in database {}; give --databases", contents.databases_needed() - 1);
            return Err(self.not_kept(why));
        }
        let (source, len) = Source::open(&**follow.fs, file, 0)?;
        let mut reader = Reader::new(source, Some(len)).map_err(failed(0))?.keeping_lzf();
        let (mut keys, mut room) = (0, Vec::new());
        while let Some(item) = reader.next_item().map_err(failed(keys))? {
            let entry = match item {
                Item::Entry(entry) => entry,
                Item::Function(source) => {
                    script::load_library(&self.store, &source);
                    continue;
                }
                _ => continue,
            };
            load(&self.store, *entry, &mut room);
            keys += 1;
            if keys % KEYS_PER_CALL == 0 {
                loaded(keys);
            }
        }
        loaded(keys);
        Ok(())
    }

    /// Whether nothing is there.
    pub fn is_fresh(&self) -> bool {
        self.keys() == 0
    }

    /// Keys of the primary's databases.
    pub fn keys(&self) -> u64 {
        (0..self.databases() - 1).map(|db| self.store.len(DbIndex(db)).0).sum()
    }

    fn databases(&self) -> u32 {
        self.store.spaces.count() as u32
    }

    /// What log and checkpoints have said since the last call.
    pub fn each_said(&self, visit: &mut dyn FnMut(&str)) {
        let said = std::mem::take(&mut *self.said.0.lock());
        said.iter().for_each(|text| visit(text));
    }

    fn not_kept(&self, why: String) -> MigrateError {
        MigrateError::NotKept { path: self.dir.clone(), why }
    }

    /// Ends threads and log; everything is durable when it returns well.
    pub fn close(&mut self) -> Result<(), MigrateError> {
        self.durability.end();
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        let closed = self.durability.close();
        // Store and log know each other.
        while self.store.try_lock_all().map(|mut all| all.set_log(None)).is_none() {
            thread::sleep(LOOK);
        }
        Ok(closed?)
    }
}

/// Whether the directory is new. One that holds data is refused unless an earlier call has begun it; opening it shows
/// that.
fn is_fresh(follow: &Follow<'_>) -> Result<bool, MigrateError> {
    if !follow.fs.exists(follow.dir)? {
        return Ok(true);
    }
    let names: Vec<_> = follow.fs.read_dir(follow.dir)?.into_iter().map(|entry| entry.name).collect();
    let foreign = names.iter().find(|name| Name::parse(name) == Name::Other);
    if let Some(name) = foreign {
        let found = name.to_string_lossy().into_owned();
        return Err(MigrateError::NotEmpty { path: follow.dir.to_owned(), found });
    }
    Ok(!names.iter().any(|name| Name::parse(name) == Name::Manifest))
}

/// Asynchronous, as a server's own default; no checkpoints by time, since nothing is served.
fn policy(log_wanted: bool) -> Policy {
    Policy {
        log_wanted,
        mode: LogMode::Async,
        window_ms: 1000,
        on_sync_error: OnSyncError::Rotate,
        segment_bytes: 64 << 20,
        buffer_bytes: 16 << 20,
        feed_bytes: 32 << 20,
        save_points: Vec::new(),
        growth_percent: 100,
        growth_bytes_min: 64 << 20,
        stop_writes_on_error: false,
        threads: 2,
        retention: Retention::default(),
        disk_databases: Vec::new(),
        ordered_databases: Vec::new(),
        tier: None,
        flush_bytes: u64::MAX,
        flush_error_wait_ms: 0,
        block_cache_bytes: 0,
        parts_from: usize::MAX,
    }
}
