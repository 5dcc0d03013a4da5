//! The heart of a worker, without sockets: bytes in, commands in batches, replies out.
//!
//! ```text
//! received bytes -> parse, hash -> batch of up to 32 -> prefetch buckets -> run in order, prefetching entries -> replies
//!                                                 `-> of many requests to one collection: load their elements
//! ```
//!
//! X1. A batch may hold requests of several connections; each connection's requests run in the order they came.
//! X2. Spans of a batch lie in the shared input area, which is reused only when the batch has run.
//! X3. A request that has to wait takes all later requests of its connection with it, as owned copies; other connections
//!     go on.

mod fetching;
mod memcached_input;
mod waiting;

use crate::ahead::{Ahead, STEP_LEN};
use crate::blocked::Blocked;
use crate::closing::log_closing;
use crate::connection::{Connection, Waiting};
use crate::deliver::{DELIVERED_BYTES_MAX, Receivers};
use crate::dialect::Dialect;
use crate::fetching::Fetches;
use crate::openings::Openings;
use crate::turn::{Place, Turn};
use admin::CommandLog;
use base::{KeyspaceId, Lsn, UnixMs};
use command::blocking::{Awaited, UNBLOCKED, WaitingCall, WaitingCommand};
use command::call::Done;
use command::clients::Unblock;
use command::pause::Pause;
use command::pieces::PIECE_BYTES;
use command::stats::WorkerStats;
use command::table::Row;
use command::{Args, Categories, CommandTable, Flags, Host, Session};
use config::{OutputLimit, Settings};
use engine::{Key, Keyspace, Serve, SharedBytes, WaitEnd, Waiter};
use parking_lot::RwLock;
use proto::{Arguments, Limits, Progress, ProtocolError, Span};
use push::{Delivery, Outlets, Tracking};
use slab::Slab;
use std::any::Any;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{RecordSink, Scratch, Store, WriteClass};
use value::reaper;

/// Requests executed together. Larger batches were not faster, since 16 misses in flight keep the memory busy.
const BATCH_LEN: usize = 32;

/// From so many requests in a row on the same key on, its elements are loaded beforehand.
const LOADED_MIN: usize = 4;

/// The input area all connections of a worker read into.
const INPUT_BYTES: usize = 256 * 1024;

/// Room offered to one read: thousands of small requests, a millisecond's work, before other connections have their turn.
const READ_BYTES_MIN: usize = 64 * 1024;

/// Room offered to one read of a large argument, which is filled with zeros first: memory that is new costs its time page by page.
const READ_LARGE_BYTES_MAX: usize = 256 << 10;

/// An unfinished request up to this size is copied to the front of its next read instead of being read on its own.
const UNPARSED_COPIED_BYTES_MAX: usize = 16 * 1024;

/// So long a worker goes on with what one request prepares, or with a long reply, in one turn.
const STEPS_NS: u64 = 200_000;

/// So long it goes on with the requests of one batch, or with what one read brought; the rest is for the next turn. Twenty members
/// that all have their leaf parted take a sorted set 0.3 ms, and some thousand simple requests as long.
const BATCH_NS: u64 = 250_000;

/// Reply buffers kept for the next connection that needs one, and the largest worth keeping.
const SPARE_REPLIES: usize = 64;
const SPARE_REPLY_BYTES_MAX: usize = 64 * 1024;

/// Shows a line to watchers.
pub type Show = Box<dyn Fn(&[u8]) + Send + Sync>;

/// What all workers share.
pub struct Shared {
    /// The data.
    pub store: Arc<Store>,
    /// All commands.
    pub table: Arc<CommandTable>,
    /// Those of memcached clients.
    pub memcached: memcached::Rows,
    /// The server's other parts; [`Pause`] is among them.
    pub host: Host,
    /// Sees calls that are slow, and requests and replies that are large.
    pub log: Arc<CommandLog>,
    /// Connections that MONITOR has made watchers.
    pub monitors: AtomicUsize,
    /// Shows a line to the watchers of all workers.
    pub show: Show,
    /// Messages on their way to the workers.
    pub outlets: Arc<Outlets>,
    /// Reads of rows that are not in memory.
    pub fetches: Arc<Fetches>,
    /// What requests may be; changed by CONFIG SET.
    pub limits: RwLock<ClientLimits>,
}

/// What clients may send, and how long they may take.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// Requests before login.
    pub before_login: Limits,
    /// Requests after it.
    pub after_login: Limits,
    /// Bytes of an unfinished request, less the one argument being received.
    pub query_bytes_max: usize,
    /// Bytes of an item of a memcached client.
    pub item_bytes_max: usize,
    /// Bytes queued by MULTI.
    pub transaction_bytes_max: usize,
    /// Unsent bytes above which no requests of a connection run.
    pub output_pause_bytes: usize,
    /// Bytes of further requests that are received meanwhile.
    pub backlog_bytes_max: usize,
    /// Bytes that a large argument may lack: one that lacks more is not kept.
    pub receiving_bytes_max: usize,
    /// What may be unsent to a client.
    pub output: OutputBounds,
    /// What may be unsent to one with subscriptions.
    pub subscriber_output: OutputBounds,
    /// Seconds of silence after which it is closed; 0 for never.
    pub idle_seconds: i64,
    /// Seconds it has for its first command; 0 for no limit.
    pub login_seconds: i64,
}

