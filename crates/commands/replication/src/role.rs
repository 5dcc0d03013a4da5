//! Whether a server is a primary or a replica, of whom, and how the link is: shared by commands and the thread that
//! replicates.

use crate::copy::Copied;
use crate::link::Acknowledger;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Answered to a write of a client of a replica.
pub const READ_ONLY: &str = "READONLY You can't write against a read only replica.";

/// Where a primary listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// How far the link to a primary is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkState {
    /// A connection is to be opened.
    #[default]
    Connect,
    /// It is being opened.
    Connecting,
    /// A copy of all data is received or loaded.
    Sync,
    /// The stream is received.
    Connected,
}

impl LinkState {
    /// As ROLE shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Connecting => "connecting",
            Self::Sync => "sync",
            Self::Connected => "connected",
        }
    }
}

/// The names of the history that the data is of, as INFO shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histories {
    /// The present one.
    pub id: String,
    /// The one before a promotion, and the first offset that is not part of it; `None` without one.
    pub before: Option<(String, u64)>,
}

/// One order to follow a primary. It is over when another comes, or the server ends.
#[derive(Clone, Debug)]
pub struct Order {
    /// The primary.
    pub primary: Place,
    /// Set when the order is over.
    pub is_over: Arc<AtomicBool>,
}

impl Order {
    /// Whether it still stands.
    pub fn stands(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }
}

/// The role of a server.
pub struct Role {
    state: Mutex<State>,
    changed: Condvar,
    offset: AtomicU64,
    received: AtomicU64,
}

struct State {
    order: Option<Order>,
    is_ended: bool,
    link: LinkState,
    /// When the link was lost, or the order came.
    down_since: Instant,
    heard: Option<Instant>,
    copied: Option<Copied>,
    histories: Histories,
    /// The connection that is open, to be cut.
    connection: Option<Acknowledger>,
}

/// What INFO shows of a replica.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The primary.
    pub primary: Place,
    /// How far the link is.
    pub link: LinkState,
    /// Time since the last byte of the primary; `None` before the first, and without a link.
    pub silent: Option<Duration>,
    /// How long the link has been down.
    pub down: Option<Duration>,
    /// How much of the copy was received; `None` before its first byte.
    pub copied: Option<Copied>,
}

impl Role {
    /// A primary whose data is of the history with this id.
    pub fn new(id: String) -> Self {
        let state = State {
            order: None,
            is_ended: false,
            link: LinkState::Connect,
            down_since: Instant::now(),
            heard: None,
            copied: None,
            histories: Histories { id, before: None },
            connection: None,
        };
        let (offset, received) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { state: Mutex::new(state), changed: Condvar::new(), offset, received }
    }

    // ---- By commands.

    /// Makes the server a replica of this primary. A link that is open is cut.
    pub fn follow(&self, primary: Place) {
        let mut state = self.state.lock();
        state.end_order();
        state.order = Some(Order { primary, is_over: Arc::default() });
        self.changed.notify_all();
    }

    /// Makes the server a primary, whose history gets this id from here on.
    pub fn promote(&self, id: String) {
        let mut state = self.state.lock();
        state.end_order();
        let before = std::mem::replace(&mut state.histories.id, id);
        state.histories.before = Some((before, self.offset().saturating_add(1)));
    }

    /// The primary that is followed; `None` for a primary.
    pub fn primary(&self) -> Option<Place> {
        self.state.lock().order.as_ref().map(|order| order.primary.clone())
    }

    /// How far the link is.
    pub fn link(&self) -> LinkState {
        self.state.lock().link
    }

    /// What INFO shows of a replica; `None` for a primary.
    pub fn figures(&self) -> Option<Figures> {
        let state = self.state.lock();
        let primary = state.order.as_ref()?.primary.clone();
        let is_up = state.link == LinkState::Connected;
        let down = (!is_up).then(|| state.down_since.elapsed());
        let silent = state.heard.filter(|_| is_up || state.link == LinkState::Sync).map(|at| at.elapsed());
        Some(Figures { primary, link: state.link, silent, down, copied: state.copied })
    }

