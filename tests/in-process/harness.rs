//! A server of one worker without sockets, driven by a clock of the test.

use crate::reply::Reply;
use admin::{
    About, Apply, CommandLog, Configuration, Explanations, Figures, LatencyMonitor, ShutdownRequest, WorkerFigures,
};
use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{Clock, Entropy, KeyspaceId, Lsn, Rng, ShardId, UnixMs};
use command::call::Observer;
use command::clients::{Address, Clients};
use command::limits::{SparseLimit, StampMeaning, StringLimit};
use command::login::Login;
use command::parcel::Carrying;
use command::pause::Pause;
use command::stats::WorkerStats;
use command::{CommandSpec, CommandTable, Host, Session};
use config::{Directive, RewriteError, Settings};
use engine::{FetchingEngine, FlushProgress, SortedRows};
use parking_lot::RwLock;
use push::{Outlets, PubSub, Tracking};
use server::connection::Connection;
use server::dialect::{Dialect, Language};
use server::executor::{ClientLimits, Executor, Flow, Shared};
use server::fetching::{Fetched, Fetches, Read, RowIo};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::shard::ShardEngine;
use store::{RecordSink, Scratch, Store, StoreOptions, Wake, WorkerSet};

/// When every test begins.
pub const START_MS: UnixMs = 1_700_000_000_000;

/// Times a request is run again before it counts as stuck: far more than any needs fetches.
const WAITS_MAX: usize = 100_000;

/// What another thread prepares is done within this, however busy the machine.
const PREPARED_WITHIN: Duration = Duration::from_secs(120);

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

/// Settings have no effect beyond what the commands read of them.
struct NothingToApply;

impl Apply for NothingToApply {
    fn apply(&self, _: &'static Directive, _: &Settings) -> Result<(), String> {
        Ok(())
    }

    fn rewrite(&self, _: &Settings) -> Result<(), RewriteError> {
        Err(RewriteError::NoFile)
    }
}

/// Records, each with the position after it.
pub type Records = Vec<(Lsn, Vec<u8>)>;

/// Replays every record into a store of its own, at once.
pub struct Replica {
    pub store: Store,
    position: Mutex<u64>,
    /// Records by their position, kept once a test asks for them.
    pub kept: Mutex<Option<Records>>,
}

impl RecordSink for Replica {
    fn durable(&self) -> Lsn {
        self.end()
    }

    fn end(&self) -> Lsn {
        Lsn(*self.position.lock().expect("no test panics while holding it"))
    }

    fn append(&self, _: usize, payload: &[u8]) -> Lsn {
        assert!(!payload.is_empty(), "a command changed something and recorded nothing");
        let mut position = self.position.lock().expect("no test panics while holding it");
        *position += payload.len() as u64;
        self.store.replay(&mut Scratch::default(), Lsn(*position), payload).expect("a record replays");
        if let Some(kept) = &mut *self.kept.lock().expect("no test panics while holding it") {
            kept.push((Lsn(*position), payload.to_vec()));
        }
        Lsn(*position)
    }
}

/// Shards of a test's store, unless it says otherwise.
pub const SHARDS: usize = 8;

/// An empty store.
pub fn store(
    clock: &Arc<ManualClock>,
    shard_count: usize,
    log: Option<Arc<dyn RecordSink>>,
    engine: fn(engine_mem::MemEngine) -> ShardEngine,
) -> Store {
    Store::new(StoreOptions {
        shard_count,
        database_count: 16,
        clock: clock.clone(),
        entropy: Arc::new(SeededEntropy::new(3)),
        wake: Arc::new(NobodyWaits),
        log,
        engine,
    })
}

/// The memory engine as it is.
pub fn memory(engine: engine_mem::MemEngine) -> ShardEngine {
    ShardEngine::Memory(Box::new(engine))
}

/// The memory engine behind one that asks for fetches at random.
pub fn fetching(engine: engine_mem::MemEngine) -> ShardEngine {
    ShardEngine::Other(Box::new(FetchingEngine::new(engine, Rng::new(11))))
}

