//! The commands of an append-only log, run one after the other over a store of their own, as a server does that loads the file.
//!
//! While a server loads, no key expires: what was changed later stands in the file as commands, deletions of expired keys among
//! them. So the commands run at the beginning of time, but for those that store the present time or compare with it. These run
//! at the time of the log: that of the annotation before them (`#TS:`), or the time at which the file was written last. A key
//! that has expired by then still has its value for such a command, which runs just before the expiration.

use crate::build::stored_string;
use crate::contents::Untaken;
use base::clock::ManualClock;
use base::random::Entropy;
use base::{DbIndex, UnixMs};
use command::call::call;
use command::limits::{SparseLimit, StampMeaning, StringLimit};
use command::stats::WorkerStats;
use command::table::Row;
use command::{Args, CommandTable, Ctx, Flags, Host, Session, Stop};
use engine::{Effect, Keyspace, SharedBytes, Value, WriteClass};
use proto::{Protocol, ReplyBuffer, Span};
use rdb::FileEntry;
use rdb::stored::put_changes;
use std::sync::Arc;
use store::lock::WorkerSet;
use store::shard::ShardEngine;
use store::{At, LockSet, Scratch, Store, StoreOptions, Wake};

/// Before every time of expiration that a server writes.
const BEGINNING: UnixMs = 0;

/// Room that is kept from entry to entry.
const ROOM_MAX: usize = 1 << 20;

/// Commands that name a time from now on, and no server has written since 2012; and commands of streams, which store when an entry was
/// delivered and a consumer seen, and take no time of delivery that is still to come.
const TIMED: [&str; 9] =
    ["expire", "pexpire", "setex", "psetex", "hexpire", "hpexpire", "xclaim", "xautoclaim", "createconsumer"];

/// Commands that may name a time from now on, with one of these words, and where their options begin.
const MAYBE_RELATIVE: [(&str, usize); 4] = [("set", 3), ("getex", 2), ("hsetex", 2), ("hgetex", 2)];
const RELATIVE_WORDS: [&str; 2] = ["EX", "PX"];

/// Nobody waits for a lock.
struct Nobody;

impl Wake for Nobody {
    fn wake(&self, _workers: WorkerSet) {}
}

/// Runs commands, and loads entries.
pub(super) struct Player {
    pub store: Store,
    pub untaken: Untaken,
    table: CommandTable,
    host: Host,
    stats: WorkerStats,
    session: Session,
    reply: ReplyBuffer,
    scratch: Scratch,
    changes: Vec<u8>,
    /// The time of the log where the next command stands.
    pub time: UnixMs,
}

impl Player {
    /// Nothing yet.
    pub fn new(entropy: Arc<dyn Entropy>) -> Self {
        let store = Store::new(StoreOptions {
            shard_count: 1,
            database_count: crate::DATABASES_MAX,
            clock: Arc::new(ManualClock::new(BEGINNING)),
            entropy,
            wake: Arc::new(Nobody),
            log: None,
            engine: |engine| ShardEngine::Memory(Box::new(engine)),
        });
        // SWAPDB and FLUSHALL are rows of `admin`.
        let table = CommandTable::new(&[command::redis::FAMILIES, admin::FAMILIES].concat());
        let stats = WorkerStats::new(table.rows().len());
        let host =
            Host::default().with(StringLimit::default()).with(SparseLimit::default()).with(StampMeaning::default());
        Self {
            store,
            untaken: Untaken::default(),
            table,
            host,
            stats,
            session: Session::new(1, true, BEGINNING),
            reply: ReplyBuffer::new(Protocol::Resp2),
            scratch: Scratch::default(),
            changes: Vec::new(),
            time: BEGINNING,
        }
    }

    /// A file begins: it names its databases itself. Its first commands were written at `time`.
    pub fn begin_file(&mut self, time: UnixMs) {
        self.session.db = DbIndex(0);
        self.time = time;
    }

