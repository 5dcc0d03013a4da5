//! Commands without a server: one connection, one thread, the model engine, a clock that stands still.
//!
//! Every run checks more than its replies:
//! - a command reads only keys that its row names (K2);
//! - with [`Fetching::AtRandom`] any first read of a row may answer "fetch"; the command then has changed nothing and
//!   replied nothing, and runs again from its start (E1);
//! - every effect goes through the bytes of a log record into a second store, which must end up the same (E2).

pub mod transcript;

use base::hash::KeyHasher;
use base::{DbIndex, KeyspaceId, Rng, UnixMs};
use cmdlog::RecordBuilder;
use command::call::call;
use command::clients::Address;
use command::stats::WorkerStats;
use command::{Args, CommandTable, Ctx, Host, Locks, Session, Stop};
use engine::model::ModelEngine;
use engine::{Edited, Effect, Engine, Entry, Fetch, Key, Keyspace, Known, Left, ScanStep, Type, Unedited};
use proto::{Protocol, ReplyBuffer, Span};
use std::collections::BTreeMap;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Databases of a test server.
pub const DATABASE_COUNT: u32 = 16;

/// Whether rows are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetching {
    /// All are, as in the memory engine.
    Never,
    /// Half of the rows a command reads have to be fetched.
    AtRandom,
}

/// A store and one connection to it.
pub struct Connection {
    /// The parts commands look at; their settings may be changed.
    pub host: Host,
    stats: WorkerStats,
    keyspaces: Keyspaces,
    /// What the client has said about itself.
    pub session: Session,
    reply: ReplyBuffer,
}

impl Connection {
    /// A connection to an empty store.
    pub fn new(protocol: Protocol, fetching: Fetching) -> Self {
        let host = Host::alone(Arc::new(CommandTable::new(command::redis::FAMILIES)));
        let stats = WorkerStats::new(host.table.rows().len());
        let keyspaces = Keyspaces::new(fetching);
        let address = |port| Address::Tcp(([127, 0, 0, 1], port).into());
        let info = host.clients.connect(address(50_000), address(6379), 8, 0, keyspaces.now);
        let session = Session::of(info.expect("room for a client"), true);
        Self { host, stats, keyspaces, session, reply: ReplyBuffer::new(protocol) }
    }

    /// Lets time pass.
    pub fn advance_ms(&mut self, ms: i64) {
        self.keyspaces.now += ms;
        self.keyspaces.live.set_time(self.keyspaces.now);
    }

    /// Switches to another database.
    pub fn select(&mut self, db: u32) {
        self.session.db = DbIndex(db);
        self.keyspaces.select(DbIndex(db));
    }

    /// The bytes the server answers to a request.
    pub fn run(&mut self, words: &[impl AsRef<[u8]>]) -> Vec<u8> {
        let (mut input, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            spans.push(Span::new(input.len(), word.as_ref().len()).expect("a short argument"));
            input.extend_from_slice(word.as_ref());
        }
        let args = Args::new(&input, &spans, &[]);
        let mark = self.reply.mark();
        match self.host.table.resolve(&args) {
            Ok(row) => self.call(&row, args),
            Err(Stop::Error(text)) => self.reply.error(text.as_bytes()),
            Err(Stop::Fetch) => unreachable!("no row is needed to find a command"),
        }
        if !self.session.reply_wanted() {
            self.reply.rewind(mark);
        }
        let bytes: Vec<u8> = self.reply.io_slices().flat_map(|slice| slice.to_vec()).collect();
        self.reply.advance(bytes.len());
        bytes
    }

    fn call(&mut self, row: &command::Row, args: Args<'_>) {
        self.keyspaces.begin((row.spec.locks_in(&args) == Locks::Keys).then(|| {
            let mut keys = HashSet::new();
            row.spec.visit_keys(&args, |index, _| {
                keys.insert(args.bytes(index).expect("a key").to_vec());
            });
            keys
        }));
        loop {
            let mut ctx = Ctx {
                spec: row.spec,
                args,
                reply: &mut self.reply,
                ks: &mut self.keyspaces,
                session: &mut self.session,
                host: &self.host,
                stats: &self.stats,
                hashed: None,
            };
            match call(&mut ctx, row) {
                Ok(()) => break,
                Err(Fetch) => {
                    assert!(self.reply.is_empty(), "{} replied before it asked for a fetch", row.spec.name);
                    assert!(!self.keyspaces.changed, "{} asked for a fetch after a change", row.spec.name);
                    while self.session.pending.as_mut().is_some_and(|pending| pending.step()) {
                        std::thread::yield_now();
                    }
                }
            }
        }
        self.session.pending = None;
        self.keyspaces.end();
    }