/// The memory engine behind one of which every row is there only when it was read for a ticket.
pub fn ticketed(engine: engine_mem::MemEngine) -> ShardEngine {
    ShardEngine::Other(Box::new(FetchingEngine::with_tickets(engine)))
}

/// Reads of rows, which are made when the test says so, and what has come of them.
#[derive(Clone, Default)]
pub struct Io {
    reads: Arc<Mutex<Vec<Read>>>,
    fetched: Arc<Mutex<Vec<Fetched>>>,
}

impl RowIo for Io {
    fn submit(&self, read: Read) {
        self.reads.lock().expect("no test panics while holding it").push(read);
    }
}

impl Io {
    /// Reads that wait to be made.
    pub fn len(&self) -> usize {
        self.reads.lock().expect("no test panics while holding it").len()
    }

    /// Makes all reads, and gives what has come.
    fn read(&self) -> Vec<Fetched> {
        let reads = std::mem::take(&mut *self.reads.lock().expect("no test panics while holding it"));
        reads.into_iter().for_each(Read::run);
        std::mem::take(&mut *self.fetched.lock().expect("no test panics while holding it"))
    }
}

/// What the parts of a server share with it.
struct ForParts {
    store: Arc<Store>,
    table: Arc<CommandTable>,
    stats: Arc<WorkerStats>,
    log: Arc<CommandLog>,
    latency: Arc<LatencyMonitor>,
}

/// A server of one worker, its replica, and clients.
pub struct TestServer {
    pub clock: Arc<ManualClock>,
    pub store: Arc<Store>,
    pub replica: Arc<Replica>,
    pub shared: Arc<Shared>,
    pub executor: Executor,
    /// Reads of rows that are not in memory.
    pub io: Io,
    /// Times that all reads which had been asked for were made.
    pub rounds: usize,
}

impl TestServer {
    /// A server with the data commands alone, and with the parts that they need.
    pub fn new(engine: fn(engine_mem::MemEngine) -> ShardEngine) -> Self {
        Self::with(engine, SHARDS, command::redis::FAMILIES, |host, _| host)
    }

    /// A server with all commands and all parts.
    pub fn complete(engine: fn(engine_mem::MemEngine) -> ShardEngine, shard_count: usize) -> Self {
        Self::complete_with(engine, shard_count, |host| host)
    }

    /// The same with more parts.
    pub fn complete_with(
        engine: fn(engine_mem::MemEngine) -> ShardEngine,
        shard_count: usize,
        more: impl FnOnce(Host) -> Host,
    ) -> Self {
        Self::with(
            engine,
            shard_count,
            &[command::redis::FAMILIES, script::FAMILIES, admin::FAMILIES].concat(),
            |host, shared| {
                let settings = Settings::default();
                let figures = Figures::new(vec![Arc::new(WorkerFigures::new(shared.stats.clone()))]);
                let host = host
                    .with(About::new(&mut SeededEntropy::new(1).rng(), START_MS, None))
                    .with(shared.table.clone())
                    .with(Arc::new(figures))
                    .with(shared.latency.clone())
                    .with(shared.log.clone())
                    .with(Arc::new(Explanations::default()))
                    .with::<Arc<dyn Observer>>(shared.log.clone())
                    .with(shared.store.clone())
                    .with(Clients::new(&shared.table))
                    .with(Login::default())
                    .with(Arc::new(script::Scripts::default()))
                    .with(ShutdownRequest::default())
                    .with(Configuration::new(settings.clone(), Box::new(NothingToApply)));
                admin::follow(&host, &settings);
                more(host)
            },
        )
    }

