//! The heart of a worker, without sockets: bytes in, commands in batches, replies out.
//!
//! ```text
//! received bytes -> parse -> batch of up to 32 -> hash, prefetch buckets, prefetch entries -> run in order -> replies
//! ```
//!
//! X1. A batch may hold requests of several connections; each connection's requests run in the order they came.
//! X2. Spans of a batch lie in the shared input area, which is reused only when the batch has run.
//! X3. A request that has to wait takes all later requests of its connection with it, as owned copies; other connections
//!     go on.

use crate::connection::Connection;
use base::UnixMs;
use command::call::call;
use command::stats::WorkerStats;
use command::table::Row;
use command::{Args, CommandTable, Ctx, Host, Locks, Stop};
use engine::Key;
use proto::{Arguments, Limits, Progress, ProtocolError};
use slab::Slab;
use std::sync::Arc;
use store::{At, Blocked, LockSet, Scratch, Store};

/// Requests executed together. Larger batches were not faster, since 16 misses in flight keep the memory busy.
const BATCH_LEN: usize = 32;

/// The input area all connections of a worker read into.
const INPUT_BYTES: usize = 256 * 1024;

/// Least room offered to one read.
const READ_BYTES_MIN: usize = 64 * 1024;

/// An unfinished request up to this size is copied to the front of its next read instead of being read on its own.
const UNPARSED_COPIED_BYTES_MAX: usize = 16 * 1024;

/// What all workers share.
pub struct Shared {
    /// The data.
    pub store: Arc<Store>,
    /// All commands.
    pub table: CommandTable,
    /// The server's other parts.
    pub host: Host,
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
    batch: Vec<Pending>,
    /// Inputs of the batch that are not in `input`: unfinished requests that grew big.
    own_inputs: Vec<Vec<u8>>,
    /// Connections with replies to send.
    to_send: Vec<usize>,
    /// Connections with requests waiting for a lock or a fetch.
    waiting: Vec<usize>,
    /// Wall time, read once a turn.
    now: UnixMs,
}

/// A parsed request that has not run.
struct Pending {
    connection: usize,
    input: Source,
    /// Where the request begins in its input.
    start: usize,
    /// Its arguments.
    first_span: usize,
    span_count: usize,
    /// What it asks for, or what is wrong with it.
    row: Result<Row, Stop>,
    /// Hash and slot of its first key, when its place is fixed.
    key: Option<(usize, KeyPlace)>,
}

/// A [`Key`] without its bytes.
#[derive(Clone, Copy)]
struct KeyPlace {
    hash: u64,
    slot: base::SlotId,
    space: base::KeyspaceId,
}

impl KeyPlace {
    fn with<'k>(self, bytes: &'k [u8]) -> Key<'k> {
        Key { bytes, hash: self.hash, slot: self.slot, space: self.space }
    }
}

