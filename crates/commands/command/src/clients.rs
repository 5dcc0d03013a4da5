//! The connections of the server: a list of them, and a way to close one.
//!
//! ```text
//! accept -> connect() -> Arc<ClientInfo> -> Session -> executor: publish() once a turn
//!                              \-> registry -> CLIENT LIST, CLIENT KILL
//! ```
//!
//! L1. The registry is locked only when a connection comes or goes and by CLIENT commands, never by other requests.
//! L2. What changes in a [`ClientInfo`] is written by the connection's worker alone; readers see each field as of some
//!     moment since the last turn.
//! L3. A killed connection leaves the registry at once, so that a CLIENT LIST after CLIENT KILL does not show it.

use crate::acl::{DEFAULT_USER, User};
use crate::stats::Counter;
use base::{DbIndex, UnixMs};
pub use engine::Unblock;
use engine::WaitState;
use parking_lot::Mutex;
use proto::Protocol;
use push::Receiver;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Answered to a connection beyond `maxclients`, before it is closed.
pub const TOO_MANY: &str = "ERR max number of clients reached";

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Over IPv4 or IPv6.
    Tcp(SocketAddr),
    /// Through the socket file at this path.
    Unix(Box<str>),
}

impl Address {
    /// The host without the port; the path of a socket file.
    pub fn host(&self) -> String {
        match self {
            Self::Tcp(address) => address.ip().to_string(),
            Self::Unix(path) => path.to_string(),
        }
    }
}

/// As CLIENT LIST shows it and CLIENT KILL takes it.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{path}:0"),
        }
    }
}

bitflags::bitflags! {
    /// What is special about a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ClientFlags: u16 {
        /// Shows every command (MONITOR).
        const MONITOR = 1 << 0;
        /// Inside MULTI.
        const TRANSACTION = 1 << 1;
        /// A watched key was changed.
        const WATCH_BROKEN = 1 << 2;
        /// Closes when its replies are sent.
        const CLOSING = 1 << 3;
        /// Not closed for the memory of all clients.
        const NO_EVICT = 1 << 4;
        /// Its reads do not renew access stamps.
        const NO_TOUCH = 1 << 5;
        /// Can follow redirections.
        const CAN_REDIRECT = 1 << 6;
        /// A command of it waits.
        const BLOCKED = 1 << 7;
        /// Has subscriptions.
        const SUBSCRIBER = 1 << 8;
        /// The keys it reads are tracked.
        const TRACKING = 1 << 9;
        /// The client it is redirected to is gone.
        const REDIRECTION_BROKEN = 1 << 10;
        /// It receives the invalidations of all keys with its prefixes.
        const BROADCAST = 1 << 11;
        /// Has sent READONLY.
        const READ_ONLY = 1 << 12;
    }
}

/// What a client calls itself: printable ASCII without blanks, since it is shown in lines of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Set by CLIENT SETNAME or HELLO SETNAME, up to the first zero byte.
    pub name: String,
    /// The zero byte in the name and what follows it: CLIENT GETNAME answers it, and nothing else shows it.
    pub name_rest: Vec<u8>,
    /// Set by CLIENT SETINFO lib-name.
    pub library_name: String,
    /// Set by CLIENT SETINFO lib-ver.
    pub library_version: String,
}

/// What a turn has done for one connection, for [`Session::publish`](crate::Session::publish).
#[derive(Clone, Copy, Debug)]
pub struct Activity {
    /// When the turn began.
    pub now: UnixMs,
    /// The statistics' index of its last command ([`Row::index`](crate::table::Row::index)).
    pub command: u32,
    /// The protocol of its replies.
    pub protocol: Protocol,
    /// Bytes held of a request that has not arrived completely.
    pub input_bytes: usize,
    /// Bytes of replies not sent yet.
    pub unsent_bytes: usize,
    /// Bytes held for replies, free room included.
    pub reply_buffer_bytes: usize,
}

