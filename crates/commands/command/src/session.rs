//! What a connection has said about itself: database, protocol, name, login, transaction.

use crate::acl::User;
use crate::attempt::Attempt;
use crate::blocking::{Awaited, Block};
use crate::caching::Caching;
use crate::clients::{Address, ClientInfo};
use crate::spec::Locks;
use crate::table::Row;
use crate::work::reply::ReplyRest;
use crate::work::steps::PendingWork;
use base::{DbIndex, Lsn, UnixMs};
use engine::WriteClass;
use push::Subscriptions;
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state of one client connection that commands read and change. Owned by its worker. `R` runs the commands that it
/// has queued.
pub struct Session<R: 'static> {
    /// The number CLIENT ID answers; never used twice.
    pub id: u64,
    /// What others may see of it, its names among them.
    pub info: Arc<ClientInfo>,
    /// The database SELECT has chosen.
    pub db: DbIndex,
    /// Whether it may run commands: true from the start when no password is set. Changed by [`Session::log_in`] and
    /// [`Session::log_out`].
    pub authenticated: bool,
    /// Its user.
    pub user: Arc<User>,
    /// It is logged in, and its user may do everything: no request needs a check (A2).
    is_unrestricted: bool,
    /// The same, and no request chooses a database.
    is_free: bool,
    /// The database of strings, of a client whose types have databases each; `None` of all others.
    types_from: Option<DbIndex>,
    /// The generation of users in which `is_unrestricted` was computed.
    users_seen: u64,
    /// The commands queued since MULTI; `None` outside.
    pub transaction: Option<Transaction<R>>,
    /// How many commands the transaction has that EXEC is running now.
    pub running: Option<usize>,
    /// Whether it has ever begun a transaction or watched a key; CLIENT LIST shows it.
    pub knows_transactions: bool,
    /// Keys watched since the last EXEC, DISCARD or UNWATCH.
    pub watch: Watch,
    /// What CLIENT REPLY has asked for.
    pub replies: Replies,
    /// What it has subscribed to; `None` while that is nothing.
    pub subscriptions: Option<Box<Subscriptions>>,
    /// How the keys it reads are tracked; `None` while they are not.
    pub tracking: Option<Box<Caching>>,
    /// CLIENT NO-TOUCH: reads do not renew access stamps.
    pub no_touch: bool,
    /// CLIENT NO-EVICT: never closed for the memory of all clients.
    pub no_evict: bool,
    /// READONLY. On a primary it only shows as a flag.
    pub read_only: bool,
    /// Capabilities named by CLIENT CAPA.
    pub can_redirect: bool,
    /// Shows every command of the server (MONITOR).
    pub monitor: bool,
    /// Close once the replies written so far are sent.
    pub close_after_replies: bool,
    /// Until then no reply is sent and no request runs: what wrong passwords cost.
    pub held_until: Option<UnixMs>,
    /// The wait of its last command: nothing more runs until it is over.
    pub block: Option<Block>,
    /// What the reply to its last command still lacks: nothing more runs before the last piece is written.
    pub rest: Option<ReplyRest>,
    /// The work that its command has begun: it waits, and then runs again.
    pub pending: Option<PendingWork>,
    /// Whether its command runs for the first time.
    pub attempt: Attempt,
    /// Its script uses keys that it has not declared: it runs again, with all shards locked.
    pub locks_all: bool,
    /// The database on disk to which its script writes, of one that was admitted for another: it runs again when there
    /// is room for changes to that one.
    pub admitted_by: Option<DbIndex>,
    /// Why commands of its script that change entries are refused, if they are: it runs all the same, and reads. Of a
    /// script that runs; left over after it.
    pub refused_writes: Option<String>,
    /// The position in the log after its last write; 0 while it has none.
    pub last_write: Lsn,
    /// Up to where the log has to be durable for what it has been shown so far; 0 while replies do not wait for the
    /// log.
    pub seen: Lsn,
}

/// Commands queued by MULTI.
pub struct Transaction<R: 'static> {
    /// The requests, in order.
    pub queue: Vec<Queued<R>>,
    /// Bytes the queue holds, for the limit on it.
    pub bytes: usize,
    /// A queued command was refused: EXEC answers EXECABORT, and nothing is queued any more.
    pub poisoned: bool,
}