    /// Hits and misses since the last call.
    pub fn take_counts(&mut self) -> (u64, u64) {
        std::mem::take(&mut self.keyspaces.counts)
    }

    /// Compares the store with what the log alone has made.
    pub fn check_replay(&self) {
        // CAS ids are not logged.
        let live = self.keyspaces.live.contents().into_iter().map(|(place, stored)| (place, stored.without_cas_id()));
        let live: BTreeMap<_, _> = live.collect();
        assert_eq!(live, self.keyspaces.replayed.contents(), "replay gives another store");
    }
}

/// All databases, in one model engine.
struct Keyspaces {
    live: ModelEngine,
    replayed: ModelEngine,
    record: RecordBuilder,
    hasher: KeyHasher,
    now: UnixMs,
    spaces: Vec<KeyspaceId>,
    selected: KeyspaceId,
    /// Keys the running command may read; `None` allows all.
    allowed: Option<HashSet<Vec<u8>>>,
    changed: bool,
    fetching: Option<Rng>,
    /// Starts anew with every command and every time it starts over, so that its choices do not depend on fetches.
    choices: Rng,
    /// Rows the running command has read or fetched.
    pinned: HashSet<(KeyspaceId, Vec<u8>)>,
    /// Reads counted for INFO: those that found an entry, those that did not.
    counts: (u64, u64),
}

impl Keyspaces {
    fn new(fetching: Fetching) -> Self {
        let mut rng = Rng::new(1);
        let hasher = KeyHasher::new(&mut rng);
        let engine = || ModelEngine::new(Rng::new(2));
        let mut keyspaces = Self {
            live: engine(),
            replayed: engine(),
            record: RecordBuilder::default(),
            hasher,
            now: 1_800_000_000_000,
            spaces: (0..DATABASE_COUNT).map(KeyspaceId).collect(),
            selected: KeyspaceId(0),
            allowed: None,
            changed: false,
            fetching: (fetching == Fetching::AtRandom).then_some(rng),
            choices: choices(),
            pinned: HashSet::new(),
            counts: (0, 0),
        };
        keyspaces.live.set_time(keyspaces.now);
        keyspaces
    }

    fn begin(&mut self, allowed: Option<HashSet<Vec<u8>>>) {
        self.allowed = allowed;
        self.changed = false;
        self.choices = choices();
        self.pinned.clear();
    }

    /// Replays the record of the command that has run.
    fn end(&mut self) {
        for effect in cmdlog::effects(self.record.bytes(), &self.hasher) {
            match effect.expect("a record that was just written") {
                Effect::Clear { space } => self.replayed.clear(space),
                Effect::Swap { .. } => {}
                effect => {
                    types::apply::apply(&mut One(&mut self.replayed), &effect);
                }
            }
        }
        self.record.clear();
    }

    fn look(&mut self, key: &Key<'_>, touch: bool) -> Result<Option<Entry<'_>>, Fetch> {
        let allowed = self.allowed.as_ref().is_none_or(|keys| keys.contains(key.bytes));
        assert!(allowed, "the command's row does not name the key {:?}", key.bytes.escape_ascii().to_string());
        let first = self.pinned.insert((key.space, key.bytes.to_vec()));
        if first && self.fetching.as_mut().is_some_and(|rng| rng.one_in(2)) {
            self.choices = choices();
            return Err(Fetch);
        }
        self.live.read(key, touch)
    }
}

/// What [`Keyspace::random_below`] draws from.
fn choices() -> Rng {
    Rng::new(3)
}

/// One engine for all keys.
struct One<'e>(&'e mut ModelEngine);

