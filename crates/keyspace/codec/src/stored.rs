//! The header of a stored value: how it was compressed, how long it is, with which dictionary.
//!
//! Every compressed value in memory, log and checkpoint has it, so it is as short as its contents allow: 2 bytes for a
//! value of up to 127 bytes, 3 up to 16 KiB, and one more for one of the first 127 dictionaries. The format:
//! docs/formats/stored-value.md.

use crate::dictionary_number::DictionaryNumber;
use crate::error::CodecError;
use crate::{lz4, lzf, zstd};
use base::varint;
use std::num::NonZeroU32;

/// Longest value that is stored compressed, in bytes.
pub const LEN_MAX: u64 = 512 << 20;

/// Longest header.
pub const HEADER_LEN_MAX: usize = 1 + 5 + 5;

/// The version, in the high half of the first byte.
const VERSION: u8 = 1 << 4;

/// How a payload is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// LZF: what RDB files hold, too.
    Lzf,
    /// A block of LZ4.
    Lz4,
    /// The blocks of a frame of zstd.
    Zstd,
    /// A frame of zstd.
    ZstdFrame,
    /// The blocks of a frame of zstd, compressed with a dictionary.
    ZstdDictionary(DictionaryNumber),
    /// A frame of zstd, compressed with a dictionary.
    ZstdDictionaryFrame(DictionaryNumber),
}

impl Form {
    /// Every form without a dictionary, and with this one.
    #[cfg(test)]
    pub(crate) fn all(number: DictionaryNumber) -> [Self; 6] {
        use Form::{Lz4, Lzf, Zstd, ZstdDictionary, ZstdDictionaryFrame, ZstdFrame};
        [Lzf, Lz4, Zstd, ZstdFrame, ZstdDictionary(number), ZstdDictionaryFrame(number)]
    }

    /// The low half of the first byte.
    fn code(self) -> u8 {
        match self {
            Form::Lzf => 1,
            Form::Lz4 => 2,
            Form::Zstd => 3,
            Form::ZstdFrame => 4,
            Form::ZstdDictionary(_) => 5,
            Form::ZstdDictionaryFrame(_) => 6,
        }
    }

    /// The codec's name, as configuration and messages say it.
    pub fn codec(self) -> &'static str {
        match self {
            Form::Lzf => "lzf",
            Form::Lz4 => "lz4",
            _ => "zstd",
        }
    }

    /// The dictionary that reading needs.
    pub fn dictionary(self) -> Option<DictionaryNumber> {
        match self {
            Form::ZstdDictionary(number) | Form::ZstdDictionaryFrame(number) => Some(number),
            _ => None,
        }
    }

    /// How many bytes a byte of payload stands for at most.
    fn expansion_max(self) -> usize {
        match self {
            Form::Lzf => lzf::EXPANSION_MAX,
            Form::Lz4 => lz4::EXPANSION_MAX,
            _ => zstd::EXPANSION_MAX,
        }
    }
}

/// A stored value, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored<'a> {
    /// How the payload is to be read.
    pub form: Form,
    /// Bytes of the value.
    pub len: usize,
    /// The compressed bytes.
    pub payload: &'a [u8],
}

impl<'a> Stored<'a> {
    /// Splits a stored value without reading its payload. The length it claims is possible, so reserving that much
    /// cannot exhaust memory.
    ///
    /// # Errors
    /// `Header` and `Length`.
    #[inline]
    pub fn parse(mut bytes: &'a [u8]) -> Result<Self, CodecError> {
        let (&first, rest) = bytes.split_first().ok_or(CodecError::Header("it is empty"))?;
        bytes = rest;
        if first & 0xf0 != VERSION {
            return Err(CodecError::Header("its version is not 1"));
        }
        let cut = CodecError::Header("it ends in its header, or a number in it is not written the shortest way");
        let Some(len) = varint::take(&mut bytes) else { return Err(cut) };
        let mut dictionary = || {
            let number =
                varint::take(&mut bytes).and_then(|number| u32::try_from(number).ok()).and_then(NonZeroU32::new);
            number.map(DictionaryNumber).ok_or(CodecError::Header("its dictionary has no possible number"))
        };
        let form = match first & 0x0f {
            1 => Form::Lzf,
            2 => Form::Lz4,
            3 => Form::Zstd,
            4 => Form::ZstdFrame,
            5 => Form::ZstdDictionary(dictionary()?),
            6 => Form::ZstdDictionaryFrame(dictionary()?),
            _ => return Err(CodecError::Header("its form is unknown")),
        };
        if len > LEN_MAX || len > (bytes.len() as u64).saturating_mul(form.expansion_max() as u64) {
            return Err(CodecError::Length { form: form.codec(), payload: bytes.len(), len });
        }
        Ok(Self { form, len: len as usize, payload: bytes })
    }
}

/// Appends the stored form of a value of `len` bytes that is already compressed by LZF. Returns false, and appends
/// nothing, if that is not shorter, or longer than any compressed value may be.
pub fn put_lzf(lzf: &[u8], len: usize, out: &mut Vec<u8>) -> bool {
    if header_len(Form::Lzf, len) + lzf.len() >= len || len as u64 > LEN_MAX {
        return false;
    }
    put_header(Form::Lzf, len, out);
    out.extend_from_slice(lzf);
    true
}

/// Appends the header of a value of `len` bytes.
pub(crate) fn put_header(form: Form, len: usize, out: &mut Vec<u8>) {
    out.push(VERSION | form.code());
    varint::put(out, len as u64);
    if let Some(number) = form.dictionary() {
        varint::put(out, u64::from(number.0.get()));
    }
}

/// Bytes that [`put_header`] appends.
pub(crate) fn header_len(form: Form, len: usize) -> usize {
    1 + varint::len(len as u64) + form.dictionary().map_or(0, |number| varint::len(u64::from(number.0.get())))
}

/// Changes the form in a header that was put at the start of `bytes`; both forms have headers of one length.
pub(crate) fn change_form(bytes: &mut [u8], form: Form) {
    if let Some(first) = bytes.first_mut() {
        *first = VERSION | form.code();
    }
}

#[cfg(test)]
mod tests;