/// How much may be unsent before a connection is closed.
#[derive(Clone, Copy, Debug)]
pub struct OutputBounds {
    /// Unsent bytes above which it is closed.
    pub hard_bytes: usize,
    /// Unsent bytes above which it is closed after [`Self::soft_seconds`].
    pub soft_bytes: usize,
    /// How long the soft limit is tolerated.
    pub soft_seconds: i64,
}

impl OutputBounds {
    fn of(limit: &OutputLimit) -> Self {
        // 0 means no limit where Redis says so.
        let bytes = |max: u64| if max == 0 { usize::MAX } else { usize::try_from(max).unwrap_or(usize::MAX) };
        Self {
            hard_bytes: bytes(limit.hard_bytes),
            soft_bytes: bytes(limit.soft_bytes),
            soft_seconds: i64::try_from(limit.soft_seconds).unwrap_or(i64::MAX),
        }
    }
}

impl ClientLimits {
    /// What may be unsent to this client.
    pub fn output_of(&self, session: &Session) -> &OutputBounds {
        if session.subscriptions.is_some() { &self.subscriber_output } else { &self.output }
    }

    /// The limits that the settings ask for.
    pub fn of(settings: &Settings) -> Self {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            before_login: Limits {
                bulk_bytes_max: bytes(settings.login_bulk_bytes_max),
                argument_count_max: settings.login_arguments_max as usize,
                inline_bytes_max: bytes(settings.proto_inline_bytes_max),
                before_login: true,
            },
            after_login: Limits {
                bulk_bytes_max: bytes(settings.proto_bulk_bytes_max),
                argument_count_max: settings.proto_arguments_max as usize,
                inline_bytes_max: bytes(settings.proto_inline_bytes_max),
                before_login: false,
            },
            query_bytes_max: bytes(settings.client_query_buffer_bytes_max),
            item_bytes_max: bytes(settings.memcached_item_bytes_max),
            transaction_bytes_max: bytes(settings.client_transaction_bytes_max),
            output_pause_bytes: bytes(settings.client_output_pause_bytes),
            backlog_bytes_max: bytes(settings.client_query_buffer_bytes_max),
            receiving_bytes_max: usize::MAX,
            output: OutputBounds::of(&settings.client_output_limits.normal),
            subscriber_output: OutputBounds::of(&settings.client_output_limits.pubsub),
            idle_seconds: i64::from(settings.timeout_seconds),
            login_seconds: i64::from(settings.login_timeout_seconds),
        }
    }
}

/// Runs commands again that wait for what this worker's requests change.
struct Server {
    shared: Arc<Shared>,
    stats: Arc<WorkerStats>,
}

impl Serve for Server {
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
    connections: Slab<Connection>,
    input: Box<[u8]>,
    /// Bytes of `input` in use by the batch.
    filled: usize,
    arguments: Arguments,
    openings: Openings,
    batch: Vec<Pending>,
    /// Where the first key of each request in the batch belongs, when that key's position is fixed.
    places: Vec<Option<Place>>,
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
    /// Connections with requests waiting for a lock, a delay or rows that come by themselves.
    waiting: Vec<usize>,
    /// Connections with requests that wait for rows.
    fetching: fetching::Fetching,
    /// Connections with writes waiting for room, of the log or of a checkpoint, and when they were last tried.
    waiting_for_room: Vec<usize>,
    /// Connections whose request is being prepared.
    preparing: VecDeque<usize>,
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
}

/// A parsed request that has not run.
struct Pending {
    connection: usize,
    input: Source,
    /// Where the request begins in its input.
    start: usize,
    /// Its arguments.
    first_span: usize,
    span_count: u32,
    /// What it asks for; `None` when something is wrong with it.
    row: Option<Row>,
}

impl Pending {
    /// Its arguments, where they lie.
    #[inline]
    fn args<'a>(&self, area: &'a [u8], own_inputs: &'a [Vec<u8>], arguments: &'a Arguments) -> Args<'a> {
        let input = match self.input {
            Source::Area => &area[self.start..],
            Source::Own(index) => &own_inputs[index as usize][self.start..],
        };
        let spans = self.first_span..self.first_span + self.span_count as usize;
        Args::new(input, &arguments.spans()[spans], arguments.large())
    }
}