/// One connection, as others may see it.
pub struct ClientInfo {
    /// The number CLIENT ID answers; never used twice.
    pub id: u64,
    /// The client's end.
    pub address: Address,
    /// The server's end.
    pub local_address: Address,
    /// The descriptor of its socket.
    pub descriptor: i32,
    /// When it connected.
    pub connected_at: UnixMs,
    /// The worker that serves it.
    worker: AtomicUsize,
    /// Commands run; counted by the executor.
    pub commands: Counter,
    /// Bytes received; counted by the worker.
    pub received_bytes: Counter,
    /// Bytes sent; counted by the worker.
    pub sent_bytes: Counter,
    /// Its place among the connections of its worker.
    slot: AtomicUsize,
    names: Mutex<Names>,
    /// Its user; `None` for the user that every connection begins as.
    user: Mutex<Option<Arc<User>>>,
    killed: AtomicBool,
    /// Its next command waits for the end of CLIENT PAUSE.
    postponed: AtomicBool,
    /// Whether a command waits, and how its wait ends.
    pub wait: WaitState,
    pub(crate) last_used_at: AtomicI64,
    pub(crate) last_command: AtomicU32,
    pub(crate) db: AtomicU32,
    pub(crate) flags: AtomicU16,
    pub(crate) protocol: AtomicU8,
    /// Commands queued by MULTI or run by EXEC; -1 for a connection that never knew a transaction.
    pub(crate) queued: AtomicI64,
    pub(crate) queued_bytes: AtomicUsize,
    pub(crate) watched: AtomicUsize,
    /// Subscriptions by kind.
    pub(crate) subscribed: [AtomicUsize; 3],
    pub(crate) subscription_bytes: AtomicUsize,
    /// The client that receives the invalidations of this one: 0 for itself, -1 while nothing is tracked.
    pub(crate) redirect: AtomicI64,
    /// Set by a command that changes a key that the connection watches.
    pub(crate) watch_broken: Mutex<Option<Arc<AtomicBool>>>,
    pub(crate) input_bytes: AtomicUsize,
    receiving_bytes: AtomicUsize,
    pub(crate) unsent_bytes: AtomicUsize,
    pub(crate) reply_buffer_bytes: AtomicUsize,
}

impl ClientInfo {
    /// A connection that has sent nothing yet, in no registry. The registry makes its own; this is for replay and
    /// tests.
    pub fn new(id: u64, address: Address, local_address: Address, connected_at: UnixMs) -> Self {
        Self {
            id,
            address,
            local_address,
            descriptor: -1,
            connected_at,
            worker: AtomicUsize::new(0),
            commands: Counter::default(),
            received_bytes: Counter::default(),
            sent_bytes: Counter::default(),
            slot: AtomicUsize::new(usize::MAX),
            names: Mutex::default(),
            user: Mutex::default(),
            killed: AtomicBool::new(false),
            postponed: AtomicBool::new(false),
            wait: WaitState::default(),
            last_used_at: AtomicI64::new(connected_at),
            last_command: AtomicU32::new(u32::MAX),
            db: AtomicU32::new(0),
            flags: AtomicU16::new(0),
            protocol: AtomicU8::new(2),
            queued: AtomicI64::new(-1),
            queued_bytes: AtomicUsize::new(0),
            watched: AtomicUsize::new(0),
            subscribed: Default::default(),
            subscription_bytes: AtomicUsize::new(0),
            redirect: AtomicI64::new(-1),
            watch_broken: Mutex::default(),
            input_bytes: AtomicUsize::new(0),
            receiving_bytes: AtomicUsize::new(0),
            unsent_bytes: AtomicUsize::new(0),
            reply_buffer_bytes: AtomicUsize::new(0),
        }
    }

    /// The worker that serves it.
    #[inline]
    pub fn worker(&self) -> usize {
        self.worker.load(Ordering::Relaxed)
    }

    /// From now on this worker serves it.
    pub fn move_to(&self, worker: usize) {
        self.worker.store(worker, Ordering::Relaxed);
    }

    /// Publishes what is held for the client after its requests have run or its replies were sent. Called by its
    /// worker.
    #[inline]
    pub fn set_held(&self, held: &Held) {
        let set = |field: &AtomicUsize, bytes| field.store(bytes, Ordering::Relaxed);
        set(&self.input_bytes, held.input_bytes);
        set(&self.receiving_bytes, held.receiving_bytes);
        set(&self.queued_bytes, held.queued_bytes);
        set(&self.unsent_bytes, held.unsent_bytes);
        set(&self.reply_buffer_bytes, held.reply_buffer_bytes);
    }

    /// The client that receives the invalidations of this one: 0 for itself, -1 while nothing is tracked.
    pub fn redirect(&self) -> i64 {
        self.redirect.load(Ordering::Relaxed)
    }

