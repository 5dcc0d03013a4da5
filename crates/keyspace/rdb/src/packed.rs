//! Packed values: small collections that Redis keeps, and saves, in one buffer.
//!
//! ```text
//! listpack  total len, count | element: encoding, content, length of both | ... | ff
//! ziplist   total len, place of the last, count | element: length of the previous, encoding, content | ... | ff
//! zipmap    count | key len, key | value len, unused len, value, unused | ... | ff
//! intset    width, count | integers, ascending
//! ```
//!
//! Each reader consumes all bytes or reports a fault, and appends the elements as strings.

pub mod intset;
pub mod listpack;
pub mod ziplist;
pub mod zipmap;

use crate::error::Flaw;

/// A buffer being read, and its packing.
struct Cursor<'a> {
    packing: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(packing: &'static str, bytes: &'a [u8]) -> Self {
        Self { packing, bytes, at: 0 }
    }

    fn flaw(&self, at: usize, expected: &'static str) -> Flaw {
        Flaw { packing: self.packing, at, expected }
    }

    fn take(&mut self, len: usize, expected: &'static str) -> Result<&'a [u8], Flaw> {
        let taken = self.at.checked_add(len).and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| self.flaw(self.at, expected))?;
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], Flaw> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, expected)?);
        Ok(array)
    }

    fn byte(&mut self, expected: &'static str) -> Result<u8, Flaw> {
        let [byte] = self.array(expected)?;
        Ok(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Checks that the buffer has the length in its header.
    fn check_total(&self, total: u32) -> Result<(), Flaw> {
        if usize::try_from(total) == Ok(self.bytes.len()) {
            return Ok(());
        }
        Err(self.flaw(0, "the length of the whole"))
    }

    /// Checks that the buffer ends here.
    fn check_end(&self) -> Result<(), Flaw> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.flaw(self.at, "the end")) }
    }
}

/// A 24-bit integer.
fn int24(bytes: [u8; 3]) -> i64 {
    let [low, middle, high] = bytes;
    i64::from(i32::from_le_bytes([0, low, middle, high]) >> 8)
}
