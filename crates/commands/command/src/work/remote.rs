//! Keys on their way to another server: what MIGRATE hands to the migrator, which has sockets, and what comes back.
//!
//! ```text
//! under the locks:  MIGRATE reads its keys --> Migration --> Migrator::send, on a thread of the server
//! without locks:    big payloads are made; the other server answers each RESTORE --> SendOutcome; the connection wakes
//! under the locks:  MIGRATE runs again: removes each key that is there and is still what was sent
//! ```
//!
//! C1. A key is removed here only when the other server has said that it has it, and only if under the locks it is,
//!     byte for byte, what was sent: no change is lost between the two.

use crate::clients::Closer;
use crate::error::{self, Stop};
use crate::limits::REPLY_BYTES_MAX;
use crate::payload::{self, content_bytes, payload_of_tree};
use crate::work::steps::Work;
use base::UnixMs;
use engine::{Entry, SharedBig, SharedBytes, Type, Value};
use rdb::WriteError;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// Keys to be sent, and where to.
#[derive(Debug)]
pub struct Migration {
    /// Host name or address.
    pub host: String,
    /// As it was given; a number if it is right.
    pub port: String,
    /// The database there.
    pub db: i64,
    /// How long any one step of the exchange may take.
    pub timeout_ms: u64,
    /// Arguments of AUTH: a password, or a user and a password.
    pub login: Vec<Vec<u8>>,
    /// The keys.
    pub keys: Vec<SentKey>,
    /// Keys of the same request that the other server has already: sent before, with others that have to be sent again.
    pub arrived: Vec<SentKey>,
}

/// One of them.
#[derive(Debug)]
pub struct SentKey {
    /// The key.
    pub key: Vec<u8>,
    /// What is under it.
    pub content: Content,
    /// When it expires; `None` for never.
    pub expire_at: Option<UnixMs>,
    /// Milliseconds it has left to live; 0 for no end.
    pub ttl_ms: i64,
    /// Whether it is to take the place of what is there.
    pub replace: bool,
}

/// What is under a key at one moment.
#[derive(Debug)]
pub enum Content {
    /// What DUMP gives of it.
    Payload(Vec<u8>),
    /// A big collection, shared: no command changes it in place meanwhile, so it is still the stored one exactly if it
    /// is the same allocation.
    Tree(Type, SharedBig),
    /// A long string, shared.
    Text(SharedBytes),
}

/// What has more bytes is shared, and its payload made by the thread that sends it.
const SHARED_BYTES_MIN: usize = 128 << 10;

impl Content {
    /// That of an entry.
    ///
    /// # Errors
    /// It is too long to be sent.
    pub fn of(entry: &Entry<'_>) -> Result<Self, Stop> {
        let bytes = content_bytes(entry);
        match entry.value {
            _ if bytes > REPLY_BYTES_MAX => Err(error::REPLY_TOO_LONG),
            Value::Big(tree) if bytes > SHARED_BYTES_MIN => Ok(Self::Tree(entry.kind, tree.clone())),
            Value::Shared(text) if bytes > SHARED_BYTES_MIN => Ok(Self::Text(text.clone())),
            _ => payload::payload(entry).map(Self::Payload),
        }
    }

    /// What DUMP gives of it.
    ///
    /// # Errors
    /// The format has no form for it.
    pub fn payload(&self) -> Result<Cow<'_, [u8]>, WriteError> {
        match self {
            Self::Payload(payload) => Ok(Cow::Borrowed(payload)),
            Self::Tree(kind, tree) => payload_of_tree(*kind, tree).map(Cow::Owned),
            Self::Text(text) => rdb::dump::write_for_oldest(&rdb::Value::String(text.to_vec())).map(Cow::Owned),
        }
    }

    /// Bytes of it, about: all of what is shared, since it may be changed there and be kept by this alone.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Payload(payload) => payload.len(),
            Self::Tree(_, tree) => tree.content_bytes(),
            Self::Text(text) => text.len(),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Payload(one), Self::Payload(other)) => one == other,
            (Self::Tree(_, one), Self::Tree(_, other)) => SharedBig::ptr_eq(one, other),
            (Self::Text(one), Self::Text(other)) => SharedBytes::ptr_eq(one, other) || one[..] == other[..],
            _ => false,
        }
    }
}

impl SentKey {
    /// Whether it is what was sent.
    pub fn is_same(&self, sent: &Self) -> bool {
        self.content.is(&sent.content) && self.expire_at == sent.expire_at
    }
}

impl Migration {
    /// The memory it takes.
    pub fn held_bytes(&self) -> usize {
        let each = |sent: &SentKey| {
            size_of::<SentKey>().saturating_add(sent.key.capacity()).saturating_add(sent.content.bytes())
        };
        self.keys.iter().chain(&self.arrived).map(each).fold(0, usize::saturating_add)
    }
}

/// What has become of a migration.
#[derive(Debug, Default)]
pub struct SendOutcome {
    /// Of each key, in order, whether the other server has it. Short when it did not answer all.
    pub is_there: Vec<bool>,
    /// The text of the first error that it answered.
    pub refusal: Option<Vec<u8>>,
    /// Why the exchange ended before its end: what was done, and what went wrong.
    pub failure: Option<String>,
}

/// Sends migrations. A part of the [`Host`](crate::Host), as `Arc<dyn Migrator>`.
pub trait Migrator: Send + Sync {
    /// Begins, and does not wait: [`Sending::end`] is called when it is over, from another thread.
    fn send(&self, sending: Arc<Sending>);
}

/// A migration on its way, and the connection that waits for it.
pub struct Sending {
    /// What is sent.
    pub migration: Migration,
    outcome: OnceLock<SendOutcome>,
    worker: usize,
    client: u64,
    closer: Option<Arc<dyn Closer>>,
}

impl Sending {
    /// A sending for a client of a worker; `closer` wakes it.
    pub fn new(migration: Migration, worker: usize, client: u64, closer: Option<Arc<dyn Closer>>) -> Self {
        Self { migration, outcome: OnceLock::new(), worker, client, closer }
    }

    /// It is over. Only the first call counts.
    pub fn end(&self, outcome: SendOutcome) {
        if self.outcome.set(outcome).is_ok()
            && let Some(closer) = &self.closer
        {
            closer.end_wait(self.worker, self.client);
        }
    }

    /// What came of it, once it is over.
    pub fn outcome(&self) -> Option<&SendOutcome> {
        self.outcome.get()
    }
}

/// The wait of a request for its keys to arrive.
pub struct RemoteWork(pub Arc<Sending>);

impl Work for RemoteWork {
    fn step(&mut self) -> bool {
        self.is_elsewhere()
    }

    fn held_bytes(&self) -> usize {
        self.0.migration.held_bytes()
    }

    fn is_elsewhere(&self) -> bool {
        self.0.outcome().is_none()
    }
}
