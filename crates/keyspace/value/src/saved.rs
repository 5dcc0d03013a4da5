//! A tree in a checkpoint when some of its leaves are compressed: leaf by leaf, so that neither saving nor loading
//! decompresses. Formats: docs/formats/collections.md.
//!
//! ```text
//! list:       leaf ...                               leaf = 1 | string of elements   as in changes, but packed
//! hash, set:  order, (bound, leaf) ...                      2 | count | string   the stored form of `count` elements
//!                                                           3 | count | string   the address of `count` elements
//! sorted set: 1, (bound, leaf) ...                   by score
//!             2, order, (bound, leaf) ...            by member
//! ```

pub mod hashed;

use crate::cold::{Cold, Keeper};
use crate::tree::ColdLeaf;
use crate::wire;
use base::hash::{KeyHasher, Secret};
use base::varint;
use std::sync::Arc;

/// How leaves that are rows of a database on disk ([`crate::absent`]) are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfRows {
    /// Their elements, for what knows of no rows.
    Elements,
    /// Their addresses, for what is stored with those rows.
    Addresses,
}

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
    /// Its elements are a row.
    Row {
        /// How many.
        count: usize,
        /// Where.
        address: &'a [u8],
    },
}

/// Appends a leaf of `count` elements as it is stored. False, with nothing done, when its elements are to be written.
pub fn put_stored(cold: Option<&Cold>, count: usize, rows: OfRows, out: &mut Vec<u8>) -> bool {
    let Some(cold) = cold.filter(|cold| !cold.is_row() || rows == OfRows::Addresses) else { return false };
    cold.with_stored(|stored| match cold.is_row() {
        true => Leaf::Row { count, address: stored }.put(out),
        false => Leaf::Cold { count, stored }.put(out),
    });
    true
}

const PLAIN: u8 = 1;
const COLD: u8 = 2;
const ROW: u8 = 3;

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
            Self::Row { count, address } => {
                out.push(ROW);
                varint::put(out, count as u64);
                wire::put_string(out, address);
            }
        }
    }

    /// The leaf that is stored so, and its number of elements; `None` for elements, and for what the keeper does not
    /// know.
    pub fn cold(&self, keeper: &Arc<dyn Keeper>) -> Option<(Cold, usize)> {
        match *self {
            Self::Plain(_) => None,
            Self::Cold { count, stored } => Some((Cold::new(keeper, stored)?, count)),
            Self::Row { count, address } => Some((Cold::new(keeper.of_rows()?, address)?, count)),
        }
    }

    /// The same as a leaf of a tree.
    pub fn stored<L: ColdLeaf>(&self, keeper: &Arc<dyn Keeper>) -> Option<L> {
        self.cold(keeper).map(|(cold, count)| L::of_cold(cold, count))
    }

    /// Takes one from the front; `None` when there is none, or one of no elements.
    pub fn take(from: &mut &'a [u8]) -> Option<Self> {
        let mut rest = *from;
        let leaf = match wire::take_byte(&mut rest)? {
            PLAIN => Self::Plain(wire::take_string(&mut rest)?),
            form @ (COLD | ROW) => {
                let count = u32::try_from(varint::take(&mut rest)?).ok().filter(|count| *count > 0)? as usize;
                let stored = wire::take_string(&mut rest)?;
                if form == COLD { Self::Cold { count, stored } } else { Self::Row { count, address: stored } }
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