    /// How many channels, patterns and shard channels it has subscribed to.
    pub fn subscribed(&self) -> [usize; 3] {
        self.subscribed.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Where messages find it.
    pub fn receiver(&self) -> Receiver {
        Receiver { client: self.id, worker: self.worker(), slot: self.slot.load(Ordering::Relaxed) }
    }

    /// Its place among the connections of its worker, which calls this before the first request runs.
    pub fn set_slot(&self, slot: usize) {
        self.slot.store(slot, Ordering::Relaxed);
    }

    /// Whether a key it watches has changed.
    fn is_watch_broken(&self) -> bool {
        self.watched.load(Ordering::Relaxed) > 0
            && self.watch_broken.lock().as_ref().is_some_and(|broken| broken.load(Ordering::Acquire))
    }

    /// What the client calls itself.
    pub fn names(&self) -> Names {
        self.names.lock().clone()
    }

    /// Changes what the client calls itself.
    pub fn rename(&self, change: impl FnOnce(&mut Names)) {
        change(&mut self.names.lock());
    }

    /// Publishes its user.
    pub fn set_user(&self, user: Arc<User>) {
        *self.user.lock() = Some(user);
    }

    /// Its user; `None` for the user that every connection begins as.
    pub fn user(&self) -> Option<Arc<User>> {
        self.user.lock().clone()
    }

    /// The name of its user.
    pub fn user_name(&self) -> Box<[u8]> {
        self.user.lock().as_ref().map_or(DEFAULT_USER, |user| user.name()).into()
    }

    /// Whether its user was deleted.
    pub fn is_user_gone(&self) -> bool {
        self.user.lock().as_ref().is_some_and(|user| user.is_gone())
    }

    /// Requests that were run: one that waits counts when its wait has ended.
    pub fn commands_done(&self) -> u64 {
        self.commands.get().saturating_sub(u64::from(self.is_blocked()))
    }

    /// Whether a command of it waits: for what others do, or for the end of CLIENT PAUSE.
    pub fn is_blocked(&self) -> bool {
        self.wait.is_waiting() || self.postponed.load(Ordering::Relaxed)
    }

    /// Sets whether its next command waits for the end of CLIENT PAUSE; called by its worker.
    pub fn set_postponed(&self, is_postponed: bool) {
        if self.postponed.load(Ordering::Relaxed) != is_postponed {
            self.postponed.store(is_postponed, Ordering::Relaxed);
        }
    }

    /// What is special about it.
    pub fn flags(&self) -> ClientFlags {
        let mut flags = ClientFlags::from_bits_truncate(self.flags.load(Ordering::Relaxed));
        flags.set(ClientFlags::WATCH_BROKEN, self.is_watch_broken());
        flags.set(ClientFlags::BLOCKED, self.is_blocked());
        flags.set(ClientFlags::SUBSCRIBER, self.subscribed() != [0; 3]);
        flags
    }

    /// The database it has selected.
    pub fn db(&self) -> DbIndex {
        DbIndex(self.db.load(Ordering::Relaxed))
    }

    /// The statistics' index of its last command.
    pub fn last_command(&self) -> u32 {
        self.last_command.load(Ordering::Relaxed)
    }

    /// The version of its protocol.
    pub fn protocol_version(&self) -> u8 {
        self.protocol.load(Ordering::Relaxed)
    }

    /// Commands queued by MULTI or run by EXEC; -1 for a connection that never knew a transaction.
    pub fn queued(&self) -> i64 {
        self.queued.load(Ordering::Relaxed)
    }

    /// Keys watched: none any more once one of them has changed.
    pub fn watched(&self) -> usize {
        if self.is_watch_broken() { 0 } else { self.watched.load(Ordering::Relaxed) }
    }

    /// What is held for it.
    pub fn held(&self) -> Held {
        let bytes = |bytes: &AtomicUsize| bytes.load(Ordering::Relaxed);
        Held {
            input_bytes: bytes(&self.input_bytes),
            receiving_bytes: bytes(&self.receiving_bytes),
            queued_bytes: bytes(&self.queued_bytes),
            subscription_bytes: bytes(&self.subscription_bytes),
            unsent_bytes: bytes(&self.unsent_bytes),
            reply_buffer_bytes: bytes(&self.reply_buffer_bytes),
        }
    }

    /// Whether it was asked to close: no request of it may run any more.
    #[inline]
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    /// Whole seconds since it connected.
    pub fn age_seconds(&self, now: UnixMs) -> i64 {
        seconds_between(self.connected_at, now)
    }

    /// Whole seconds since its last command.
    pub fn idle_seconds(&self, now: UnixMs) -> i64 {
        seconds_between(self.last_used_at.load(Ordering::Relaxed), now)
    }

    /// Whether it came through a socket file.
    pub fn is_local(&self) -> bool {
        matches!(self.address, Address::Unix(_))
    }

    /// Bytes held for the client.
    pub fn held_bytes(&self) -> usize {
        size_of::<Self>().saturating_add(self.held().total())
    }
}

/// Bytes held for a client, by what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Of requests that have not arrived completely or not run, less the large argument being received.
    pub input_bytes: usize,
    /// Of the large argument being received.
    pub receiving_bytes: usize,
    /// Of commands queued by MULTI, and of keys watched.
    pub queued_bytes: usize,
    /// Of names subscribed to.
    pub subscription_bytes: usize,
    /// Of replies not sent yet.
    pub unsent_bytes: usize,
    /// For replies, free room included.
    pub reply_buffer_bytes: usize,
}

