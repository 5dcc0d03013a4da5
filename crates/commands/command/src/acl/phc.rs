//! Argon2id hashes of passwords, written as PHC strings: `$argon2id$v=19$m=19456,t=2,p=1$SALT$HASH`.
//!
//! Algorithm: RFC 9106. Parameters of new hashes: the choice of OWASP's cheat sheet on password storage with less than
//! 20 MiB, since two hashes may be computed at a time.

use argon2::{Algorithm, Argon2, Block, Params, Version};
use base::random::{Entropy, OsEntropy};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::fmt;
use subtle::{Choice, ConstantTimeEq};

/// What every such string begins with.
pub const PREFIX: &[u8] = b"$argon2id$";

/// The only version that is read.
const VERSION: &str = "v=19";

const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// Hashes of other programs may cost more, but never more memory than this, or more passes over it.
const MEMORY_KIB_MAX: u32 = 256 << 10;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 16;

const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// Lengths of salts and hashes that are read.
const SALT_BYTES_READ: std::ops::RangeInclusive<usize> = 8..=64;
const HASH_BYTES_READ: std::ops::RangeInclusive<usize> = 16..=64;

/// A hash that takes tens of milliseconds and megabytes to compute.
#[derive(Clone, PartialEq, Eq)]
pub struct SlowHash {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl SlowHash {
    /// The hash of a password, with a random salt.
    pub fn of(password: &[u8]) -> Self {
        let mut salt = vec![0; SALT_BYTES];
        OsEntropy.fill(&mut salt);
        let empty = Self { memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES, salt, hash: Vec::new() };
        let hash = empty.compute(password, HASH_BYTES).unwrap_or_default();
        Self { hash, ..empty }
    }

    /// A hash that no password has: checking it takes as long as checking another.
    pub fn of_nothing() -> Self {
        let (salt, hash) = (vec![0; SALT_BYTES], vec![0; HASH_BYTES]);
        Self { memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES, salt, hash }
    }

    /// Reads a PHC string.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text.strip_prefix(PREFIX)?).ok()?;
        let mut parts = text.split('$');
        let (version, parameters, salt, hash) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if version != VERSION || parts.next().is_some() {
            return None;
        }
        let mut numbers = ["m", "t", "p"].into_iter().zip(parameters.split(','));
        let mut number = || {
            let (name, field) = numbers.next()?;
            field.strip_prefix(name)?.strip_prefix('=')?.parse::<u32>().ok()
        };
        let (memory_kib, passes, lanes) = (number()?, number()?, number()?);
        let decoded = |text: &str| STANDARD_NO_PAD.decode(text).ok();
        let read = Self { memory_kib, passes, lanes, salt: decoded(salt)?, hash: decoded(hash)? };
        (read.is_affordable() && read.to_string().as_bytes() == [PREFIX, text.as_bytes()].concat()).then_some(read)
    }

    fn is_affordable(&self) -> bool {
        self.memory_kib <= MEMORY_KIB_MAX
            && self.passes <= PASSES_MAX
            && self.lanes <= LANES_MAX
            && SALT_BYTES_READ.contains(&self.salt.len())
            && HASH_BYTES_READ.contains(&self.hash.len())
            && self.parameters(self.hash.len()).is_some()
    }

    /// Whether it is the hash of this password, in a time that does not depend on where it differs.
    pub fn is_of(&self, password: &[u8]) -> Choice {
        match self.compute(password, self.hash.len()) {
            Some(hash) => hash.ct_eq(&self.hash),
            None => Choice::from(0),
        }
    }

    fn compute(&self, password: &[u8], bytes: usize) -> Option<Vec<u8>> {
        let parameters = self.parameters(bytes)?;
        let (mut memory, mut hash) = (vec![Block::new(); parameters.block_count()], vec![0; bytes]);
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters);
        argon2.hash_password_into_with_memory(password, &self.salt, &mut hash, &mut memory).ok().map(|()| hash)
    }

    fn parameters(&self, bytes: usize) -> Option<Params> {
        Params::new(self.memory_kib, self.passes, self.lanes, Some(bytes)).ok()
    }
}

/// The PHC string.
impl fmt::Display for SlowHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory_kib, passes, lanes, salt, hash } = self;
        let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
        write!(f, "$argon2id${VERSION}$m={memory_kib},t={passes},p={lanes}${salt}${hash}")
    }
}

/// Hashes do not belong into logs.
impl fmt::Debug for SlowHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SlowHash(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by the reference implementation: `echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1 -l 32`.
    const REFERENCE: &str = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

    #[test]
    fn hashes_are_those_of_the_reference_implementation() {
        let hash = SlowHash::parse(REFERENCE.as_bytes()).unwrap();
        assert_eq!(hash.to_string(), REFERENCE);
        assert!(bool::from(hash.is_of(b"password")));
        assert!(!bool::from(hash.is_of(b"passwore")));
    }

    #[test]
    fn new_hashes_are_salted_and_read_back() {
        let (one, other) = (SlowHash::of(b"sesame"), SlowHash::of(b"sesame"));
        assert_ne!(one, other);
        assert!(one.to_string().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert_eq!(SlowHash::parse(one.to_string().as_bytes()), Some(one.clone()));
        assert!(bool::from(one.is_of(b"sesame")) && !bool::from(one.is_of(b"")));
        assert!(!bool::from(SlowHash::of_nothing().is_of(b"")));
    }

    #[test]
    fn damaged_and_expensive_strings_are_refused() {
        for (from, to) in [
            ("argon2id", "argon2i"),
            ("v=19", "v=16"),
            ("m=65536", "m=4000000000"),
            ("m=65536", "m=065536"),
            ("m=65536", "m=1"),
            ("t=2", "t=0"),
            ("t=2", "t=17"),
            ("p=1", "p=0"),
            ("p=1", "p=1,x=1"),
            ("m=65536,t=2", "t=2,m=65536"),
            ("c29tZXNhbHQ", "c29t"),
            ("c29tZXNhbHQ", "c29tZXNhbHQ="),
            ("CTFhFd", "!"),
            ("$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", ""),
            ("RPPc", "RPPc$"),
        ] {
            let text = REFERENCE.replace(from, to);
            assert_ne!(text, REFERENCE);
            assert_eq!(SlowHash::parse(text.as_bytes()), None, "{text}");
        }
    }
}
