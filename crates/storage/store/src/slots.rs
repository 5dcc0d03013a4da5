//! From cluster slot to shard.
//!
//! Shares are skewed: shard i of n gets a share proportional to 2^(i/n), the largest nearly twice the smallest. With
//! equal shares all tables would reach the same size and grow at the same moment, and no table could reuse the memory
//! that another has just freed (measured: 53.7 bytes a key with equal shares, 42.1 with skewed ones, at 5 M keys of 16
//! + 16 bytes).

use base::slot::SLOT_COUNT;
use base::{ShardId, SlotId};

/// Slots per entry of the map: shares are multiples of this, so that the map stays in the first-level cache.
const GRAIN: usize = 16;

/// The shard of every slot.
#[derive(Clone, Debug)]
pub struct SlotMap {
    shards: Box<[u8; SLOT_COUNT / GRAIN]>,
    count: usize,
}

impl SlotMap {
    /// Most shards there can be.
    pub const SHARD_COUNT_MAX: usize = 256;

    /// A map onto `count` shards, 1 to [`Self::SHARD_COUNT_MAX`].
    pub fn new(count: usize) -> Self {
        assert!((1..=Self::SHARD_COUNT_MAX).contains(&count), "{count} shards");
        let mut shards = Box::new([0; SLOT_COUNT / GRAIN]);
        for (place, shard) in shards.iter_mut().enumerate() {
            // The inverse of "shards below i take (2^(i/n) - 1) of the slots".
            let part = place as f64 / (SLOT_COUNT / GRAIN) as f64;
            *shard = ((part + 1.0).log2() * count as f64) as u8;
        }
        Self { shards, count }
    }

    /// How many shards.
    pub fn shard_count(&self) -> usize {
        self.count
    }

    /// The shard of a slot.
    #[inline]
    pub fn shard_of(&self, slot: SlotId) -> ShardId {
        ShardId(u16::from(self.shards[slot.index() % SLOT_COUNT / GRAIN]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every shard has slots, shares rise, and the largest is about twice the smallest.
    #[test]
    fn shares_are_skewed() {
        for count in [1, 2, 16, 64, 256] {
            let map = SlotMap::new(count);
            let mut shares = vec![0usize; count];
            for slot in 0..SLOT_COUNT as u16 {
                shares[map.shard_of(SlotId(slot)).index()] += 1;
            }
            assert!(shares.iter().all(|&share| share > 0), "{count}");
            assert_eq!(shares.iter().sum::<usize>(), SLOT_COUNT);
            assert!(shares[count - 1] <= 3 * shares[0], "{count}: {} to {}", shares[0], shares[count - 1]);
        }
    }
}