impl Held {
    /// All of it.
    pub fn total(&self) -> usize {
        self.own().saturating_add(self.receiving_bytes)
    }

    /// What the limit on all clients counts: all but the large argument being received.
    pub fn own(&self) -> usize {
        self.input_bytes
            .saturating_add(self.queued_bytes)
            .saturating_add(self.subscription_bytes)
            .saturating_add(self.reply_buffer_bytes)
    }
}

fn seconds_between(earlier: UnixMs, later: UnixMs) -> i64 {
    later.saturating_sub(earlier).max(0) / 1000
}

/// Reaches a connection from another thread.
pub trait Closer: Send + Sync {
    /// Has the worker close the client, soon; nothing happens when it is gone already.
    fn close(&self, worker: usize, id: u64);

    /// Has the worker look how the client's wait has ended, soon.
    fn end_wait(&self, worker: usize, id: u64);

    /// Has every worker look at its connections' users, soon.
    fn follow_users(&self);
}

/// All connections: a part of the [`Host`](crate::Host).
pub struct Clients {
    registry: Mutex<BTreeMap<u64, Arc<ClientInfo>>>,
    next_id: AtomicU64,
    limit: AtomicUsize,
    accepted: AtomicU64,
    rejected: AtomicU64,
    evicted: AtomicU64,
    output_limited: AtomicU64,
    query_limited: AtomicU64,
    closer: OnceLock<Arc<dyn Closer>>,
    /// Full names of the commands by their statistics' index.
    commands: Box<[Box<str>]>,
}

impl Clients {
    /// Redis' default of `maxclients`.
    pub const LIMIT_DEFAULT: usize = 10_000;

