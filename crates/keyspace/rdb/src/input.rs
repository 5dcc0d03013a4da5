//! Reads bytes, lengths and strings from a source, with the offset of each and the checksum of all.
//!
//! I1. A length in the input allocates nothing: memory grows with the bytes that the source has returned.
//! I2. If the length of the source is known, a length that leads beyond its end is refused immediately.

use crate::error::{Flaw, Place, RdbError};
use crate::format::string_encoding;
use crate::strings::Strings;
use base::UnixMs;
use base::checksum::Crc64Rdb;
use base::integer::IntegerText;
use codec::lzf;
use std::io::{ErrorKind, Read};

/// Bytes per read of the source.
const BUFFER_LEN: usize = 64 * 1024;

/// A source, read from beginning to end.
pub(crate) struct Input<R> {
    source: R,
    buffer: Box<[u8]>,
    /// The unread part of the buffer: from `start` to `end`.
    start: usize,
    end: usize,
    /// The offset of the buffer's first byte.
    offset: u64,
    /// The length of the source, if it is known.
    total: Option<u64>,
    checksum: Crc64Rdb,
    /// The end of the part of the buffer that the checksum includes.
    summed: usize,
    /// The part being read, for errors.
    pub place: Place,
    /// Compressed bytes before decompression.
    compressed: Vec<u8>,
    /// Bytes that compressed strings may still expand to.
    pub expanding: u64,
    /// Receives a copy of the compressed bytes of strings; of several, the last.
    pub lzf: Option<Vec<u8>>,
}

/// The beginning of a string.
enum Length {
    Plain(u64),
    Encoded(u8),
}

impl<R: Read> Input<R> {
    pub fn new(source: R, total: Option<u64>) -> Self {
        // No larger than the source: many payloads are small.
        let buffer_len = total.and_then(|total| usize::try_from(total).ok()).map_or(BUFFER_LEN, |n| n.min(BUFFER_LEN));
        Self {
            source,
            buffer: vec![0; buffer_len.max(1)].into(),
            start: 0,
            end: 0,
            offset: 0,
            total,
            checksum: Crc64Rdb::new(),
            summed: 0,
            place: Place::Header,
            compressed: Vec::new(),
            expanding: u64::MAX,
            lzf: None,
        }
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset + self.start as u64
    }

    /// The most bytes that can follow.
    pub fn remaining(&self) -> u64 {
        self.total.map_or(u64::MAX, |total| total.saturating_sub(self.offset()))
    }

    /// The checksum of the bytes read.
    pub fn checksum(&mut self) -> u64 {
        self.sum();
        self.checksum.finish()
    }

    fn sum(&mut self) {
        if let Some(taken) = self.buffer.get(self.summed..self.start) {
            self.checksum.update(taken);
        }
        self.summed = self.start;
    }

    /// An error: what the format requires is missing or wrong at `offset`.
    pub fn damaged(&self, offset: u64, expected: &'static str) -> RdbError {
        RdbError::Damaged { offset, place: self.place, expected, inside: None }
    }

    /// An error: a packed value that begins at `offset` is faulty.
    pub fn flawed(&self, offset: u64, flaw: Flaw) -> RdbError {
        let inside = Some((flaw.packing, flaw.at));
        RdbError::Damaged { offset, place: self.place, expected: flaw.expected, inside }
    }

    fn truncated(&self, offset: u64, expected: &'static str) -> RdbError {
        RdbError::Truncated { offset, place: self.place, expected }
    }

    /// Available bytes; empty only at the end.
    fn ready(&mut self, expected: &'static str) -> Result<&[u8], RdbError> {
        if self.start == self.end {
            self.sum();
            self.offset += self.end as u64;
            (self.start, self.end, self.summed) = (0, 0, 0);
            self.end = loop {
                match self.source.read(&mut self.buffer) {
                    Ok(read) => break read,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(source) => return Err(RdbError::Io { offset: self.offset, source }),
                }
            };
        }
        match self.buffer.get(self.start..self.end) {
            Some(ready) if !ready.is_empty() => Ok(ready),
            _ => Err(self.truncated(self.offset, expected)),
        }
    }

    /// Reads one byte.
    pub fn byte(&mut self, expected: &'static str) -> Result<u8, RdbError> {
        let [byte] = self.array(expected)?;
        Ok(byte)
    }

