//! The keys remembered, with the clients that have read them.

use base::slot;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Slices of the keys, each with its lock.
const SLICE_COUNT: usize = 128;

/// From this many clients of a key on, those that are gone are looked for whenever their number has doubled.
const CLIENTS_SWEPT_MIN: usize = 16;

type Slice = HashMap<Box<[u8]>, Vec<u64>>;

pub(super) struct TrackedKeys {
    slices: Box<[Mutex<Slice>]>,
    keys: AtomicUsize,
    items: AtomicUsize,
    /// Where [`TrackedKeys::take_any`] looks next.
    next: AtomicUsize,
}

impl Default for TrackedKeys {
    fn default() -> Self {
        Self {
            slices: (0..SLICE_COUNT).map(|_| Mutex::default()).collect(),
            keys: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
        }
    }
}

impl TrackedKeys {
    /// Adds a client to those of a key. True when these are to be swept ([`Self::sweep`]).
    pub(super) fn remember(&self, client: u64, key: &[u8]) -> bool {
        let mut slice = self.slice(key).lock();
        let Some(clients) = slice.get_mut(key) else {
            slice.insert(key.into(), vec![client]);
            self.keys.fetch_add(1, Ordering::Relaxed);
            self.items.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        let Err(place) = clients.binary_search(&client) else { return false };
        clients.insert(place, client);
        self.items.fetch_add(1, Ordering::Relaxed);
        clients.len() >= CLIENTS_SWEPT_MIN && clients.len().is_power_of_two()
    }

    /// Removes clients of a key that are gone.
    pub(super) fn sweep(&self, key: &[u8], is_there: impl Fn(u64) -> bool) {
        if let Some(clients) = self.slice(key).lock().get_mut(key) {
            let before = clients.len();
            clients.retain(|client| is_there(*client));
            self.items.fetch_sub(before - clients.len(), Ordering::Relaxed);
        }
    }

    /// Forgets that this client has read a key. False when it has not.
    pub(super) fn forget_client(&self, key: &[u8], client: u64) -> bool {
        if self.len() == 0 {
            return false;
        }
        let mut slice = self.slice(key).lock();
        let Some(clients) = slice.get_mut(key) else { return false };
        let Ok(place) = clients.binary_search(&client) else { return false };
        clients.remove(place);
        self.items.fetch_sub(1, Ordering::Relaxed);
        if clients.is_empty() {
            slice.remove(key);
            self.keys.fetch_sub(1, Ordering::Relaxed);
        }
        true
    }

    /// Forgets a key, and gives the clients that have read it.
    pub(super) fn take(&self, key: &[u8]) -> Option<Vec<u64>> {
        if self.len() == 0 {
            return None;
        }
        let clients = self.slice(key).lock().remove(key)?;
        self.forget(&clients);
        Some(clients)
    }

    /// Forgets some key.
    pub(super) fn take_any(&self) -> Option<(Box<[u8]>, Vec<u64>)> {
        for _ in 0..SLICE_COUNT {
            let turn = self.next.fetch_add(1, Ordering::Relaxed) % SLICE_COUNT;
            let mut slice = self.slices[turn].lock();
            let Some(key) = slice.keys().next().cloned() else { continue };
            let clients = slice.remove(&key)?;
            self.forget(&clients);
            return Some((key, clients));
        }
        None
    }

    pub(super) fn clear(&self) {
        for slice in &self.slices {
            let forgotten = std::mem::take(&mut *slice.lock());
            forgotten.values().for_each(|clients| self.forget(clients));
        }
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// How many clients of keys.
    pub(super) fn items(&self) -> usize {
        self.items.load(Ordering::Relaxed)
    }

    fn forget(&self, clients: &[u64]) {
        self.keys.fetch_sub(1, Ordering::Relaxed);
        self.items.fetch_sub(clients.len(), Ordering::Relaxed);
    }

    /// By cluster slot, as the names of channels.
    fn slice(&self, key: &[u8]) -> &Mutex<Slice> {
        &self.slices[slot::slot_of(key).index() % SLICE_COUNT]
    }
}
