//! Keys watched by transactions: a small table per shard, empty nearly always.
//!
//! W1. A watcher's flag is set under the lock of the shard of the key that changed, by the change itself; EXEC looks at
//!     it under that same lock. So a transaction sees every change before it, and none slips between look and run.
//! W2. A watch is on a key of a database. When two databases are exchanged, watches of keys that neither has go with
//!     the database's number to its new keyspace; all others have seen a change.

use base::{KeyspaceId, SlotId, UnixMs};
use engine::Key;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// The watched keys of one shard. Guarded by the shard's lock.
#[derive(Default)]
pub struct WatchTable {
    watched: HashMap<(KeyspaceId, u64), Watched>,
    /// Keys at which flags of connections that are gone are swept out.
    sweep_at: usize,
    /// When they last were.
    swept_at_ms: UnixMs,
}

/// Time between two sweeps by upkeep.
const SWEEP_PERIOD_MS: i64 = 1000;

/// A key and its watchers' flags.
struct Watched {
    key: Box<[u8]>,
    slot: SlotId,
    flags: Vec<Weak<AtomicBool>>,
}

impl WatchTable {
    /// Whether no key is watched: the test on every change.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Sets the flag when the key changes. Keys are identified by their hash: a collision aborts a transaction that
    /// could have run, once in 2^64.
    pub fn watch(&mut self, key: &Key<'_>, flag: &Arc<AtomicBool>) {
        if self.watched.len() >= self.sweep_at.max(64) {
            self.sweep();
        }
        let new = || Watched { key: key.bytes.into(), slot: key.slot, flags: Vec::new() };
        let flags = &mut self.watched.entry((key.space, key.hash)).or_insert_with(new).flags;
        flags.retain(|other| other.strong_count() > 0);
        flags.push(Arc::downgrade(flag));
    }

    /// Forgets flags of connections that are gone, now and then: what they watched takes memory until then, and is
    /// looked up by every change.
    pub fn upkeep(&mut self, now: UnixMs) {
        if !self.watched.is_empty() && now.abs_diff(self.swept_at_ms) >= SWEEP_PERIOD_MS.unsigned_abs() {
            self.swept_at_ms = now;
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        self.watched.retain(|_, watched| {
            watched.flags.retain(|flag| flag.strong_count() > 0);
            !watched.flags.is_empty()
        });
        self.watched.shrink_to(self.watched.len() * 2);
        self.sweep_at = self.watched.len() * 2;
    }

    /// The key has changed: its watchers are flagged and forgotten.
    pub fn touch(&mut self, space: KeyspaceId, hash: u64) {
        if let Some(watched) = self.watched.remove(&(space, hash)) {
            watched.tell();
        }
    }

    /// The watched keys for which `changed` says so have changed.
    pub fn touch_where(&mut self, mut changed: impl FnMut(&Key<'_>) -> bool) {
        self.watched.retain(|(space, hash), watched| {
            let key = Key { bytes: &watched.key, hash: *hash, slot: watched.slot, space: *space };
            let is_changed = changed(&key);
            if is_changed {
                watched.tell();
            }
            !is_changed
        });
    }

    /// Two keyspaces exchange their databases.
    pub fn swap(&mut self, a: KeyspaceId, b: KeyspaceId) {
        let exchange = |space: KeyspaceId| match space {
            space if space == a => b,
            space if space == b => a,
            space => space,
        };
        let watched = std::mem::take(&mut self.watched);
        self.watched = watched.into_iter().map(|((space, hash), it)| ((exchange(space), hash), it)).collect();
    }
}

impl Watched {
    fn tell(&self) {
        for flag in self.flags.iter().filter_map(Weak::upgrade) {
            flag.store(true, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(space: u32, hash: u64) -> Key<'static> {
        Key { bytes: b"key", hash, slot: SlotId(0), space: KeyspaceId(space) }
    }

    fn is_told(flag: &Arc<AtomicBool>) -> bool {
        flag.load(Ordering::Relaxed)
    }

    #[test]
    fn a_change_reaches_its_watchers_only() {
        let (mut table, a, b) = (WatchTable::default(), Arc::default(), Arc::default());
        table.watch(&key(0, 1), &a);
        table.watch(&key(0, 2), &b);
        table.touch(KeyspaceId(1), 1);
        assert!(!is_told(&a));
        table.touch(KeyspaceId(0), 1);
        assert!(is_told(&a) && !is_told(&b));
        table.touch_where(|key| key.space == KeyspaceId(0) && key.hash == 2);
        assert!(is_told(&b) && table.is_empty());
    }

    #[test]
    fn a_watch_goes_with_its_database() {
        let (mut table, flag) = (WatchTable::default(), Arc::default());
        table.watch(&key(0, 1), &flag);
        table.swap(KeyspaceId(0), KeyspaceId(1));
        table.touch(KeyspaceId(0), 1);
        assert!(!is_told(&flag));
        table.touch(KeyspaceId(1), 1);
        assert!(is_told(&flag));
    }

    /// A million WATCHes of connections that are gone do not pile up.
    #[test]
    fn forgotten_flags_are_swept() {
        let mut table = WatchTable::default();
        for hash in 0..100_000 {
            table.watch(&key(0, hash), &Arc::default());
        }
        assert!(table.watched.len() <= 128);
        let stays = Arc::default();
        table.watch(&key(0, 1), &stays);
        table.upkeep(1_000_000);
        assert_eq!(table.watched.len(), 1, "upkeep forgets them all");
        assert!(table.watched.capacity() < 64);
    }
}
