//! CAS ids: numbers that a client compares to find out whether a string has changed.
//!
//! A string gets an id at the first [`Engine::cas_id`](crate::Engine::cas_id). An edit gives it another one, and a
//! string that replaces it begins without one. Ids are in memory only: after a restart strings begin without one.

use base::Rng;

/// The lowest bits of an id say which shard has given it.
const SHARD_BITS: u32 = 16;

/// Gives the CAS ids of one shard, none of them twice.
///
/// The first one is random, so that an id of an earlier process is most unlikely to fit. No id is 0, and none is beyond
/// `i64::MAX`, which some clients cannot read.
pub struct CasIds(u64);

impl CasIds {
    /// The ids of this shard.
    pub fn new(shard: u16, rng: &mut Rng) -> Self {
        // 2^46 ids are left, more than a process gives in its life.
        Self((1 + rng.below(1 << 46)) << SHARD_BITS | u64::from(shard))
    }

    /// The ids that follow this one.
    pub fn after(id: u64) -> Self {
        Self(id + (1 << SHARD_BITS))
    }

    /// A new id.
    pub fn give(&mut self) -> u64 {
        let given = self.0;
        *self = Self::after(given);
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_and_name_their_shard() {
        let mut ids = CasIds::new(7, &mut Rng::new(1));
        let given: Vec<u64> = (0..100).map(|_| ids.give()).collect();
        assert!(given.is_sorted_by(|a, b| a < b) && given[0] > 0 && given[99] <= i64::MAX as u64);
        assert!(given.iter().all(|id| id & 0xffff == 7));
        assert_eq!(CasIds::after(given[0]).give(), given[1]);
        assert_ne!(CasIds::new(7, &mut Rng::new(2)).give(), given[0], "another process");
    }
}
