//! A worker: a thread with an event loop and its connections.
//!
//! ```text
//! wait -> read each ready connection once -> run batches -> send each reply buffer once -> upkeep -> wait
//! ```
//!
//! W1. mio is edge-triggered: a connection is readable until a read comes up short, and writable until a write does.
//!     One that may have more to give is on the worker's own ready list.
//! W2. Replies are sent after all ready connections were read and run: one send per connection and turn.
//! W3. Requests of a connection with much unsent output do not run: back-pressure in place of growth. The limit depends
//!     on what all clients hold ([`ClientMemory`]). What the client sends meanwhile is received up to a limit
//!     ([`Backlog`](crate::backlog::Backlog)), since it may read nothing before it has sent all. Above that limit, a
//!     client that reads nothing for a minute is closed.
//! W4. While replies wait for the log, turns follow each other without a wait as long as clients have sent more. The
//!     log syncs after the last of them: one sync for all requests that arrived meanwhile, for at most 2 ms. When no
//!     client sends while a sync runs, the next sync is put off until the replies that this one releases are sent. Else
//!     two halves of the clients would alternate, with twice as many syncs.
//! W5. No client keeps the worker long. A turn ends early when it has lasted long or has produced much output. A reply
//!     is sent in pieces, and a long one of a collection is also written in pieces (`command::work::reply`).
//! W6. A TLS handshake takes a tenth of a millisecond to some milliseconds of processor time. Handshakes have a list
//!     and a time of their own in each turn, so that a storm of new connections delays the requests of others by one
//!     handshake a turn.
//! W7. Before a sleep it polls for events for a while when its waits are short ([`HaltPoll`]).

mod attending;

use self::attending::Ward;
use crate::certificate_login;
use crate::client_memory::{Charge, ClientMemory};
use crate::closing::log_closing;
use crate::connection::Connection;
use crate::desk::Desk;
use crate::dialect::Dialect;
use crate::executor::{Executor, Flow, Shared};
use crate::halt_poll::HaltPoll;
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::socket::Socket;
use crate::tls_socket::Handshake;
use crate::turn_clock::TurnClock;
use crate::upkeep::Upkeep;
use admin::WorkerFigures;
use base::rate::OncePerSecond;
use base::{Lsn, UnixMs};
use command::stats::WorkerStats;
use mio::{Events, Interest, Poll, Token};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// Token of the mailbox; connections count up from 0.
const MAILBOX: Token = Token(usize::MAX);

/// Longest wait: upkeep runs at least this often.
const TURN_MAX: Duration = Duration::from_millis(50);

/// The same of the attendant while it has no connection.
const ATTENDANT_TURN_MAX: Duration = Duration::from_millis(500);

/// Shortest wait for the next round of upkeep, so that it is due when the wait is over.
const ROUND_WAIT_MIN: Duration = Duration::from_millis(1);

/// Longest wait while a request waits for a lock or a delay: the wake-up usually comes earlier.
const WAITING_TURN_MAX: Duration = Duration::from_millis(1);

/// Time between two looks at which connections have overstayed.
const INSPECTION_MS: i64 = 500;

/// The directive that limits what clients leave unread.
const OUTPUT_LIMIT: &str = "client-output-buffer-limit";

/// Time after which a client is closed that reads nothing although it has to, where its class has no soft limit.
const STUCK_SECONDS: i64 = 60;

/// While replies wait for the log, the longest time for which a sync is put off because clients keep sending. A sync
/// takes tens of microseconds of processor time; with more changes in each, a request's share of it is smaller, and its
/// wait longer. `onggi bench persistence --part mixes` measures what remains.
const GATHERING_NS_MAX: u64 = 2_000_000;

/// Slices given to one writev.
const SLICES_MAX: usize = 64;

/// Output after which a turn reads no further connections.
const TURN_OUTPUT_BYTES_MAX: usize = 4 << 20;

/// Time after which a turn reads no further connections: those are first in the next. Counted from the first that is
/// read, so that some are read however long the rest of the turn has taken.
const READING_NS: u64 = 500_000;

/// Bytes sent to one connection before others have their turn: the kernel takes some tenths of a millisecond to copy
/// them.
const SEND_BYTES_MAX: usize = 512 << 10;