/// What a request asks for whose opening is not known, which it is then.
#[cold]
#[inline(never)]
fn look_up(
    table: &CommandTable,
    openings: &mut Openings,
    input: &[u8],
    spans: &[Span],
    large: &[SharedBytes],
) -> Option<Row> {
    let args = Args::new(input, spans, large);
    let row = table.lookup(&args)?;
    openings.remember(table, input, spans, &args, &row);
    Some(row)
}

/// Where a key belongs.
#[inline(always)]
fn place_of(store: &Store, space: KeyspaceId, bytes: &[u8]) -> Place {
    let key = store.key(space, bytes);
    Place { hash: key.hash, slot: key.slot, space, shard: store.shard_of(&key) }
}

/// Whether both are places of one key.
#[inline]
fn is_same_key(one: Option<&Option<Place>>, next: &Option<Place>) -> bool {
    match (one, next) {
        (Some(Some(one)), Some(next)) => one.hash == next.hash && one.space == next.space,
        _ => false,
    }
}

/// Whether it is a command on elements of a hash, a set or a sorted set, named behind its key: so are nearly all of these types
/// that do not look at many. What stands there else is looked up in vain.
fn names_elements(row: &Row) -> bool {
    const TYPES: Categories = Categories::HASH.union(Categories::SET).union(Categories::SORTED_SET);
    row.spec.flags.contains(Flags::FAST) && row.spec.categories.intersects(TYPES)
}

/// The connection of requests whose connection was closed.
const CLOSED: usize = usize::MAX;

/// Why filling the batch stopped.
enum FillStop {
    /// The batch is full.
    Full,
    /// Everything is parsed, or kept until more arrives.
    Incomplete,
    /// A request whose argument of this length was not kept.
    Dropped(usize),
    /// What comes next is no request.
    Refused(ProtocolError),
}

#[derive(Clone, Copy)]
enum Source {
    /// The worker's input area.
    Area,
    /// One of `own_inputs`.
    Own(u32),
}

