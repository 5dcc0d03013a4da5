//! DEBUG DIGEST: one number for the whole data set, whatever the order of its tables.
//!
//! Redis' scheme: an entry's digest mixes key, type, value and expiration; the data set's is the exclusive or of its
//! entries' digests, so that no order enters. The hash is ours (two keyless 64-bit hashes make 128 bits, printed as 40
//! digits): digests compare Onggi servers with each other.

use crate::store::Store;
use base::{DbIndex, UnixMs};
use engine::{Engine, Entry};

/// A digest: entries combine by exclusive or.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(pub u128);

impl Digest {
    /// The digest of one entry of a database.
    pub fn of(db: DbIndex, entry: &Entry<'_>) -> Self {
        let mut bytes = Vec::with_capacity(entry.key.len() + entry.value.len() + 32);
        bytes.extend_from_slice(&db.0.to_le_bytes());
        bytes.push(entry.kind as u8);
        bytes.extend_from_slice(&entry.expire_at.unwrap_or(UnixMs::MAX).to_le_bytes());
        bytes.extend_from_slice(&(entry.key.len() as u64).to_le_bytes());
        bytes.extend_from_slice(entry.key);
        bytes.extend_from_slice(entry.value.bytes());
        Self(xxhash_rust::xxh3::xxh3_128(&bytes))
    }

    /// Adds or takes away an entry's digest.
    pub fn toggle(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:040x}", self.0)
    }
}

impl Store {
    /// The digest of all databases at `now`: entries expired by then do not count. Shards are visited one after the other.
    pub fn digest(&self, now: UnixMs) -> Digest {
        let mut digest = Digest::default();
        for db in 0..self.spaces.count() as u32 {
            let Some(space) = self.spaces.get(DbIndex(db)) else { continue };
            self.each_shard(|shard| {
                let mut from = Some(0);
                while let Some(bound) = from {
                    from = shard
                        .engine
                        .scan(space, bound, &mut |entry| {
                            if !entry.is_expired(now) {
                                digest.toggle(Digest::of(DbIndex(db), entry));
                            }
                        })
                        .next;
                }
            })
            .for_each(drop);
        }
        digest
    }
}
