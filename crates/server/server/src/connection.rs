//! A client connection as the executor sees it: no socket, only bytes in and replies out.

use crate::backlog::Backlog;
use crate::client_memory::Charge;
use crate::dialect::{Dialect, Language};
use crate::held_output::HeldOutput;
use crate::strangers::Stranger;
use crate::tls_socket::TlsSocket;
use base::{Lsn, UnixMs};
use command::args::OwnedArgs;
use command::blocking::Block;
use command::clients::{Activity, Held};
use command::work::reply::ReplyRest;
use command::work::steps::PendingWork;
use command::{Row, Session};
use parking_lot::Mutex;
use proto::ReplyBuffer;
use std::collections::VecDeque;
use std::sync::Arc;

/// Stops for absent leaves after which a request reads further ones at once.
const LEAF_STOPS_MAX: u32 = 16;

/// One client connection.
pub struct Connection {
    /// What the client has said about itself.
    pub session: Session,
    /// The language that the client speaks, and where parsing stands inside a request that has not arrived completely.
    pub dialect: Dialect,
    /// The bytes of that request so far, less a big argument that the parser receives into a buffer of its own.
    pub unparsed: Vec<u8>,
    /// The length of an argument that was not kept, of the request after those: it is to be refused.
    pub refused_bytes: Option<usize>,
    /// What the client has sent after that, received while its replies are unsent.
    pub backlog: Backlog,
    /// Replies not yet sent.
    pub reply: ReplyBuffer,
    /// What of them waits for the log.
    pub held: HeldOutput,
    /// Listed among the connections whose output waits for the log.
    pub awaits_log: bool,
    /// Requests that wait for a lock or a fetch, the first of them being what is waited for, or, when paused, for
    /// output to be sent or for the next turn. While there are any, nothing more is parsed.
    pub waiting: VecDeque<Waiting>,
    /// `waiting` or `unparsed` may hold whole requests that were not run because too much output was unsent, or because
    /// those before had taken long.
    pub paused: bool,
    /// Listed for sending in this turn of the loop.
    pub listed: bool,
    /// The statistics' index of the last request that named a command.
    pub last_command: u32,
    /// How many requests the client had sent when one was stopped by an absent leaf, and how often it was since.
    pub leaf_stops: (u64, u32),
    /// Counted among the connections that MONITOR shows everything.
    pub watching: bool,
    /// Its unsent output was too long for a message, which was dropped: the connection must be closed.
    pub is_overrun: bool,
    /// Messages that came while a reply was being written, and follow it.
    behind: Option<Box<Behind>>,
    /// Since when more is unsent than the soft limit allows.
    pub slow_since: Option<UnixMs>,
    /// Since when the client has read nothing although the server receives nothing more of it before it does, and the
    /// bytes sent to it until then.
    pub stuck_since: Option<(UnixMs, u64)>,
    /// What it is charged with among all clients.
    pub charge: Charge,
    /// Held while it has not logged in.
    pub stranger: Option<Arc<Stranger>>,
    /// Its state of TLS, for a worker that it is lent to.
    pub(crate) tls: Option<Arc<Mutex<TlsSocket>>>,
    /// Another worker serves it for a while.
    pub(crate) is_lent: bool,
}

/// A request that waits.
pub struct Waiting {
    /// What it asks for; `None` when something is wrong with it.
    pub row: Option<Row>,
    /// Its arguments.
    pub args: OwnedArgs,
}

/// Messages that follow a reply.
struct Behind {
    output: ReplyBuffer,
    /// It waits until the log is durable up to here.
    hold: Lsn,
}

impl Connection {
    /// A connection in RESP that has sent nothing yet.
    pub fn new(session: Session) -> Self {
        Self::speaking(Dialect::new(Language::Resp), session)
    }

    /// A connection that has sent nothing yet.
    pub fn speaking(dialect: Dialect, session: Session) -> Self {
        Self {
            reply: dialect.reply_buffer(),
            held: HeldOutput::default(),
            awaits_log: false,
            session,
            dialect,
            unparsed: Vec::new(),
            refused_bytes: None,
            backlog: Backlog::default(),
            waiting: VecDeque::new(),
            paused: false,
            listed: false,
            last_command: u32::MAX,
            leaf_stops: (0, 0),
            watching: false,
            is_overrun: false,
            behind: None,
            slow_since: None,
            stuck_since: None,
            charge: Charge::default(),
            stranger: None,
            tls: None,
            is_lent: false,
        }
    }