    fn with(
        engine: fn(engine_mem::MemEngine) -> ShardEngine,
        shard_count: usize,
        families: &[&'static [&'static CommandSpec]],
        parts: impl FnOnce(Host, &ForParts) -> Host,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(START_MS));
        let replica_store = store(&clock, shard_count, None, memory);
        let replica = Arc::new(Replica { store: replica_store, position: Mutex::default(), kept: Mutex::default() });
        let store = Arc::new(store(&clock, shard_count, Some(replica.clone()), engine));
        let mut table = CommandTable::new(families);
        let memcached = memcached::Rows::add_to(&mut table);
        let table = Arc::new(table);
        let stats = Arc::new(WorkerStats::new(table.rows().len()));
        let settings = Settings::default();
        let latency = Arc::new(LatencyMonitor::new(&settings));
        let log = Arc::new(CommandLog::new(&settings, latency.clone()));
        let outlets = Arc::new(Outlets::new(1, |_| {}));
        let host = Host::default()
            .with(StringLimit::default())
            .with(SparseLimit::default())
            .with(StampMeaning::default())
            .with(Pause::default())
            .with(Arc::new(PubSub::new(outlets.clone())))
            .with(Arc::new(Tracking::new(outlets.clone(), |_| {})));
        let for_parts = ForParts { store: store.clone(), table, stats, log, latency };
        let host = parts(host, &for_parts);
        let ForParts { table, stats, log, .. } = for_parts;
        let io = Io::default();
        let come = io.fetched.clone();
        let fetches = Fetches::new(Box::new(io.clone()), move |_, fetched| {
            come.lock().expect("no test panics while holding it").push(fetched);
        });
        let shared = Arc::new(Shared {
            store: store.clone(),
            table,
            memcached,
            host,
            log,
            monitors: AtomicUsize::new(0),
            show: Box::new(|_| {}),
            outlets,
            fetches: Arc::new(fetches),
            limits: RwLock::new(ClientLimits::of(&settings)),
        });
        let mut executor = Executor::new(0, shared.clone(), stats);
        // Tests that are about turns say how long they are.
        executor.limit_batches(u64::MAX);
        Self { clock, store, replica, shared, executor, io, rounds: 0 }
    }

    /// Puts rows behind all databases, which are empty, and gives those rows.
    pub fn back(&self) -> BackedRows {
        self.back_some(|_| true)
    }

    /// Puts rows behind some databases.
    pub fn back_some(&self, is_backed: impl Fn(KeyspaceId) -> bool) -> BackedRows {
        let spaces = (0..self.store.spaces.count() as u32).map(KeyspaceId).filter(|space| is_backed(*space));
        let rows = spaces.clone().flat_map(|space| self.store.shard_ids().map(move |shard| (shard, space)));
        let rows = rows.map(|place| (place, SortedRows::new())).collect();
        BackedRows::attach(&self.store, spaces.collect(), rows)
    }

    /// A connection that no list of clients knows.
    pub fn connect(&mut self) -> usize {
        self.executor.open(Connection::new(Session::new(1, true, START_MS)))
    }

    /// A connection of a memcached client.
    pub fn connect_memcached(&mut self) -> usize {
        let dialect = Dialect::new(Language::Memcached);
        self.executor.open(Connection::speaking(dialect, Session::new(1, true, START_MS)))
    }

    /// A connection that CLIENT LIST shows: for complete servers.
    pub fn connect_listed(&mut self) -> usize {
        let address = || Address::Unix("/test".into());
        let clients = self.shared.host.part::<Clients>();
        let info = clients.connect(address(), address(), 0, 0, self.clock.now_ms()).expect("there is room");
        self.executor.open(Connection::new(Session::of(info, true)))
    }

    /// Sends bytes and runs what can be run.
    pub fn feed(&mut self, client: usize, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && self.executor.flow(client) != Flow::Closing {
            self.go_on();
            let (read, _) = self
                .executor
                .receive(client, |room| {
                    let read = rest.len().min(room.len());
                    room[..read].copy_from_slice(&rest[..read]);
                    Ok::<_, Infallible>(read)
                })
                .expect("nothing fails here");
            rest = &rest[read..];
        }
        self.executor.run_batch();
        self.go_on();
    }

    /// Goes on with the requests of clients whose turn was over before they had run, as a worker would in the next one.
    fn go_on(&mut self) {
        let output_max = self.executor.limits().output_pause_bytes;
        loop {
            let has_more = |(id, connection): (usize, &Connection)| {
                let has_room = connection.reply.len() <= output_max && connection.session.rest.is_none();
                (connection.paused && has_room).then_some(id)
            };
            let Some(client) = self.executor.connections().find_map(has_more) else { return };
            self.executor.resume(client);
            self.executor.run_batch();
        }
    }

    /// Goes on with what requests prepare, of any client, until there is nothing more.
    pub fn prepare(&mut self) {
        while self.executor.is_preparing() {
            self.executor.prepare();
        }
    }

    /// The same, with what another thread prepares for this client, but for what it has sent elsewhere.
    fn prepare_all(&mut self, client: usize) {
        let since = Instant::now();
        self.prepare();
        while self.is_chore_left(client) {
            assert!(since.elapsed() < PREPARED_WITHIN, "what is prepared is done in the end");
            std::thread::yield_now();
            // Which the thread would have the worker do.
            self.executor.end_wait(client);
            self.prepare();
        }
    }

    fn is_chore_left(&mut self, client: usize) -> bool {
        let preparation =
            self.executor.connection(client).and_then(|connection| connection.session.preparation.as_ref());
        preparation.is_some_and(|preparation| preparation.goes_on() && !preparation.is::<Carrying>())
    }

    /// Takes the replies, long ones piece by piece, and runs the requests after those; also work that must be prepared
    /// first.
    pub fn replies(&mut self, client: usize) -> Vec<u8> {
        self.prepare_all(client);
        self.go_on();
        let mut bytes = self.written(client);
        while self.executor.connection(client).is_some_and(|connection| connection.session.rest.is_some()) {
            let goes_on = self.executor.write_piece(client);
            if !goes_on {
                self.executor.resume(client);
                self.executor.run_batch();
                self.go_on();
                self.prepare_all(client);
            }
            let piece = self.written(client);
            let is_held = self.executor.connection(client).is_some_and(|connection| !connection.reply.is_empty());
            if piece.is_empty() && is_held {
                break;
            }
            bytes.extend(piece);
        }
        bytes
    }

    /// Takes what is written of the replies.
    pub fn written(&mut self, client: usize) -> Vec<u8> {
        let durable = self.executor.durable().unwrap_or(Lsn(u64::MAX));
        let connection = self.executor.connection(client).expect("connected");
        let sendable = connection.held.sendable(connection.reply.len(), durable);
        let bytes: Vec<u8> = connection.reply.io_slices_up_to(sendable).flat_map(|slice| slice.to_vec()).collect();
        connection.advance(bytes.len());
        bytes
    }

    /// Makes all reads of rows that were asked for.
    pub fn read_rows(&mut self) {
        if self.io.len() > 0 {
            self.rounds += 1;
            self.io.read().into_iter().for_each(|fetched| self.executor.fetched(fetched));
            self.executor.run_fetched();
        }
    }

    /// Sends bytes, runs what can be run, waits for fetches, and takes the replies.
    pub fn send(&mut self, client: usize, bytes: &[u8]) -> Vec<u8> {
        self.feed(client, bytes);
        let mut tries = 0;
        while self.executor.has_waiting() || self.io.len() > 0 {
            self.read_rows();
            self.executor.run_waiting(true);
            self.go_on();
            let now = self.executor.now();
            // The delay after wrong passwords.
            if self.executor.connections().any(|(_, connection)| connection.session.is_held(now)) {
                self.clock.advance_ms(1);
                self.executor.begin_turn();
            }
            tries += 1;
            assert!(tries < WAITS_MAX, "a request waits for ever: {:?}", String::from_utf8_lossy(bytes));
        }
        self.replies(client)
    }

    /// Sends one request and takes its reply.
    pub fn run(&mut self, client: usize, words: &[&str]) -> String {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        String::from_utf8_lossy(&self.send(client, &request(&words))).into_owned()
    }

    /// Sends one request and gives its reply.
    pub fn ask(&mut self, client: usize, words: &[&str]) -> Reply {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let bytes = self.send(client, &request(&words));
        Reply::read(&mut &bytes[..]).unwrap_or_else(|| panic!("{words:?} was not answered"))
    }

    /// Lets time pass and does the upkeep that is due.
    pub fn pass_ms(&mut self, ms: u64) {
        self.clock.advance_ms(ms);
        self.keep_up();
    }

    /// Begins a turn and does the upkeep that is due.
    pub fn keep_up(&mut self) {
        self.executor.begin_turn();
        for shard in self.store.shard_ids() {
            while self.executor.upkeep(shard) {}
        }
    }

    #[track_caller]
    pub fn assert_replica_agrees(&self) {
        let now = self.clock.now_ms();
        assert_eq!(self.store.digest(now), self.replica.store.digest(now), "replayed records give another store");
    }
}

