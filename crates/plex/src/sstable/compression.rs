//! How blocks are made smaller: the byte in the trailer, and the form that it stands for.
//!
//! A compressed part is the length that it stands for (4 bytes) and an LZ4 block. One that does not shrink by an eighth is
//! kept as it is.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

/// How data and index blocks of a table are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// LZ4 blocks: about half the size for text, at a cost below that of reading from a device.
    Lz4,
}

/// The byte in the trailer.
pub(super) const NONE: u8 = 0;
const LZ4: u8 = 1;

/// Bytes of the length in front of a compressed part.
const LEN_BYTES: usize = 4;

/// No block stands for more bytes than this many times its length: a byte of length adds at most 255.
const EXPANSION_MAX: usize = 255;

impl Compression {
    /// Compresses the part, if that helps; returns the byte for its trailer.
    pub(super) fn pack(self, part: &mut Vec<u8>) -> u8 {
        let Self::Lz4 = self else { return NONE };
        let Ok(len) = u32::try_from(part.len()) else { return NONE };
        let mut packed = vec![0; LEN_BYTES + get_maximum_output_size(part.len())];
        let Ok(packed_len) = compress_into(part, &mut packed[LEN_BYTES..]) else { return NONE };
        if LEN_BYTES + packed_len > part.len() - part.len() / 8 {
            return NONE;
        }
        packed[..LEN_BYTES].copy_from_slice(&len.to_le_bytes());
        part.clear();
        part.extend_from_slice(&packed[..LEN_BYTES + packed_len]);
        LZ4
    }
}

/// Undoes [`Compression::pack`], by the byte from the trailer.
///
/// # Errors
/// What is wrong with the part.
pub(super) fn unpack(byte: u8, part: &mut Vec<u8>) -> Result<(), String> {
    match byte {
        NONE => Ok(()),
        LZ4 => {
            let (len, packed) = part.split_first_chunk::<LEN_BYTES>().ok_or("compressed block without its length")?;
            let len = u32::from_le_bytes(*len) as usize;
            if len > EXPANSION_MAX * packed.len() {
                return Err(format!("compressed block of {} bytes cannot stand for {len}", packed.len()));
            }
            let mut out = vec![0; len];
            match decompress_into(packed, &mut out) {
                Ok(found) if found == len => *part = out,
                Ok(found) => return Err(format!("compressed block of {found} bytes instead of {len}")),
                Err(error) => return Err(format!("compressed block: {error}")),
            }
            Ok(())
        }
        other => Err(format!("compression {other} is not known to this release")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    #[test]
    fn what_is_packed_comes_back_and_nothing_grows() {
        let mut rng = Rng::new(5);
        for (len, letters) in [(0, 1), (1, 1), (100, 256), (4096, 256), (4096, 4), (100_000, 2)] {
            let bytes: Vec<u8> = (0..len).map(|_| rng.below(letters) as u8).collect();
            let mut part = bytes.clone();
            let byte = Compression::Lz4.pack(&mut part);
            assert!(part.len() <= len && (byte == LZ4) == (part.len() < len), "{len} of {letters}: {}", part.len());
            assert_eq!(byte == LZ4, len > 1000 && letters < 256);
            unpack(byte, &mut part).expect("it was packed");
            assert_eq!(part, bytes);
        }
    }

    /// Wrong lengths and damaged blocks are errors, and take no memory that the part does not account for.
    #[test]
    fn damaged_parts_are_refused() {
        let mut part = vec![7; 4096];
        assert_eq!(Compression::Lz4.pack(&mut part), LZ4);
        for len in [0u32, 4095, 4097, u32::MAX] {
            let mut lying = part.clone();
            lying[..4].copy_from_slice(&len.to_le_bytes());
            assert!(unpack(LZ4, &mut lying).is_err(), "{len}");
        }
        for cut in 0..part.len() {
            assert!(unpack(LZ4, &mut part[..cut].to_vec()).is_err(), "{cut}");
        }
        assert!(unpack(2, &mut part).is_err());
    }
}
