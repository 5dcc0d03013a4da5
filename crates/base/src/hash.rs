//! The keyed hash that places a key inside its shard. Keyed per process, so that nobody can craft colliding keys
//! (hash flooding, CVE-2011-4885 and its family). The shard itself comes from the public cluster slot.

use crate::Rng;
use ahash::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A hash function with a secret key (aHash: AES rounds where the processor has them).
#[derive(Clone)]
pub struct KeyHasher(RandomState);

impl KeyHasher {
    /// A hasher keyed by the generator's next words.
    pub fn new(rng: &mut Rng) -> Self {
        Self(RandomState::with_seeds(rng.next_u64(), rng.next_u64(), rng.next_u64(), rng.next_u64()))
    }

    /// The 64-bit hash of a key; all bits are equally good.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write(key);
        hasher.finish()
    }
}

impl std::fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHasher(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two keys of the same process agree with themselves; two processes disagree.
    #[test]
    fn keyed() {
        let (a, b) = (KeyHasher::new(&mut Rng::new(1)), KeyHasher::new(&mut Rng::new(2)));
        assert_eq!(a.hash(b"key"), a.hash(b"key"));
        assert_ne!(a.hash(b"key"), b.hash(b"key"));
        assert_ne!(a.hash(b""), a.hash(b"\0"));
    }
}