/// Rows by shard and keyspace.
pub type RowsByPlace = BTreeMap<(ShardId, KeyspaceId), Arc<SortedRows>>;

/// The rows behind the databases of a server.
pub struct BackedRows {
    store: Arc<Store>,
    pub rows: RowsByPlace,
    pub spaces: Vec<KeyspaceId>,
    is_flushing: bool,
}

impl BackedRows {
    /// Puts these rows behind the keyspaces of a store, which are empty.
    pub fn attach(store: &Arc<Store>, spaces: Vec<KeyspaceId>, rows: RowsByPlace) -> Self {
        for space in &spaces {
            store.back(*space, |shard| {
                let rows = &rows[&(shard, *space)];
                (rows.clone(), rows.install())
            });
        }
        Self { store: store.clone(), rows, spaces, is_flushing: false }
    }

    /// From now on reads of rows need I/O, or none do.
    pub fn set_cold(&self, is_cold: bool) {
        self.rows.values().for_each(|rows| rows.set_cold(is_cold));
    }

    /// From now on reads of rows fail, or none do.
    pub fn set_failing(&self, fails: bool) {
        self.rows.values().for_each(|rows| rows.set_failing(fails));
    }

    /// Begins a flush.
    pub fn begin_flush(&mut self) {
        assert!(!self.is_flushing, "one flush at a time");
        let mut all = self.store.try_lock_all().expect("nobody else locks");
        all.begin_flush(&self.spaces, |shard, space| self.rows[&(shard, space)].begin_flush());
        drop(all);
        self.is_flushing = true;
    }