    /// An empty registry for a server with commands of these full names, by their statistics' index.
    pub fn new<'n>(commands: impl Iterator<Item = &'n str>) -> Self {
        Self {
            registry: Mutex::default(),
            next_id: AtomicU64::new(1),
            limit: AtomicUsize::new(Self::LIMIT_DEFAULT),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            output_limited: AtomicU64::new(0),
            query_limited: AtomicU64::new(0),
            closer: OnceLock::new(),
            commands: commands.map(Into::into).collect(),
        }
    }

    /// Sets how connections are closed; once, when the workers are there.
    pub fn set_closer(&self, closer: Arc<dyn Closer>) {
        // A second closer would mean two sets of workers; the first stays.
        let _ = self.closer.set(closer);
    }

    /// How connections are reached; `None` while there are no workers.
    pub fn closer(&self) -> Option<Arc<dyn Closer>> {
        self.closer.get().cloned()
    }

    /// Sets `maxclients`; connections beyond it stay until they close.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// `maxclients`.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Registers a new connection. `None` when there are `maxclients` already: the caller answers [`TOO_MANY`] and
    /// closes it.
    pub fn connect(
        &self,
        address: Address,
        local_address: Address,
        descriptor: i32,
        worker: usize,
        now: UnixMs,
    ) -> Option<Arc<ClientInfo>> {
        let mut registry = self.registry.lock();
        if registry.len() >= self.limit() {
            self.rejected.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let worker = AtomicUsize::new(worker);
        let info = Arc::new(ClientInfo { descriptor, worker, ..ClientInfo::new(id, address, local_address, now) });
        registry.insert(id, info.clone());
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Some(info)
    }

    /// Forgets a connection that has closed.
    pub fn disconnect(&self, id: u64) {
        self.registry.lock().remove(&id);
    }

    /// Has the connection closed. False when it is not there.
    pub fn kill(&self, id: u64) -> bool {
        let Some(info) = self.registry.lock().remove(&id) else { return false };
        info.killed.store(true, Ordering::Relaxed);
        if let Some(closer) = self.closer.get() {
            closer.close(info.worker(), id);
        }
        true
    }

    /// Ends the wait of the connection's command, soon. False when it is not there or no command of it waits.
    pub fn unblock(&self, id: u64, how: Unblock) -> bool {
        let Some(info) = self.registry.lock().get(&id).cloned() else { return false };
        if !info.wait.unblock(how) {
            return false;
        }
        if let Some(closer) = self.closer.get() {
            closer.end_wait(info.worker(), id);
        }
        true
    }

    /// Closes the connections of users that were deleted, but for this one, and has workers take over changes of users.
    pub fn follow_users(&self, but: u64) {
        let expelled: Vec<u64> =
            self.all().iter().filter(|info| info.id != but && info.is_user_gone()).map(|info| info.id).collect();
        expelled.into_iter().for_each(|id| _ = self.kill(id));
        if let Some(closer) = self.closer.get() {
            closer.follow_users();
        }
    }

    /// The connection with this number.
    pub fn find(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.registry.lock().get(&id).cloned()
    }

    /// The connections in the order they came.
    pub fn all(&self) -> Vec<Arc<ClientInfo>> {
        self.registry.lock().values().cloned().collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.registry.lock().len()
    }

    /// How many were taken since startup.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// How many were turned away for `maxclients`.
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Counts a connection that was turned away before it was registered.
    pub fn count_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Has the clients that hold most closed until the rest holds at most `limit` bytes, as `weigh` counts them. Spares
    /// those of CLIENT NO-EVICT. Gives those that are closed.
    pub fn evict_above(&self, limit: u64, weigh: fn(&Held) -> usize) -> Vec<Arc<ClientInfo>> {
        let all = self.all().into_iter().map(|client| (weigh(&client.held()) as u64, client));
        let mut clients: Vec<_> = all.filter(|(bytes, _)| *bytes > 0).collect();
        let mut held: u64 = clients.iter().map(|(bytes, _)| bytes).sum();
        let mut closed = Vec::new();
        clients.retain(|(_, client)| !client.flags().contains(ClientFlags::NO_EVICT));
        clients.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (bytes, client) in clients {
            if held <= limit {
                break;
            }
            held = held.saturating_sub(bytes);
            if self.kill(client.id) {
                self.evicted.fetch_add(1, Ordering::Relaxed);
                closed.push(client);
            }
        }
        closed
    }

    /// How many were closed for the memory of all clients.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Sets the counts of what has happened so far back to 0 (CONFIG RESETSTAT).
    pub fn reset_counts(&self) {
        for count in [&self.accepted, &self.rejected, &self.evicted, &self.output_limited, &self.query_limited] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Counts a client that was closed for `client-output-buffer-limit`.
    pub fn count_output_limited(&self) {
        self.output_limited.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were closed for `client-output-buffer-limit`.
    pub fn output_limited(&self) -> u64 {
        self.output_limited.load(Ordering::Relaxed)
    }

    /// Counts a client that was closed for `client-query-buffer-limit`.
    pub fn count_query_limited(&self) {
        self.query_limited.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were closed for `client-query-buffer-limit`.
    pub fn query_limited(&self) -> u64 {
        self.query_limited.load(Ordering::Relaxed)
    }

    /// The full name of the command with this statistics' index.
    pub fn command_name(&self, index: u32) -> Option<&str> {
        self.commands.get(index as usize).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_that_hold_most_are_evicted_first() {
        let clients = Clients::new(std::iter::empty());
        let unix = || Address::Unix("/s".into());
        let client = |input_bytes: usize, flags: ClientFlags| {
            let info = clients.connect(unix(), unix(), -1, 0, 0).unwrap();
            info.input_bytes.store(input_bytes, Ordering::Relaxed);
            info.flags.store(flags.bits(), Ordering::Relaxed);
            info.id
        };
        let small = client(1_000, ClientFlags::empty());
        let spared = client(90_000, ClientFlags::NO_EVICT);
        let middle = client(50_000, ClientFlags::empty());
        let large = client(70_000, ClientFlags::empty());
        let left = || clients.all().iter().map(|client| client.id).collect::<Vec<_>>();

        clients.evict_above(1_000_000, Held::own);
        assert_eq!((left(), clients.evicted()), (vec![small, spared, middle, large], 0));
        clients.evict_above(150_000, Held::own);
        assert_eq!((left(), clients.evicted()), (vec![small, spared, middle], 1));
        clients.evict_above(0, Held::own);
        assert_eq!((left(), clients.evicted()), (vec![spared], 3));
    }
}
