//! Keys watched by transactions: a small table per shard, empty nearly always.
//!
//! W1. A watcher's flag is set under the lock of the shard of the key that changed, by the change itself; EXEC looks at it
//!     under that same lock. So a transaction sees every change before it, and none slips between look and run.

use base::KeyspaceId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Who watches what in one shard. Guarded by the shard's lock.
#[derive(Default)]
pub struct WatchTable {
    watchers: HashMap<(KeyspaceId, u64), Vec<Weak<AtomicBool>>>,
    /// Entries at which flags of connections that are gone are swept out.
    sweep_at: usize,
}

impl WatchTable {
    /// Whether nobody watches: the test on every change.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.watchers.is_empty()
    }

    /// Sets the flag when the key changes. Keys are known by hash: a collision aborts a transaction that could have run,
    /// once in 2^64.
    pub fn watch(&mut self, space: KeyspaceId, hash: u64, flag: &Arc<AtomicBool>) {
        if self.watchers.len() >= self.sweep_at.max(64) {
            self.watchers.retain(|_, flags| {
                flags.retain(|flag| flag.strong_count() > 0);
                !flags.is_empty()
            });
            self.sweep_at = self.watchers.len() * 2;
        }
        let flags = self.watchers.entry((space, hash)).or_default();
        flags.retain(|other| other.strong_count() > 0);
        flags.push(Arc::downgrade(flag));
    }

    /// The key has changed: its watchers are told and forgotten.
    pub fn touch(&mut self, space: KeyspaceId, hash: u64) {
        for flag in self.watchers.remove(&(space, hash)).into_iter().flatten() {
            if let Some(flag) = flag.upgrade() {
                flag.store(true, Ordering::Release);
            }
        }
    }

    /// Every watched key of the keyspace for which `changed` says so has changed.
    pub fn touch_where(&mut self, space: KeyspaceId, mut changed: impl FnMut(u64) -> bool) {
        let hashes: Vec<u64> =
            self.watchers.keys().filter(|(of, hash)| *of == space && changed(*hash)).map(|(_, hash)| *hash).collect();
        hashes.into_iter().for_each(|hash| self.touch(space, hash));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_reaches_its_watchers_only() {
        let (mut table, a, b) = (WatchTable::default(), Arc::default(), Arc::default());
        table.watch(KeyspaceId(0), 1, &a);
        table.watch(KeyspaceId(0), 2, &b);
        table.touch(KeyspaceId(1), 1);
        assert!(!a.load(Ordering::Relaxed));
        table.touch(KeyspaceId(0), 1);
        assert!(a.load(Ordering::Relaxed) && !b.load(Ordering::Relaxed));
        table.touch_where(KeyspaceId(0), |hash| hash == 2);
        assert!(b.load(Ordering::Relaxed) && table.is_empty());
    }

    /// A million WATCHes of connections that are gone do not pile up.
    #[test]
    fn forgotten_flags_are_swept() {
        let mut table = WatchTable::default();
        for hash in 0..100_000 {
            table.watch(KeyspaceId(0), hash, &Arc::default());
        }
        assert!(table.watchers.len() <= 128);
    }
}