    /// Walks every shard by some keys. True when all has been walked.
    pub fn walk_flush(&self, mut budget: impl FnMut() -> usize) -> bool {
        let walk = |(shard, space): &(ShardId, KeyspaceId)| self.store.walk_flush(*shard, *space, budget());
        let progress: Vec<FlushProgress> = self.rows.keys().map(walk).collect();
        !progress.contains(&FlushProgress::More)
    }

    /// Ends the flush: what has been walked is installed, or given up.
    pub fn end_flush(&mut self, installs: bool) {
        for ((shard, space), rows) in &self.rows {
            let is_void = self.store.walk_flush(*shard, *space, 0) == FlushProgress::Void;
            let installed = (installs && !is_void).then(|| rows.install());
            self.store.end_flush(*shard, *space, installed);
        }
        self.is_flushing = false;
    }

    /// Flushes everything, after which all that is in memory is clean, and drops it.
    pub fn flush_and_drop(&mut self) {
        self.begin_flush();
        self.walk_flush(|| usize::MAX);
        self.end_flush(true);
        self.drop_clean(usize::MAX);
    }

    /// Drops about `bytes` of clean entries of each database in each shard.
    pub fn drop_clean(&self, bytes: usize) {
        for (shard, space) in self.rows.keys() {
            self.store.drop_clean(*shard, *space, bytes);
        }
    }

    /// Goes on with a flush or begins one, and drops some entries, as chance will have it.
    pub fn churn(&mut self, rng: &mut Rng) {
        match self.is_flushing {
            false if rng.one_in(3) => self.begin_flush(),
            true if self.walk_flush(|| rng.below(3) as usize) && rng.one_in(2) => self.end_flush(!rng.one_in(4)),
            _ => {}
        }
        if rng.one_in(2) {
            self.drop_clean(rng.below(2000) as usize);
        }
    }
}

/// A request as clients send it.
pub fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
