//! The identity of a tier: the file `TIER` in its directory.
//!
//! ```text
//! "OnggiTID" | version u32 | tier id (16) | crc u32
//! ```

use crate::TierError;
use crate::format::VERSION;
use base::checksum::crc32c;
use std::path::Path;
use vfs::FileSystem;

const MAGIC: [u8; 8] = *b"OnggiTID";
const BYTES: usize = 32;

/// The name of the file.
pub const FILE: &str = "TIER";

/// Names a tier. Random, given once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierId(pub [u8; 16]);

fn encode(id: TierId) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..28].copy_from_slice(&id.0);
    let crc = crc32c(&bytes[..BYTES - 4]);
    bytes[BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn decode(path: &Path, bytes: &[u8]) -> Result<TierId, TierError> {
    let damaged = |what| TierError::Identity { path: path.to_owned(), what };
    let bytes: &[u8; BYTES] = bytes.try_into().map_err(|_| damaged("it has another length"))?;
    if bytes[..8] != MAGIC {
        return Err(damaged("it begins with other bytes"));
    }
    let version = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    if version > VERSION {
        return Err(TierError::Newer { path: path.to_owned(), version });
    }
    let [.., a, b, c, d] = *bytes;
    if u32::from_le_bytes([a, b, c, d]) != crc32c(&bytes[..BYTES - 4]) {
        return Err(damaged("its checksum is wrong"));
    }
    let mut id = [0; 16];
    id.copy_from_slice(&bytes[12..28]);
    Ok(TierId(id))
}

/// The id of the tier in a directory; `None` when it has none.
pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Option<TierId>, TierError> {
    let path = dir.join(FILE);
    match vfs::read_file(fs, &path, 2 * BYTES) {
        Err(error) if error.is_not_found() => Ok(None),
        bytes => decode(&path, &bytes?).map(Some),
    }
}

/// Writes the id, durably.
pub fn write(fs: &dyn FileSystem, dir: &Path, id: TierId) -> Result<(), TierError> {
    Ok(vfs::replace_file(fs, &dir.join(FILE), &encode(id))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let id = TierId(*b"0123456789abcdef");
        let bytes = encode(id);
        assert_eq!(bytes[..12], *b"OnggiTID\x01\0\0\0");
        assert_eq!(decode("TIER".as_ref(), &bytes).expect("it was just written"), id);
        for bit in 0..BYTES * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            decode("TIER".as_ref(), &bytes).expect_err("a bit is wrong");
        }
        decode("TIER".as_ref(), &bytes[1..]).expect_err("it is too short");
    }
}
