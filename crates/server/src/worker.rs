//! A worker: a thread with an event loop and its connections.
//!
//! ```text
//! wait -> read each ready connection once -> run batches -> send each reply buffer once -> upkeep -> wait
//! ```
//!
//! W1. mio is edge-triggered: a connection is readable until a read comes up short, and writable until a write does. One
//!     that may have more to give is on the worker's own ready list.
//! W2. Replies are sent after all ready connections were read and run: one send per connection and turn.
//! W3. A connection with more unsent output than the soft limit is not read: back-pressure in place of growth.

use crate::connection::Connection;
use crate::executor::{Executor, Flow, Shared};
use crate::mailbox::Mailbox;
use crate::socket::Socket;
use command::Session;
use command::stats::WorkerStats;
use mio::{Events, Interest, Poll, Token};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// Token of the mailbox; connections count up from 0.
const MAILBOX: Token = Token(usize::MAX);

/// Unsent output above which a connection is not read.
const OUTPUT_SOFT_BYTES: usize = 32 * 1024 * 1024;

/// Unsent output at which a connection is closed: a single reply can pass the soft limit, and many pipelined ones cannot.
const OUTPUT_HARD_BYTES: usize = 256 * 1024 * 1024;

/// Longest wait: upkeep runs at least this often.
const TURN_MAX: Duration = Duration::from_millis(50);

/// Slices given to one writev.
const SLICES_MAX: usize = 64;

/// What other threads ask of a worker.
pub enum Message {
    /// Serve this connection.
    Accept(Socket, Box<Session>),
    /// Close this client.
    Close(u64),
    /// Send what is ready and end.
    Stop,
}

/// The socket side of a connection.
struct Wire {
    socket: Socket,
    readable: bool,
    writable: bool,
    /// On the ready list.
    ready: bool,
}

/// One worker, to be run on its own thread.
pub struct Worker {
    poll: Poll,
    executor: Executor,
    stats: Arc<WorkerStats>,
    /// By connection id.
    wires: Vec<Option<Wire>>,
    /// Connections to read in this turn.
    ready: VecDeque<usize>,
    mailbox: Arc<Mailbox<Message>>,
    upkeep: Box<dyn FnMut() -> bool + Send>,
    stopping: bool,
}

impl Worker {
    /// Worker number `number`, and the way to reach it.
    ///
    /// # Errors
    /// When the operating system gives no event queue.
    pub fn new(
        number: usize,
        poll: Poll,
        mailbox: Arc<Mailbox<Message>>,
        shared: Arc<Shared>,
        stats: Arc<WorkerStats>,
        upkeep: Box<dyn FnMut() -> bool + Send>,
    ) -> Self {
        Self {
            poll,
            executor: Executor::new(number, shared, stats.clone()),
            stats,
            wires: Vec::new(),
            ready: VecDeque::new(),
            mailbox,
            upkeep,
            stopping: false,
        }
    }

