//! Passwords as they are kept.

use super::phc::{PREFIX, SlowHash};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The SHA-256 hash of a password: what ACL files of Redis and Valkey hold, too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash of a password.
    pub fn of(password: &[u8]) -> Self {
        Self(Sha256::digest(password).into())
    }

    /// Reads 64 hexadecimal digits in lower case.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (pairs, []) = text.as_chunks::<2>() else { return None };
        if pairs.len() != 32 {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(hash))
    }

    /// Whether both are one, in constant time.
    pub fn is(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

/// How new passwords are kept: `acl-password-hash`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hashing {
    /// As Redis and Valkey keep them.
    #[default]
    Sha256,
    /// Salted, and slow to guess.
    Argon2id,
}

/// A password of a user as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Its SHA-256 hash.
    Fast(Hash),
    /// Its Argon2id hash.
    Slow(SlowHash),
}

impl Kept {
    /// Hashes a password. Takes tens of milliseconds for Argon2id.
    pub fn of(password: &[u8], hashing: Hashing) -> Self {
        match hashing {
            Hashing::Sha256 => Self::Fast(Hash::of(password)),
            Hashing::Argon2id => Self::Slow(SlowHash::of(password)),
        }
    }

    /// Reads either form.
    pub fn parse(text: &[u8]) -> Option<Self> {
        match text.starts_with(PREFIX) {
            true => SlowHash::parse(text).map(Self::Slow),
            false => Hash::parse(text).map(Self::Fast),
        }
    }

    /// The Argon2id hash, if it is one.
    pub fn slow(&self) -> Option<&SlowHash> {
        match self {
            Self::Fast(_) => None,
            Self::Slow(hash) => Some(hash),
        }
    }

    /// Whether it is this password. Takes tens of milliseconds for Argon2id.
    pub fn is_of(&self, password: &[u8]) -> bool {
        match self {
            Self::Fast(hash) => hash.is(&Hash::of(password)),
            Self::Slow(hash) => hash.is_of(password),
        }
        .into()
    }
}

/// What ACL files have after `#`.
impl std::fmt::Display for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fast(hash) => hash.fmt(f),
            Self::Slow(hash) => hash.fmt(f),
        }
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte.wrapping_sub(b'0')),
        b'a'..=b'f' => Some(byte.wrapping_sub(b'a').wrapping_add(10)),
        _ => None,
    }
}

/// 64 hexadecimal digits.
impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes do not belong into logs.
impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of `abc` in FIPS 180-2.
    #[test]
    fn hashes_are_those_of_the_standard_and_read_back() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Hash::of(b"abc").to_string(), text);
        assert_eq!(Hash::parse(text.as_bytes()), Some(Hash::of(b"abc")));
        for wrong in [&text[1..], &text.to_uppercase(), &format!("{text}00"), &text.replace('b', "g"), ""] {
            assert_eq!(Hash::parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(format!("{:?}", Hash::of(b"abc")), "Hash(..)");
    }
}
