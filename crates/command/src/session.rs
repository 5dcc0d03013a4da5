//! What a connection has said about itself: database, protocol, name, login, transaction.

use base::{DbIndex, UnixMs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state of one client connection that commands read and change. Owned by its worker.
pub struct Session {
    /// The number CLIENT ID answers; never used twice.
    pub id: u64,
    /// The database SELECT has chosen.
    pub db: DbIndex,
    /// Whether it may run commands: true from the start when no password is set.
    pub authenticated: bool,
    /// Set by CLIENT SETNAME or HELLO SETNAME.
    pub name: Vec<u8>,
    /// Set by CLIENT SETINFO lib-name.
    pub library_name: Vec<u8>,
    /// Set by CLIENT SETINFO lib-ver.
    pub library_version: Vec<u8>,
    /// The commands queued since MULTI; `None` outside.
    pub transaction: Option<Transaction>,
    /// Keys watched since the last EXEC, DISCARD or UNWATCH.
    pub watch: Watch,
    /// What CLIENT REPLY has asked for.
    pub replies: Replies,
    /// CLIENT NO-TOUCH: reads do not renew access stamps.
    pub no_touch: bool,
    /// CLIENT NO-EVICT: never closed for the memory of all clients.
    pub no_evict: bool,
    /// Capabilities named by CLIENT CAPA.
    pub can_redirect: bool,
    /// Shows every command of the server (MONITOR).
    pub monitor: bool,
    /// Close once the replies written so far are sent.
    pub close_after_replies: bool,
    /// When it connected, for CLIENT LIST.
    pub connected_at: UnixMs,
}

/// Commands queued by MULTI.
#[derive(Default)]
pub struct Transaction {
    /// The requests, in order.
    pub queue: Vec<Queued>,
    /// Bytes the queue holds, for the limit on it.
    pub bytes: usize,
    /// A queued command was refused: EXEC answers EXECABORT.
    pub poisoned: bool,
}

/// One queued request.
pub struct Queued {
    /// Its row.
    pub row: crate::table::Row,
    /// Its arguments.
    pub args: crate::args::OwnedArgs,
}

/// The keys a connection watches, and whether one of them was changed.
#[derive(Default)]
pub struct Watch {
    /// Set by whoever changes a watched key, under the key's shard lock.
    pub changed: Option<Arc<AtomicBool>>,
    /// What is watched: database at the time of WATCH, key, and whether it was expired then.
    pub keys: Vec<WatchedKey>,
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

impl Session {
    /// Whether a request can run at once: logged in, outside MULTI.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.authenticated && self.transaction.is_none()
    }

    /// A fresh connection.
    pub fn new(id: u64, authenticated: bool, connected_at: UnixMs) -> Self {
        Self {
            id,
            db: DbIndex(0),
            authenticated,
            name: Vec::new(),
            library_name: Vec::new(),
            library_version: Vec::new(),
            transaction: None,
            watch: Watch::default(),
            replies: Replies::On,
            no_touch: false,
            no_evict: false,
            can_redirect: false,
            monitor: false,
            close_after_replies: false,
            connected_at,
        }
    }
}
