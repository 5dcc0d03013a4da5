//! The heart of a worker, without sockets: bytes in, commands in batches, replies out.
//!
//! ```text
//! received bytes -> parse, hash -> batch of up to 32 -> prefetch buckets -> run in order, prefetching entries -> reply
//!                                                 `-> many requests to one collection: load their elements
//! ```
//!
//! X1. A batch may hold requests of several connections; each connection's requests run in the order they came.
//! X2. Spans of a batch lie in the shared input area, which is reused only when the batch has run.
//! X3. A request that has to wait takes all later requests of its connection with it, as owned copies; other
//!     connections continue.

mod batch;
mod blocks;
pub(crate) mod connections;
mod fetching;
pub(crate) mod limits;
mod memcached_input;
pub(crate) mod pending;
mod requests;
mod ssdb_input;
mod users;
mod waiting;

pub use self::limits::{ClientLimits, OutputBounds};

use self::connections::Connections;
use self::pending::{CLOSED, Parsing, Pending};
use self::users::UserChanges;
use crate::ahead::Ahead;
use crate::blocked::Blocked;
use crate::connection::Connection;
use crate::deliver::{DELIVERED_BYTES_MAX, Receivers};
use crate::fetching::Fetches;
use crate::key_route::KeyRoute;
use crate::openings::Openings;
use admin::{CommandLog, LatencyMonitor};
use base::{Lsn, UnixMs};
use command::blocking::Awaited;
use command::stats::WorkerStats;
use command::waiting::WaitingCommand;
use command::watchers::Watchers;
use command::work::reply::PIECE_BYTES;
use command::{CommandTable, Host};
use engine::{Keyspace, Serve, Waiter};
use parking_lot::RwLock;
use proto::Arguments;
use push::{Delivery, Outlets};
use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use store::{RecordSink, Scratch, Store};
use value::absent;

/// Requests executed together. Larger batches were not faster, since 16 misses in flight keep the memory busy.
const BATCH_LEN: usize = 32;

/// The input area all connections of a worker read into.
const INPUT_BYTES: usize = 256 * 1024;

/// How long a worker continues in one turn with what one request prepares, or with a long reply.
const STEPS_NS: u64 = 200_000;

/// How long it continues with the requests of one batch, or with the bytes of one read; the rest is for the next turn.
/// Twenty members that each decompress a leaf take a sorted set 0.3 ms, as do some thousand simple requests.
const BATCH_NS: u64 = 250_000;

/// Reply buffers kept for the next connection that needs one, and the largest worth keeping.
const SPARE_REPLIES: usize = 64;
const SPARE_REPLY_BYTES_MAX: usize = 64 * 1024;

/// What all workers share.
pub struct Shared {
    /// The data.
    pub store: Arc<Store>,
    /// All commands.
    pub table: Arc<CommandTable>,
    /// Those of memcached clients.
    pub memcached: memcached::Rows,
    /// Those of clients of SSDB.
    pub ssdb: ssdb::Rows,
    /// What commands know of the server.
    pub host: Host,
    /// Sees calls that are slow, and requests and replies that are large.
    pub slow_log: Arc<CommandLog>,
    /// Connections that MONITOR shows everything.
    pub watchers: Arc<Watchers>,
    /// Messages on their way to the workers.
    pub outlets: Arc<Outlets>,
    /// Reads of rows that are not in memory.
    pub fetches: Arc<Fetches>,
    /// What requests may be; changed by CONFIG SET.
    pub limits: RwLock<ClientLimits>,
}

impl Shared {
    /// Notes for LATENCY how long something took.
    pub(crate) fn note_latency(&self, event: &'static str, took: Duration) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if let Some(latency) = self.host.find::<Arc<LatencyMonitor>>().filter(|latency| latency.is_on()) {
            latency.record(event, self.store.clock.now_ms() / 1000, ms);
        }
    }
}

/// Runs commands again that wait for what this worker's requests change.
struct WaiterRunner {
    shared: Arc<Shared>,
    stats: Arc<WorkerStats>,
}

impl Serve for WaiterRunner {
    fn serve(&self, ks: &mut dyn Keyspace, waiter: &dyn Waiter) -> bool {
        let waiter: &dyn Any = waiter;
        let command = waiter.downcast_ref::<WaitingCommand>();
        command.is_some_and(|command| command.run_again(ks, &self.shared.host, &self.stats))
    }
}

