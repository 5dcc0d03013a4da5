//! Serving commands that wait for keys: the command that changes a key does it, under its own locks, in the same
//! record.
//!
//! ```text
//! locked -> waiters reach further shards? unlock, lock the union, look again -> run, noting keys that are waited for
//!        -> serve their waiters, in order -> append the record -> unlock -> have the answers sent
//! ```
//!
//! V1. The locks cover every key that a waiter of a locked shard reaches (`Store::lock_beside`), before anything
//! changes.
//! V2. Keys are served in the order in which they were changed, each waiter of a key in the order in which it came,
//!     after the whole command or transaction. Keys that serving changes are served after those.
//! V3. An answer is sent only when its changes have their place in the log, and is held back with them.
//! V4. A wait has ended before the changes of serving it are announced, so that a served client is notified of its own
//!     changes after its reply.

pub(crate) mod serving;

use crate::lock_set::LockSet;
use crate::locking::HeldShards;
use crate::store::Store;
use crate::txn::{Scratch, Txn};
use base::Lsn;
use engine::{Engine, Fetch, Key, Keyspace, Serve, Waiter, WriteClass};
use std::sync::Arc;

impl Scratch {
    /// What serves waiting commands when this worker changes their keys; without it they wait for their time.
    pub fn serve_with(&mut self, server: Arc<dyn Serve>) {
        self.serving.server = Some(server);
    }

    /// Whom the last command has served; `None` nearly always.
    #[inline]
    pub(crate) fn take_served(&mut self) -> Option<Served> {
        if self.serving.served.is_empty() {
            return None;
        }
        let waiters = std::mem::take(&mut self.serving.served);
        let (wrote, hold) = if self.is_logged() { (self.wrote(), self.hold()) } else { (None, None) };
        Some(Served { waiters, wrote, hold })
    }
}

/// Those that a command has served, after its record was appended (V3).
pub(crate) struct Served {
    waiters: Vec<Arc<dyn Waiter>>,
    wrote: Option<Lsn>,
    hold: Option<Lsn>,
}

impl Served {
    /// Ends the waits with their answers.
    #[cold]
    pub(crate) fn settle(&self) {
        self.waiters.iter().for_each(|waiter| waiter.settle(self.wrote, self.hold));
    }

    /// Has the answers sent.
    #[cold]
    pub(crate) fn wake(self) {
        self.waiters.iter().for_each(|waiter| waiter.wake());
    }
}

impl Store {
    /// The locks of a command that may change keys, and with them those that serving their waiters takes. `hash` is
    /// that of its only key. `None` after enlisting `worker` with a lock that was taken; then none is held.
    #[inline]
    pub(crate) fn lock_beside<'s>(
        &'s self,
        mut held: HeldShards<'s>,
        hash: Option<u64>,
        writes: WriteClass,
        worker: usize,
    ) -> Option<HeldShards<'s>> {
        if writes == WriteClass::Nothing || held.iter_mut().all(|shard| shard.waits.is_empty()) {
            return Some(held);
        }
        self.lock_union(held, hash, worker)
    }

    #[cold]
    fn lock_union<'s>(
        &'s self,
        mut held: HeldShards<'s>,
        mut hash: Option<u64>,
        worker: usize,
    ) -> Option<HeldShards<'s>> {
        loop {
            let locked = held.set();
            let mut wanted = locked.clone();
            held.iter_mut().for_each(|shard| wanted.extend(shard.waits.shards_beside(hash)));
            if wanted == locked {
                return Some(held);
            }
            self.unlock(held);
            held = self.lock(&wanted, worker)?;
            // What is served may change any key of these.
            hash = None;
        }
    }

    /// Forgets a waiter that has ended without being served. Tables of shards that are locked now lose it at a later
    /// sweep.
    pub fn forget_waiter(&self, waiter: &dyn Waiter) {
        let Some(space) = self.spaces.get(waiter.db()) else { return };
        waiter.visit_keys(&mut |bytes, is_awaited| {
            let key = self.key(space, bytes);
            if is_awaited && let Some(mut held) = self.shard(self.shard_of(&key)).lock.spin_lock() {
                held.waits.remove(&key, waiter);
                self.unlock_one(held);
            }
        });
    }
}

