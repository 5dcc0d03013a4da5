//! A tree in a checkpoint when some of its leaves are compressed: leaf by leaf, so that neither saving nor loading
//! decompresses. Formats: docs/formats/collections.md.
//!
//! ```text
//! list:       leaf ...                               leaf = 1 | string of elements   as in changes, but packed
//! hash, set:  order, (bound, leaf) ...                      2 | count | string   the stored form of `count` elements
//! sorted set: 1, (bound, leaf) ...                   by score
//!             2, order, (bound, leaf) ...            by member
//! ```

pub mod hashed;

use crate::cold::Cold;
use crate::wire;
use base::hash::{KeyHasher, Secret};
use base::varint;

/// A leaf in such bytes.
#[derive(Clone, Copy, Debug)]
pub enum Leaf<'a> {
    /// Its elements, as its type packs them.
    Plain(&'a [u8]),
    /// Its elements in their stored form.
    Cold {
        /// How many.
        count: usize,
        /// The form.
        stored: &'a [u8],
    },
}

/// Appends a leaf of `count` elements that is stored so.
pub fn put_cold(count: usize, cold: &Cold, out: &mut Vec<u8>) {
    cold.with_stored(|stored| Leaf::Cold { count, stored }.put(out));
}

const PLAIN: u8 = 1;
const COLD: u8 = 2;

impl<'a> Leaf<'a> {
    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Plain(bytes) => {
                out.push(PLAIN);
                wire::put_string(out, bytes);
            }
            Self::Cold { count, stored } => {
                out.push(COLD);
                varint::put(out, count as u64);
                wire::put_string(out, stored);
            }
        }
    }

    /// Takes one from the front; `None` when there is none, or one of no elements.
    pub fn take(from: &mut &'a [u8]) -> Option<Self> {
        let mut rest = *from;
        let leaf = match wire::take_byte(&mut rest)? {
            PLAIN => Self::Plain(wire::take_string(&mut rest)?),
            COLD => {
                let count = u32::try_from(varint::take(&mut rest)?).ok().filter(|count| *count > 0)? as usize;
                Self::Cold { count, stored: wire::take_string(&mut rest)? }
            }
            _ => return None,
        };
        *from = rest;
        Some(leaf)
    }
}

/// What orders a tree of hashed elements: each part begins with it.
pub struct Order {
    /// The key of its hash function.
    secret: Secret,
    /// Shows whether that process hashes as this one does.
    fingerprint: u64,
}

impl Order {
    /// That of this hasher.
    pub fn of(hasher: &KeyHasher) -> Self {
        Self { secret: *hasher.secret(), fingerprint: hasher.fingerprint() }
    }

    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        for word in self.secret.iter().chain([&self.fingerprint]) {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Takes one from the front.
    pub fn take(rest: &mut &[u8]) -> Option<Self> {
        let mut word = || {
            let (word, tail) = rest.split_first_chunk::<8>()?;
            *rest = tail;
            Some(u64::from_le_bytes(*word))
        };
        Some(Self { secret: [word()?, word()?, word()?, word()?], fingerprint: word()? })
    }

    /// The hasher; `None` when it gives other hashes here.
    pub fn hasher(&self) -> Option<KeyHasher> {
        Some(KeyHasher::of_secret(self.secret)).filter(|hasher| hasher.fingerprint() == self.fingerprint)
    }
}
