//! The changes of a hash, which are also its form in the log and in checkpoints.

use super::Cell;
use crate::wire;
use base::{UnixMs, varint};

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The field has this value from now on, and this time: `None` means it stays.
    Set {
        /// Which field; it need not be there.
        field: &'a [u8],
        /// Its value.
        value: &'a [u8],
        /// When it is due, in milliseconds since 1970, not negative.
        expire_at: Option<UnixMs>,
    },
    /// The field is gone. Nothing happens when it is not there.
    Delete(&'a [u8]),
    /// The field keeps its value and has this time, or none. Nothing happens when it is not there.
    Expire {
        /// Which field.
        field: &'a [u8],
        /// When it is due, in milliseconds since 1970, not negative.
        expire_at: Option<UnixMs>,
    },
    /// The changes that follow set this many fields: a hash that could not hold them packed becomes a tree at once.
    Expect(u64),
}

const SET: u8 = 1;
const SET_UNTIL: u8 = 2;
const DELETE: u8 = 3;
const EXPIRE: u8 = 4;
const PERSIST: u8 = 5;
const EXPECT: u8 = 6;

impl<'a> Change<'a> {
    /// Appends its encoded form.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Set { field, value, expire_at } => {
                out.push(if expire_at.is_some() { SET_UNTIL } else { SET });
                wire::put_string(out, field);
                wire::put_string(out, value);
                put_time(out, expire_at);
            }
            Self::Delete(field) => {
                out.push(DELETE);
                wire::put_string(out, field);
            }
            Self::Expire { field, expire_at } => {
                out.push(if expire_at.is_some() { EXPIRE } else { PERSIST });
                wire::put_string(out, field);
                put_time(out, expire_at);
            }
            Self::Expect(fields) => {
                out.push(EXPECT);
                varint::put(out, fields);
            }
        }
    }

    /// Takes one from the front; `None` when the bytes are no change in its only form.
    #[inline]
    pub fn take(from: &mut &'a [u8]) -> Option<Self> {
        let mut rest = *from;
        let tag = wire::take_byte(&mut rest)?;
        let change = match tag {
            SET | SET_UNTIL => {
                let (field, value) = (wire::take_string(&mut rest)?, wire::take_string(&mut rest)?);
                let expire_at = if tag == SET { None } else { Some(take_time(&mut rest)?) };
                Self::Set { field, value, expire_at }
            }
            DELETE => Self::Delete(wire::take_string(&mut rest)?),
            EXPIRE | PERSIST => {
                let field = wire::take_string(&mut rest)?;
                let expire_at = if tag == PERSIST { None } else { Some(take_time(&mut rest)?) };
                Self::Expire { field, expire_at }
            }
            EXPECT => Self::Expect(varint::take(&mut rest)?),
            _ => return None,
        };
        *from = rest;
        Some(change)
    }
}

fn put_time(out: &mut Vec<u8>, at: Option<UnixMs>) {
    if let Some(at) = at {
        debug_assert!(at >= 0, "a time before 1970");
        varint::put(out, at as u64);
    }
}

fn take_time(rest: &mut &[u8]) -> Option<UnixMs> {
    UnixMs::try_from(varint::take(rest)?).ok()
}

impl<'a> From<Cell<'a>> for Change<'a> {
    /// The change that makes this cell.
    fn from(cell: Cell<'a>) -> Self {
        Self::Set { field: cell.field, value: cell.value, expire_at: cell.expire_at }
    }
}
