//! The frame of the manifest and of a snapshot file's header, and the reading of their fields.
//!
//! ```text
//! magic (8) | version u32 | body length u32 | crc of these 16 u32 | body | crc of all before it u32
//! ```
//!
//! All fixed-width numbers are little-endian. The first 20 bytes keep their meaning in every version, which
//! distinguishes a newer version from damage.

use crate::CheckpointError;
use base::checksum::crc32c;
use base::{HistoryId, KeyspaceId, Lsn, UnixMs, varint};
use std::path::Path;

/// Bytes before the body.
pub(crate) const PREFIX_LEN: usize = 20;
/// Bytes after it.
pub(crate) const SUFFIX_LEN: usize = 4;

/// A kind of file.
pub(crate) struct Kind {
    pub magic: [u8; 8],
    /// The version that this program writes, and the newest it reads.
    pub version: u32,
    /// Longest body.
    pub body_len_max: u32,
    /// What is lost when the file cannot be read.
    pub lost: &'static str,
}

/// Adds the frame to a body.
pub(crate) fn seal(kind: &Kind, body: &[u8]) -> Vec<u8> {
    debug_assert!(body.len() <= kind.body_len_max as usize, "a body of {} bytes", body.len());
    let mut bytes = Vec::with_capacity(PREFIX_LEN + body.len() + SUFFIX_LEN);
    bytes.extend_from_slice(&kind.magic);
    bytes.extend_from_slice(&kind.version.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&crc32c(&bytes).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(&crc32c(&bytes).to_le_bytes());
    bytes
}

/// Checks the first [`PREFIX_LEN`] bytes and returns the version and the length of the body.
pub(crate) fn open_prefix(kind: &Kind, path: &Path, bytes: &[u8]) -> Result<(u32, usize), CheckpointError> {
    let damaged = |offset, what: String| Err(damaged(kind, path, offset, what));
    let mut rest = bytes;
    let (Some(magic), Some(version), Some(len), Some(crc)) =
        (take::<8>(&mut rest), take_u32(&mut rest), take_u32(&mut rest), take_u32(&mut rest))
    else {
        return damaged(bytes.len() as u64, format!("the file ends within its first {PREFIX_LEN} bytes"));
    };
    let expected = crc32c(bytes.get(..PREFIX_LEN - 4).unwrap_or_default());
    if magic != kind.magic {
        return damaged(0, "it does not begin as such a file does".to_owned());
    }
    if crc != expected {
        return damaged(0, format!("checksum of the first bytes is {crc:#010x}, expected {expected:#010x}"));
    }
    if version > kind.version {
        return Err(CheckpointError::Newer { path: path.into(), version, known: kind.version });
    }
    if version == 0 || len > kind.body_len_max {
        return damaged(8, format!("version {version} with {len} bytes cannot be"));
    }
    Ok((version, len as usize))
}

/// Checks a framed part of the length that [`open_prefix`] implies, and returns the version and the body.
pub(crate) fn open<'a>(kind: &Kind, path: &Path, bytes: &'a [u8]) -> Result<(u32, &'a [u8]), CheckpointError> {
    let (version, len) = open_prefix(kind, path, bytes)?;
    let whole = PREFIX_LEN + len + SUFFIX_LEN;
    let (Some(body), Some(mut suffix)) = (bytes.get(PREFIX_LEN..PREFIX_LEN + len), bytes.get(PREFIX_LEN + len..))
    else {
        return Err(damaged(kind, path, bytes.len() as u64, format!("{} bytes, expected {whole}", bytes.len())));
    };
    if suffix.len() != SUFFIX_LEN {
        return Err(damaged(kind, path, whole as u64, format!("{} bytes, expected {whole}", bytes.len())));
    }
    let expected = crc32c(bytes.get(..PREFIX_LEN + len).unwrap_or_default());
    match take_u32(&mut suffix) {
        Some(crc) if crc == expected => Ok((version, body)),
        crc => {
            let crc = crc.unwrap_or_default();
            Err(damaged(kind, path, PREFIX_LEN as u64, format!("checksum is {crc:#010x}, expected {expected:#010x}")))
        }
    }
}

/// Damage of a framed part.
pub(crate) fn damaged(kind: &Kind, path: &Path, offset: u64, what: String) -> CheckpointError {
    CheckpointError::Damaged { path: path.into(), offset, what, lost: kind.lost.to_owned() }
}

pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*first)
}

pub(crate) fn take_u8(rest: &mut &[u8]) -> Option<u8> {
    take::<1>(rest).map(|[byte]| byte)
}

pub(crate) fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_le_bytes)
}

pub(crate) fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_le_bytes)
}

pub(crate) fn take_lsn(rest: &mut &[u8]) -> Option<Lsn> {
    varint::take(rest).map(Lsn)
}

pub(crate) fn put_time(out: &mut Vec<u8>, at: UnixMs) {
    varint::put(out, varint::zigzag(at));
}

pub(crate) fn take_time(rest: &mut &[u8]) -> Option<UnixMs> {
    varint::take(rest).map(varint::unzigzag)
}

pub(crate) fn take_history(rest: &mut &[u8]) -> Option<HistoryId> {
    take(rest).map(HistoryId)
}

pub(crate) fn take_u128(rest: &mut &[u8]) -> Option<u128> {
    take(rest).map(u128::from_le_bytes)
}

/// Reads a count, then that many elements. A false count never allocates more than the bytes at hand.
pub(crate) fn take_list<T>(rest: &mut &[u8], mut one: impl FnMut(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = usize::try_from(varint::take(rest)?).ok()?;
    if count > rest.len() {
        return None;
    }
    (0..count).map(|_| one(rest)).collect()
}

pub(crate) fn put_spaces(out: &mut Vec<u8>, spaces: &[KeyspaceId]) {
    varint::put(out, spaces.len() as u64);
    spaces.iter().for_each(|space| varint::put(out, u64::from(space.0)));
}

pub(crate) fn take_spaces(rest: &mut &[u8]) -> Option<Vec<KeyspaceId>> {
    take_list(rest, |rest| u32::try_from(varint::take(rest)?).ok().map(KeyspaceId))
}
