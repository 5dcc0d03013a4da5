//! Whether a server is a primary or a replica, of whom, and how the link is: shared by commands and the thread that
//! replicates.

use crate::copy::Copied;
use crate::link::Acknowledger;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
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

/// A promotion that waits until the server may become a primary. Clones are handles of the same.
#[derive(Clone, Debug, Default)]
pub struct Promotion(Arc<OnceLock<Result<(), String>>>);

impl Promotion {
    /// What became of it; `None` while it waits. An error is a sentence without a code word.
    pub fn outcome(&self) -> Option<&Result<(), String>> {
        self.0.get()
    }

    fn end(&self, outcome: Result<(), String>) {
        // It ends once: the role takes it out before it ends it.
        let _ = self.0.set(outcome);
    }
}

/// What the thread that replicates is to do.
#[derive(Debug)]
pub enum Next {
    /// To follow a primary.
    Follow(Order),
    /// To promote the server as soon as that is possible.
    Promote,
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
    /// While it waits, the order is over, and the server is a replica still.
    promotion: Option<Promotion>,
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
            promotion: None,
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

    /// Makes the server a primary, whose history gets this id from here on, if `may_be` says so: asked where no copy
    /// can begin ([`Role::if_it_stands`]). Returns whether the server is a primary now.
    pub fn promote(&self, id: String, may_be: &dyn Fn() -> bool) -> bool {
        let mut state = self.state.lock();
        if !may_be() {
            return false;
        }
        let promotion = state.promotion.take();
        state.end_order();
        let before = std::mem::replace(&mut state.histories.id, id);
        state.histories.before = Some((before, self.offset().saturating_add(1)));
        promotion.into_iter().for_each(|promotion| promotion.end(Ok(())));
        true
    }

    /// Ends the order, and has the thread that replicates promote the server as soon as that is possible. Until then
    /// it is a replica without a link.
    pub fn ask_promotion(&self) -> Promotion {
        let mut state = self.state.lock();
        let promotion = state.promotion.get_or_insert_default().clone();
        if let Some(order) = &state.order {
            order.is_over.store(true, Ordering::Relaxed);
        }
        state.lose_link();
        self.changed.notify_all();
        promotion
    }

    /// Whether a promotion waits.
    pub fn waits_for_promotion(&self) -> bool {
        self.state.lock().promotion.is_some()
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

    /// Waits for something to do; `None` at the end of the server.
    pub fn wait_for_order(&self) -> Option<Next> {
        let mut state = self.state.lock();
        loop {
            match &state.order {
                _ if state.is_ended => return None,
                _ if state.promotion.is_some() => return Some(Next::Promote),
                Some(order) => return Some(Next::Follow(order.clone())),
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Waits this long, or until no promotion waits, or the server ends. Returns whether one waits.
    pub fn wait_before_promotion(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut state = self.state.lock();
        let waits = |state: &State| state.promotion.is_some() && !state.is_ended;
        while waits(&state) && !self.changed.wait_until(&mut state, deadline).timed_out() {}
        waits(&state)
    }

    /// The promotion that waits fails, for this reason, and the primary is followed again.
    pub fn refuse_promotion(&self, why: String) {
        let mut state = self.state.lock();
        let Some(promotion) = state.promotion.take() else { return };
        if let Some(order) = &mut state.order {
            order.is_over = Arc::default();
        }
        promotion.end(Err(why));
    }

    /// Runs `begin` if the order still stands: no promotion or order comes in between.
    pub fn if_it_stands(&self, order: &Order, begin: &dyn Fn()) -> bool {
        let _state = self.state.lock();
        let stands = order.stands();
        if stands {
            begin();
        }
        stands
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
        if let Some(promotion) = state.promotion.take() {
            promotion.end(Err("the server ends".to_owned()));
        }
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
        if let Some(promotion) = self.promotion.take() {
            promotion.end(Err("another REPLICAOF came first".to_owned()));
        }
        self.lose_link();
    }

    fn lose_link(&mut self) {
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

    fn order_of(role: &Role) -> Order {
        match role.wait_for_order() {
            Some(Next::Follow(order)) => order,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_order_ends_with_the_next_one() {
        let role = Role::new("a".into());
        assert!(role.primary().is_none() && role.figures().is_none());
        role.follow(place(1));
        let first = order_of(&role);
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
        role.begin(&order_of(&role), "b", 70);
        role.has_applied(90);
        assert!(role.promote("c".into(), &|| true));
        assert_eq!(role.histories(), Histories { id: "c".into(), before: Some(("b".into(), 91)) });
    }

    /// A server that cannot be promoted yet stays a replica, and no copy begins any more.
    #[test]
    fn a_promotion_waits_until_it_may_be() {
        let role = Role::new("a".into());
        role.follow(place(1));
        let order = order_of(&role);
        assert!(!role.promote("b".into(), &|| false) && role.if_it_stands(&order, &|| ()));
        let promotion = role.ask_promotion();
        assert!(matches!(role.wait_for_order(), Some(Next::Promote)) && role.primary() == Some(place(1)));
        assert!(!role.if_it_stands(&order, &|| panic!("a copy began")) && promotion.outcome().is_none());
        assert!(role.wait_before_promotion(Duration::ZERO));
        assert!(role.promote("c".into(), &|| true) && role.primary().is_none());
        assert_eq!((promotion.outcome(), role.waits_for_promotion()), (Some(&Ok(())), false));
        assert!(!role.wait_before_promotion(Duration::from_secs(9)));
    }

    #[test]
    fn a_promotion_that_fails_leaves_a_replica() {
        let role = Role::new("a".into());
        role.follow(place(1));
        let first = order_of(&role);
        let promotions = [role.ask_promotion(), role.ask_promotion()];
        role.refuse_promotion("no room".into());
        assert!(promotions.iter().all(|one| one.outcome() == Some(&Err("no room".to_owned()))));
        assert!(order_of(&role).stands() && !first.stands());
        let promotion = role.ask_promotion();
        role.follow(place(2));
        assert_eq!(promotion.outcome(), Some(&Err("another REPLICAOF came first".to_owned())));
        let promotion = role.ask_promotion();
        role.end();
        assert_eq!(promotion.outcome(), Some(&Err("the server ends".to_owned())));
    }
}
