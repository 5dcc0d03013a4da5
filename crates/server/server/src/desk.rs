//! Who serves the connections of a worker that a script keeps: the attendant, a worker of its own.
//!
//! ```text
//! script is late --begin--> attendant: borrows its connections, takes new ones; refuses most of their requests
//! script ends ----end-----> attendant: gives all back --> the worker continues
//! ```
//!
//! A1. The worker of the script does nothing from `begin` to the end of `end`. So it takes its other connections out of
//!     their places in `begin`, and puts them back in `end` ([`Others`](crate::others::Others)).
//! A2. A connection that is lent keeps its place, its descriptor and its events at home, where its messages wait.
//! A3. Not lent is a connection with a command that waits, or that another thread works for. Valkey reads nothing more
//!     of such a client either.
//! A4. The attendant keeps a new connection that cannot be moved: one with a command that waits, or that receives
//!     messages. It moves when that is over.

use crate::connection::Connection;
use crate::lent::Back;
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::others::others;
use crate::socket::Socket;
use parking_lot::Mutex;
use script::running::Attend;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Time between two looks at whether the attendant has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What a worker is given.
pub enum Returned {
    /// A connection that was made while the attendant served.
    New {
        /// The connection.
        connection: Box<Connection>,
        /// Its socket.
        socket: Socket,
    },
    /// One that was lent is in its place again.
    Back(usize),
    /// One that was lent was closed.
    Closed {
        /// Its id.
        place: usize,
        /// Its client.
        client: u64,
    },
}

/// What the attendant and the workers share.
pub struct Desk {
    /// Those of all workers. The last is the attendant's.
    mailboxes: Vec<Arc<Mailbox<Message>>>,
    returned: Vec<Returns>,
    /// Workers that the attendant serves for.
    attended: AtomicUsize,
    has_ended: AtomicBool,
    /// The worker that gets the next new connection.
    next: AtomicUsize,
}

#[derive(Default)]
struct Returns {
    has_any: AtomicBool,
    all: Mutex<Vec<Returned>>,
}

impl Desk {
    /// The desk of these workers, of which the last is the attendant.
    pub fn new(mailboxes: Vec<Arc<Mailbox<Message>>>) -> Self {
        Self {
            returned: mailboxes.iter().map(|_| Returns::default()).collect(),
            mailboxes,
            attended: AtomicUsize::new(0),
            has_ended: AtomicBool::new(false),
            next: AtomicUsize::new(0),
        }
    }

    /// The number of the attendant.
    pub fn attendant(&self) -> usize {
        self.mailboxes.len().saturating_sub(1)
    }

    /// The worker that gets the next new connection.
    pub fn next_worker(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed) % self.attendant().max(1)
    }

    /// Whether a script keeps a worker, so that new connections are the attendant's.
    pub fn is_attending(&self) -> bool {
        self.attended.load(Ordering::Acquire) > 0
    }

    /// New connections that a worker has not taken yet.
    pub(crate) fn untaken(&self, worker: usize) -> Vec<Message> {
        self.mailboxes[worker].take_some(|message| matches!(message, Message::Accept { .. }))
    }

    /// Gives something to a worker.
    pub(crate) fn give(&self, worker: usize, returned: Returned) {
        let returns = &self.returned[worker];
        returns.all.lock().push(returned);
        returns.has_any.store(true, Ordering::Release);
        self.mailboxes[worker].wake();
    }

    /// Whether anything was given to this worker.
    #[inline]
    pub(crate) fn has_returned(&self, worker: usize) -> bool {
        self.returned[worker].has_any.load(Ordering::Acquire)
    }

    /// What was given to this worker, in order.
    pub(crate) fn take_returned(&self, worker: usize) -> Vec<Returned> {
        let returns = &self.returned[worker];
        returns.has_any.store(false, Ordering::Release);
        std::mem::take(&mut returns.all.lock())
    }

    /// The attendant has ended: no thread waits for it any more.
    pub(crate) fn end_attendant(&self) {
        self.has_ended.store(true, Ordering::Release);
    }
}

impl Attend for Desk {
    fn begin(&self, worker: usize) -> bool {
        // Its own connections may run scripts, too (A4).
        if worker == self.attendant() {
            return false;
        }
        self.attended.fetch_add(1, Ordering::AcqRel);
        let lent = others(|others| others.lend()).unwrap_or_default();
        self.mailboxes[self.attendant()].send(Message::Attend(worker, lent));
        true
    }

    fn is_attendant(&self, worker: usize) -> bool {
        worker == self.attendant()
    }

    fn end(&self, worker: usize) {
        let (sender, left) = channel();
        self.attended.fetch_sub(1, Ordering::AcqRel);
        self.mailboxes[self.attendant()].send(Message::Leave(worker, sender));
        let back: Vec<Back> = loop {
            match left.recv_timeout(LOOK) {
                Ok(back) => break back,
                Err(RecvTimeoutError::Timeout) if !self.has_ended.load(Ordering::Acquire) => {}
                // The server ends, and its connections with it.
                Err(_) => return,
            }
        };
        for Back { place, client, connection } in &back {
            let is_closed = connection.is_none();
            let returned =
                if is_closed { Returned::Closed { place: *place, client: *client } } else { Returned::Back(*place) };
            self.give(worker, returned);
        }
        let here = back.into_iter().filter_map(|back| Some((back.place, back.connection?)));
        others(|others| others.take_back(here));
    }
}
