//! LZ4 blocks, without a frame: the caller stores both lengths.

use crate::error::CodecError;
use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

/// No block stands for more bytes than this many times its length: a byte of length adds at most 255.
pub(crate) const EXPANSION_MAX: usize = 255;

/// Inputs below this length are found in a table of half the size, which is cleared in half the time.
const SMALL: usize = u16::MAX as usize;

/// Scratch memory above this is given back after use.
const SCRATCH_KEPT: usize = 256 << 10;

/// Compresses to LZ4; tables and scratch memory are reused.
pub(crate) struct Compressor {
    small: CompressTable,
    large: CompressTable,
    scratch: Vec<u8>,
}

impl Compressor {
    pub(crate) fn new() -> Self {
        Self { small: CompressTable::small(), large: CompressTable::large(), scratch: Vec::new() }
    }

    /// Appends `input` as a block if that takes at most `len_max` bytes; otherwise answers false, with `out` as it was.
    pub(crate) fn compress(&mut self, input: &[u8], len_max: usize, out: &mut Vec<u8>) -> bool {
        let table = if input.len() < SMALL { &mut self.small } else { &mut self.large };
        // The library asks for room for the worst case, which `out` need not have.
        let worst = get_maximum_output_size(input.len());
        if self.scratch.len() < worst {
            self.scratch.resize(worst, 0);
        }
        let packed = compress_into_with_table(input, &mut self.scratch, table).ok();
        let packed = packed.and_then(|len| self.scratch.get(..len)).filter(|packed| packed.len() <= len_max);
        let fitted = packed.is_some();
        out.extend_from_slice(packed.unwrap_or_default());
        if self.scratch.len() > SCRATCH_KEPT {
            self.scratch = Vec::new();
        }
        fitted
    }
}

/// Appends the `len` bytes that `input` stands for.
///
/// # Errors
/// When the block is damaged or stands for another number of bytes; `out` is as it was then.
pub(crate) fn decompress(input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = out.len();
    out.resize(start + len, 0);
    let written = decompress_into(input, out.get_mut(start..).unwrap_or_default());
    let reason = match written {
        Ok(written) if written == len => return Ok(()),
        Ok(written) => format!("{written} bytes instead of {len}"),
        Err(error) => error.to_string(),
    };
    out.truncate(start);
    Err(CodecError::Payload { form: "LZ4", reason })
}
