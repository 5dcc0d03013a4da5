//! The keyed hash that places a key inside its shard. The hash key is drawn per process, so that no client can craft
//! colliding keys (hash flooding, CVE-2011-4885 and its family). The shard itself comes from the public cluster slot.

use crate::Rng;
use ahash::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

/// A hash function with a secret key (aHash: AES rounds where the processor has them).
#[derive(Clone)]
pub struct KeyHasher {
    state: RandomState,
    secret: Arc<Secret>,
}

/// What keys a [`KeyHasher`].
pub type Secret = [u64; 4];

impl KeyHasher {
    /// A hasher keyed by the generator's next words.
    pub fn new(rng: &mut Rng) -> Self {
        Self::of_secret([rng.next_u64(), rng.next_u64(), rng.next_u64(), rng.next_u64()])
    }

    /// The hasher with this key. Two hashers of one key agree only if their [`Self::fingerprint`]s are equal.
    pub fn of_secret(secret: Secret) -> Self {
        let [a, b, c, d] = secret;
        Self { state: RandomState::with_seeds(a, b, c, d), secret: Arc::new(secret) }
    }

    /// The key, for files that are as secret as it.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Whether both are keyed alike, in one process.
    pub fn is(&self, other: &Self) -> bool {
        self.secret == other.secret
    }

    /// Distinguishes hashers of one key that do not agree, as on another processor or in another version of the
    /// program. It is made of the hashes of byte strings of all kinds of lengths.
    pub fn fingerprint(&self) -> u64 {
        let bytes: [u8; 200] = std::array::from_fn(|at| at as u8);
        let lengths = [0, 3, 7, 8, 12, 16, 24, 40, 64, 100, 200];
        lengths.iter().fold(0, |sum: u64, len| sum.rotate_left(5) ^ self.hash(&bytes[..*len]))
    }

    /// The 64-bit hash of a key; all bits are equally good.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.state.build_hasher();
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
        let again = KeyHasher::of_secret(*a.secret());
        assert!(again.is(&a) && !b.is(&a) && again.hash(b"key") == a.hash(b"key"));
        assert_eq!(again.fingerprint(), a.fingerprint());
        assert_ne!(a.fingerprint(), b.fingerprint());
    }
}
