//! What can be done to a b+tree.

use super::{Bkey, Element};
use crate::wire::take_byte;
use base::varint;

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The element is there, in the place of one with its key.
    Put(Element<'a>),
    /// No element has this key.
    Remove(Bkey),
    /// Removes `count` elements from a position on, counted from 0, or as many as there are.
    RemoveRange {
        /// The first.
        start: u64,
        /// How many.
        count: u64,
    },
}

const PUT: u8 = 1;
const REMOVE: u8 = 2;
const REMOVE_RANGE: u8 = 3;

impl<'a> Change<'a> {
    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Put(element) => {
                out.push(PUT);
                element.put(out);
            }
            Self::Remove(bkey) => {
                out.push(REMOVE);
                bkey.put(out);
            }
            Self::RemoveRange { start, count } => {
                out.push(REMOVE_RANGE);
                varint::put(out, *start);
                varint::put(out, *count);
            }
        }
    }

    /// Takes one from the front; `None` when there is none.
    pub fn take(from: &mut &'a [u8]) -> Option<Self> {
        let mut rest = *from;
        let change = match take_byte(&mut rest)? {
            PUT => Self::Put(Element::take(&mut rest)?),
            REMOVE => Self::Remove(Bkey::take(&mut rest)?),
            REMOVE_RANGE => Self::RemoveRange { start: varint::take(&mut rest)?, count: varint::take(&mut rest)? },
            _ => return None,
        };
        *from = rest;
        Some(change)
    }
}
