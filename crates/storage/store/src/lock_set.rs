//! Which shards a command needs.

use base::ShardId;
use smallvec::SmallVec;

/// The shards a command needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LockSet {
    /// None.
    #[default]
    None,
    /// One: nearly every command.
    One(ShardId),
    /// Several, ascending, each once.
    Several(SmallVec<[ShardId; 8]>),
    /// All.
    All,
}

impl LockSet {
    /// Adds a shard.
    pub fn insert(&mut self, shard: ShardId) {
        match self {
            Self::None => *self = Self::One(shard),
            Self::One(first) if *first == shard => {}
            Self::One(first) => {
                *self = Self::Several(SmallVec::from_slice(&[(*first).min(shard), (*first).max(shard)]));
            }
            Self::Several(shards) => {
                if let Err(at) = shards.binary_search(&shard) {
                    shards.insert(at, shard);
                }
            }
            Self::All => {}
        }
    }

    /// Whether a shard is among them.
    pub fn has(&self, shard: ShardId) -> bool {
        match self {
            Self::None => false,
            Self::One(one) => *one == shard,
            Self::Several(shards) => shards.binary_search(&shard).is_ok(),
            Self::All => true,
        }
    }

    /// Adds all shards of another set.
    pub fn extend(&mut self, other: &Self) {
        match other {
            Self::None => {}
            Self::One(shard) => self.insert(*shard),
            Self::Several(shards) => shards.iter().for_each(|shard| self.insert(*shard)),
            Self::All => *self = Self::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_ascending_and_unique() {
        let mut set = LockSet::None;
        for shard in [5, 5, 2, 9, 2, 5] {
            set.insert(ShardId(shard));
        }
        assert_eq!(set, LockSet::Several(SmallVec::from_slice(&[ShardId(2), ShardId(5), ShardId(9)])));
        set = LockSet::All;
        set.insert(ShardId(1));
        assert_eq!(set, LockSet::All);
    }
}