#[derive(Clone, Copy)]
enum Source {
    /// The worker's input area.
    Area,
    /// One of `own_inputs`.
    Own(usize),
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
        Self {
            worker,
            shared,
            stats,
            scratch: Scratch::default(),
            connections: Slab::new(),
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            filled: 0,
            arguments: Arguments::new(),
            batch: Vec::with_capacity(BATCH_LEN),
            own_inputs: Vec::new(),
            to_send: Vec::new(),
            waiting: Vec::new(),
            now,
        }
    }

    /// Takes a connection.
    pub fn open(&mut self, connection: Connection) -> usize {
        self.connections.insert(connection)
    }

    /// Forgets a connection. Its requests in the running batch are dropped with it.
    pub fn close(&mut self, id: usize) -> Option<Connection> {
        self.batch.retain(|pending| pending.connection != id);
        self.to_send.retain(|other| *other != id);
        self.waiting.retain(|other| *other != id);
        self.connections.try_remove(id)
    }

    /// The connection, if it is open.
    pub fn connection(&mut self, id: usize) -> Option<&mut Connection> {
        self.connections.get_mut(id)
    }

    /// Reads the clock; once a turn of the loop.
    pub fn set_time(&mut self) {
        self.now = self.shared.store.clock.now_ms();
    }

    /// Whether and how the connection goes on.
    pub fn flow(&self, id: usize) -> Flow {
        match self.connections.get(id) {
            None => Flow::Closing,
            Some(connection) if !connection.waiting.is_empty() => Flow::Waiting,
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
        if let Some(mut large) = connection.parser.large_bulk() {
            let missing = large.missing();
            let buffer = large.buffer();
            let (start, room) = (buffer.len(), (buffer.capacity() - buffer.len()).min(missing));
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
            self.run_batch();
        }
        let Some(connection) = self.connections.get_mut(id) else { return Ok((0, false)) };
        let (start, kept) = (self.filled, connection.unparsed.len());
        let area = &mut self.input[start..];
        let result = read(&mut area[kept..]);
        let (read, room) = (result?, area.len() - kept);
        area[..kept].copy_from_slice(&connection.unparsed);
        connection.unparsed.clear();
        let end = start + kept + read;
        self.filled = end;
        self.parse(id, Source::Area, start, end);
        Ok((read, read == room))
    }

    /// Parses what the connection holds in a buffer of its own.
    fn parse_own(&mut self, id: usize) {
        let unparsed = std::mem::take(&mut self.connections[id].unparsed);
        let end = unparsed.len();
        self.own_inputs.push(unparsed);
        self.parse(id, Source::Own(self.own_inputs.len() - 1), 0, end);
    }

    /// Parses requests from the input and queues them for the batch; a full batch runs at once.
    fn parse(&mut self, id: usize, source: Source, mut at: usize, end: usize) {
        while at < end {
            let Some(connection) = self.connections.get_mut(id) else { return };
            let input = match source {
                Source::Area => &self.input[at..end],
                Source::Own(index) => &self.own_inputs[index][at..end],
            };
            if !connection.waiting.is_empty() || connection.session.close_after_replies {
                connection.unparsed.extend_from_slice(input);
                return;
            }
            let limits = if connection.session.authenticated { Limits::DEFAULT } else { Limits::BEFORE_LOGIN };
            let first_span = self.arguments.len();
            match connection.parser.parse(input, &limits, &mut self.arguments) {
                Ok(Progress::Complete { consumed }) => {
                    self.enqueue(id, source, at, first_span);
                    at += consumed;
                    if self.batch.len() == BATCH_LEN {
                        self.run_batch_keeping_input();
                    }
                }
                Ok(Progress::Empty { consumed }) => at += consumed,
                Ok(Progress::Incomplete { keep }) => {
                    connection.unparsed.extend_from_slice(&input[..keep]);
                    return;
                }
                Err(error) => return self.refuse(id, &error),
            }
        }
    }

    /// The framing is lost: earlier requests run, the error is answered, and the connection closes.
    #[cold]
    fn refuse(&mut self, id: usize, error: &ProtocolError) {
        self.run_batch_keeping_input();
        if let Some(connection) = self.connections.get_mut(id) {
            if !matches!(error, ProtocolError::CrossProtocol) {
                connection.reply.error(&format!("ERR {}", String::from_utf8_lossy(&error.message())));
            }
            connection.session.close_after_replies = true;
            self.list(id);
        }
    }

    /// Adds a parsed request to the batch: finds its row, hashes its key, asks for the key's bucket.
    #[inline]
    fn enqueue(&mut self, id: usize, source: Source, start: usize, first_span: usize) {
        let span_count = self.arguments.len() - first_span;
        let args = request(&self.input, &self.own_inputs, &self.arguments, source, start, first_span, span_count);
        let row = self.shared.table.resolve(&args);
        let mut place = None;
        if let Ok(row) = &row
            && row.spec.locks == Locks::Keys
            && let Some(first) = row.spec.first_key()
            && let Some(bytes) = args.bytes(first)
            && let Some(space) = self.shared.store.spaces.get(self.connections[id].session.db)
        {
            let key = self.shared.store.key(space, bytes);
            self.shared.store.prefetch_bucket(&key);
            place = Some((first, KeyPlace { hash: key.hash, slot: key.slot, space }));
        }
        self.batch.push(Pending { connection: id, input: source, start, first_span, span_count, row, key: place });
    }

    /// Runs the batch and starts the input area over. Called when every input byte is parsed or copied away.
    pub fn run_batch(&mut self) {
        self.run_batch_keeping_input();
        self.filled = 0;
        self.own_inputs.clear();
    }

    fn run_batch_keeping_input(&mut self) {
        for pending in &self.batch {
            if let Some((_, place)) = pending.key {
                self.shared.store.prefetch_entry(&place.with(&[]));
            }
        }
        let batch = std::mem::take(&mut self.batch);
        let mut before = self.stats.now();
        for pending in &batch {
            let Some(connection) = self.connections.get_mut(pending.connection) else { continue };
            let args = request(
                &self.input,
                &self.own_inputs,
                &self.arguments,
                pending.input,
                pending.start,
                pending.first_span,
                pending.span_count,
            );
            let turn = Turn { worker: self.worker, shared: &self.shared, stats: &self.stats, now: self.now };
            match &pending.row {
                Err(Stop::Error(text)) => turn.refuse(connection, text),
                Err(Stop::Fetch) => {}
                Ok(row) if !connection.waiting.is_empty() => connection.waiting.push_back((*row, args.to_owned())),
                Ok(row) => {
                    let hashed =
                        pending.key.map(|(index, place)| (index, place.with(args.bytes(index).unwrap_or_default())));
                    if turn.run(&mut self.scratch, connection, row, args, hashed).is_err() {
                        connection.waiting.push_back((*row, args.to_owned()));
                        self.waiting.push(pending.connection);
                    }
                    let after = self.stats.now();
                    if let Some(stats) = self.stats.command(row.index) {
                        stats.record(after.saturating_sub(before));
                    }
                    before = after;
                }
            }
            if !connection.listed {
                connection.listed = true;
                self.to_send.push(pending.connection);
            }
        }
        self.stats.commands_processed.add(batch.len() as u64);
        self.stats.keyspace_hits.add(std::mem::take(&mut self.scratch.hits));
        self.stats.keyspace_misses.add(std::mem::take(&mut self.scratch.misses));
        self.batch = batch;
        self.batch.clear();
        self.arguments.clear();
    }

    /// Tries the waiting requests again, in the order the connections came to wait.
    pub fn run_waiting(&mut self) {
        for id in std::mem::take(&mut self.waiting) {
            self.run_waiting_of(id);
        }
    }

    fn run_waiting_of(&mut self, id: usize) {
        let turn = Turn { worker: self.worker, shared: &self.shared, stats: &self.stats, now: self.now };
        let Some(connection) = self.connections.get_mut(id) else { return };
        while let Some((row, args)) = connection.waiting.pop_front() {
            if turn.run(&mut self.scratch, connection, &row, args.as_args(), None).is_err() {
                connection.waiting.push_front((row, args));
                self.waiting.push(id);
                break;
            }
        }
        let finished = connection.waiting.is_empty();
        self.list(id);
        if finished {
            self.parse_own(id);
            self.run_batch_keeping_input();
        }
    }

    /// Whether any request waits.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
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

/// The arguments of a parsed request.
#[inline]
fn request<'a>(
    area: &'a [u8],
    own_inputs: &'a [Vec<u8>],
    arguments: &'a Arguments,
    source: Source,
    start: usize,
    first_span: usize,
    span_count: usize,
) -> Args<'a> {
    let input = match source {
        Source::Area => &area[start..],
        Source::Own(index) => &own_inputs[index][start..],
    };
    Args::new(input, &arguments.spans()[first_span..first_span + span_count], arguments.large())
}

