//! Counts of sticky entries.

use base::KeyspaceId;

/// The sticky entries of a keyspace.
#[derive(Clone, Copy, Default)]
pub struct Count {
    /// How many.
    pub items: u64,
    /// What they take.
    pub bytes: u64,
}

/// The sticky entries of a shard, from the first one on.
#[derive(Default)]
pub struct Sticky {
    /// By keyspace.
    pub by_space: Vec<Count>,
    /// The key that is being changed, whose entry is not counted (Z1).
    pub open: Option<(KeyspaceId, Vec<u8>)>,
}

impl Sticky {
    /// The count of a keyspace.
    pub fn of(&mut self, space: KeyspaceId) -> &mut Count {
        if self.by_space.len() <= space.index() {
            self.by_space.resize(space.index() + 1, Count::default());
        }
        &mut self.by_space[space.index()]
    }
}