    /// Puts an entry of an RDB part into the store. What only a module can read, and collections without elements, are left out.
    pub fn load(&mut self, entry: FileEntry) {
        let FileEntry { db, key, expire_at, form, value, lzf, .. } = entry;
        let Some(space) = self.store.spaces.get(DbIndex(db)) else { return };
        let key = self.store.key(space, &key);
        let value = match value {
            rdb::Value::String(string) => {
                let (encoding, bytes) = stored_string(string, lzf.as_deref());
                let bytes = SharedBytes::new(bytes);
                return self.store.load(&Effect::Set { key, value: Value::Shared(&bytes), encoding, expire_at });
            }
            value => value,
        };
        self.changes.clear();
        let Some(kind) = put_changes(&value, form, &mut self.changes) else { return };
        drop(value);
        self.store.load(&Effect::Edit { key, kind, changes: &self.changes });
        if let Some(at) = expire_at {
            self.store.load(&Effect::Expire { key, at });
        }
        self.changes.shrink_to(ROOM_MAX);
    }

    /// Runs a command, or notes that it cannot be taken; `place` says where it stands.
    pub fn run(&mut self, input: &[u8], spans: &[Span], place: impl Fn() -> String) {
        let args = Args::new(input, spans, &[]);
        let row = match self.table.resolve(&args) {
            Ok(row) => row,
            Err(_) if self.table.find(args.bytes(0).unwrap_or_default()).is_none() => {
                return self.refuse(&args, &place(), "it is not known here");
            }
            Err(stop) => return self.refuse(&args, &place(), &told(&stop)),
        };
        let spec = row.spec;
        if spec.flags.contains(Flags::BLOCKING) {
            return self.refuse(&args, &place(), "it waits, and servers write what it came to");
        }
        // Transactions have come to their end, or are not run; what changes nothing has nothing to add.
        if !spec.flags.contains(Flags::WRITE) && spec.name != "select" {
            return;
        }
        self.call(&row, args);
        let refusal = self.reply.io_slices().next().and_then(|slice| slice.strip_prefix(b"-").map(<[u8]>::to_vec));
        let len = self.reply.len();
        self.reply.advance(len);
        if let Some(text) = refusal {
            self.refuse(&args, &place(), String::from_utf8_lossy(&text).trim_end());
        }
    }

    fn call(&mut self, row: &Row, args: Args<'_>) {
        let now = if is_timed(row.spec.name, &args) { self.time_for(row, &args) } else { BEGINNING };
        let at = At { now, db: self.session.db, touch: false, worker: 0, writes: row.writes };
        let Self { store, host, stats, session, reply, scratch, .. } = self;
        let run = |txn: &mut store::Txn<'_>| {
            let spec = row.spec;
            call(&mut Ctx { spec, args, reply, ks: txn, session, host, stats, hashed: None }, row)
        };
        // All of it is in memory, and nobody else holds a lock or runs a checkpoint.
        let _ran = store.commit(scratch, &LockSet::All, &at, run);
    }

    /// The time of the log, or the last moment before the command's key expires.
    fn time_for(&mut self, row: &Row, args: &Args<'_>) -> UnixMs {
        let Some(key) = args.bytes(row.first_key.into()).filter(|_| row.first_key > 0) else { return self.time };
        let at = At { now: BEGINNING, db: self.session.db, touch: false, worker: 0, writes: WriteClass::Nothing };
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

fn told(stop: &Stop) -> String {
    match stop {
        Stop::Error(text) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
        Stop::Fetch => "its rows are not there".to_owned(),
    }
}

fn is_timed(name: &str, args: &Args<'_>) -> bool {
    let is = |argument: &[u8], word: &str| argument.eq_ignore_ascii_case(word.as_bytes());
    let is_word = |argument: &[u8]| RELATIVE_WORDS.iter().any(|word| is(argument, word));
    let options = MAYBE_RELATIVE.iter().find(|(maybe, _)| *maybe == name).map(|(_, from)| args.from(*from));
    // Names and values of fields stand behind that word.
    let mut options = options.into_iter().flatten().take_while(|argument| !is(argument, "FIELDS"));
    let is_restore = name == "restore" && !args.from(4).any(|argument| is(argument, "ABSTTL"));
    let names_its_id = name == "xadd" && args.from(2).any(|argument| argument == b"*");
    TIMED.contains(&name) || is_restore || names_its_id || options.any(is_word)
}
