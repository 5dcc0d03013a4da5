//! Compressing and decompressing values, with what a thread keeps for it.

use crate::dictionaries::{Encoder, Reader};
use crate::error::CodecError;
use crate::stored::{self, Form, LEN_MAX, Stored};
use crate::zstd::{Contexts, Effort, Frame};
use crate::{lz4, lzf};
use std::sync::Arc;
use zstd_safe::CDict;

/// Spare room after a value in the output buffer. With it, zstd copies the last bytes as fast as the others; without
/// it, one by one. For buffers that are used again: one that is kept would be longer than its value.
pub const ROOM: usize = 32;

/// How to compress.
#[derive(Clone, Copy, Debug)]
pub enum Method<'a> {
    /// LZF.
    Lzf,
    /// LZ4.
    Lz4,
    /// zstd at this level, one of [`LEVELS`](crate::zstd::LEVELS).
    Zstd(i32),
    /// zstd with a dictionary, at the encoder's level.
    Dictionary(&'a Encoder),
}

/// Tables, contexts and scratch memory of one thread: about 300 KiB once all codecs were used, and no allocation from
/// value to value. Each part is made at its first use.
#[derive(Default)]
pub struct Workspace {
    lzf: Option<lzf::Compressor>,
    lz4: Option<lz4::Compressor>,
    zstd: Option<Contexts>,
}

impl Workspace {
    /// Allocates nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `value` in its stored form if that, header included, takes at most `len_max` bytes and fewer than the
    /// value. Otherwise answers false, and `out` is as it was: such a value stays raw. So do empty ones, and those
    /// longer than [`LEN_MAX`].
    pub fn encode(&mut self, method: Method<'_>, value: &[u8], len_max: usize, out: &mut Vec<u8>) -> bool {
        let len_max = len_max.min(value.len().saturating_sub(1));
        let form = match method {
            Method::Lzf => Form::Lzf,
            Method::Lz4 => Form::Lz4,
            Method::Zstd(_) => Form::Zstd,
            Method::Dictionary(encoder) => Form::ZstdDictionary(encoder.dictionary().number()),
        };
        if value.len() as u64 > LEN_MAX {
            return false;
        }
        let Some(payload_max) = len_max.checked_sub(stored::header_len(form, value.len())) else { return false };
        let start = out.len();
        stored::put_header(form, value.len(), out);
        let fitted = match method {
            Method::Lzf => self.lzf.get_or_insert_default().compress(value, payload_max, out),
            Method::Lz4 => self.lz4.get_or_insert_with(lz4::Compressor::new).compress(value, payload_max, out),
            Method::Zstd(level) => {
                let frame = self.contexts().compress(&Effort::Level(level), value, payload_max, out);
                finish(frame, Form::ZstdFrame, start, out)
            }
            Method::Dictionary(encoder) => {
                let prepared = encoder.prepared();
                let compress = |prepared: &Arc<CDict<'static>>| {
                    self.contexts().compress(&Effort::Dictionary(prepared), value, payload_max, out)
                };
                let frame = prepared.as_ref().and_then(compress);
                finish(frame, Form::ZstdDictionaryFrame(encoder.dictionary().number()), start, out)
            }
        };
        if !fitted {
            out.truncate(start);
        }
        fitted
    }

    /// Appends the value that `bytes` store.
    ///
    /// # Errors
    /// When `bytes` are damaged, or their dictionary is not there; `out` is as it was then.
    pub fn decode(&mut self, bytes: &[u8], dictionaries: &mut Reader, out: &mut Vec<u8>) -> Result<(), CodecError> {
        self.decode_parsed(&Stored::parse(bytes)?, dictionaries, out)
    }

    /// Appends the value of a stored form that was parsed before.
    ///
    /// # Errors
    /// As [`Workspace::decode`].
    pub fn decode_parsed(
        &mut self,
        stored: &Stored<'_>,
        dictionaries: &mut Reader,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let Stored { form, len, payload, .. } = *stored;
        let frame = match form {
            Form::Lzf => return Ok(lzf::decompress(payload, len, out)?),
            Form::Lz4 => return lz4::decompress(payload, len, out),
            Form::Zstd | Form::ZstdDictionary(_) => Frame::Bare,
            Form::ZstdFrame | Form::ZstdDictionaryFrame(_) => Frame::Whole,
        };
        let decoder =
            form.dictionary().map(|number| dictionaries.find(number)).transpose()?.map(|found| found.decoder());
        self.contexts().decompress(frame, decoder, payload, len, out)
    }

    fn contexts(&mut self) -> &mut Contexts {
        self.zstd.get_or_insert_with(Contexts::new)
    }
}

/// Notes in the header at `start` that the frame is whole, if it is. False when nothing was written.
fn finish(frame: Option<Frame>, whole: Form, start: usize, out: &mut [u8]) -> bool {
    if frame == Some(Frame::Whole) {
        stored::change_form(out.get_mut(start..).unwrap_or_default(), whole);
    }
    frame.is_some()
}

#[cfg(test)]
mod tests;