/// One worker's connections and the batch it is working on.
pub struct Executor {
    worker: usize,
    shared: Arc<Shared>,
    stats: Arc<WorkerStats>,
    scratch: Scratch,
    connections: Connections,
    input: Box<[u8]>,
    /// Bytes of `input` in use by the batch.
    filled: usize,
    arguments: Arguments,
    openings: Openings,
    batch: Vec<Pending>,
    /// What of a connection is neither in the batch nor kept by it, while the batch runs.
    parsing: Cell<Parsing>,
    /// Where the first key of each request in the batch belongs, when that key's position is fixed.
    places: Vec<Option<KeyRoute>>,
    /// Whether a key of the batch is that of the request before it.
    has_runs: bool,
    /// How far what the batch will read is loaded.
    ahead: Ahead<BATCH_LEN>,
    /// Inputs of the batch that are not in `input`: unfinished requests that grew big.
    own_inputs: Vec<Vec<u8>>,
    /// Memory for replies, handed from connection to connection, so that silent ones hold none.
    spare_replies: Vec<Vec<u8>>,
    /// Messages being delivered.
    deliveries: Vec<Delivery>,
    /// Connections with replies to send.
    to_send: Vec<usize>,
    /// Connections with requests waiting for a lock, a delay or rows that arrive without a read.
    waiting: Vec<usize>,
    /// Connections with requests that wait for rows.
    fetching: fetching::Fetching,
    /// Connections with writes waiting for room, of the log or of a checkpoint, and when they were last tried.
    waiting_for_room: Vec<usize>,
    /// Connections whose request has begun work.
    working: VecDeque<usize>,
    tried_for_room: UnixMs,
    /// One of those waits for memory that is being freed, by its tries among others.
    awaits_memory: bool,
    /// Connections whose last command waits.
    blocked: Blocked,
    /// How long a batch, or what one read brought, may take before the rest is left for the next turn.
    batch_ns: u64,
    /// Wall time, read once a turn.
    now: UnixMs,
    /// As they were at the beginning of the turn.
    limits: ClientLimits,
    users: UserChanges,
}

/// Whether a connection can continue reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Yes.
    Open,
    /// Not until its waiting requests have run.
    Waiting,
    /// Nothing more is read; it closes when its replies are sent.
    Closing,
}

impl Executor {
    /// An executor without connections.
    pub fn new(worker: usize, shared: Arc<Shared>, stats: Arc<WorkerStats>) -> Self {
        let now = shared.store.clock.now_ms();
        let limits = *shared.limits.read();
        let mut scratch = Scratch::default();
        scratch.serve_with(Arc::new(WaiterRunner { shared: shared.clone(), stats: stats.clone() }));
        Self {
            limits,
            users: UserChanges::new(&shared.host.login),
            worker,
            shared,
            stats,
            scratch,
            connections: Connections::default(),
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            filled: 0,
            arguments: Arguments::new(),
            openings: Openings::default(),
            batch: Vec::with_capacity(BATCH_LEN),
            parsing: Cell::default(),
            places: Vec::with_capacity(BATCH_LEN),
            has_runs: false,
            ahead: Ahead::default(),
            own_inputs: Vec::new(),
            spare_replies: Vec::new(),
            deliveries: Vec::new(),
            to_send: Vec::new(),
            waiting: Vec::new(),
            fetching: fetching::Fetching::default(),
            waiting_for_room: Vec::new(),
            working: VecDeque::new(),
            tried_for_room: now,
            awaits_memory: false,
            blocked: Blocked::default(),
            batch_ns: BATCH_NS,
            now,
        }
    }

    /// Takes a connection.
    pub fn open(&mut self, connection: impl Into<Box<Connection>>) -> usize {
        let connection = connection.into();
        if !connection.is_lent {
            // Messages for one that is lent wait at home.
            connection.session.info.set_slot(self.connections.vacant_id());
        }
        let id = self.connections.insert(connection);
        self.follow_user_of(id);
        id
    }

    /// Forgets a connection. Its requests in the running batch are dropped with it.
    pub fn close(&mut self, id: usize) -> Option<Box<Connection>> {
        let mut connection = self.release(id)?;
        if let Some(block) = &connection.session.block {
            self.blocked.remove(id, block);
            connection.session.info.wait.close();
            if let Awaited::Keys(command) = &block.what {
                self.shared.store.forget_waiter(&**command);
            }
        }
        command::redis::pubsub::leave_all(&mut connection.session, &self.shared.host);
        command::redis::client_tracking::stop_tracking(&mut connection.session, &self.shared.host);
        if connection.watching {
            self.shared.watchers.remove();
        }
        Some(connection)
    }

