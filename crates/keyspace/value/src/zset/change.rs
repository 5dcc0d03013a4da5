//! What can be done to a sorted set.

use super::score;
use crate::wire::{put_string, take_byte, take_string};
use base::varint;

const ADD: u8 = 1;
const REMOVE: u8 = 2;
const REMOVE_RANGE: u8 = 3;

/// One change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// The member has this score from now on.
    Add {
        /// Where it is to stand; not NaN, and negative zero means zero.
        score: f64,
        /// The member.
        member: &'a [u8],
    },
    /// The member goes, if it is there.
    Remove {
        /// The member.
        member: &'a [u8],
    },
    /// Removes members by rank, up to the end of the set.
    RemoveRange {
        /// The lowest rank, from 0.
        start: u64,
        /// How many.
        count: u64,
    },
}

impl<'a> Change<'a> {
    /// Appends its encoded form.
    pub fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Add { score, member } => {
                let mut bytes = [0; score::MAX_LEN];
                let length = score::write(score::normal(score), &mut bytes);
                out.push(ADD);
                out.extend_from_slice(&bytes[..length]);
                put_string(out, member);
            }
            Self::Remove { member } => {
                out.push(REMOVE);
                put_string(out, member);
            }
            Self::RemoveRange { start, count } => {
                out.push(REMOVE_RANGE);
                varint::put(out, start);
                varint::put(out, count);
            }
        }
    }

    /// Takes one from the front; `None` when the bytes are no change in its only form.
    pub fn take(from: &mut &'a [u8]) -> Option<Self> {
        match take_byte(from)? {
            ADD => Some(Self::Add { score: score::take(from)?, member: take_string(from)? }),
            REMOVE => Some(Self::Remove { member: take_string(from)? }),
            REMOVE_RANGE => Some(Self::RemoveRange { start: varint::take(from)?, count: varint::take(from)? }),
            _ => None,
        }
    }
}