/// Time after which a turn begins no further step of a TLS handshake: at least one is taken.
const HANDSHAKES_NS: u64 = 250_000;

/// Connections that are sent more of a long output in one turn. A piece of a reply takes some tenths of a millisecond.
const TURN_UNFINISHED_MAX: usize = 8;

/// The position that no log reaches.
const BEYOND_ALL: Lsn = Lsn(u64::MAX);

/// The socket side of a connection.
struct Wire {
    socket: Socket,
    readable: bool,
    writable: bool,
    /// The client has closed its side: no event follows this one, so the worker reads until the socket reports the end.
    closed: bool,
    /// All that the client has sent was received. It closes when that is answered.
    ended: bool,
    /// On the ready list, or that of handshakes.
    ready: bool,
}

/// Reads what a socket gives now.
fn read_from(socket: &mut Socket, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.read(room) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The event queue of a worker, and the mailbox that wakes it.
pub type EventQueue = (Poll, Arc<Mailbox<Message>>);

/// One worker, to be run on its own thread.
pub struct Worker {
    number: usize,
    desk: Arc<Desk>,
    /// As the attendant: connections that belong to other workers, by client.
    wards: HashMap<u64, Ward>,
    /// Those that were lent and have closed: client, home, and place there.
    closed_wards: Vec<(u64, usize, usize)>,
    poll: Poll,
    halt_poll: HaltPoll,
    executor: Executor,
    stats: Arc<WorkerStats>,
    /// By connection id.
    wires: Vec<Option<Wire>>,
    /// Connections to read in this turn.
    ready: VecDeque<usize>,
    /// Connections whose TLS handshake is in progress.
    handshakes: VecDeque<usize>,
    mailbox: Arc<Mailbox<Message>>,
    shared: Arc<Shared>,
    figures: Arc<WorkerFigures>,
    upkeep: Upkeep,
    /// What all clients hold.
    memory: Arc<ClientMemory>,
    /// There was more to tidy up in this thread's memory than one turn has time for.
    has_to_tidy: bool,
    /// Connections by the number of their client.
    by_client: HashMap<u64, usize>,
    /// Connections whose replies are kept back for a while.
    held: Vec<usize>,
    /// Connections with output that waits for the log.
    log_held: Vec<usize>,
    /// How far the log was durable when they were last looked at; beyond everything when there is no log.
    durable: Lsn,
    /// Since when a sync is put off for what further turns append.
    gathering_since_ns: Option<u64>,
    /// No client has sent anything since the last turn.
    is_quiet: bool,
    /// Connections that take more than was sent to them in this turn.
    unfinished: Vec<usize>,
    inspected_at: UnixMs,
    /// Lines of the log about them.
    handshake_failures: OncePerSecond,
    clock: TurnClock,
    stopping: bool,
}

impl Worker {
    /// Worker number `number` with its event queue and its share of the shards.
    pub fn new(
        number: usize,
        (poll, mailbox): EventQueue,
        shared: Arc<Shared>,
        figures: Arc<WorkerFigures>,
        memory: Arc<ClientMemory>,
        upkeep: Upkeep,
        desk: Arc<Desk>,
    ) -> Self {
        Self {
            number,
            desk,
            wards: HashMap::new(),
            closed_wards: Vec::new(),
            poll,
            halt_poll: HaltPoll::default(),
            executor: Executor::new(number, shared.clone(), figures.stats.clone()),
            stats: figures.stats.clone(),
            wires: Vec::new(),
            ready: VecDeque::new(),
            handshakes: VecDeque::new(),
            mailbox,
            shared,
            figures,
            upkeep,
            memory,
            has_to_tidy: false,
            by_client: HashMap::new(),
            held: Vec::new(),
            log_held: Vec::new(),
            durable: Lsn(0),
            gathering_since_ns: None,
            is_quiet: false,
            unfinished: Vec::new(),
            inspected_at: 0,
            handshake_failures: OncePerSecond::default(),
            clock: TurnClock::default(),
            stopping: false,
        }
    }

    /// A new event queue and its mailbox.
    ///
    /// # Errors
    /// When the operating system gives none.
    pub fn event_queue() -> io::Result<EventQueue> {
        let poll = Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), MAILBOX)?;
        Ok((poll, Arc::new(Mailbox::new(move || waker.wake()))))
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// When the operating system's event queue fails; connections' errors only close them.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let (mut messages, mut to_send) = (Vec::new(), Vec::new());
        let mut busy = false;
        while !self.stopping {
            let gathers = self.gathers();
            let wait = match () {
                () if gathers => Duration::ZERO,
                () if busy || !self.ready.is_empty() || !self.unfinished.is_empty() => Duration::ZERO,
                () if !self.handshakes.is_empty() => Duration::ZERO,
                () if self.executor.has_work() || self.executor.awaits_memory() => Duration::ZERO,
                () if self.executor.has_fetched() => Duration::ZERO,
                () if self.log_has_advanced() || self.executor.has_deliveries() => Duration::ZERO,
                () if self.upkeep.is_saving() || self.executor.is_retrying() || !self.held.is_empty() => {
                    WAITING_TURN_MAX
                }
                () if self.upkeep.is_compressing() || self.has_to_tidy => WAITING_TURN_MAX,
                () if self.by_client.is_empty() && self.number == self.desk.attendant() => ATTENDANT_TURN_MAX,
                () => {
                    let to_end = self.executor.ms_to_next_end().map_or(TURN_MAX, Duration::from_millis);
                    TURN_MAX.min(to_end).min(self.upkeep.until_next_round().max(ROUND_WAIT_MIN))
                }
            };
            match self.wait(&mut events, wait) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            }
            self.is_quiet = gathers && events.is_empty() && self.ready.is_empty();
            if self.is_quiet {
                continue;
            }
            self.clock.begin(self.stats.now());
            self.has_to_tidy = heap::tidy();
            self.begin_turn();
            for event in &events {
                if event.token() == MAILBOX {
                    continue;
                }
                let id = event.token().0;
                if let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut) {
                    wire.closed |= event.is_read_closed() || event.is_error();
                    wire.readable |= event.is_readable() || wire.closed;
                    if event.is_writable() && !wire.writable {
                        wire.writable = true;
                        self.send(id);
                    }
                    self.make_ready(id);
                    self.close_if_gone(id);
                }
            }
            let is_woken = self.mailbox.take(&mut messages);
            messages.drain(..).for_each(|message| self.handle(message));
            if self.desk.has_returned(self.number) {
                self.take_returned();
            }
            self.executor.deliver();
            self.send_log_held();
            self.executor.end_blocks();
            // Before later requests run, which may hold the connection again.
            std::mem::take(&mut self.held).into_iter().for_each(|id| self.send(id));
            if self.executor.has_waiting() {
                self.executor.run_waiting(is_woken);
            }
            self.executor.step_work();
            self.send_unfinished();
            let has_clients = !self.ready.is_empty() || self.executor.has_waiting();
            self.read_ready();
            self.executor.run_batch();
            // Those whose rows were at hand without I/O.
            self.executor.run_fetched();
            if self.desk.has_returned(self.number) {
                // A script of this turn kept this worker.
                self.take_returned();
            }
            self.executor.take_to_send(&mut to_send);
            self.send_log_held();
            for id in to_send.drain(..) {
                self.send(id);
                self.make_ready(id);
                self.close_if_gone(id);
            }
            self.shake_hands();
            busy = self.upkeep.slice(&mut self.executor, has_clients);
            busy |= self.upkeep.evict(&mut self.executor, has_clients);
            busy |= self.upkeep.save(has_clients);
            busy |= self.upkeep.explain(has_clients);
            busy |= self.upkeep.sweep(&mut self.executor, has_clients);
            busy |= self.upkeep.compress(has_clients);
            busy |= self.upkeep.merge(&self.executor, has_clients);
            if busy && !has_clients {
                // Other threads of this core need not wait for the end of a long burst of upkeep: for example other
                // workers with clients, when there are more workers than cores.
                std::thread::yield_now();
            }
            if !self.wards.is_empty() && !self.desk.is_attending() {
                self.give_new();
            }
            self.count();
            if self.executor.now() - self.inspected_at >= INSPECTION_MS {
                self.inspected_at = self.executor.now();
                self.inspect();
                heap::take_over();
            }
            self.clock.end(self.stats.now(), &self.figures);
        }
        Ok(())
    }

    /// Waits for events, at most for `longest`; polls for a while before it sleeps when waits are short ([`HaltPoll`]).
    fn wait(&mut self, events: &mut Events, longest: Duration) -> io::Result<()> {
        if longest.is_zero() {
            return self.poll.poll(events, Some(longest));
        }
        let (since, window_ns) = (self.stats.now(), self.halt_poll.window_ns());
        let mut waited_ns = 0;
        while waited_ns < window_ns {
            self.poll.poll(events, Some(Duration::ZERO))?;
            waited_ns = self.stats.now().saturating_sub(since);
            if !events.is_empty() {
                break;
            }
            std::thread::yield_now();
        }
        if window_ns == 0 || waited_ns >= window_ns && events.is_empty() {
            self.poll.poll(events, Some(longest))?;
            waited_ns = self.stats.now().saturating_sub(since);
        }
        self.halt_poll.waited(waited_ns);
        Ok(())
    }

    /// Whether a sync of what this worker has appended is put off for what clients have sent meanwhile (W4).
    fn gathers(&mut self) -> bool {
        if !self.executor.puts_off_sync() {
            self.end_gathering();
            return false;
        }
        // A client that waits for a reply sends nothing, as a rule.
        if self.is_quiet || self.log_held.len() >= self.by_client.len() {
            self.gathering_since_ns = None;
            self.executor.wait_for_log();
            return false;
        }
        let now = self.stats.now();
        let since = *self.gathering_since_ns.get_or_insert(now);
        let goes_on = now.saturating_sub(since) < GATHERING_NS_MAX;
        if !goes_on {
            self.end_gathering();
        }
        goes_on
    }

    fn end_gathering(&mut self) {
        self.gathering_since_ns = None;
        self.executor.end_turn();
    }

    /// Looks how far the log is durable, and sends what it has come far enough for.
    fn send_log_held(&mut self) {
        let durable = self.executor.durable().unwrap_or(BEYOND_ALL);
        if std::mem::replace(&mut self.durable, durable) == durable {
            return;
        }
        for id in std::mem::take(&mut self.log_held) {
            if let Some(connection) = self.executor.connection(id) {
                connection.awaits_log = false;
            }
            self.send(id);
            self.make_ready(id);
        }
    }

    /// Sends more to connections that accept more, as many as one turn has time for; the others are first in the next
    /// turn.
    fn send_unfinished(&mut self) {
        let mut unfinished = std::mem::take(&mut self.unfinished);
        let rest = unfinished.split_off(unfinished.len().min(TURN_UNFINISHED_MAX));
        self.unfinished = rest;
        for id in unfinished {
            self.send(id);
            self.make_ready(id);
        }
    }

    /// Has the worker woken when the log comes further, if anything waits for that; true when it has meanwhile.
    fn log_has_advanced(&mut self) -> bool {
        let command = self.executor.awaits_log();
        if self.log_held.is_empty() && command.is_none() {
            return false;
        }
        self.executor.wait_for_log();
        // After it is registered, or an advance in between would wake no worker.
        let durable = self.executor.durable();
        command.is_some_and(|seen| seen != durable)
            || !self.log_held.is_empty() && durable.unwrap_or(BEYOND_ALL) != self.durable
    }

    /// A client that has closed its side while a command of it waits is gone: no read would find that out any more.
    fn close_if_gone(&mut self, id: usize) {
        let is_closed = self.wires.get(id).and_then(Option::as_ref).is_some_and(|wire| wire.closed);
        if is_closed && self.executor.is_blocked(id) {
            self.close(id);
        }
    }

    fn begin_turn(&mut self) {
        self.executor.begin_turn();
        let hard = self.executor.limits().output.hard_bytes;
        let share = self.memory.unsent_bytes_max(self.shared.store.memory.total());
        self.executor.pause_output_above(share.min(hard));
        let data_bytes = self.shared.store.memory.total();
        self.executor.limit_backlogs(self.memory.backlog_bytes_max(data_bytes));
        self.executor.limit_receiving(self.memory.receiving_bytes_max(data_bytes));
        // Also when no charge has changed: searches for clients to close are spaced in time, and one may be due.
        self.evict();
    }

    /// Closes clients if all of them hold too much.
    fn evict(&self) {
        let store = &self.shared.store;
        for client in self.memory.evict(&self.shared.host.clients, store.memory.total(), self.executor.now()) {
            let why = format!("it holds {} bytes, the most of all clients", client.held().total());
            log_closing(&client, &why, "maxmemory-clients");
        }
    }

    fn count(&mut self) {
        let (expired, evicted, changes) = self.executor.take_counts();
        self.figures.expired_keys.add(expired);
        self.figures.evicted_keys.add(evicted);
        self.figures.changes.add(changes);
    }

    /// Closes connections that are silent for too long, never logged in, or do not read their replies; and counts anew
    /// what those hold that hold much, since values they share may have lost their other owners.
    fn inspect(&mut self) {
        let (now, limits) = (self.executor.now(), *self.executor.limits());
        let (mut overstayed, mut charged) = (Vec::new(), Vec::new());
        for (id, connection) in self.executor.connections() {
            let info = &connection.session.info;
            let is_idle = limits.idle_seconds > 0 && info.idle_seconds(now) > limits.idle_seconds;
            let is_stranger = !connection.session.authenticated || info.commands.get() == 0;
            let is_late = limits.login_seconds > 0 && is_stranger && info.age_seconds(now) > limits.login_seconds;
            let soft_seconds = limits.output_of(&connection.session).soft_seconds;
            let is_slow = connection.slow_since.is_some_and(|since| now - since > soft_seconds.saturating_mul(1000));
            if is_slow {
                self.shared.host.clients.count_output_limited();
                log_closing(
                    info,
                    &format!("{} bytes of replies unread for {soft_seconds} s", connection.reply.len()),
                    OUTPUT_LIMIT,
                );
            }
            let awaits = connection.session.block.is_some() || connection.awaits_log || !connection.waiting.is_empty();
            let is_subscriber = connection.session.subscriptions.is_some();
            let may_be_silent = connection.session.monitor || is_subscriber || awaits;
            if is_idle && !may_be_silent || is_late || is_slow {
                overstayed.push(id);
            } else if connection.charge != Charge::default() {
                charged.push(id);
            }
        }
        overstayed.into_iter().for_each(|id| self.close(id));
        self.close_stuck();
        charged.into_iter().for_each(|id| self.charge(id));
    }

    /// Closes clients that have read nothing for long, although nothing more of them is received before they do.
    fn close_stuck(&mut self) {
        let now = self.executor.now();
        let has_unsent = |connection: &Connection| !connection.reply.is_empty() || connection.stuck_since.is_some();
        let ids: Vec<usize> =
            self.executor.connections().filter(|(_, connection)| has_unsent(connection)).map(|(id, _)| id).collect();
        for id in ids {
            // There may be more room for its backlog than when it was last looked at.
            self.make_ready(id);
            if let Some(seconds) = self.stuck_seconds(id, now) {
                let Some(connection) = self.executor.connection(id) else { continue };
                let (unsent, backlog) = (connection.reply.len(), connection.backlog.bytes());
                let what =
                    format!("{unsent} bytes of replies unread for {seconds} s, {backlog} bytes of requests after them");
                log_closing(&connection.session.info, &what, OUTPUT_LIMIT);
                self.shared.host.clients.count_output_limited();
                self.close(id);
            }
        }
    }

    /// If the connection has been stuck for longer than its limit: that limit, in seconds.
    fn stuck_seconds(&mut self, id: usize, now: UnixMs) -> Option<i64> {
        let wire = self.wires.get(id).and_then(Option::as_ref)?;
        let is_refused = wire.readable && self.executor.awaits_reader(id) && !self.executor.has_backlog_room(id);
        let waits_for_client = wire.ended || is_refused;
        let limits = *self.executor.limits();
        let connection = self.executor.connection(id)?;
        let bounds = limits.output_of(&connection.session);
        let seconds = if bounds.soft_bytes == usize::MAX { STUCK_SECONDS } else { bounds.soft_seconds };
        let sent_bytes = connection.session.info.sent_bytes.get();
        let since = connection
            .stuck_since
            .filter(|(_, sent_before)| *sent_before == sent_bytes)
            .map_or(now, |(since, _)| since);
        // A client is not slow for what the log keeps back.
        let is_stuck = waits_for_client && !connection.awaits_log;
        connection.stuck_since = is_stuck.then_some((since, sent_bytes));
        (is_stuck && now.saturating_sub(since) > seconds.saturating_mul(1000)).then_some(seconds)
    }

    /// Lists the connection for reading if it can give something and may.
    fn make_ready(&mut self, id: usize) {
        let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut) else { return };
        let has_more = wire.readable || self.executor.is_paused(id);
        if !has_more || wire.ready {
            return;
        }
        if wire.socket.is_handshaking() {
            wire.ready = true;
            return self.handshakes.push_back(id);
        }
        let runs = self.executor.flow(id) == Flow::Open;
        if runs || wire.readable && self.executor.awaits_reader(id) && self.executor.has_backlog_room(id) {
            wire.ready = true;
            self.ready.push_back(id);
        }
    }

    /// Continues TLS handshakes, those that have waited longest first (W6).
    fn shake_hands(&mut self) {
        let begun_ns = self.stats.now();
        for _ in 0..self.handshakes.len() {
            let Some(id) = self.handshakes.pop_front() else { return };
            self.shake(id);
            if self.stats.now().saturating_sub(begun_ns) >= HANDSHAKES_NS {
                return;
            }
        }
    }

    /// Continues one handshake, as far as its client has sent.
    fn shake(&mut self, id: usize) {
        let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut) else { return };
        wire.ready = false;
        let result = wire.socket.shake();
        wire.writable &= !wire.socket.has_pending();
        match result {
            Ok(Handshake::Done) => {
                self.log_in_by_certificate(id);
                // What has come with its end is in the socket already.
                self.make_ready(id);
                self.send(id);
            }
            Ok(Handshake::Waits) => {
                wire.readable = wire.closed || wire.socket.has_more();
                self.make_ready(id);
            }
            Err(error) => {
                self.note_failed_handshake(id, &error);
                self.close(id);
            }
        }
    }

    /// Logs the client in as the user that its certificate names, if the settings say so.
    fn log_in_by_certificate(&mut self, id: usize) {
        let field = self.shared.host.configuration.current().tls_auth_clients_user;
        let now = self.executor.now();
        if let (Some(Some(wire)), Some(connection)) = (self.wires.get(id), self.executor.connection(id)) {
            certificate_login::log_in(field, &wire.socket, &mut connection.session, &self.shared.host, now);
        }
    }

    fn note_failed_handshake(&mut self, id: usize, error: &io::Error) {
        let Some(others) = self.handshake_failures.pass(self.executor.now()) else { return };
        let Some(connection) = self.executor.connection(id) else { return };
        tracing::debug!(
            "TLS handshake with {} failed: {error} ({others} others failed since the last such line)",
            connection.session.info.address
        );
    }

    /// Reads each listed connection once, as long as there is not too much to send (W5).
    fn read_ready(&mut self) {
        let (mut output, begun_ns) = (0, self.stats.now());
        for _ in 0..self.ready.len() {
            if output > TURN_OUTPUT_BYTES_MAX || self.stats.now().saturating_sub(begun_ns) >= READING_NS {
                return;
            }
            let Some(id) = self.ready.pop_front() else { return };
            self.read(id);
            self.charge(id);
            output += self.output_len(id);
        }
    }

    /// Charges a connection with what it holds now, and closes clients if that is too much.
    fn charge(&mut self, id: usize) {
        let Some(connection) = self.executor.connection(id) else { return };
        let held = connection.held();
        let charge = Charge::of(&held);
        if charge != connection.charge {
            self.memory.change(connection.charge, charge);
            connection.charge = charge;
            connection.session.info.set_held(&held);
            self.evict();
        }
    }

    fn read(&mut self, id: usize) {
        let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut) else { return };
        wire.ready = false;
        if self.executor.flow(id) != Flow::Open || self.output_len(id) > self.executor.limits().output_pause_bytes {
            return self.read_behind(id);
        }
        if self.executor.is_paused(id) {
            self.executor.resume(id);
            return self.make_ready(id);
        }
        let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut) else { return };
        let socket = &mut wire.socket;
        let result = self.executor.receive(id, |room| read_from(socket, room));
        self.has_read(id, result);
    }

    /// Receives what the client sends although it has to read first.
    fn read_behind(&mut self, id: usize) {
        if !self.executor.awaits_reader(id) || !self.executor.has_backlog_room(id) {
            return;
        }
        let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut).filter(|wire| wire.readable) else { return };
        let socket = &mut wire.socket;
        let result = self.executor.receive_behind(id, |room| read_from(socket, room));
        self.has_read(id, result);
    }

    /// Counts what a read gave, and lists the connection again if there may be more.
    fn has_read(&mut self, id: usize, result: io::Result<(usize, bool)>) {
        match result {
            Ok((0, _)) => self.end_input(id),
            Ok((read, filled)) => {
                self.stats.input_bytes.add(read as u64);
                self.stats.reads.add(1);
                if let Some(connection) = self.executor.connection(id) {
                    connection.session.info.received_bytes.add(read as u64);
                }
                if filled || self.wires[id].as_ref().is_some_and(|wire| wire.closed || wire.socket.has_more()) {
                    self.make_ready(id);
                } else if let Some(wire) = &mut self.wires[id] {
                    wire.readable = false;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if let Some(wire) = &mut self.wires[id] {
                    wire.readable = wire.socket.has_more();
                }
                self.make_ready(id);
            }
            Err(_) => return self.close(id),
        }
        // TLS answers some records itself: what the socket did not take goes when it takes more.
        if let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut)
            && wire.socket.has_pending()
        {
            wire.writable = false;
        }
    }

    /// The client sends nothing more. Its connection closes when all that it has sent is answered.
    fn end_input(&mut self, id: usize) {
        if let Some(wire) = &mut self.wires[id] {
            (wire.readable, wire.ended) = (false, true);
        }
        if self.executor.is_answered(id) && !self.has_pending(id) {
            self.close(id);
        }
    }

    /// Whether the socket holds bytes that count as sent.
    fn has_pending(&self, id: usize) -> bool {
        self.wires.get(id).and_then(Option::as_ref).is_some_and(|wire| wire.socket.has_pending())
    }

    fn output_len(&mut self, id: usize) -> usize {
        self.executor.connection(id).map_or(0, |connection| connection.reply.len())
    }

    /// Sends what the socket takes.
    fn send(&mut self, id: usize) {
        let (now, limits) = (self.executor.now(), *self.executor.limits());
        let is_long = self.executor.write_piece(id);
        let (Some(wire), Some(connection)) =
            (self.wires.get_mut(id).and_then(Option::as_mut), self.executor.connection(id))
        else {
            return;
        };
        if wire.socket.has_pending() {
            match wire.socket.send_pending() {
                Ok(all) => wire.writable &= all,
                Err(_) => return self.close(id),
            }
        }
        if wire.socket.is_handshaking() {
            return;
        }
        connection.publish(now);
        if connection.session.authenticated {
            connection.stranger = None;
        }
        if connection.session.is_held(now) {
            return self.held.push(id);
        }
        let unsent = connection.reply.len();
        let sendable = connection.held.sendable(unsent, self.durable);
        let waits_for_log = sendable < unsent;
        if waits_for_log && !connection.awaits_log {
            connection.awaits_log = true;
            self.log_held.push(id);
        }
        let mut sent_bytes = 0;
        while wire.writable && sent_bytes < sendable && sent_bytes < SEND_BYTES_MAX {
            let rest = sendable - sent_bytes;
            let result = match connection.reply.as_contiguous() {
                Some(bytes) => wire.socket.write(&bytes[..rest]),
                None => {
                    let slices: Vec<_> = connection.reply.io_slices_up_to(rest).take(SLICES_MAX).collect();
                    wire.socket.write_vectored(&slices)
                }
            };
            match result {
                Ok(sent) => {
                    connection.advance(sent);
                    sent_bytes += sent;
                    self.stats.output_bytes.add(sent as u64);
                    self.stats.writes.add(1);
                    connection.session.info.sent_bytes.add(sent as u64);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => wire.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.close(id),
            }
        }
        let has_pending = wire.socket.has_pending();
        wire.writable &= !has_pending;
        let takes_more = wire.writable && (sent_bytes < sendable || is_long && !waits_for_log);
        let unsent = connection.reply.len();
        let spare = connection.reply.release();
        // A client is not slow for what the log keeps back.
        let bounds = limits.output_of(&connection.session);
        let is_slow = unsent > bounds.soft_bytes && !waits_for_log;
        connection.slow_since = is_slow.then(|| connection.slow_since.unwrap_or(now));
        let held = connection.held();
        connection.session.info.set_held(&held);
        let (done, has_ended) = (
            connection.session.close_after_replies && unsent == 0 && !is_long && !has_pending,
            wire.ended && !has_pending,
        );
        // A value that the data holds as well costs nothing but its reference, and is no reason to close.
        let is_over = connection.unsent_bytes() > bounds.hard_bytes && held.reply_buffer_bytes > bounds.hard_bytes
            || connection.is_overrun;
        if let Some(memory) = spare {
            self.executor.keep_spare(memory);
        }
        if is_over {
            self.shared.host.clients.count_output_limited();
            if let Some(connection) = self.executor.connection(id) {
                log_closing(&connection.session.info, &format!("{unsent} bytes of replies are unread"), OUTPUT_LIMIT);
            }
        }
        if done || is_over || has_ended && self.executor.is_answered(id) {
            return self.close(id);
        }
        if takes_more && !self.unfinished.contains(&id) {
            self.unfinished.push(id);
        }
        self.charge(id);
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Accept { socket, session, language, stranger } => {
                let dialect = Dialect::new(language).with_keys_up_to(self.executor.limits().key_bytes_max);
                let mut connection = Connection::speaking(dialect, *session);
                connection.stranger = stranger;
                connection.tls = socket.tls();
                let client = connection.session.id;
                self.note_new(client);
                self.accept(socket, Box::new(connection));
            }
            Message::Close(client) => {
                if let Some(id) = self.by_client.get(&client) {
                    self.close(*id);
                }
            }
            Message::EndWait(client) => {
                if let Some(id) = self.by_client.get(&client) {
                    self.executor.end_wait(*id);
                }
            }
            Message::Fetched(fetched) => self.executor.fetched(fetched),
            Message::Show(line) => self.executor.show(&line),
            Message::Attend(busy, lent) => self.attend(busy, lent),
            Message::Leave(worker, left) => {
                let back = self.leave(worker);
                // Without a receiver the server ends.
                let _ = left.send(back);
            }
            // Without a receiver the server ends another way.
            Message::Fence(passed) => _ = passed.send(()),
            Message::Stop => self.stopping = true,
        }
    }

    fn accept(&mut self, mut socket: Socket, connection: Box<Connection>) {
        let client = connection.session.id;
        let id = self.executor.open(connection);
        self.by_client.insert(client, id);
        if self.poll.registry().register(&mut socket, Token(id), Interest::READABLE | Interest::WRITABLE).is_err() {
            return self.close(id);
        }
        if self.wires.len() <= id {
            self.wires.resize_with(id + 1, || None);
        }
        self.wires[id] =
            Some(Wire { socket, readable: true, writable: true, closed: false, ended: false, ready: false });
        self.make_ready(id);
    }

    fn close(&mut self, id: usize) {
        if !self.wards.is_empty()
            && let Some(client) = self.executor.connection(id).map(|connection| connection.session.id)
        {
            self.note_closed(client, id);
        }
        if let Some(mut wire) = self.wires.get_mut(id).and_then(Option::take) {
            // A socket that is gone already needs no deregistration.
            let _ = self.poll.registry().deregister(&mut wire.socket);
            wire.socket.close();
        }
        if let Some(connection) = self.executor.close(id) {
            self.by_client.remove(&connection.session.id);
            self.memory.change(connection.charge, Charge::default());
            self.shared.host.clients.disconnect(connection.session.id);
        }
        self.ready.retain(|other| *other != id);
        self.handshakes.retain(|other| *other != id);
    }
}