    /// An absent leaf stops a request. Whether it was stopped so often that the rest is to be
    /// read at once.
    #[cold]
    pub(crate) fn stops_too_often(&mut self) -> bool {
        let sent = self.session.info.commands.get();
        let (of, stops) = self.leaf_stops;
        let stops = if of == sent { stops + 1 } else { 1 };
        let is_often = stops > LEAF_STOPS_MAX;
        self.leaf_stops = (sent, if is_often { 0 } else { stops });
        is_often
    }

    /// Whether another worker may serve it for a while: none of its commands waits, and none prepares anything.
    pub(crate) fn is_lendable(&self) -> bool {
        self.session.block.is_none() && self.session.pending.is_none()
    }

    /// It goes to another worker: it is in none of the lists of this one, and what waits is tried again there.
    pub(crate) fn leave(&mut self) {
        (self.listed, self.awaits_log) = (false, false);
        self.paused |= !self.waiting.is_empty() || !self.unparsed.is_empty();
    }

    /// Whether another worker may take it: nothing of it runs or waits, and no message is on its way to it.
    pub fn is_movable(&self) -> bool {
        let session = &self.session;
        let receives = session.subscriptions.is_some() || session.tracking.is_some() || session.monitor;
        let waits = session.is_busy() || session.pending.is_some() || session.held_until.is_some();
        !(receives || waits || self.paused || session.close_after_replies || self.watching)
            && self.waiting.is_empty()
            && self.backlog.is_empty()
            && self.refused_bytes.is_none()
            && self.behind.is_none()
    }

    /// Publishes the connection's state; once a turn, before the first byte of the turn's replies is sent, so that a
    /// reader of a reply finds the state that follows from it.
    #[inline]
    pub fn publish(&self, now: UnixMs) {
        self.session.publish(&Activity {
            now,
            command: self.last_command,
            protocol: self.reply.protocol(),
            input_bytes: self.unparsed.len() + self.backlog.bytes(),
            unsent_bytes: self.reply.len(),
            reply_buffer_bytes: self.reply.held_bytes(),
        });
    }

    /// Bytes held for the client beyond the connection itself.
    pub fn held(&self) -> Held {
        let receiving_bytes = self.dialect.large_bulk_bytes();
        let waiting: usize = self.waiting.iter().map(|waiting| waiting.args.held_bytes()).sum();
        Held {
            input_bytes: self.unparsed.capacity() + self.backlog.held_bytes() + waiting + self.dialect.held_bytes()
                - receiving_bytes,
            receiving_bytes,
            queued_bytes: self.session.transaction.as_ref().map_or(0, |transaction| transaction.bytes)
                + self.session.watch.bytes
                + self.session.block.as_ref().map_or(0, Block::held_bytes),
            subscription_bytes: self.session.subscriptions.as_ref().map_or(0, |all| all.held_bytes()),
            unsent_bytes: self.reply.len(),
            reply_buffer_bytes: self.reply.held_bytes()
                + self.held.held_bytes()
                + self.behind.as_ref().map_or(0, |behind| behind.output.held_bytes())
                + self.session.rest.as_ref().map_or(0, ReplyRest::held_bytes)
                + self.session.pending.as_ref().map_or(0, PendingWork::held_bytes),
        }
    }

    /// Bytes that wait to be sent.
    pub fn unsent_bytes(&self) -> usize {
        self.reply.len() + self.behind.as_ref().map_or(0, |behind| behind.output.len())
    }

    /// Has `write` append a message to the output, which is sent when the log is durable up to `hold`. The message
    /// follows a long reply that is being written, and the reply of a wait that has ended: that reply may show what the
    /// message is about.
    pub fn give(&mut self, hold: Lsn, write: impl FnOnce(&mut Self)) {
        if self.session.rest.is_none() && !self.session.awaits_answer() {
            if hold > Lsn(0) {
                self.held.hold(self.reply.len(), hold);
            }
            return write(self);
        }
        let new = || Box::new(Behind { output: ReplyBuffer::new(self.reply.protocol()), hold: Lsn(0) });
        let mut behind = self.behind.take().unwrap_or_else(new);
        behind.hold = behind.hold.max(hold);
        std::mem::swap(&mut self.reply, &mut behind.output);
        write(self);
        std::mem::swap(&mut self.reply, &mut behind.output);
        self.behind = Some(behind);
    }

    /// The reply is written: the messages that waited for it follow.
    pub fn go_on_behind(&mut self) {
        if let Some(behind) = self.behind.take() {
            let Behind { output, hold } = *behind;
            self.give(hold, |connection| connection.reply.append(output));
        }
    }

    /// The first bytes of the output were sent.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        self.reply.advance(count);
        self.held.advance(count);
    }
}
