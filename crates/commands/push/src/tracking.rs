//! CLIENT TRACKING: which clients cache which keys, and are notified when these change.
//!
//! ```text
//! default   a read, under its shard's lock --> remember(key, client) --> a change: key forgotten, clients notified
//! BCAST     nothing is remembered; a change of a key with one of the client's prefixes notifies it
//! ```
//!
//! V1. A key is remembered under the lock of its shard, and a change is noted under that lock before it is announced.
//!     So a client that read a value is notified of every change of it; it may be notified once too often, never too
//!     rarely.
//! V2. Invalidations are queued on the client's worker, so they follow the reply that exposed the value.
//! V3. At most `tracking-table-max-keys` keys are remembered. Others are forgotten as if they had changed.

mod keys;
#[cfg(test)]
mod tests;

use crate::outlet::{Content, Outlets, To};
use crate::receivers::Receiver;
use keys::TrackedKeys;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a client wants to be notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracker {
    /// The client.
    pub client: Receiver,
    /// The client that is notified in its place, if any.
    pub redirect: Option<Receiver>,
    /// It is not notified of its own changes.
    pub is_noloop: bool,
    /// It is notified by prefix only, and not of keys that it has read before.
    pub is_broadcast: bool,
}

/// Keys that a client is to forget.
#[derive(Debug, PartialEq, Eq)]
pub struct Invalidation {
    /// The keys; `None` for all it has.
    pub keys: Option<Vec<Box<[u8]>>>,
}

/// A change of a key.
#[derive(Clone, Copy, Debug)]
pub struct Change<'k> {
    /// The key.
    pub key: &'k [u8],
    /// The client that has made it; 0 for none.
    pub by: u64,
}

/// Keys forgotten in one go when there are more than the limit.
const FORGOTTEN_AT_ONCE_MAX: usize = 10_000;

/// The caller is not a worker: all workers that have something to deliver are woken.
const ALL_WORKERS: usize = usize::MAX;

/// All tracking of a server. Locks are taken in the order of the fields: clients, prefixes, slices of keys.
pub struct Tracking {
    outlets: Arc<Outlets>,
    clients: RwLock<HashMap<u64, Tracker>>,
    /// The clients in BCAST mode by prefix.
    prefixes: RwLock<BTreeMap<Box<[u8]>, BTreeSet<u64>>>,
    keys: TrackedKeys,
    keys_max: AtomicUsize,
    /// Starts or stops notices of changed keys.
    ask: Box<dyn Fn(bool) + Send + Sync>,
}

impl Tracking {
    /// No client tracks yet. `ask` is called when changes begin and cease to matter.
    pub fn new(outlets: Arc<Outlets>, ask: impl Fn(bool) + Send + Sync + 'static) -> Self {
        Self {
            outlets,
            keys: TrackedKeys::default(),
            keys_max: AtomicUsize::new(usize::MAX),
            clients: RwLock::default(),
            prefixes: RwLock::default(),
            ask: Box::new(ask),
        }
    }

    /// Sets `tracking-table-max-keys`; 0 for no limit.
    pub fn set_keys_max(&self, keys: usize) {
        self.keys_max.store(if keys == 0 { usize::MAX } else { keys }, Ordering::Relaxed);
        self.forget_excess();
    }

    /// Forgets keys beyond the limit and notifies their clients, at most [`FORGOTTEN_AT_ONCE_MAX`] of them. Called when
    /// the limit is lowered, and ten times a second.
    pub fn forget_excess(&self) {
        for _ in 0..FORGOTTEN_AT_ONCE_MAX {
            if !self.forget_one_beyond_limit(ALL_WORKERS) {
                break;
            }
        }
    }

    /// Forgets a key as if it had changed, if there are more than the limit; whether there were.
    fn forget_one_beyond_limit(&self, worker: usize) -> bool {
        let is_beyond = self.keys.len() > self.keys_max.load(Ordering::Relaxed);
        let forgotten = if is_beyond { self.keys.take_any() } else { None };
        forgotten.map(|(key, clients)| self.tell(&clients, &key, 0, worker)).is_some()
    }

    /// Starts tracking for a client, or changes its options. In BCAST mode it is notified of keys with these prefixes
    /// and with those it named before.
    pub fn enter(&self, tracker: Tracker, prefixes: &[&[u8]]) {
        let mut clients = self.clients.write();
        clients.insert(tracker.client.client, tracker);
        // Under the lock, so that the last to leave does not undo it.
        (self.ask)(true);
        let mut all = self.prefixes.write();
        for prefix in prefixes {
            all.entry((*prefix).into()).or_default().insert(tracker.client.client);
        }
    }