/// Whether a connection can go on reading.
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
        scratch.serve_with(Arc::new(Server { shared: shared.clone(), stats: stats.clone() }));
        Self {
            limits,
            worker,
            shared,
            stats,
            scratch,
            connections: Slab::new(),
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            filled: 0,
            arguments: Arguments::new(),
            openings: Openings::default(),
            batch: Vec::with_capacity(BATCH_LEN),
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
            preparing: VecDeque::new(),
            tried_for_room: now,
            awaits_memory: false,
            blocked: Blocked::default(),
            batch_ns: BATCH_NS,
            now,
        }
    }

    /// Takes a connection.
    pub fn open(&mut self, connection: Connection) -> usize {
        let place = self.connections.vacant_entry();
        let id = place.key();
        connection.session.info.set_slot(id);
        place.insert(connection);
        id
    }

    /// Forgets a connection. Its requests in the running batch are dropped with it.
    pub fn close(&mut self, id: usize) -> Option<Connection> {
        // Not taken out of the batch, whose keys have places of their own.
        self.batch
            .iter_mut()
            .filter(|pending| pending.connection == id)
            .for_each(|pending| pending.connection = CLOSED);
        self.to_send.retain(|other| *other != id);
        self.waiting.retain(|other| *other != id);
        self.waiting_for_room.retain(|other| *other != id);
        self.preparing.retain(|other| *other != id);
        self.forget_rows(id);
        let mut connection = self.connections.try_remove(id)?;
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
            self.shared.monitors.fetch_sub(1, Ordering::Relaxed);
        }
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

    /// Leaves requests for the next turn once those of the batch before them have taken so long. Without a worker, whoever calls goes
    /// on with them ([`Self::is_paused`]).
    pub fn limit_batches(&mut self, ns: u64) {
        self.batch_ns = ns;
    }

    /// Has connections with more unsent bytes than this wait in this turn, if that is less than their limit.
    pub fn pause_output_above(&mut self, bytes: usize) {
        self.limits.output_pause_bytes = self.limits.output_pause_bytes.min(bytes);
    }

    /// Receives at most so many bytes of a connection whose requests do not run in this turn, if that is less than its limit.
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
            false => self.shared.store.upkeep(shard, self.worker, &mut self.scratch),
        };
        self.fetch_for_upkeep(shard);
        has_more
    }

    /// One step of working off what is over the memory budget; true when there is more to do at once. During CLIENT PAUSE
    /// nothing is evicted.
    pub fn work_off_excess(&mut self) -> bool {
        !self.is_data_paused() && self.shared.store.work_off_excess(self.worker, &mut self.scratch)
    }

    /// Whether CLIENT PAUSE keeps entries from changing by themselves.
    fn is_data_paused(&self) -> bool {
        self.shared.host.part::<Pause>().is_active(self.now)
    }

    /// The connections, by id.
    pub fn connections(&self) -> impl Iterator<Item = (usize, &Connection)> {
        self.connections.iter()
    }

    /// Gives every watcher of this worker a line.
    pub fn show(&mut self, line: &[u8]) {
        for (id, connection) in &mut self.connections {
            if connection.session.monitor {
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

    /// Whether and how the connection goes on.
    pub fn flow(&self, id: usize) -> Flow {
        match self.connections.get(id) {
            None => Flow::Closing,
            Some(connection) if connection.session.is_busy() => Flow::Waiting,
            Some(connection) if !connection.waiting.is_empty() && !connection.paused => Flow::Waiting,
            Some(connection) if connection.session.close_after_replies => Flow::Closing,
            Some(_) => Flow::Open,
        }
    }

    /// Room for the connection's next bytes. `read` fills it from the front and says how many came; the requests in them are
    /// parsed and, batch by batch, run. Gives what `read` gave, and whether it filled all the room it was offered.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn receive<E>(
        &mut self,
        id: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(usize, bool), E> {
        let Some(connection) = self.connections.get_mut(id) else { return Ok((0, false)) };
        let bytes_max = self.limits.receiving_bytes_max;
        if connection.dialect.large_bulk().is_some_and(|large| large.missing() > bytes_max) {
            reaper::free_bytes(connection.dialect.drop_large_bulk());
        }
        if let Some(mut large) = connection.dialect.large_bulk() {
            let missing = large.missing();
            let buffer = large.buffer();
            let (start, room) =
                (buffer.len(), (buffer.capacity() - buffer.len()).min(missing).min(READ_LARGE_BYTES_MAX));
            if room > 0 {
                buffer.resize(start + room, 0);
                let result = read(&mut buffer[start..]);
                buffer.truncate(start + result.as_ref().map_or(0, |read| *read));
                let read = result?;
                self.parse_own(id);
                return Ok((read, read == room));
            }
        }
        let Some(connection) = self.connections.get_mut(id) else { return Ok((0, false)) };
        if connection.unparsed.len() > UNPARSED_COPIED_BYTES_MAX {
            let buffer = &mut connection.unparsed;
            let start = buffer.len();
            // Grows with what has come, never with what is announced.
            buffer.resize(start + READ_BYTES_MIN.max(start / 2), 0);
            let room = buffer.len() - start;
            let result = read(&mut buffer[start..]);
            buffer.truncate(start + result.as_ref().map_or(0, |read| *read));
            let read = result?;
            self.parse_own(id);
            return Ok((read, read == room));
        }
        if self.input.len() - self.filled < READ_BYTES_MIN + UNPARSED_COPIED_BYTES_MAX {
            self.run_batch_keeping_input();
        }
        if self.batch.is_empty() {
            // As early as can be: the next bytes land where the cache still has the last ones.
            self.start_input_over();
        }
        let Some(connection) = self.connections.get_mut(id) else { return Ok((0, false)) };
        let (start, kept) = (self.filled, connection.unparsed.len());
        let end = self.input.len().min(start + kept + READ_BYTES_MIN);
        let area = &mut self.input[start..end];
        let result = read(&mut area[kept..]);
        let (read, room) = (result?, area.len() - kept);
        area[..kept].copy_from_slice(&connection.unparsed);
        if kept > 0 {
            // A connection between requests holds no memory for them.
            connection.unparsed = Vec::new();
        }
        let end = start + kept + read;
        self.filled = end;
        self.parse(id, Source::Area, start, end);
        Ok((read, read == room))
    }

    /// Whether the client has to read before its requests run.
    pub fn awaits_reader(&self, id: usize) -> bool {
        self.connections.get(id).is_some_and(|connection| {
            let is_behind =
                connection.session.rest.is_some() || connection.reply.len() > self.limits.output_pause_bytes;
            is_behind && !connection.session.close_after_replies
        })
    }

    /// Whether the backlog of the connection takes more.
    pub fn has_backlog_room(&self, id: usize) -> bool {
        self.connections.get(id).is_some_and(|connection| connection.backlog.bytes() < self.limits.backlog_bytes_max)
    }

    /// [`receive`](Self::receive) of a connection whose client has to read first: the bytes are kept in its backlog.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn receive_behind<E>(
        &mut self,
        id: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(usize, bool), E> {
        self.connections.get_mut(id).map_or(Ok((0, false)), |connection| connection.backlog.receive(read))
    }

    /// Whether all that was received of the connection has run, and all is answered.
    pub fn is_answered(&self, id: usize) -> bool {
        self.connections.get(id).is_none_or(|connection| {
            let is_kept = !connection.backlog.is_empty() || connection.refused_bytes.is_some();
            let has_run = connection.waiting.is_empty() && !is_kept && !connection.paused;
            has_run && !connection.session.is_busy() && connection.reply.is_empty()
        })
    }

    /// Whether requests have come that are not run because of unsent output.
    pub fn is_paused(&self, id: usize) -> bool {
        self.connections.get(id).is_some_and(|connection| connection.paused || !connection.backlog.is_empty())
    }

    /// Goes on with the requests of a paused connection.
    pub fn resume(&mut self, id: usize) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.paused = false;
            match connection.waiting.is_empty() {
                true => self.parse_own(id),
                false => self.run_waiting_of(id),
            }
            self.parse_backlog(id);
        }
    }

    /// Parses a chunk of the connection's backlog, unless it has to wait again.
    fn parse_backlog(&mut self, id: usize) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.paused || !connection.waiting.is_empty() || connection.session.is_busy() {
            return;
        }
        let Some(chunk) = connection.backlog.take() else { return };
        match connection.unparsed.is_empty() {
            true => connection.unparsed = chunk,
            false => connection.unparsed.extend_from_slice(&chunk),
        }
        self.parse_own(id);
    }

    /// Parses what the connection holds in a buffer of its own.
    fn parse_own(&mut self, id: usize) {
        let unparsed = std::mem::take(&mut self.connections[id].unparsed);
        let end = unparsed.len();
        self.own_inputs.push(unparsed);
        self.parse(id, Source::Own(self.own_inputs.len() as u32 - 1), 0, end);
    }

    /// Parses requests from the input and queues them for the batch; a full batch runs at once.
    fn parse(&mut self, id: usize, source: Source, mut at: usize, end: usize) {
        let (mut begun_ns, mut is_late) = (None, false);
        self.answer_refused(id);
        while at < end {
            let Some(connection) = self.connections.get_mut(id) else { return };
            connection.paused |= is_late || connection.reply.len() > self.limits.output_pause_bytes;
            let is_stopped = connection.paused
                || connection.refused_bytes.is_some()
                || !connection.waiting.is_empty()
                || connection.session.close_after_replies
                || connection.session.is_busy();
            let input = match source {
                Source::Area => &self.input[at..end],
                Source::Own(index) => &self.own_inputs[index as usize][at..end],
            };
            if is_stopped {
                connection.unparsed.extend_from_slice(input);
                return;
            }
            let (parsed, stop) = match connection.dialect {
                Dialect::Resp(_) => self.fill_batch(id, source, at, end),
                Dialect::Memcached(_) => self.fill_from_memcached(id, source, at, end),
            };
            at = parsed;
            match stop {
                FillStop::Full => {
                    self.run_batch_keeping_input();
                    let now_ns = self.stats.now();
                    is_late = now_ns.saturating_sub(*begun_ns.get_or_insert(now_ns)) > self.batch_ns;
                }
                FillStop::Incomplete => return,
                FillStop::Dropped(bytes) => {
                    self.run_batch_keeping_input();
                    if let Some(connection) = self.connections.get_mut(id) {
                        connection.refused_bytes = Some(bytes);
                    }
                    self.answer_refused(id);
                }
                FillStop::Refused(error) => return self.refuse(id, source, at, end, &error),
            }
        }
    }

    /// Parses requests from the input until the batch is full or no request is complete; for each it finds the row and hashes
    /// the key. Gives where it stopped, and why.
    fn fill_batch(&mut self, id: usize, source: Source, mut at: usize, end: usize) -> (usize, FillStop) {
        let connection = &mut self.connections[id];
        let Dialect::Resp(parser) = &mut connection.dialect else { return (at, FillStop::Incomplete) };
        let all = match source {
            Source::Area => &*self.input,
            Source::Own(index) => &self.own_inputs[index as usize],
        };
        // Before login requests run one by one: the limits of the next depend on whether this one logs in.
        let (limits, room) = match connection.session.authenticated {
            true => (&self.limits.after_login, BATCH_LEN),
            false => (&self.limits.before_login, self.batch.len() + 1),
        };
        let space = self.shared.store.spaces.get(connection.session.db);
        while at < end {
            let input = &all[at..end];
            let first_span = self.arguments.len();
            let known = self.openings.like(input);
            let like = parser.parse_like(&known.opening, input, limits, &mut self.arguments);
            let (consumed, known) = match like {
                Some(consumed) => (consumed, known.row),
                None => match parser.parse(input, limits, &mut self.arguments) {
                    Ok(Progress::Complete { consumed }) => (consumed, None),
                    Ok(Progress::Empty { consumed }) => {
                        at += consumed;
                        continue;
                    }
                    Ok(Progress::Dropped { consumed, bytes }) => return (at + consumed, FillStop::Dropped(bytes)),
                    Ok(Progress::Incomplete { keep }) => {
                        return self.keep_unparsed(id, source, at..at + keep, end);
                    }
                    Err(error) => return (at, FillStop::Refused(error)),
                },
            };
            let spans = &self.arguments.spans()[first_span..];
            let row = match known {
                Some(row) => Some(row),
                None => look_up(&self.shared.table, &mut self.openings, input, spans, self.arguments.large()),
            };
            let args = Args::new(input, spans, self.arguments.large());
            let mut place = None;
            if let (Some(row), Some(space)) = (&row, space)
                && row.first_key > 0
                && let Some(bytes) = args.bytes(usize::from(row.first_key))
            {
                place = Some(place_of(&self.shared.store, space, bytes));
            }
            let span_count = spans.len() as u32;
            self.has_runs |= is_same_key(self.places.last(), &place);
            self.places.push(place);
            if self.places.len().is_multiple_of(STEP_LEN) {
                self.ahead.parsed(&self.shared.store, &self.places);
            }
            self.batch.push(Pending { connection: id, input: source, start: at, first_span, span_count, row });
            at += consumed;
            if self.batch.len() >= room {
                return (at, FillStop::Full);
            }
        }
        (at, FillStop::Incomplete)
    }

    /// Keeps the beginning of a request that is not complete; when it is too long, the connection closes.
    #[cold]
    fn keep_unparsed(&mut self, id: usize, source: Source, kept: Range<usize>, end: usize) -> (usize, FillStop) {
        let connection = &mut self.connections[id];
        connection.unparsed.extend_from_slice(match source {
            Source::Area => &self.input[kept],
            Source::Own(index) => &self.own_inputs[index as usize][kept],
        });
        if connection.unparsed.len() > self.limits.query_bytes_max {
            connection.session.close_after_replies = true;
            if let Some(clients) = self.shared.host.find::<command::clients::Clients>() {
                clients.count_query_limited();
            }
            let why = format!("its request has {} bytes and is not complete", connection.unparsed.len());
            log_closing(&connection.session.info, &why, "client-query-buffer-limit");
            self.list(id);
        }
        (end, FillStop::Incomplete)
    }

    /// Answers a request of which an argument was too long to be kept, once all before it are answered.
    fn answer_refused(&mut self, id: usize) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(bytes) = connection.refused_bytes else { return };
        if connection.paused || !connection.waiting.is_empty() || connection.session.is_busy() {
            return;
        }
        connection.refused_bytes = None;
        let text = format!(
            "OOM command not allowed: its argument of {bytes} bytes is more than clients may hold now \
             (see maxmemory and maxmemory-clients)"
        );
        let mark = connection.reply.mark();
        command::gate::refuse_unkept(&mut connection.session, &self.stats, text.as_bytes(), &mut connection.reply);
        if !connection.session.reply_wanted() {
            connection.reply.rewind(mark);
        }
        self.list(id);
    }

    /// The framing is lost: earlier requests run, the error is answered, and the connection closes. While an earlier request
    /// waits, the input is kept, to be refused after it.
    #[cold]
    fn refuse(&mut self, id: usize, source: Source, at: usize, end: usize, error: &ProtocolError) {
        self.run_batch_keeping_input();
        let Some(connection) = self.connections.get_mut(id) else { return };
        if !connection.waiting.is_empty() || connection.session.is_busy() {
            connection.unparsed.extend_from_slice(match source {
                Source::Area => &self.input[at..end],
                Source::Own(index) => &self.own_inputs[index as usize][at..end],
            });
            return;
        }
        if !matches!(error, ProtocolError::CrossProtocol) {
            let text = format!("ERR {}", String::from_utf8_lossy(&error.message()));
            self.stats.count_error(text.as_bytes());
            connection.reply.error(text);
        }
        connection.session.close_after_replies = true;
        self.list(id);
    }

    /// Runs the batch and starts the input area over. Called when every input byte is parsed or copied away.
    pub fn run_batch(&mut self) {
        self.run_batch_keeping_input();
        self.start_input_over();
    }

    /// Whether the log puts off a sync until this worker's [`end_turn`](Self::end_turn).
    pub fn puts_off_sync(&mut self) -> bool {
        self.shared.store.log_of(&mut self.scratch).is_some_and(|log| log.puts_off_sync(self.worker))
    }

    /// Tells the log that this worker appends nothing more for a while.
    pub fn end_turn(&mut self) {
        if let Some(log) = self.shared.store.log_of(&mut self.scratch) {
            log.end_turn(self.worker);
        }
    }

    fn start_input_over(&mut self) {
        self.filled = 0;
        self.own_inputs.clear();
    }

    /// Has the elements loaded that requests in a row name of one collection.
    #[inline(never)]
    fn load_elements(&self) {
        let mut first = 0;
        for run in self.places.chunk_by(|one, next| is_same_key(Some(one), next)) {
            if let (Some(place), LOADED_MIN..) = (&run[0], run.len()) {
                self.load_elements_of(place, &self.batch[first..first + run.len()]);
            }
            first += run.len();
        }
    }

    fn load_elements_of(&self, place: &Place, run: &[Pending]) {
        let mut requests: [[&[u8]; 2]; BATCH_LEN] = [[&[]; 2]; BATCH_LEN];
        let (mut key, mut is_edit) = (None, false);
        for (request, pending) in requests.iter_mut().zip(run) {
            let args = pending.args(&self.input, &self.own_inputs, &self.arguments);
            let Some(row) = pending.row.as_ref().filter(|row| names_elements(row)) else { return };
            let first_key = usize::from(row.first_key);
            *request = [1, 2].map(|behind| args.bytes(first_key + behind).unwrap_or_default());
            key = key.or(args.bytes(first_key));
            is_edit |= row.writes != WriteClass::Nothing;
        }
        if let Some(bytes) = key {
            let key = Key { space: place.space, bytes, slot: place.slot, hash: place.hash };
            self.shared.store.load_elements(place.shard, &key, &requests[..run.len()], is_edit);
        }
    }

    fn run_batch_keeping_input(&mut self) {
        self.ahead.begin(&self.shared.store, &self.places);
        if std::mem::take(&mut self.has_runs) {
            self.load_elements();
        }
        let batch = std::mem::take(&mut self.batch);
        let mut turn = Turn::new(self.worker, &self.shared, &self.stats, &self.limits, &mut self.scratch, self.now);
        let begun_ns = turn.so_far_ns();
        for (at, pending) in batch.iter().enumerate() {
            if at % STEP_LEN == 0 {
                self.ahead.step(&self.shared.store, &self.places, at);
            }
            // What earlier requests have published stands behind their replies, and before what they lead others to ask for.
            if self.shared.outlets.has_any(self.worker) {
                let output = (&mut self.connections, &mut self.to_send, &self.limits);
                deliver(self.worker, &self.shared, &mut self.deliveries, output);
            }
            let Some(connection) = self.connections.get_mut(pending.connection) else { continue };
            // After QUIT, and after another client's KILL has been answered, nothing more of a connection runs.
            if connection.session.close_after_replies || connection.session.info.is_killed() {
                continue;
            }
            connection.session.info.commands.add(1);
            if !connection.listed
                && let Some(memory) = self.spare_replies.pop()
            {
                connection.reply.adopt(memory);
            }
            let args = pending.args(&self.input, &self.own_inputs, &self.arguments);
            if !connection.waiting.is_empty() || connection.session.is_busy() {
                connection.waiting.push_back(Waiting { row: pending.row, args: args.to_owned() });
            } else if connection.reply.len() > self.limits.output_pause_bytes
                || turn.so_far_ns().saturating_sub(begun_ns) > self.batch_ns
            {
                connection.paused = true;
                connection.waiting.push_back(Waiting { row: pending.row, args: args.to_owned() });
            } else if let Err(blocked) = turn.run(
                &mut self.scratch,
                connection,
                pending.row.as_ref(),
                &args,
                self.ahead.led_to(&self.places, at),
            ) {
                connection.waiting.push_back(Waiting { row: pending.row, args: args.to_owned() });
                match blocked {
                    store::Blocked::Log => self.waiting_for_room.push(pending.connection),
                    store::Blocked::Memory => {
                        self.awaits_memory = true;
                        self.waiting_for_room.push(pending.connection);
                    }
                    _ if connection.session.is_preparing() => self.preparing.push_back(pending.connection),
                    store::Blocked::Fetch => {
                        self.fetching.lack(pending.connection, self.scratch.take_wants());
                    }
                    _ => self.waiting.push(pending.connection),
                }
            } else if let Some(block) = &mut connection.session.block {
                block.count_from(self.now, &*self.shared.store.clock);
                self.blocked.insert(pending.connection, block);
            }
            if !connection.listed {
                connection.listed = true;
                self.to_send.push(pending.connection);
            }
        }
        if self.fetching.has_lacking() {
            self.park_for_rows();
        }
        self.deliver();
        self.stats.commands_processed.add(batch.len() as u64);
        self.stats.keyspace_hits.add(std::mem::take(&mut self.scratch.hits));
        self.shared.store.compression.count_decompressed(&mut self.scratch);
        self.stats.keyspace_misses.add(std::mem::take(&mut self.scratch.misses));
        self.batch = batch;
        self.batch.clear();
        self.places.clear();
        self.ahead.clear();
        self.arguments.take_large().for_each(reaper::free_bytes);
        self.arguments.clear();
    }

    /// Writes the next piece of the connection's long reply, if it has one of which little is unsent. True while there is
    /// more; after the last piece the connection goes on as one that was paused.
    pub fn write_piece(&mut self, id: usize) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return false };
        let Connection { session, reply, .. } = connection;
        let Some(rest) = &mut session.rest else { return false };
        if reply.len() >= PIECE_BYTES {
            return true;
        }
        let begun_ns = self.stats.now();
        loop {
            match catch_unwind(AssertUnwindSafe(|| rest.write_piece(reply))) {
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

    /// Ends waits of commands whose time has come, or for which the log or somebody's work has come far enough. Their
    /// connections go on.
    pub fn end_blocks(&mut self) {
        let Self { shared, scratch, blocked, now, .. } = &mut *self;
        for id in blocked.take_due(*now, || shared.store.log_of(scratch).map(RecordSink::durable)) {
            self.end_block(id);
        }
    }

    /// Looks whether the wait of a connection, or what it prepares, has been ended by somebody else, and then lets it go on.
    pub fn end_wait(&mut self, id: usize) {
        self.end_preparation(id);
        if let Some(block) = self.connections.get(id).and_then(|connection| connection.session.block.as_ref()) {
            self.blocked.remove(id, block);
            self.end_block(id);
        }
    }

    /// Ends the wait of one connection, which is in nobody's list, with its reply; unless it goes on.
    fn end_block(&mut self, id: usize) {
        let durable = self.durable();
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(block) = connection.session.block.take() else { return };
        let is_late = block.until.is_some_and(|until| until <= self.now);
        let is_over = is_late || block.what.is_over(durable);
        let Some(end) = connection.session.info.wait.end(block.number, is_over) else {
            self.blocked.insert(id, &block);
            connection.session.block = Some(block);
            return;
        };
        let mark = connection.reply.mark();
        let error = match (end, &block.what) {
            (WaitEnd::Served, Awaited::Keys(command)) => {
                let answer = command.take_answer();
                connection.session.last_write = answer.wrote.unwrap_or(connection.session.last_write);
                if let Some(lsn) = answer.hold.filter(|_| !block.is_silent) {
                    connection.held.hold(connection.reply.len_before(mark), lsn);
                }
                connection.reply.append(answer.reply);
                answer.error.map(Cow::Owned)
            }
            (WaitEnd::Unblocked(Unblock::Error), _) => {
                connection.reply.error(UNBLOCKED);
                Some(Cow::Borrowed(UNBLOCKED.as_bytes()))
            }
            _ => block.what.answer(durable, &mut connection.reply).map(|text| match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            }),
        };
        if let Some(error) = &error {
            self.stats.count_error(error);
        }
        if let Some(call) = &block.call {
            let reply_bytes = connection.reply.len() - connection.reply.len_before(mark);
            account(call, &connection.session, (&self.shared, &self.stats, self.now), error.is_some(), reply_bytes);
        }
        if block.is_silent {
            connection.reply.rewind(mark);
        }
        if let (Awaited::Keys(command), true) = (&block.what, end != WaitEnd::Served) {
            self.shared.store.forget_waiter(&**command);
        }
        connection.go_on_behind();
        self.run_waiting_of(id);
    }

    /// Whether a command of the connection waits.
    pub fn is_blocked(&self, id: usize) -> bool {
        self.connections.get(id).is_some_and(|connection| connection.session.block.is_some())
    }

    /// Milliseconds until a wait is over for its time; `None` when none is limited.
    pub fn ms_to_next_end(&self) -> Option<u64> {
        self.blocked.ms_to_next_end(self.now)
    }

    /// Whether a command waits for the log; then, how far it was durable when that was last looked at.
    pub fn awaits_log(&self) -> Option<Option<Lsn>> {
        self.blocked.awaits_log()
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

/// Counts a call whose wait has ended, as others are counted when they are done.
#[cold]
fn account(
    call: &WaitingCall,
    session: &Session,
    (shared, stats, now): (&Shared, &WorkerStats, UnixMs),
    has_failed: bool,
    reply_bytes: usize,
) {
    if let Some(command) = stats.command(call.index) {
        command.record(call.duration_ns);
        command.failed.add(u64::from(has_failed));
    }
    let (args, duration_ns) = (call.args.as_args(), call.duration_ns);
    let request_bytes = args.total_bytes();
    let Some(space) = shared.store.spaces.get(session.db) else { return };
    if shared.log.wants(stats, duration_ns, request_bytes, reply_bytes) {
        shared.log.look(&Done {
            spec: call.spec,
            args,
            session,
            stats,
            hashed: None,
            hash: &|bytes| shared.store.key(space, bytes),
            now,
            duration_ns,
            request_bytes,
            reply_bytes,
        });
    }
}

/// Delivers what has come for the connections of a worker: all, or as much as one step may.
#[cold]
fn deliver(
    worker: usize,
    shared: &Shared,
    deliveries: &mut Vec<Delivery>,
    (connections, to_send, limits): (&mut Slab<Connection>, &mut Vec<usize>, &ClientLimits),
) {
    shared.outlets.take(worker, DELIVERED_BYTES_MAX, deliveries);
    let redirection_is_broken = |client| shared.host.part::<Arc<Tracking>>().redirection_is_broken(client, worker);
    Receivers { connections, to_send, limits, redirection_is_broken: &redirection_is_broken }.deliver(deliveries);
}