    /// Gives up a connection that lives on elsewhere.
    pub fn release(&mut self, id: usize) -> Option<Box<Connection>> {
        // Not taken out of the batch, whose keys have places of their own.
        self.batch
            .iter()
            .filter(|pending| pending.connection.get() == id)
            .for_each(|pending| pending.connection.set(CLOSED));
        self.to_send.retain(|other| *other != id);
        self.waiting.retain(|other| *other != id);
        self.waiting_for_room.retain(|other| *other != id);
        self.working.retain(|other| *other != id);
        self.forget_rows(id);
        let mut connection = self.connections.remove(id)?;
        connection.listed = false;
        Some(connection)
    }

    /// The connection, if it is open.
    pub fn connection(&mut self, id: usize) -> Option<&mut Connection> {
        self.connections.get_mut(id)
    }

    /// Reads the clock and the limits; once a turn of the loop.
    pub fn begin_turn(&mut self) {
        self.now = self.shared.store.clock.now_ms();
        self.stats.turned_at.raise(self.now.unsigned_abs());
        self.follow_users();
        self.limits = *self.shared.limits.read();
        // Not left to a thread that may not run in time: what may be lost is bounded by what is admitted.
        if let Some(log) = self.shared.store.log_of(&mut self.scratch) {
            log.look();
        }
    }

    /// Wall time of this turn.
    pub fn now(&self) -> UnixMs {
        self.now
    }

    /// Leaves requests for the next turn once those of the batch before them have taken `ns`. Without a worker, the
    /// caller continues with them ([`Self::is_paused`]).
    pub fn limit_batches(&mut self, ns: u64) {
        self.batch_ns = ns;
    }

    /// Has connections with more unsent bytes than this wait in this turn, if that is less than their limit.
    pub fn pause_output_above(&mut self, bytes: usize) {
        self.limits.output_pause_bytes = self.limits.output_pause_bytes.min(bytes);
    }

    /// Receives at most `bytes` bytes of a connection whose requests do not run in this turn, if that is less than its
    /// limit.
    pub fn limit_backlogs(&mut self, bytes: usize) {
        self.limits.backlog_bytes_max = self.limits.backlog_bytes_max.min(bytes);
    }

    /// Keeps no large argument of which more than this is missing in this turn.
    pub fn limit_receiving(&mut self, bytes: usize) {
        self.limits.receiving_bytes_max = bytes;
    }

    /// The limits of this turn.
    pub fn limits(&self) -> &ClientLimits {
        &self.limits
    }

    /// What the worker has counted since the last call.
    pub fn take_counts(&mut self) -> (u64, u64, u64) {
        let Scratch { expired, evicted, changes, .. } = &mut self.scratch;
        (std::mem::take(expired), std::mem::take(evicted), std::mem::take(changes))
    }

    /// Merges the pages of one huge page, if some are to be merged; whether there were.
    pub fn merge_pages(&self) -> bool {
        self.shared.store.merge_pages()
    }

    /// One step of upkeep of a shard; true when there is more to do. During CLIENT PAUSE nothing expires.
    pub fn upkeep(&mut self, shard: base::ShardId) -> bool {
        let has_more = match self.is_data_paused() {
            true => self.shared.store.upkeep_of_pages(shard, self.worker, &mut self.scratch),
            false => absent::waiting(|| self.shared.store.upkeep(shard, self.worker, &mut self.scratch)),
        };
        self.fetch_for_upkeep(shard);
        has_more
    }

    /// One step of working off what is over the memory budget; true when there is more to do at once. During CLIENT
    /// PAUSE nothing is evicted.
    pub fn work_off_excess(&mut self) -> bool {
        !self.is_data_paused() && self.shared.store.work_off_excess(self.worker, &mut self.scratch)
    }

    /// One step of a walk; true when there is more to do at once. During CLIENT PAUSE nothing is removed.
    pub fn sweep(&mut self, sweeps: &memcached::Sweeps) -> bool {
        !self.is_data_paused() && sweeps.work(&self.shared.store, self.worker, &mut self.scratch)
    }

    /// Whether CLIENT PAUSE stops expiration and eviction.
    fn is_data_paused(&self) -> bool {
        self.shared.host.pause.is_active(self.now)
    }

    /// The connections, by id.
    pub fn connections(&self) -> impl Iterator<Item = (usize, &Connection)> {
        self.connections.iter()
    }

