//! A server of one worker without sockets, driven by a clock of the test.

use crate::reply::Reply;
use admin::ShutdownRequest;
use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{Clock, KeyspaceId, Lsn, Rng, ShardId, UnixMs};
use command::Session;
use command::clients::{Address, ClientInfo};
use command::work::remote::RemoteWork;
use config::Settings;
use engine::{FetchingEngine, FlushProgress, SortedRows};
use server::assembly::{Assembly, Commands, ServerBuilder};
use server::connection::Connection;
use server::dialect::{Dialect, Language};
use server::executor::{Executor, Flow, Shared};
use server::fetching::{Fetched, Fetches, Read, RowIo};
use std::collections::BTreeMap;
use std::convert::Infallible;
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

/// The memory engine inside one that asks for fetches at random.
pub fn fetching(engine: engine_mem::MemEngine) -> ShardEngine {
    ShardEngine::Other(Box::new(FetchingEngine::new(engine, Rng::new(11))))
}

/// The memory engine inside one whose rows are in memory only after a read for a ticket.
pub fn ticketed(engine: engine_mem::MemEngine) -> ShardEngine {
    ShardEngine::Other(Box::new(FetchingEngine::with_tickets(engine)))
}

/// The memory engine inside one that has every row, but leaves of trees only when they are fetched. For stores that
/// look for such leaves ([`Notices::ask_for_leaves`](store::Notices::ask_for_leaves)).
pub fn leafless(engine: engine_mem::MemEngine) -> ShardEngine {
    ShardEngine::Other(Box::new(FetchingEngine::with_leaves(engine, Rng::new(13))))
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
    /// A server over shards of this engine.
    pub fn new(engine: fn(engine_mem::MemEngine) -> ShardEngine) -> Self {
        Self::with_shards(engine, SHARDS)
    }

    /// The same with this number of shards.
    pub fn with_shards(engine: fn(engine_mem::MemEngine) -> ShardEngine, shards: usize) -> Self {
        Self::with_parts(engine, shards, |assembly| assembly)
    }

    /// A server with these commands.
    pub fn with_commands(commands: Commands) -> Self {
        Self::built(memory, SHARDS, |builder| builder.commands(commands), |assembly| assembly)
    }

    /// The same with more parts.
    pub fn with_parts(
        engine: fn(engine_mem::MemEngine) -> ShardEngine,
        shards: usize,
        more: impl FnOnce(Assembly) -> Assembly,
    ) -> Self {
        Self::built(engine, shards, |builder| builder, more)
    }

    fn built(
        engine: fn(engine_mem::MemEngine) -> ShardEngine,
        shards: usize,
        choose: impl FnOnce(ServerBuilder) -> ServerBuilder,
        more: impl FnOnce(Assembly) -> Assembly,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(START_MS));
        let replica_store = store(&clock, shards, None, memory);
        let replica = Arc::new(Replica { store: replica_store, position: Mutex::default(), kept: Mutex::default() });
        let settings = Settings { shards: shards as u32, workers: 1, ..Settings::default() };
        let entropy = Arc::new(SeededEntropy::new(3));
        let builder = ServerBuilder::new(settings, clock.clone(), entropy, Arc::new(NobodyWaits));
        let assembly =
            more(choose(builder.engine(engine).log(replica.clone())).assemble().with(ShutdownRequest::default()));
        let (store, stats) = (assembly.store.clone(), assembly.workers[0].stats.clone());
        let io = Io::default();
        let come = io.fetched.clone();
        let fetches = Fetches::new(Box::new(io.clone()), move |_, fetched| {
            come.lock().expect("no test panics while holding it").push(fetched);
        });
        let shared = assembly.finish(Box::new(()), fetches, Box::new(|_| {})).expect("default users");
        let mut executor = Executor::new(0, shared.clone(), stats);
        // Tests that are about turns say how long they are.
        executor.limit_batches(u64::MAX);
        Self { clock, store, replica, shared, executor, io, rounds: 0 }
    }

    /// Backs all databases, which are empty, with rows, and returns those rows.
    pub fn back(&self) -> BackedRows {
        self.back_some(|_| true)
    }

    /// Backs some databases with rows.
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
        self.connect_memcached_with(Dialect::new(Language::Memcached))
    }

    /// A connection of a memcached client whose requests this parser reads.
    pub fn connect_memcached_with(&mut self, dialect: Dialect) -> usize {
        self.executor.open(Connection::speaking(dialect, Session::new(1, true, START_MS)))
    }

    /// A connection of a client of SSDB.
    pub fn connect_ssdb(&mut self) -> usize {
        self.executor.open(Connection::speaking(Dialect::new(Language::Ssdb), Session::new(1, true, START_MS)))
    }

    /// A client of SSDB that is the user `default`, which CLIENT LIST shows: for complete servers.
    pub fn connect_ssdb_as_default(&mut self) -> usize {
        let info = self.list_client();
        let default = self.shared.host.login.users.default_user().clone();
        let is_open = default.rules().is_open();
        let session = Session::with_user(info, is_open, default);
        self.executor.open(Connection::speaking(Dialect::new(Language::Ssdb), session))
    }

    /// A memcached client of the user `default`, which CLIENT LIST shows: for complete servers.
    pub fn connect_memcached_as_default(&mut self) -> usize {
        let info = self.list_client();
        let default = self.shared.host.login.users.default_user().clone();
        let is_open = default.rules().is_open();
        let session = Session::with_user(info, is_open, default);
        self.executor.open(Connection::speaking(Dialect::new(Language::Memcached), session))
    }

    /// A connection that CLIENT LIST shows: for complete servers.
    pub fn connect_listed(&mut self) -> usize {
        let info = self.list_client();
        self.executor.open(Connection::new(Session::of(info, true)))
    }

    fn list_client(&self) -> Arc<ClientInfo> {
        let address = || Address::Unix("/test".into());
        let clients = &self.shared.host.clients;
        clients.connect(address(), address(), 0, 0, self.clock.now_ms()).expect("there is room")
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

    /// Runs the requests that were left when the turn was over, as a worker would in the next turn.
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

    /// Continues what requests of any client prepare, until there is nothing more.
    pub fn finish_work(&mut self) {
        while self.executor.has_work() {
            self.executor.step_work();
        }
    }

    /// The same, with what another thread prepares for this client, but for what it has sent elsewhere.
    fn prepare_all(&mut self, client: usize) {
        let since = Instant::now();
        self.finish_work();
        while self.is_chore_left(client) {
            assert!(since.elapsed() < PREPARED_WITHIN, "what is prepared is done in the end");
            std::thread::yield_now();
            // Which the thread would have the worker do.
            self.executor.end_wait(client);
            self.finish_work();
        }
    }

    fn is_chore_left(&mut self, client: usize) -> bool {
        let pending = self.executor.connection(client).and_then(|connection| connection.session.pending.as_ref());
        pending.is_some_and(|pending| pending.goes_on() && !pending.is::<RemoteWork>())
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
        // What is prepared may need rows, and a request that has its rows may prepare something.
        while self.executor.has_waiting() || self.io.len() > 0 || self.executor.has_work() || self.is_chore_left(client)
        {
            self.prepare_all(client);
            self.read_rows();
            self.executor.run_waiting(true);
            self.go_on();
            let now = self.executor.now();
            // The delay after wrong passwords, if this client waits for it. Else each fetch would advance the clock.
            if self.executor.connections().any(|(id, connection)| id == client && connection.session.is_held(now)) {
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

/// The rows that back the databases of a server.
pub struct BackedRows {
    store: Arc<Store>,
    pub rows: RowsByPlace,
    pub spaces: Vec<KeyspaceId>,
    is_flushing: bool,
}

impl BackedRows {
    /// Backs the keyspaces of a store, which are empty, with these rows.
    pub fn attach(store: &Arc<Store>, spaces: Vec<KeyspaceId>, rows: RowsByPlace) -> Self {
        for space in &spaces {
            store.back(*space, false, |shard| {
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

    /// Continues a flush or begins one, and drops some entries, at random.
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
