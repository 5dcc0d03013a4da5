//! Who serves the connections of a worker that a script keeps: the attendant, a worker of its own.
//!
//! ```text
//! script is late --begin--> attendant: borrows connections at rest, takes new ones; refuses most of their requests
//! script ends ----end-----> attendant: gives all back --> the worker continues
//! ```
//!
//! A1. The worker of the script does nothing from `begin` to the end of `end`. So the attendant may look at what that
//!     worker has published of its connections, duplicate their sockets, and read from these.
//! A2. A connection that has come back is taken over before anything more of it is read
//!     ([`ClientInfo::begin`](command::clients::ClientInfo::begin)).
//! A3. The attendant keeps a connection that cannot be moved now: one with a command that waits, or that receives
//!     messages. It moves when that is over.

use crate::connection::Connection;
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::socket::Socket;
use parking_lot::Mutex;
use script::running::Attend;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Time between two looks at whether the attendant has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What the attendant gives to a worker.
pub enum Returned {
    /// A connection, and its socket if the worker does not have it.
    Back {
        /// The connection.
        connection: Box<Connection>,
        /// Its socket.
        socket: Option<Socket>,
    },
    /// This client has left, or stays with the attendant: the worker forgets it.
    Gone(u64),
}

/// What the attendant and the workers share.
pub struct Desk {
    /// Those of all workers. The last is the attendant's.
    mailboxes: Vec<Arc<Mailbox<Message>>>,
    returned: Vec<Returns>,
    is_attending: AtomicBool,
    /// The attendant serves for one worker, until it has given everything back.
    is_taken: AtomicBool,
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
            is_attending: AtomicBool::new(false),
            is_taken: AtomicBool::new(false),
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
        self.is_attending.load(Ordering::Acquire)
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
        // Its own connections may run scripts, too (A3).
        if worker == self.attendant() || self.is_taken.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.is_attending.store(true, Ordering::Release);
        self.mailboxes[self.attendant()].send(Message::Attend(worker));
        true
    }

    fn is_attendant(&self, worker: usize) -> bool {
        worker == self.attendant()
    }

    fn end(&self) {
        let (sender, left) = channel();
        self.is_attending.store(false, Ordering::Release);
        self.mailboxes[self.attendant()].send(Message::Leave(sender));
        while left.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) && !self.has_ended.load(Ordering::Acquire) {}
        self.is_taken.store(false, Ordering::Release);
    }
}
