//! What can happen to a list, as it goes to the log.

use crate::wire::{put_string, take_byte, take_string};
use base::varint;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where LPUSH adds.
    Head,
    /// Where RPUSH adds.
    Tail,
}

impl End {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Head, Self::Tail];
}

/// One change. What it names that the list does not have is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Adds an element at an end.
    Push {
        /// Where.
        end: End,
        /// The element.
        value: &'a [u8],
    },
    /// Removes elements at an end.
    Pop {
        /// Where.
        end: End,
        /// How many.
        count: u64,
    },
    /// Replaces an element.
    Set {
        /// Which, from the head.
        index: u64,
        /// The new one.
        value: &'a [u8],
    },
    /// Inserts an element before another, or after the last.
    Insert {
        /// Its index afterwards.
        index: u64,
        /// The element.
        value: &'a [u8],
    },
    /// Removes neighbours.
    Remove {
        /// The first of them.
        index: u64,
        /// How many.
        count: u64,
    },
}

/// First bytes of the encoded forms.
const PUSH_HEAD: u8 = 1;
const PUSH_TAIL: u8 = 2;
const POP_HEAD: u8 = 3;
const POP_TAIL: u8 = 4;
const SET: u8 = 5;
const INSERT: u8 = 6;
const REMOVE: u8 = 7;

impl<'a> Change<'a> {
    /// Appends its encoded form: see `docs/formats/collections.md`.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Push { end, value } => {
                let tag = if end == End::Head { PUSH_HEAD } else { PUSH_TAIL };
                match u8::try_from(value.len()) {
                    // The same bytes, with one look less at whether there is room.
                    Ok(len @ 0..0x80) => out.extend_from_slice(&[tag, len]),
                    _ => {
                        out.push(tag);
                        varint::put(out, value.len() as u64);
                    }
                }
                out.extend_from_slice(value);
            }
            Self::Pop { end, count } => {
                out.push(if end == End::Head { POP_HEAD } else { POP_TAIL });
                varint::put(out, count);
            }
            Self::Set { index, value } => put_at(out, SET, index, value),
            Self::Insert { index, value } => put_at(out, INSERT, index, value),
            Self::Remove { index, count } => {
                out.push(REMOVE);
                varint::put(out, index);
                varint::put(out, count);
            }
        }
    }

    /// Takes one from the front; `None` when the bytes are no change in its only form.
    #[inline]
    pub fn take(from: &mut &'a [u8]) -> Option<Self> {
        Some(match take_byte(from)? {
            PUSH_HEAD => Self::Push { end: End::Head, value: take_string(from)? },
            PUSH_TAIL => Self::Push { end: End::Tail, value: take_string(from)? },
            POP_HEAD => Self::Pop { end: End::Head, count: varint::take(from)? },
            POP_TAIL => Self::Pop { end: End::Tail, count: varint::take(from)? },
            SET => Self::Set { index: varint::take(from)?, value: take_string(from)? },
            INSERT => Self::Insert { index: varint::take(from)?, value: take_string(from)? },
            REMOVE => Self::Remove { index: varint::take(from)?, count: varint::take(from)? },
            _ => return None,
        })
    }
}

fn put_at(out: &mut Vec<u8>, tag: u8, index: u64, value: &[u8]) {
    out.push(tag);
    varint::put(out, index);
    put_string(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes of a release stay readable: the log and checkpoints hold them.
    #[test]
    fn golden_bytes() {
        let changes = [
            (Change::Push { end: End::Head, value: b"ab" }, &b"\x01\x02ab"[..]),
            (Change::Push { end: End::Tail, value: b"" }, b"\x02\x00"),
            (Change::Pop { end: End::Head, count: 1 }, b"\x03\x01"),
            (Change::Pop { end: End::Tail, count: 300 }, b"\x04\xac\x02"),
            (Change::Set { index: 128, value: b"x" }, b"\x05\x80\x01\x01x"),
            (Change::Insert { index: 0, value: b"y" }, b"\x06\x00\x01y"),
            (Change::Remove { index: 2, count: 5 }, b"\x07\x02\x05"),
        ];
        for (change, golden) in changes {
            let mut bytes = Vec::new();
            change.put(&mut bytes);
            assert_eq!(bytes, golden, "{change:?}");
            let mut rest = golden;
            assert_eq!(Change::take(&mut rest), Some(change));
            assert!(rest.is_empty());
        }
    }

    proptest! {
        /// Any bytes are a change in its only form, or none.
        #[test]
        fn decoding_is_total_and_canonical(bytes: Vec<u8>, tag in 0u8..9) {
            let bytes = [&[tag][..], &bytes].concat();
            let mut rest = &bytes[..];
            if let Some(change) = Change::take(&mut rest) {
                let mut again = Vec::new();
                change.put(&mut again);
                prop_assert_eq!(&bytes[..bytes.len() - rest.len()], &again[..]);
            }
        }
    }
}
