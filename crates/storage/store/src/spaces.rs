//! From SELECT numbers to keyspaces: a map that only SWAPDB changes.

use base::{DbIndex, KeyspaceId};
use std::sync::atomic::{AtomicU32, Ordering};

/// The keyspace of every database number. Changed only under all shard locks, so a command that holds one lock sees a
/// map that does not change while it runs.
pub struct Spaces {
    by_index: Box<[AtomicU32]>,
}

impl Spaces {
    /// Databases 0 to `count` - 1, each its own keyspace.
    pub fn new(count: u32) -> Self {
        Self { by_index: (0..count).map(AtomicU32::new).collect() }
    }

    /// How many databases.
    pub fn count(&self) -> usize {
        self.by_index.len()
    }

    /// The keyspace of a number.
    #[inline]
    pub fn get(&self, index: DbIndex) -> Option<KeyspaceId> {
        // Relaxed: the shard locks order this with SWAPDB's stores.
        self.by_index.get(index.index()).map(|space| KeyspaceId(space.load(Ordering::Relaxed)))
    }

    /// The number of a keyspace; `None` when it has none.
    pub fn index_of(&self, space: KeyspaceId) -> Option<DbIndex> {
        let place = self.by_index.iter().position(|other| other.load(Ordering::Relaxed) == space.0)?;
        u32::try_from(place).ok().map(DbIndex)
    }

    /// Gives a number another keyspace: while nothing else runs, at a start. Does nothing for a number there is not.
    pub fn set(&self, index: DbIndex, space: KeyspaceId) {
        if let Some(place) = self.by_index.get(index.index()) {
            place.store(space.0, Ordering::Relaxed);
        }
    }

    /// Exchanges two keyspaces' numbers.
    pub fn swap(&self, a: KeyspaceId, b: KeyspaceId) {
        for space in &self.by_index {
            let old = space.load(Ordering::Relaxed);
            let new = if old == a.0 {
                b.0
            } else if old == b.0 {
                a.0
            } else {
                old
            };
            space.store(new, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapping_exchanges_numbers() {
        let spaces = Spaces::new(3);
        spaces.swap(KeyspaceId(0), KeyspaceId(2));
        assert_eq!(spaces.get(DbIndex(0)), Some(KeyspaceId(2)));
        assert_eq!(spaces.get(DbIndex(1)), Some(KeyspaceId(1)));
        assert_eq!(spaces.get(DbIndex(2)), Some(KeyspaceId(0)));
        assert_eq!(spaces.get(DbIndex(3)), None);
        assert_eq!((spaces.index_of(KeyspaceId(2)), spaces.index_of(KeyspaceId(3))), (Some(DbIndex(0)), None));
    }
}