/// What a request needs of its worker, apart from the connection.
struct Turn<'t> {
    worker: usize,
    shared: &'t Shared,
    stats: &'t WorkerStats,
    now: UnixMs,
}

impl Turn<'_> {
    /// A request that cannot run at all: wrong name, arity or state.
    #[cold]
    fn refuse(&self, connection: &mut Connection, text: &str) {
        if let Some(transaction) = &mut connection.session.transaction {
            transaction.poisoned = true;
        }
        connection.reply.error(text);
        self.stats.error_replies.add(1);
    }

    /// Runs one request: queues it inside MULTI, else takes its locks and calls it.
    ///
    /// # Errors
    /// [`Blocked`]: it changed nothing and is to be run again.
    #[inline]
    fn run(
        &self,
        scratch: &mut Scratch,
        connection: &mut Connection,
        row: &Row,
        args: Args<'_>,
        hashed: Option<(usize, Key<'_>)>,
    ) -> Result<(), Blocked> {
        let Connection { session, reply, .. } = connection;
        if !session.is_plain() && command::gate::stop(session, row, &args, reply) {
            return Ok(());
        }
        let locks = match hashed {
            Some((_, key)) if row.spec.has_one_key() => LockSet::One(self.shared.store.shard_of(&key)),
            _ => self.locks(session, row, &args),
        };
        let at = At { now: self.now, db: session.db, touch: !session.no_touch, worker: self.worker };
        self.shared.store.commit(scratch, &locks, &at, |txn| {
            let mut ctx = Ctx {
                spec: row.spec,
                args,
                reply,
                ks: txn,
                session,
                host: &self.shared.host,
                stats: self.stats,
                hashed,
            };
            call(&mut ctx, row)
        })
    }

    /// The locks of a request with any keys.
    #[cold]
    fn locks(&self, session: &command::Session, row: &Row, args: &Args<'_>) -> LockSet {
        let store = &self.shared.store;
        let mut set = LockSet::None;
        match row.spec.locks {
            Locks::None => {}
            Locks::All => set = LockSet::All,
            Locks::Keys => {
                row.spec.visit_keys(args, |index, _| {
                    let key = args.bytes(index).unwrap_or_default();
                    set.insert(store.shard_of_bytes(key));
                });
            }
            Locks::Cursor(index) => {
                // A cursor that is none is the command's to refuse; until then any shard will do.
                let text = args.bytes(index).and_then(|text| std::str::from_utf8(text).ok());
                set.insert(store.shard_of_cursor(text.and_then(|text| text.parse().ok()).unwrap_or(0)));
            }
            Locks::Queue => {
                for watched in &session.watch.keys {
                    set.insert(store.shard_of_bytes(&watched.key));
                }
                for queued in session.transaction.iter().flat_map(|transaction| &transaction.queue) {
                    match self.locks(session, &queued.row, &queued.args.as_args()) {
                        LockSet::None => {}
                        LockSet::One(shard) => set.insert(shard),
                        LockSet::Several(shards) => shards.into_iter().for_each(|shard| set.insert(shard)),
                        LockSet::All => set = LockSet::All,
                    }
                    if queued.row.spec.locks == Locks::All || matches!(queued.row.spec.locks, Locks::Cursor(_)) {
                        set = LockSet::All;
                    }
                }
            }
        }
        set
    }
}