    /// Gives every watcher of this worker a line.
    pub fn show(&mut self, line: &[u8]) {
        for (id, connection) in self.connections.iter_mut() {
            // One that is lent gets it at home.
            if connection.session.monitor && !connection.is_lent {
                connection.give(Lsn(0), |connection| connection.reply.simple(line));
                if !connection.listed {
                    connection.listed = true;
                    self.to_send.push(id);
                }
            }
        }
    }

    /// Delivers messages that have come for connections of this worker: all, or as many as one step may.
    pub fn deliver(&mut self) {
        if self.has_deliveries() {
            let output = (&mut self.connections, &mut self.to_send, &self.limits);
            deliver(self.worker, &self.shared, &mut self.deliveries, output);
        }
    }

    /// Whether there are messages for connections of this worker.
    #[inline]
    pub fn has_deliveries(&self) -> bool {
        self.shared.outlets.has_any(self.worker)
    }

    /// Whether and how the connection continues.
    pub fn flow(&self, id: usize) -> Flow {
        match self.connections.get(id) {
            None => Flow::Closing,
            Some(connection) if connection.session.is_busy() => Flow::Waiting,
            Some(connection) if !connection.waiting.is_empty() && !connection.paused => Flow::Waiting,
            Some(connection) if connection.session.close_after_replies => Flow::Closing,
            Some(_) => Flow::Open,
        }
    }

    /// Whether the log puts off a sync until this worker's [`end_turn`](Self::end_turn).
    pub fn puts_off_sync(&mut self) -> bool {
        self.shared.store.log_of(&mut self.scratch).is_some_and(|log| log.puts_off_sync(self.worker))
    }

    /// Notifies the log that this worker appends nothing more for a while.
    pub fn end_turn(&mut self) {
        if let Some(log) = self.shared.store.log_of(&mut self.scratch) {
            log.end_turn(self.worker);
        }
    }

    /// Writes the next piece of the connection's long reply, if it has one and little is unsent. True while there is
    /// more; after the last piece the connection resumes as one that was paused.
    pub fn write_piece(&mut self, id: usize) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return false };
        let Connection { session, reply, .. } = connection;
        let Some(rest) = &mut session.rest else { return false };
        if reply.len() >= PIECE_BYTES {
            return true;
        }
        let begun_ns = self.stats.now();
        loop {
            match catch_unwind(AssertUnwindSafe(|| absent::waiting(|| rest.write_piece(reply)))) {
                Ok(true) if reply.len() < PIECE_BYTES && self.stats.now().saturating_sub(begun_ns) < STEPS_NS => {
                    continue;
                }
                Ok(true) => return true,
                Ok(false) => {}
                // A bug, and half a reply is written: the client must not take what follows for the other half.
                Err(_) => session.close_after_replies = true,
            }
            break;
        }
        session.rest = None;
        connection.paused = true;
        connection.go_on_behind();
        false
    }

    /// How far the log is durable; `None` while it is off.
    pub fn durable(&mut self) -> Option<Lsn> {
        self.shared.store.log_of(&mut self.scratch).map(RecordSink::durable)
    }

    /// Has this worker woken when the log becomes durable further.
    pub fn wait_for_log(&mut self) {
        if let Some(log) = self.shared.store.log_of(&mut self.scratch) {
            log.wait_for(self.worker);
        }
    }

    /// Takes memory that a connection's replies no longer need.
    pub fn keep_spare(&mut self, memory: Vec<u8>) {
        if self.spare_replies.len() < SPARE_REPLIES && memory.capacity() <= SPARE_REPLY_BYTES_MAX {
            self.spare_replies.push(memory);
        }
    }

    fn list(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if !connection.listed {
            connection.listed = true;
            self.to_send.push(id);
        }
    }

    /// The connections that got replies since the last call, each once.
    pub fn take_to_send(&mut self, ids: &mut Vec<usize>) {
        ids.clear();
        std::mem::swap(ids, &mut self.to_send);
        for id in ids {
            if let Some(connection) = self.connections.get_mut(*id) {
                connection.listed = false;
            }
        }
    }
}

/// Delivers what has come for the connections of a worker: all, or as much as one step may.
#[cold]
fn deliver(
    worker: usize,
    shared: &Shared,
    deliveries: &mut Vec<Delivery>,
    (connections, to_send, limits): (&mut Connections, &mut Vec<usize>, &ClientLimits),
) {
    shared.outlets.take(worker, DELIVERED_BYTES_MAX, deliveries);
    let redirection_is_broken = |client| shared.host.tracking.redirection_is_broken(client, worker);
    Receivers { connections, to_send, limits, redirection_is_broken: &redirection_is_broken }.deliver(deliveries);
}