    /// The names of the history.
    pub fn histories(&self) -> Histories {
        self.state.lock().histories.clone()
    }

    /// Offset up to which everything is applied.
    pub fn offset(&self) -> u64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// Offset up to which everything is received.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed).max(self.offset())
    }

    // ---- By the thread that replicates.

    /// Waits for an order; `None` at the end of the server.
    pub fn wait_for_order(&self) -> Option<Order> {
        let mut state = self.state.lock();
        loop {
            match &state.order {
                _ if state.is_ended => return None,
                Some(order) => return Some(order.clone()),
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Waits this long, or until the order is over.
    pub fn wait(&self, order: &Order, time: Duration) {
        let deadline = Instant::now() + time;
        let mut state = self.state.lock();
        while order.stands() && !self.changed.wait_until(&mut state, deadline).timed_out() {}
    }

    /// The server ends.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.is_ended = true;
        if let Some(order) = &state.order {
            order.is_over.store(true, Ordering::Relaxed);
        }
        state.cut();
        self.changed.notify_all();
    }

    /// The link of this order has come this far. Without effect when the order is over.
    pub fn set_link(&self, order: &Order, link: LinkState) {
        let mut state = self.state.lock();
        if !order.stands() {
            return;
        }
        if state.link == LinkState::Connected && link != LinkState::Connected {
            state.down_since = Instant::now();
        }
        if link == LinkState::Connect {
            state.connection = None;
        }
        if state.link != link {
            state.copied = None;
        }
        state.link = link;
    }

    /// A connection is open, which the end of the order cuts.
    pub fn connected(&self, order: &Order, connection: Acknowledger) {
        let mut state = self.state.lock();
        state.heard = Some(Instant::now());
        state.connection = Some(connection);
        if !order.stands() {
            state.cut();
        }
    }

    /// This part of the copy was received.
    pub fn has_copied(&self, copied: Copied) {
        let mut state = self.state.lock();
        (state.copied, state.heard) = (Some(copied), Some(Instant::now()));
    }

    /// The stream begins here, in this history.
    pub fn begin(&self, order: &Order, id: &str, offset: u64) {
        let mut state = self.state.lock();
        if order.stands() && state.histories.id != id {
            state.histories = Histories { id: id.to_owned(), before: None };
        }
        self.offset.store(offset, Ordering::Relaxed);
        self.received.store(offset, Ordering::Relaxed);
    }

    /// Bytes of the stream were received.
    pub fn has_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.state.lock().heard = Some(Instant::now());
    }

    /// Everything up to this offset is applied.
    pub fn has_applied(&self, offset: u64) {
        self.offset.store(offset, Ordering::Relaxed);
    }
}

impl State {
    fn end_order(&mut self) {
        if let Some(order) = self.order.take() {
            order.is_over.store(true, Ordering::Relaxed);
        }
        self.cut();
        (self.link, self.down_since, self.heard) = (LinkState::Connect, Instant::now(), None);
    }

    fn cut(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(port: u16) -> Place {
        Place { host: "h".into(), port }
    }

    #[test]
    fn an_order_ends_with_the_next_one() {
        let role = Role::new("a".into());
        assert!(role.primary().is_none() && role.figures().is_none());
        role.follow(place(1));
        let first = role.wait_for_order().unwrap();
        role.set_link(&first, LinkState::Connected);
        assert!(role.figures().unwrap().down.is_none());
        role.follow(place(2));
        role.set_link(&first, LinkState::Connected);
        assert!(!first.stands() && role.link() == LinkState::Connect && role.primary() == Some(place(2)));
        role.end();
        assert!(role.wait_for_order().is_none());
    }

    /// What a replica of this server's primary asks for after a promotion.
    #[test]
    fn a_promotion_remembers_the_history_before() {
        let role = Role::new("a".into());
        role.follow(place(1));
        role.begin(&role.wait_for_order().unwrap(), "b", 70);
        role.has_applied(90);
        role.promote("c".into());
        assert_eq!(role.histories(), Histories { id: "c".into(), before: Some(("b".into(), 91)) });
    }
}
