//! How blocks are made smaller: the byte in the trailer, and the form that it stands for.
//!
//! A compressed part is the length that it stands for (4 bytes) and an LZ4 block or a frame of zstd. One that does not
//! shrink by an eighth is kept as it is.

use std::cell::RefCell;

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use zstd_safe::{CCtx, DCtx};

/// How data and index blocks of a table are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// LZ4 blocks: about half the size for text, at a cost below that of reading from a device.
    Lz4,
    /// Frames of zstd: a third less than LZ4 for text, at several times the cost. For levels that are written seldom.
    Zstd {
        /// From -7 (fast) to 19 (small); 3 is the library's own choice.
        level: i32,
    },
}

/// The byte in the trailer.
pub(super) const NONE: u8 = 0;
const LZ4: u8 = 1;
const ZSTD: u8 = 2;

/// Bytes of the length in front of a compressed part.
const LEN_BYTES: usize = 4;

/// No LZ4 block stands for more bytes than this many times its length: a byte of length adds at most 255.
const LZ4_EXPANSION_MAX: usize = 255;

/// No frame of zstd does: a block of 4 bytes gives 128 KiB at most.
const ZSTD_EXPANSION_MAX: usize = (128 << 10) / 4;

/// Levels of zstd; those above take far more memory.
const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -7..=19;

thread_local! {
    /// Working memory of zstd, made once per thread that needs it.
    static ZSTD_COMPRESSION: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
    static ZSTD_DECOMPRESSION: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

impl Compression {
    /// Compresses the part, if that helps; returns the byte for its trailer.
    pub(super) fn pack(self, part: &mut Vec<u8>) -> u8 {
        let Ok(len) = u32::try_from(part.len()) else { return NONE };
        let (byte, room) = match self {
            Self::None => return NONE,
            Self::Lz4 => (LZ4, get_maximum_output_size(part.len())),
            Self::Zstd { .. } => (ZSTD, zstd_safe::compress_bound(part.len())),
        };
        let mut packed = vec![0; LEN_BYTES + room];
        let out = &mut packed[LEN_BYTES..];
        let packed_len = match self {
            Self::Zstd { level } => ZSTD_COMPRESSION.with_borrow_mut(|zstd| zstd.compress(out, part, level).ok()),
            _ => compress_into(part, out).ok(),
        };
        let Some(packed_len) = packed_len else { return NONE };
        if LEN_BYTES + packed_len > part.len() - part.len() / 8 {
            return NONE;
        }
        packed[..LEN_BYTES].copy_from_slice(&len.to_le_bytes());
        part.clear();
        part.extend_from_slice(&packed[..LEN_BYTES + packed_len]);
        byte
    }

    /// Whether the level is one that zstd has.
    /// As the manifest says it.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Lz4 => 1,
            Self::Zstd { level } => (2 + level - ZSTD_LEVELS.start()) as u64,
        }
    }

    /// Undoes [`number`](Self::number); `None` for what this release does not know.
    pub(crate) fn of_number(number: u64) -> Option<Self> {
        Some(match number {
            0 => Self::None,
            1 => Self::Lz4,
            _ => Self::Zstd { level: i32::try_from(number).ok()? - 2 + ZSTD_LEVELS.start() },
        })
        .filter(|compression| compression.is_known())
    }

    pub(crate) fn is_known(self) -> bool {
        !matches!(self, Self::Zstd { level } if !ZSTD_LEVELS.contains(&level))
    }
}

/// Whether a part is not as it was before [`Compression::pack`], by the byte from the trailer.
pub(super) fn is_packed(byte: u8) -> bool {
    byte != NONE
}

/// Undoes [`Compression::pack`], by the byte from the trailer.
///
/// # Errors
/// What is wrong with the part.
pub(super) fn unpack(byte: u8, part: &mut Vec<u8>) -> Result<(), String> {
    if is_packed(byte) {
        let mut out = vec![0; unpacked_len(byte, part)?];
        unpack_into(byte, part, &mut out)?;
        *part = out;
    }
    Ok(())
}

/// The length that a packed part says it stands for, in bytes; it can be no lie that takes much memory.
///
/// # Errors
/// What is wrong with the part.
pub(super) fn unpacked_len(byte: u8, part: &[u8]) -> Result<usize, String> {
    let expansion_max = match byte {
        LZ4 => LZ4_EXPANSION_MAX,
        ZSTD => ZSTD_EXPANSION_MAX,
        other => return Err(format!("compression {other} is not known to this release")),
    };
    let (len, packed) = part.split_first_chunk::<LEN_BYTES>().ok_or("compressed block without its length")?;
    let len = u32::from_le_bytes(*len) as usize;
    if len > expansion_max.saturating_mul(packed.len()) {
        return Err(format!("compressed block of {} bytes cannot stand for {len}", packed.len()));
    }
    Ok(len)
}

/// Unpacks a packed part to memory of its [`unpacked_len`].
///
/// # Errors
/// What is wrong with the part.
pub(super) fn unpack_into(byte: u8, part: &[u8], out: &mut [u8]) -> Result<(), String> {
    let packed = part.get(LEN_BYTES..).ok_or("compressed block without its length")?;
    let len = out.len();
    let unpacked = match byte {
        LZ4 => decompress_into(packed, out).map_err(|error| error.to_string()),
        _ => ZSTD_DECOMPRESSION
            .with_borrow_mut(|zstd| zstd.decompress(out, packed))
            .map_err(|code| zstd_safe::get_error_name(code).to_owned()),
    };
    match unpacked {
        Ok(found) if found == len => Ok(()),
        Ok(found) => Err(format!("compressed block of {found} bytes instead of {len}")),
        Err(error) => Err(format!("compressed block: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    const KINDS: [(Compression, u8); 3] =
        [(Compression::Lz4, LZ4), (Compression::Zstd { level: 3 }, ZSTD), (Compression::Zstd { level: -7 }, ZSTD)];

    #[test]
    fn what_is_packed_comes_back_and_nothing_grows() {
        let mut rng = Rng::new(5);
        for (len, letters) in [(0, 1), (1, 1), (100, 256), (4096, 256), (4096, 4), (100_000, 2)] {
            let bytes: Vec<u8> = (0..len).map(|_| rng.below(letters) as u8).collect();
            for (compression, packed) in KINDS {
                let mut part = bytes.clone();
                let byte = compression.pack(&mut part);
                assert!(part.len() <= len, "{compression:?}, {len} of {letters}: {}", part.len());
                assert_eq!(byte == packed, part.len() < len);
                assert_eq!(byte == packed, len > 1000 && letters < 256, "{compression:?}, {len} of {letters}");
                unpack(byte, &mut part).expect("it was packed");
                assert_eq!(part, bytes);
            }
        }
    }

    /// Wrong lengths and damaged blocks are errors, and take no memory that the part does not account for.
    #[test]
    fn damaged_parts_are_refused() {
        for (compression, byte) in KINDS {
            let mut part = vec![7; 4096];
            assert_eq!(compression.pack(&mut part), byte);
            for len in [0u32, 4095, 4097, u32::MAX] {
                let mut lying = part.clone();
                lying[..4].copy_from_slice(&len.to_le_bytes());
                assert!(unpack(byte, &mut lying).is_err(), "{len}");
            }
            for cut in 0..part.len() {
                assert!(unpack(byte, &mut part[..cut].to_vec()).is_err(), "{cut}");
            }
            assert!(unpack(3, &mut part).is_err());
        }
    }
}