impl Txn<'_> {
    /// Enlists a waiter with all keys it waits for.
    pub(crate) fn enlist(&mut self, waiter: &Arc<dyn Waiter>) {
        let (space, store) = (self.space(), self.store);
        let mut shards = LockSet::None;
        waiter.visit_keys(&mut |bytes, _| shards.insert(store.shard_of_bytes(bytes)));
        waiter.visit_keys(&mut |bytes, is_awaited| {
            if is_awaited {
                let key = store.key(space, bytes);
                let waits = &mut self.shard(&key).waits;
                waits.remove(&key, &**waiter);
                waits.enlist(&key, waiter, &shards);
            }
        });
    }

    /// Reads the rows that serving may need, where that can mean to fetch them: it must not happen after the first
    /// change.
    #[inline]
    pub(crate) fn prepare_to_serve(&mut self, writes: WriteClass) -> Result<(), Fetch> {
        if writes == WriteClass::Nothing || self.held.iter_mut().all(|shard| shard.waits.is_empty()) {
            return Ok(());
        }
        self.fetch_for_waiters()
    }

    #[cold]
    pub(crate) fn fetch_for_waiters(&mut self) -> Result<(), Fetch> {
        if !self.may_fetch() {
            return Ok(());
        }
        let waiting = self.held.iter_mut().flat_map(|shard| shard.waits.waiters().cloned().collect::<Vec<_>>());
        let waiting: Vec<Arc<dyn Waiter>> = waiting.collect();
        let mut result = Ok(());
        for waiter in waiting {
            let Some(space) = self.space_of(waiter.db()) else { continue };
            waiter.visit_keys(&mut |bytes, _| {
                let key = self.store.key(space, bytes);
                // Waiters of other keys of these shards may reach further; they will not be served (V1).
                if !self.held.has(self.store.shard_of(&key)) {
                    return;
                }
                // All are asked for, so that they come together.
                let shard = self.store.shard_of(&key);
                if self.held.get(shard).engine.read(&key, false).is_err() {
                    self.scratch.want(shard, &key);
                    result = Err(Fetch);
                }
            });
        }
        result
    }

    /// Serves the waiters of all keys that the command has changed (V2).
    #[cold]
    pub(crate) fn serve_waiters(&mut self) {
        let space = self.space();
        while let Some((of, bytes)) = self.scratch.serving.ready.pop_front() {
            let key = self.store.key(of, &bytes);
            self.serve_key(&key);
        }
        self.go_to(space);
    }

    fn serve_key(&mut self, key: &Key<'_>) {
        let Some(server) = self.scratch.serving.server.clone() else { return };
        let mut at = 0;
        for _ in 0..self.shard(key).waits.begin(key) {
            let shard = self.shard(key);
            let found = shard.engine.read(key, false).ok().flatten().map(|entry| entry.kind);
            let Some((place, waiter)) = shard.waits.next(key, at, found) else { return };
            at = place;
            let client = std::mem::replace(&mut self.scratch.client, waiter.client());
            let is_served = server.serve(self, &*waiter);
            self.scratch.client = client;
            match is_served {
                true => {
                    self.delist(&*waiter);
                    self.scratch.serving.served.push(waiter);
                }
                false => at += 1,
            }
        }
    }

    /// Takes a waiter out of the queues of all its keys.
    fn delist(&mut self, waiter: &dyn Waiter) {
        let Some(space) = self.space_of(waiter.db()) else { return };
        let store = self.store;
        waiter.visit_keys(&mut |bytes, is_awaited| {
            if is_awaited {
                let key = store.key(space, bytes);
                self.shard(&key).waits.remove(&key, waiter);
            }
        });
    }
}