    /// Reads `N` bytes.
    pub fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], RdbError> {
        let mut array = [0; N];
        let mut rest = array.as_mut_slice();
        while !rest.is_empty() {
            let ready = self.ready(expected)?;
            let len = ready.len().min(rest.len());
            let (head, tail) = rest.split_at_mut(len);
            head.copy_from_slice(ready.get(..len).unwrap_or_default());
            self.start += len;
            rest = tail;
        }
        Ok(array)
    }

    /// Reads `len` bytes and appends them to `out`.
    fn append(&mut self, len: u64, out: &mut Vec<u8>) -> Result<(), RdbError> {
        const EXPECTED: &str = "all bytes of a string";
        if len > self.remaining() {
            return Err(self.truncated(self.total.unwrap_or(u64::MAX), EXPECTED));
        }
        let mut rest = len;
        while rest > 0 {
            let ready = self.ready(EXPECTED)?;
            let taken = usize::try_from(rest).map_or(ready.len(), |rest| rest.min(ready.len()));
            out.extend_from_slice(ready.get(..taken).unwrap_or_default());
            self.start += taken;
            rest -= taken as u64;
        }
        Ok(())
    }

    /// Skips `len` bytes.
    fn skip(&mut self, len: u64) -> Result<(), RdbError> {
        const EXPECTED: &str = "all bytes of a string";
        if len > self.remaining() {
            return Err(self.truncated(self.total.unwrap_or(u64::MAX), EXPECTED));
        }
        let mut rest = len;
        while rest > 0 {
            let ready = self.ready(EXPECTED)?.len();
            let taken = usize::try_from(rest).map_or(ready, |rest| rest.min(ready));
            self.start += taken;
            rest -= taken as u64;
        }
        Ok(())
    }

    fn length_or_encoding(&mut self, expected: &'static str) -> Result<Length, RdbError> {
        let offset = self.offset();
        let first = self.byte(expected)?;
        Ok(match (first >> 6, first & 0x3f) {
            (0, low) => Length::Plain(u64::from(low)),
            (1, high) => Length::Plain(u64::from(u16::from_be_bytes([high, self.byte(expected)?]))),
            (2, 0) => Length::Plain(u64::from(u32::from_be_bytes(self.array(expected)?))),
            (2, 1) => Length::Plain(u64::from_be_bytes(self.array(expected)?)),
            (3, encoding) => Length::Encoded(encoding),
            _ => return Err(self.damaged(offset, expected)),
        })
    }

    /// Reads a length, or a number encoded as one.
    pub fn length(&mut self, expected: &'static str) -> Result<u64, RdbError> {
        let offset = self.offset();
        match self.length_or_encoding(expected)? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(_) => Err(self.damaged(offset, expected)),
        }
    }

    /// Reads a count of parts, each of at least `part_len` bytes.
    pub fn count(&mut self, part_len: u64, expected: &'static str) -> Result<u64, RdbError> {
        let offset = self.offset();
        let count = self.length(expected)?;
        if count.checked_mul(part_len).is_none_or(|bytes| bytes > self.remaining()) {
            return Err(self.damaged(offset, expected));
        }
        Ok(count)
    }

    /// Reads a string and appends it to `out`.
    pub fn string(&mut self, out: &mut Vec<u8>) -> Result<(), RdbError> {
        let offset = self.offset();
        let number = match self.length_or_encoding("the length of a string")? {
            Length::Plain(length) => return self.append(length, out),
            Length::Encoded(string_encoding::LZF) => return self.compressed(offset, out),
            Length::Encoded(string_encoding::INT8) => i64::from(i8::from_le_bytes(self.array("an 8-bit integer")?)),
            Length::Encoded(string_encoding::INT16) => i64::from(i16::from_le_bytes(self.array("a 16-bit integer")?)),
            Length::Encoded(string_encoding::INT32) => i64::from(i32::from_le_bytes(self.array("a 32-bit integer")?)),
            Length::Encoded(_) => return Err(self.damaged(offset, "a string")),
        };
        out.extend_from_slice(IntegerText::default().format(number));
        Ok(())
    }

    fn compressed(&mut self, offset: u64, out: &mut Vec<u8>) -> Result<(), RdbError> {
        let compressed_len = self.length("the length of a compressed string")?;
        let len = self.length("the length of a string before it was compressed")?;
        self.expanding = self.expanding.checked_sub(len).ok_or(RdbError::TooLong { offset })?;
        let mut compressed = std::mem::take(&mut self.compressed);
        compressed.clear();
        self.append(compressed_len, &mut compressed)?;
        let expanded = usize::try_from(len).is_ok_and(|len| lzf::decompress(&compressed, len, out).is_ok());
        if let Some(lzf) = &mut self.lzf {
            lzf.clone_from(&compressed);
        }
        // One huge string must not keep its memory for the rest of the file.
        if compressed.capacity() <= BUFFER_LEN {
            self.compressed = compressed;
        }
        if expanded { Ok(()) } else { Err(self.damaged(offset, "a string as LZF, of the length before it")) }
    }

    /// Skips a string.
    pub fn skip_string(&mut self) -> Result<(), RdbError> {
        let offset = self.offset();
        let len = match self.length_or_encoding("the length of a string")? {
            Length::Plain(length) => length,
            Length::Encoded(string_encoding::INT8) => 1,
            Length::Encoded(string_encoding::INT16) => 2,
            Length::Encoded(string_encoding::INT32) => 4,
            Length::Encoded(string_encoding::LZF) => {
                let compressed_len = self.length("the length of a compressed string")?;
                self.length("the length of a string before it was compressed")?;
                compressed_len
            }
            Length::Encoded(_) => return Err(self.damaged(offset, "a string")),
        };
        self.skip(len)
    }

    /// Reads a string.
    pub fn own_string(&mut self) -> Result<Vec<u8>, RdbError> {
        let mut string = Vec::new();
        self.string(&mut string)?;
        Ok(string)
    }

    /// Reads a string and appends it.
    pub fn push_string(&mut self, strings: &mut Strings) -> Result<(), RdbError> {
        strings.push_with(|bytes| self.string(bytes))
    }

    /// Reads a time.
    pub fn time_ms(&mut self, expected: &'static str) -> Result<UnixMs, RdbError> {
        Ok(UnixMs::from_le_bytes(self.array(expected)?))
    }
}