impl<R> Default for Transaction<R> {
    fn default() -> Self {
        Self { queue: Vec::new(), bytes: 0, poisoned: false }
    }
}

/// One queued request.
pub struct Queued<R: 'static> {
    /// Its row.
    pub row: Row<R>,
    /// Its arguments.
    pub args: crate::args::OwnedArgs,
}

/// The keys a connection watches, and whether one of them was changed.
#[derive(Default)]
pub struct Watch {
    /// Set by a command that changes a watched key, under the key's shard lock.
    pub changed: Option<Arc<AtomicBool>>,
    /// What is watched: database at the time of WATCH, key, and whether it was expired then.
    pub keys: Vec<WatchedKey>,
    /// The same, to find a key among many.
    seen: HashSet<(DbIndex, Vec<u8>)>,
    /// Bytes the keys hold.
    pub bytes: usize,
}

/// One watched key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedKey {
    /// The database selected when WATCH was called.
    pub db: DbIndex,
    /// The key.
    pub key: Vec<u8>,
    /// Whether it was there: then its expiring counts as a change.
    pub was_live: bool,
}

impl Watch {
    /// Watches a key; false when it is watched already.
    pub fn add(&mut self, watched: WatchedKey) -> bool {
        let is_new = self.seen.insert((watched.db, watched.key.clone()));
        if is_new {
            let each = size_of::<WatchedKey>().saturating_add(watched.key.capacity());
            self.bytes = self.bytes.saturating_add(each.saturating_mul(2));
            self.keys.push(watched);
        }
        is_new
    }

    /// Whether EXEC has to answer null.
    pub fn is_broken(&self) -> bool {
        self.changed.as_ref().is_some_and(|changed| changed.load(Ordering::Acquire))
    }
}

/// What CLIENT REPLY has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replies {
    /// Every reply is sent.
    #[default]
    On,
    /// None is.
    Off,
    /// The next command's is not.
    SkipNext,
    /// This command's is not.
    SkipThis,
}

impl<R> Session<R> {
    /// What a request may do to entries; of EXEC, what its queue may.
    pub fn writes_of(&self, row: &Row<R>) -> WriteClass {
        let queue = self.queue_of(row).map(|queued| queued.row.writes);
        queue.fold(row.writes, WriteClass::and)
    }

    /// The requests that EXEC would run now; none for other commands.
    pub fn queue_of(&self, row: &Row<R>) -> impl Iterator<Item = &Queued<R>> {
        let transaction = self.transaction.as_ref().filter(|_| row.spec.locks == Locks::Queue);
        transaction.into_iter().flat_map(|transaction| &transaction.queue)
    }

