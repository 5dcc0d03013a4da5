//! Passwords that were checked against a slow hash. Checking one takes tens of milliseconds, and a pool of clients logs
//! in with the same one again and again.
//!
//! ```text
//! worker: AUTH --> known? --yes--> logged in, in microseconds
//!                    no --> thread: known by now? --no--> Argon2id --> remembered, if it is right
//! worker: runs AUTH again with the result
//! ```
//!
//! What is remembered is a hash of user, kept hash and password under a random key of the process. It opens nothing
//! elsewhere, and it is asked for only while the user still has the kept hash.

use crate::acl::{SlowHash, User};
use base::random::{Entropy, OsEntropy};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Passwords that are remembered. Beyond that the oldest is forgotten.
const REMEMBERED_MAX: usize = 1024;

type Mark = [u8; 32];

/// The passwords that are remembered.
pub(super) struct Verified {
    key: [u8; 32],
    marks: Mutex<Marks>,
}

#[derive(Default)]
struct Marks {
    known: HashSet<Mark>,
    in_order: VecDeque<Mark>,
}

impl Default for Verified {
    fn default() -> Self {
        let mut key = [0; 32];
        OsEntropy.fill(&mut key);
        Self { key, marks: Mutex::default() }
    }
}

impl Verified {
    fn mark(&self, user: &[u8], hash: &SlowHash, password: &[u8]) -> Mark {
        let mut digest = Sha256::new();
        digest.update(self.key);
        for part in [user, hash.to_string().as_bytes(), password] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        // The length of the message is fixed by its parts, so the key cannot be extended.
        digest.finalize().into()
    }

    /// Whether this password of the user was found to be that of the hash.
    pub(super) fn has(&self, user: &[u8], hash: &SlowHash, password: &[u8]) -> bool {
        let mark = self.mark(user, hash, password);
        self.marks.lock().known.contains(&mark)
    }

    fn remember(&self, user: &[u8], hash: &SlowHash, password: &[u8]) {
        let mark = self.mark(user, hash, password);
        let mut marks = self.marks.lock();
        if marks.known.insert(mark) {
            marks.in_order.push_back(mark);
        }
        if marks.in_order.len() > REMEMBERED_MAX
            && let Some(oldest) = marks.in_order.pop_front()
        {
            marks.known.remove(&oldest);
        }
    }
}

/// A password that is to be checked against slow hashes.
pub struct Verification {
    pub(super) verified: Arc<Verified>,
    /// The user, if there is one that may log in.
    pub user: Option<Arc<User>>,
    /// Its slow hashes.
    pub hashes: Vec<SlowHash>,
    pub(super) password: Zeroizing<Vec<u8>>,
}

impl Verification {
    /// The hash of this password. Takes tens of milliseconds, also when there is none to compare with.
    pub fn run(self) -> Option<SlowHash> {
        let name = self.user.as_ref().map_or(&b""[..], |user| user.name());
        let is_known = |hash: &&SlowHash| self.verified.has(name, hash, &self.password);
        if let Some(known) = self.hashes.iter().find(is_known) {
            return Some(known.clone());
        }
        if self.hashes.is_empty() {
            let _ = SlowHash::of_nothing().is_of(&self.password);
        }
        let mut found = None;
        for hash in &self.hashes {
            if hash.is_of(&self.password).into() {
                self.verified.remember(name, hash, &self.password);
                found = Some(hash.clone());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_and_tells_its_parts_apart() {
        let (verified, hash, other) = (Verified::default(), SlowHash::of_nothing(), SlowHash::of(b"x"));
        verified.remember(b"ab", &hash, b"c");
        assert!(verified.has(b"ab", &hash, b"c"));
        assert!(!verified.has(b"a", &hash, b"bc") && !verified.has(b"ab", &other, b"c"));
        assert!(!Verified::default().has(b"ab", &hash, b"c"), "the key is another one");
        for number in 0..REMEMBERED_MAX {
            verified.remember(b"u", &hash, number.to_string().as_bytes());
        }
        assert!(!verified.has(b"ab", &hash, b"c"), "the oldest is forgotten");
        assert_eq!(verified.marks.lock().known.len(), REMEMBERED_MAX);
    }
}