impl types::apply::Engines for One<'_> {
    type Engine = ModelEngine;

    fn engine(&mut self, _key: &Key<'_>) -> &mut ModelEngine {
        self.0
    }

    fn order(&self) -> &base::hash::KeyHasher {
        unreachable!("no command loads a tree")
    }

    fn keeper(&self) -> std::sync::Arc<dyn value::cold::Keeper> {
        unreachable!("no command loads a tree")
    }

    fn decompress(&mut self, key: &Key<'_>) -> bool {
        let (hasher, limits) = (base::hash::KeyHasher::new(&mut base::Rng::new(1)), value::Limits::default());
        let source = types::Source { dictionaries: &Default::default(), hasher: &hasher, limits: &limits };
        types::Decoder::default().decompress_in_place(source, self.0, key);
        true
    }
}

impl Keyspaces {
    /// Applies an effect; returns what an edit leaves.
    fn apply_effect(&mut self, effect: &Effect<'_>) -> Option<Left> {
        self.changed = true;
        self.record.push(effect);
        match *effect {
            Effect::Clear { space } => self.live.clear(space),
            Effect::Swap { a, b } => {
                let place = |space| self.spaces.iter().position(|other| *other == space).expect("a keyspace");
                let (a, b) = (place(a), place(b));
                self.spaces.swap(a, b);
            }
            _ => return types::apply::apply(&mut One(&mut self.live), effect),
        }
        None
    }
}

impl Keyspace for Keyspaces {
    fn now(&self) -> UnixMs {
        self.now
    }

    fn space(&self) -> KeyspaceId {
        self.selected
    }

    fn select(&mut self, index: DbIndex) {
        self.selected = self.space_of(index).expect("a database");
    }

    fn watch(&mut self, _key: &Key<'_>, _changed: &Arc<AtomicBool>) {}

    fn space_of(&self, index: DbIndex) -> Option<KeyspaceId> {
        self.spaces.get(index.index()).copied()
    }

    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key::new(&self.hasher, self.selected, bytes)
    }

    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn read(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        let found = self.look(key, true)?.is_some();
        self.count_peek(found);
        self.look(key, false)
    }

    fn read_to_edit(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.look(key, true)
    }

    fn cas_id(&mut self, key: &Key<'_>) -> Result<Option<u64>, Fetch> {
        self.look(key, false)?;
        self.live.cas_id(key)
    }

    fn count_peek(&mut self, found: bool) {
        match found {
            true => self.counts.0 += 1,
            false => self.counts.1 += 1,
        }
    }

    fn peek(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.look(key, false)
    }

    fn apply(&mut self, effect: &Effect<'_>) {
        self.apply_effect(effect);
    }

    fn edit(&mut self, key: &Key<'_>, kind: Type, changes: &[u8], known: Known) -> Result<Edited, Unedited> {
        if known == Known::Read {
            let left = self.apply_effect(&Effect::Edit { key: *key, kind, changes }).expect("an edit");
            return Ok(Edited { before: 0, left });
        }
        if self.fetching.is_some() {
            return Err(Unedited::Unread);
        }
        self.look(key, false).map_err(|Fetch| Unedited::Absent)?;
        let edited = self.live.edit(key, kind, changes, known, true)?;
        self.changed = true;
        self.record.push(&Effect::Edit { key: *key, kind, changes });
        Ok(edited)
    }

    fn len(&self, space: KeyspaceId) -> u64 {
        self.live.len(space)
    }

    fn expiring_len(&self, space: KeyspaceId) -> u64 {
        self.live.expiring_len(space)
    }

    fn scan(&mut self, space: KeyspaceId, cursor: u64, visit: &mut dyn FnMut(&Entry<'_>)) -> ScanStep {
        self.live.scan(space, cursor, visit)
    }

    fn random_entry(&mut self, space: KeyspaceId) -> Option<Entry<'_>> {
        self.live.random_entry(space)
    }

    fn random_below(&mut self, bound: u64) -> u64 {
        self.choices.below(bound)
    }

    fn idle_seconds(&self, stamp: u32) -> u64 {
        self.live.idle_seconds(stamp)
    }

    fn frequency(&self, stamp: u32) -> u8 {
        self.live.frequency(stamp)
    }

    fn cost_bytes(&mut self, key: &Key<'_>) -> Option<u64> {
        self.live.cost_bytes(key)
    }
}