    /// Whether the last command is not over: it waits, or its reply is being written.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.block.is_some() || self.rest.is_some()
    }

    /// Whether a wait for keys has ended whose reply is not written yet.
    pub fn awaits_answer(&self) -> bool {
        let block = self.block.as_ref().filter(|block| matches!(block.what, Awaited::Keys(_)));
        block.is_some_and(|block| !self.info.wait.is_open(block.number))
    }

    /// Whether its command waits for what it prepares.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.goes_on())
    }

    /// Whether a request can run at once: logged in as a user with every right, outside MULTI, without subscriptions.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_free && self.transaction.is_none() && self.held_until.is_none() && self.subscriptions.is_none()
    }

    /// A fresh connection that is in no registry: for replay and tests.
    pub fn new(id: u64, authenticated: bool, connected_at: UnixMs) -> Self {
        let nowhere = Address::Tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
        Self::of(Arc::new(ClientInfo::new(id, nowhere.clone(), nowhere, connected_at)), authenticated)
    }

    /// A fresh connection, registered as this, of a user with every right.
    pub fn of(info: Arc<ClientInfo>, authenticated: bool) -> Self {
        Self::with_user(info, authenticated, User::unrestricted())
    }

    /// A fresh connection, registered as this.
    pub fn with_user(info: Arc<ClientInfo>, authenticated: bool, user: Arc<User>) -> Self {
        let is_unrestricted = authenticated && user.rules().is_unrestricted();
        Self {
            id: info.id,
            info,
            db: DbIndex(0),
            authenticated,
            user,
            is_unrestricted,
            is_free: is_unrestricted,
            types_from: None,
            users_seen: 0,
            transaction: None,
            running: None,
            knows_transactions: false,
            watch: Watch::default(),
            replies: Replies::On,
            subscriptions: None,
            tracking: None,
            no_touch: false,
            no_evict: false,
            read_only: false,
            can_redirect: false,
            monitor: false,
            close_after_replies: false,
            held_until: None,
            block: None,
            rest: None,
            pending: None,
            attempt: Attempt::First,
            locks_all: false,
            admitted_by: None,
            refused_writes: None,
            last_write: Lsn(0),
            seen: Lsn(0),
        }
    }

    /// The connection is this user from now on.
    pub fn log_in(&mut self, user: Arc<User>) {
        self.authenticated = true;
        self.info.set_user(user.clone());
        self.user = user;
        self.update_rights();
    }

    /// The connection is as one that has just been made: this user, but only if that user needs no password.
    pub fn log_out(&mut self, default: &Arc<User>) {
        self.log_in(default.clone());
        self.authenticated = default.rules().is_open();
        self.update_rights();
    }

    /// From now on the database depends on the type that a request is about, from this one on; with `None` it is the
    /// first of these again.
    pub fn separate_types(&mut self, from: Option<DbIndex>) {
        self.choose_type(0);
        self.types_from = from;
        self.update_rights();
    }

    /// The database of a type, of a client whose types have databases each; of others, the one it uses.
    pub fn database_of_type(&self, number: u32) -> DbIndex {
        self.types_from.map_or(self.db, |from| DbIndex(from.0.saturating_add(number)))
    }

    /// The database of strings, of a client whose types have databases each.
    pub fn types_from(&self) -> Option<DbIndex> {
        self.types_from
    }

    /// The next request is about this type.
    pub fn choose_type(&mut self, number: u32) {
        self.db = self.database_of_type(number);
    }

    /// Whether a request needs no check of what its user may do.
    #[inline]
    pub fn is_unrestricted(&self) -> bool {
        self.is_unrestricted
    }

    /// Computes anew whether requests need a check.
    pub fn update_rights(&mut self) {
        self.is_unrestricted = self.authenticated && self.user.rules().is_unrestricted();
        self.is_free = self.is_unrestricted && self.types_from.is_none();
    }

    /// Takes over changes of users up to this generation. True if the connection has to close for them.
    #[must_use]
    pub fn follow_users(&mut self, generation: u64) -> bool {
        let is_expelled = self.user.expels(self.users_seen, self.subscriptions.as_deref());
        self.users_seen = generation;
        self.update_rights();
        is_expelled
    }

    /// What is watched counts as changed.
    pub fn watch_in_vain(&mut self) {
        self.knows_transactions = true;
        self.watch.changed.get_or_insert_default().store(true, Ordering::Release);
    }

    /// Keeps replies and requests back for `delay_ms`, after any earlier such time.
    pub fn hold(&mut self, now: UnixMs, delay_ms: i64) {
        if delay_ms > 0 {
            let from = self.held_until.map_or(now, |earlier| earlier.max(now));
            self.held_until = Some(from.saturating_add(delay_ms));
        }
    }

    /// Whether replies and requests are kept back at this moment.
    #[inline]
    pub fn is_held(&self, now: UnixMs) -> bool {
        self.held_until.is_some_and(|until| now < until)
    }

    /// Whether what the command that has just run replied is to be sent; otherwise it is taken back. Called once after
    /// each command, those that were refused or queued included.
    #[inline]
    pub fn reply_wanted(&mut self) -> bool {
        match self.replies {
            Replies::On => return true,
            Replies::Off => {}
            Replies::SkipNext => self.replies = Replies::SkipThis,
            Replies::SkipThis => self.replies = Replies::On,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    #[test]
    fn skip_takes_back_its_own_reply_and_the_next() {
        let mut session = Session::new(1, true, 0);
        assert!(session.reply_wanted());
        session.replies = Replies::SkipNext;
        assert!(!session.reply_wanted());
        assert!(!session.reply_wanted());
        assert!(session.reply_wanted());
        session.replies = Replies::Off;
        assert!(!session.reply_wanted());
        assert!(!session.reply_wanted());
    }

    #[test]
    fn holds_add_up() {
        let mut session = Session::new(1, true, 0);
        assert!(!session.is_held(0));
        session.hold(100, 0);
        assert_eq!(session.held_until, None);
        session.hold(100, 50);
        session.hold(100, 50);
        assert!(session.is_held(199));
        assert!(!session.is_held(200));
    }
}