    /// A new event queue and its mailbox.
    ///
    /// # Errors
    /// When the operating system gives none.
    pub fn event_queue() -> io::Result<(Poll, Arc<Mailbox<Message>>)> {
        let poll = Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), MAILBOX)?;
        Ok((poll, Arc::new(Mailbox::new(move || waker.wake()))))
    }

    /// Serves until told to stop.
    ///
    /// # Errors
    /// When the operating system's event queue fails; connections' errors only close them.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let (mut messages, mut to_send) = (Vec::new(), Vec::new());
        let mut busy = false;
        while !self.stopping {
            let wait = if busy || !self.ready.is_empty() { Duration::ZERO } else { TURN_MAX };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            }
            self.executor.set_time();
            for event in &events {
                if event.token() == MAILBOX {
                    continue;
                }
                let id = event.token().0;
                if let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut) {
                    wire.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
                    if event.is_writable() && !wire.writable {
                        wire.writable = true;
                        self.send(id);
                    }
                    self.make_ready(id);
                }
            }
            if self.mailbox.take(&mut messages) {
                messages.drain(..).for_each(|message| self.handle(message));
                self.executor.run_waiting();
            }
            self.read_ready();
            self.executor.run_batch();
            self.executor.take_to_send(&mut to_send);
            for id in to_send.drain(..) {
                self.send(id);
                self.make_ready(id);
            }
            busy = (self.upkeep)();
        }
        Ok(())
    }

    /// Lists the connection for reading if it can give something and may.
    fn make_ready(&mut self, id: usize) {
        let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut) else { return };
        if wire.readable && !wire.ready && self.executor.flow(id) == Flow::Open {
            wire.ready = true;
            self.ready.push_back(id);
        }
    }

    /// Reads each listed connection once.
    fn read_ready(&mut self) {
        for _ in 0..self.ready.len() {
            let Some(id) = self.ready.pop_front() else { return };
            self.read(id);
        }
    }

    fn read(&mut self, id: usize) {
        let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut) else { return };
        wire.ready = false;
        if self.executor.flow(id) != Flow::Open || self.output_len(id) > OUTPUT_SOFT_BYTES {
            return;
        }
        let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut) else { return };
        let socket = &mut wire.socket;
        let result = self.executor.receive(id, |room| {
            loop {
                match socket.read(room) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    other => return other,
                }
            }
        });
        match result {
            Ok((0, _)) => self.close(id),
            Ok((read, filled)) => {
                self.stats.input_bytes.add(read as u64);
                if filled {
                    self.make_ready(id);
                } else if let Some(wire) = &mut self.wires[id] {
                    wire.readable = false;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if let Some(wire) = &mut self.wires[id] {
                    wire.readable = false;
                }
            }
            Err(_) => self.close(id),
        }
    }

    fn output_len(&mut self, id: usize) -> usize {
        self.executor.connection(id).map_or(0, |connection| connection.reply.len())
    }

    /// Sends what the socket takes.
    fn send(&mut self, id: usize) {
        let (Some(wire), Some(connection)) =
            (self.wires.get_mut(id).and_then(Option::as_mut), self.executor.connection(id))
        else {
            return;
        };
        let reply = &mut connection.reply;
        while wire.writable && !reply.is_empty() {
            let result = match reply.as_contiguous() {
                Some(bytes) => wire.socket.write(bytes),
                None => {
                    let slices: Vec<_> = reply.io_slices().take(SLICES_MAX).collect();
                    wire.socket.write_vectored(&slices)
                }
            };
            match result {
                Ok(sent) => {
                    reply.advance(sent);
                    self.stats.output_bytes.add(sent as u64);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => wire.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.close(id),
            }
        }
        let closing = connection.session.close_after_replies && reply.is_empty();
        if closing || reply.len() > OUTPUT_HARD_BYTES {
            self.close(id);
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Accept(socket, session) => self.accept(socket, *session),
            Message::Close(client) => {
                let found = (0..self.wires.len())
                    .find(|id| self.executor.connection(*id).is_some_and(|connection| connection.session.id == client));
                if let Some(id) = found {
                    self.close(id);
                }
            }
            Message::Stop => self.stopping = true,
        }
    }

    fn accept(&mut self, mut socket: Socket, session: Session) {
        let id = self.executor.open(Connection::new(session));
        if self.poll.registry().register(&mut socket, Token(id), Interest::READABLE | Interest::WRITABLE).is_err() {
            self.executor.close(id);
            return;
        }
        if self.wires.len() <= id {
            self.wires.resize_with(id + 1, || None);
        }
        self.wires[id] = Some(Wire { socket, readable: true, writable: true, ready: false });
        self.make_ready(id);
    }

    fn close(&mut self, id: usize) {
        if let Some(mut wire) = self.wires.get_mut(id).and_then(Option::take) {
            // A socket that is gone already needs no deregistration.
            let _ = self.poll.registry().deregister(&mut wire.socket);
        }
        self.executor.close(id);
        self.ready.retain(|other| *other != id);
    }
}
