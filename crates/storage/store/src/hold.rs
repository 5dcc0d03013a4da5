//! Which replies have to wait for the log: the positions of the newest changes, by key, while replies wait at all.
//!
//! ```text
//! change of a key: holds[8 bits of its hash] = LSN      read of a key: wait for holds[8 bits of its hash]
//! ```
//!
//! H1. The entry of a key is at least the position of the key's newest change. Keys share entries, so a reply may wait
//!     for a change of another key: too long, never too short.
//! H2. Nothing is taken out: a position that the log has passed holds nothing back.

use base::Lsn;

/// Entries of the table: 2 KiB a shard.
const LEN: usize = 256;

/// The table of one shard, guarded by its lock.
pub struct HoldTable {
    by_hash: [Lsn; LEN],
    newest: Lsn,
}

impl HoldTable {
    /// A table of keys that may all have changed just before `floor`.
    pub fn new(floor: Lsn) -> Self {
        Self { by_hash: [floor; LEN], newest: floor }
    }

    /// The part of a key's hash that its entry is found by. The highest bits: shards and buckets take others.
    #[inline]
    pub fn bits(hash: u64) -> u8 {
        (hash >> 56) as u8
    }

    /// A key with these bits has changed; the record ends at `lsn`, which is above all before.
    pub fn touch(&mut self, bits: u8, lsn: Lsn) {
        self.by_hash[usize::from(bits)] = lsn;
        self.newest = lsn;
    }

    /// Any key may have changed.
    pub fn touch_all(&mut self, lsn: Lsn) {
        *self = Self::new(lsn);
    }

    /// What a reply that shows the key with this hash, or its absence, waits for.
    #[inline]
    pub fn of(&self, hash: u64) -> Lsn {
        self.by_hash[usize::from(Self::bits(hash))]
    }

    /// What a reply that shows any keys waits for.
    pub fn newest(&self) -> Lsn {
        self.newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_holds_its_key_and_the_whole() {
        let mut table = HoldTable::new(Lsn(7));
        assert_eq!((table.of(0), table.of(u64::MAX), table.newest()), (Lsn(7), Lsn(7), Lsn(7)));
        table.touch(0xFF, Lsn(20));
        table.touch(1, Lsn(30));
        assert_eq!((table.of(u64::MAX), table.of(1 << 56), table.of(2 << 56)), (Lsn(20), Lsn(30), Lsn(7)));
        assert_eq!(table.newest(), Lsn(30));
        table.touch_all(Lsn(40));
        assert_eq!((table.of(5), table.newest()), (Lsn(40), Lsn(40)));
    }
}
