//! The commands of an append-only log, run one after the other over a store of their own, as a server does that loads
//! the file.
//!
//! While a server loads, no key expires: what was changed later stands in the file as commands, deletions of expired
//! keys among them. So the commands run at the beginning of time, but for those that store the present time or compare
//! with it. These run at the time of the log: that of the annotation before them (`#TS:`), or the time at which the
//! file was written last. A key that has expired by then still has its value for such a command, which runs just before
//! the expiration.

use crate::contents::Untaken;
use crate::runs;
use base::clock::ManualClock;
use base::random::Entropy;
use base::{DbIndex, UnixMs};
use command::{Args, Host, Row};
use engine::{Keyspace, WriteClass};
use proto::Span;
use rdb::FileEntry;
use replication::load::load;
use replication::runner::{BEGINNING, Runner, is_timed};
use std::sync::Arc;
use store::lock::WorkerSet;
use store::shard::ShardEngine;
use store::{At, LockSet, Scratch, Store, StoreOptions, Wake};

/// No thread waits for a lock.
struct Nobody;

impl Wake for Nobody {
    fn wake(&self, _workers: WorkerSet) {}
}

/// A store in which nothing expires, without a log.
pub(crate) fn empty_store(entropy: Arc<dyn Entropy>) -> Store {
    Store::new(StoreOptions {
        shard_count: 1,
        database_count: crate::DATABASES_MAX,
        clock: Arc::new(ManualClock::new(BEGINNING)),
        entropy,
        wake: Arc::new(Nobody),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    })
}

/// Runs commands, and loads entries.
pub(super) struct Player {
    pub store: Store,
    pub untaken: Untaken,
    runner: Runner,
    host: Host,
    scratch: Scratch,
    changes: Vec<u8>,
    /// The time of the log where the next command stands.
    pub time: UnixMs,
}

impl Player {
    /// Nothing yet.
    pub fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self {
            store: empty_store(entropy),
            untaken: Untaken::default(),
            runner: runs::runner(),
            host: runs::host(),
            scratch: Scratch::default(),
            changes: Vec::new(),
            time: BEGINNING,
        }
    }

    /// A file begins: it names its databases itself. Its first commands were written at `time`.
    pub fn begin_file(&mut self, time: UnixMs) {
        self.runner.select(DbIndex(0));
        self.time = time;
    }

    /// Puts an entry of an RDB part into the store. What only a module can read, and collections without elements, are
    /// left out.
    pub fn load(&mut self, entry: FileEntry) {
        load(&self.store, entry, &mut self.changes);
    }

    /// Runs a command, or notes that it cannot be taken; `place` says where it stands.
    pub fn run(&mut self, input: &[u8], spans: &[Span], place: impl Fn() -> String) {
        let args = Args::new(input, spans, &[]);
        let refused = match self.runner.row(&args) {
            Ok(None) => None,
            Ok(Some(row)) => self.call(&row, args).err(),
            Err(why) => Some(why),
        };
        if let Some(why) = refused {
            self.refuse(&args, &place(), &why);
        }
    }

    fn call(&mut self, row: &Row, args: Args<'_>) -> Result<(), String> {
        let now = if is_timed(row.spec.name, &args) { self.time_for(row, &args) } else { BEGINNING };
        let at = At { now, db: self.runner.db(), touch: false, worker: 0, writes: row.writes };
        let Self { store, runner, host, scratch, .. } = self;
        // All of it is in memory, and nothing else holds a lock or runs a checkpoint.
        store.commit(scratch, &LockSet::All, &at, |txn| Ok(runner.run(host, txn, row, args))).unwrap_or(Ok(()))
    }

    /// The time of the log, or the last moment before the command's key expires.
    fn time_for(&mut self, row: &Row, args: &Args<'_>) -> UnixMs {
        let Some(key) = args.bytes(row.first_key.into()).filter(|_| row.first_key > 0) else { return self.time };
        let db = self.runner.db();
        let at = At { now: BEGINNING, db, touch: false, worker: 0, writes: WriteClass::Nothing };
        let mut expire_at = None;
        let _ran = self.store.commit(&mut self.scratch, &LockSet::All, &at, |txn| {
            let key = txn.key(key);
            expire_at = txn.read(&key).ok().flatten().and_then(|entry| entry.expire_at);
            Ok(())
        });
        expire_at.map_or(self.time, |at| self.time.min(at.saturating_sub(1)))
    }

    fn refuse(&mut self, args: &Args<'_>, place: &str, why: &str) {
        self.untaken.command(args.bytes(0).unwrap_or_default(), place, why);
    }
}
