//! The changes of a set, and their bytes.

use crate::wire;
use base::varint;

/// One change. In bytes: a tag, then the member with its length, or the number (docs/formats/collections.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// `SADD`: the member is in the set from now on, if it was not.
    Add(&'a [u8]),
    /// `SREM`: it is not, if it was.
    Remove(&'a [u8]),
    /// All members go, and with them the form: those added next make the set anew.
    Clear,
    /// From now on a packed set is one of strings, even if all of them are texts of integers: OBJECT ENCODING must
    /// answer as Valkey does.
    Strings,
    /// The number of members to come. A set whose form is too small for them takes the next form at once.
    Expect(u64),
}

const ADD: u8 = 1;
const REMOVE: u8 = 2;
const CLEAR: u8 = 3;
const STRINGS: u8 = 4;
const EXPECT: u8 = 5;

impl<'a> Change<'a> {
    /// Appends its encoded form.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Add(member) => {
                out.push(ADD);
                wire::put_string(out, member);
            }
            Self::Remove(member) => {
                out.push(REMOVE);
                wire::put_string(out, member);
            }
            Self::Clear => out.push(CLEAR),
            Self::Strings => out.push(STRINGS),
            Self::Expect(members) => {
                out.push(EXPECT);
                varint::put(out, members);
            }
        }
    }

    /// Takes one from the front; `None` when the bytes are no change in its only form.
    #[inline]
    pub fn take(from: &mut &'a [u8]) -> Option<Self> {
        match wire::take_byte(from)? {
            ADD => Some(Self::Add(wire::take_string(from)?)),
            REMOVE => Some(Self::Remove(wire::take_string(from)?)),
            CLEAR => Some(Self::Clear),
            STRINGS => Some(Self::Strings),
            EXPECT => Some(Self::Expect(varint::take(from)?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that logs and checkpoints hold: docs/formats/collections.md shows the same.
    #[test]
    fn golden() {
        let golden: [(Change<'_>, &[u8]); 5] = [
            (Change::Add(b"one"), b"\x01\x03one"),
            (Change::Remove(b""), b"\x02\x00"),
            (Change::Clear, b"\x03"),
            (Change::Strings, b"\x04"),
            (Change::Expect(300), b"\x05\xac\x02"),
        ];
        for (change, bytes) in golden {
            let mut encoded = Vec::new();
            change.put(&mut encoded);
            assert_eq!(encoded, bytes);
            assert_eq!(Change::take(&mut &bytes[..]), Some(change));
        }
        for bytes in [&b""[..], b"\x01", b"\x01\x02a", b"\x01\x81\x00a", b"\x05", b"\x06"] {
            assert_eq!(Change::take(&mut &bytes[..]), None, "{bytes:?}");
        }
    }
}
