//! CRC-32C (Castagnoli), the checksum of all our file formats, computed by the CPU's instruction where it has one; and
//! the CRC-64 of Redis' RDB files.

use crc_fast::CrcAlgorithm::{Crc32Iscsi, Crc64Redis};

/// The checksum of one slice.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(Crc32Iscsi, bytes) as u32
}

/// A checksum over several slices.
pub struct Crc32c(crc_fast::Digest);

impl Crc32c {
    /// An empty checksum.
    pub fn new() -> Self {
        Self(crc_fast::Digest::new(Crc32Iscsi))
    }

    /// Adds the bytes.
    pub fn update(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(bytes);
        self
    }

    /// The checksum of everything added so far.
    pub fn finish(&self) -> u32 {
        self.0.finalize() as u32
    }
}

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

/// The checksum of RDB files and DUMP payloads, over several slices: CRC-64 with the polynomial of Jones.
pub struct Crc64Rdb(crc_fast::Digest);

impl Crc64Rdb {
    /// An empty checksum.
    pub fn new() -> Self {
        Self(crc_fast::Digest::new(Crc64Redis))
    }

    /// Adds the bytes.
    pub fn update(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(bytes);
        self
    }

    /// The checksum of everything added so far.
    pub fn finish(&self) -> u64 {
        self.0.finalize()
    }
}

impl Default for Crc64Rdb {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the Castagnoli polynomial (RFC 3720, appendix B.4).
    #[test]
    fn check_value() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(Crc32c::new().update(b"1234").update(b"56789").finish(), 0xE306_9283);
    }

    /// The check value that Redis' own implementation names.
    #[test]
    fn check_value_of_rdb() {
        assert_eq!(Crc64Rdb::new().update(b"1234").update(b"56789").finish(), 0xE9C6_D914_C4B8_D9CA);
    }
}
