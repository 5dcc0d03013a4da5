//! What commands announce: events of keys, messages of transactions, and changed keys, for clients that cache them.
//!
//! ```text
//! Txn::notify, publish, apply -> Scratch, in order -> outbox, under the shards' locks -> announced, after the unlock
//! ```
//!
//! N1. Notices enter the outbox under the locks of their change, and leave it in that order, one announcer at a time.
//!     So the notices of a key have the order of its changes, whichever workers make them.
//! N2. A commit returns when its change has been announced, by its own worker or by another.
//! N3. While no client asks for notices, this costs a command one load of a word that does not change.

use crate::shard::ShardEngine;
use base::{DbIndex, Lsn};
use engine::NotifyClass;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Something to announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something has happened to a key.
    Event {
        /// What, in the words of Redis.
        event: &'static str,
        /// The number of its database at that time.
        db: DbIndex,
        /// The key.
        key: Box<[u8]>,
    },
    /// A message, published inside a transaction.
    Message {
        /// The channel.
        channel: Box<[u8]>,
        /// The text.
        text: Box<[u8]>,
        /// It is a shard channel.
        is_sharded: bool,
    },
    /// A key has changed, in some database.
    Changed {
        /// The key.
        key: Box<[u8]>,
        /// The client that has changed it; 0 for none.
        by: u64,
    },
    /// Many keys have gone at once.
    Flushed,
}

/// Delivers notices. The code that knows the clients provides it.
pub trait Announce: Send + Sync {
    /// Announces these, in this order; events on the channels that `classes` asks for. Notices of changes must be held
    /// back until the log is durable up to `hold`; 0 if they need not be. Called by a worker, which holds no lock of a
    /// shard.
    fn announce(&self, notices: &[Notice], classes: NotifyClass, hold: Lsn, worker: usize);
}

/// Notices on their way, and what is asked for.
#[derive(Default)]
pub struct Notices {
    /// Classes of events asked for, and above them [`CHANGES`] and [`LEAVES`].
    asked: AtomicU32,
    outbox: Mutex<Vec<Batch>>,
    /// Held by the thread that announces.
    announcing: Mutex<()>,
    announcer: OnceLock<Arc<dyn Announce>>,
}

/// The notices of one command.
struct Batch {
    notices: Vec<Notice>,
    hold: Lsn,
}

/// Changes of keys are asked for.
const CHANGES: u32 = 1 << 16;

/// Leaves of trees may be rows, so that a change has to look for those that are not in memory.
const LEAVES: u32 = 1 << 17;

impl Notices {
    /// Sets the announcer; once, before the first command.
    pub fn set_announcer(&self, announcer: Arc<dyn Announce>) {
        // A second one would mean two servers over one store; the first stays.
        let _ = self.announcer.set(announcer);
    }

    /// Asks for events of these classes, as `notify-keyspace-events` does: none unless it names a channel for them.
    pub fn ask_for_events(&self, classes: NotifyClass) {
        let is_told = classes.intersects(NotifyClass::KEYSPACE | NotifyClass::KEYEVENT);
        let classes = if is_told { classes } else { NotifyClass::empty() };
        let change = |asked: u32| Some(asked & (CHANGES | LEAVES) | u32::from(classes.bits()));
        // The closure never gives `None`, so neither does the update fail.
        let _ = self.asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    /// Asks for changes of keys, or no longer.
    pub fn ask_for_changes(&self, on: bool) {
        match on {
            true => self.asked.fetch_or(CHANGES, Ordering::Relaxed),
            false => self.asked.fetch_and(!CHANGES, Ordering::Relaxed),
        };
    }

    /// From now on leaves of trees may be rows.
    pub fn ask_for_leaves(&self) {
        self.asked.fetch_or(LEAVES, Ordering::Relaxed);
    }

    /// Asks for leaves if an engine may have such as rows. Under its lock: what is locked next there has to know.
    pub(crate) fn look_for_leaves(&self, engine: &ShardEngine) {
        if engine.has_leaf_rows() && !self.ask_leaves() {
            self.ask_for_leaves();
        }
    }

    /// Whether leaves of trees may be rows.
    pub(crate) fn ask_leaves(&self) -> bool {
        self.asked.load(Ordering::Relaxed) & LEAVES != 0
    }

    /// The classes asked for.
    pub fn classes(&self) -> NotifyClass {
        NotifyClass::from_bits_truncate(self.asked.load(Ordering::Relaxed) as u16)
    }

    /// Whether a change to a key makes a notice of any kind, or has to look for leaves.
    #[inline]
    pub fn any(&self) -> bool {
        self.asked.load(Ordering::Relaxed) != 0
    }

    /// Whether events of this class are asked for.
    #[inline]
    pub(crate) fn wants(&self, class: NotifyClass) -> bool {
        self.asked.load(Ordering::Relaxed) & u32::from(class.bits()) != 0
    }

    /// Whether changes of keys are asked for.
    pub(crate) fn wants_changes(&self) -> bool {
        self.asked.load(Ordering::Relaxed) & CHANGES != 0
    }

    /// Takes a command's notices, under its locks.
    pub(crate) fn queue(&self, notices: Vec<Notice>, hold: Lsn) {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner).push(Batch { notices, hold });
    }

    /// Announces what is in the outbox, or waits for the thread that does.
    #[cold]
    pub(crate) fn announce(&self, worker: usize) {
        let _announcing = self.announcing.lock().unwrap_or_else(PoisonError::into_inner);
        let batches = std::mem::take(&mut *self.outbox.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(announcer) = self.announcer.get() {
            let classes = self.classes();
            batches.iter().for_each(|batch| announcer.announce(&batch.notices, classes, batch.hold, worker));
        }
    }
}