    /// Ends tracking for a client, with the prefixes it has.
    pub fn leave<'p>(&self, client: u64, prefixes: impl Iterator<Item = &'p [u8]>) {
        let mut clients = self.clients.write();
        clients.remove(&client);
        let mut all = self.prefixes.write();
        for prefix in prefixes {
            if let Some(members) = all.get_mut(prefix) {
                members.remove(&client);
                if members.is_empty() {
                    all.remove(prefix);
                }
            }
        }
        if clients.is_empty() {
            (self.ask)(false);
            self.keys.clear();
        }
    }

    /// Remembers that the client has read the key, whose shard is locked.
    pub fn remember(&self, client: u64, key: &[u8], worker: usize) {
        if self.keys.remember(client, key) {
            let known = self.clients.read();
            self.keys.sweep(key, |client| known.contains_key(&client));
        }
        // Two, so that a table beyond its limit shrinks while keys are read.
        let _ = self.forget_one_beyond_limit(worker) && self.forget_one_beyond_limit(worker);
    }

    /// Sends an invalidation to the client that has made a change, if it has read the key.
    pub fn tell_maker(&self, change: Change<'_>, worker: usize) {
        if self.keys.forget_client(change.key, change.by) {
            self.tell(&[change.by], change.key, change.by, worker);
        }
    }

    /// Sends an invalidation to all other clients that have read a changed key.
    pub fn tell_readers(&self, change: Change<'_>, worker: usize) {
        if let Some(clients) = self.keys.take(change.key) {
            self.tell(&clients, change.key, change.by, worker);
        }
    }

    /// Sends the changes of one command to the clients in BCAST mode.
    pub fn broadcast(&self, changes: &[Change<'_>], worker: usize) {
        let (clients, prefixes, mut woken) = (self.clients.read(), self.prefixes.read(), Vec::new());
        for (prefix, members) in &*prefixes {
            let matching = || changes.iter().filter(|change| change.key.starts_with(prefix));
            if matching().next().is_none() {
                continue;
            }
            let keys = |spared: u64| {
                let keys: BTreeSet<&[u8]> =
                    matching().filter(|it| it.by == 0 || it.by != spared).map(|it| it.key).collect();
                Arc::new(Invalidation { keys: Some(keys.into_iter().map(Box::from).collect()) })
            };
            let all = keys(0);
            for tracker in members.iter().filter_map(|client| clients.get(client)) {
                let invalidation = if tracker.is_noloop { keys(tracker.client.client) } else { all.clone() };
                if invalidation.keys.as_ref().is_some_and(|keys| !keys.is_empty()) {
                    self.send(tracker, invalidation, &mut woken);
                }
            }
        }
        self.outlets.wake(&woken, worker);
    }

    /// Tells all clients to drop all keys, and forgets all keys.
    pub fn flushed(&self, worker: usize) {
        self.keys.clear();
        let invalidation = Arc::new(Invalidation { keys: None });
        let mut woken = Vec::new();
        for tracker in self.clients.read().values() {
            self.send(tracker, invalidation.clone(), &mut woken);
        }
        self.outlets.wake(&woken, worker);
    }

    /// Tells a client that the target of its redirection is gone.
    pub fn redirection_is_broken(&self, client: Receiver, worker: usize) {
        let mut woken = Vec::new();
        self.outlets.push(client.worker, To::One(client), Content::RedirectionBroken, &mut woken);
        self.outlets.wake(&woken, worker);
    }

    /// Clients that track.
    pub fn client_count(&self) -> usize {
        self.clients.read().len()
    }

    /// Keys remembered, clients remembered with them, and prefixes.
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.keys.len(), self.keys.items(), self.prefixes.read().len())
    }

    /// Tells clients to forget a key that `by` has changed.
    fn tell(&self, clients: &[u64], key: &[u8], by: u64, worker: usize) {
        let invalidation = Arc::new(Invalidation { keys: Some(vec![key.into()]) });
        let (known, mut woken) = (self.clients.read(), Vec::new());
        for tracker in clients.iter().filter_map(|client| known.get(client)) {
            let is_own = tracker.client.client == by;
            if !(tracker.is_broadcast || is_own && tracker.is_noloop) {
                self.send(tracker, invalidation.clone(), &mut woken);
            }
        }
        self.outlets.wake(&woken, worker);
    }

    fn send(&self, tracker: &Tracker, invalidation: Arc<Invalidation>, woken: &mut Vec<usize>) {
        let to = tracker.redirect.unwrap_or(tracker.client);
        let redirected_from = tracker.redirect.map(|_| tracker.client);
        self.outlets.push(to.worker, To::One(to), Content::Invalidation { invalidation, redirected_from }, woken);
    }
}
