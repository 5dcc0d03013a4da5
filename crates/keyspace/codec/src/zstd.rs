//! zstd, with and without dictionaries, by the reference library.
//!
//! A frame of zstd begins with a header of 6 to 9 bytes which says no more than the length of the value. That would
//! cost a small value a tenth of what compression saves, so the header is left out and built again for reading (*bare*
//! blocks):
//!
//! ```text
//!  28 b5 2f fd   descriptor   length: 1 byte below 256, 2 bytes (less 256) below 65,792, else 4
//! ```
//!
//! Z1. A frame is stored bare only if its header has these very bytes; any other is stored whole. So the output of
//!     future versions of the library can be read.
//! Z2. Reading writes into a buffer made for the value, and takes no window of its own, whatever a damaged payload asks
//!     for.

use crate::error::CodecError;
use std::io::Cursor;
use zstd_safe::{CCtx, CDict, DCtx, DDict};

/// No payload stands for more bytes than this many times its length: a block of 4 bytes gives 128 KiB at most.
pub(crate) const EXPANSION_MAX: usize = (128 << 10) / 4;

/// Levels that the library knows: negative ones are faster, those above 19 take far more memory.
pub const LEVELS: std::ops::RangeInclusive<i32> = -7..=19;

/// The longest header that is left out.
const HEADER_MAX: usize = 9;

/// Scratch memory above this is given back after use.
const SCRATCH_KEPT: usize = 256 << 10;

/// What a call needs and reuses.
pub(crate) struct Contexts {
    compression: CCtx<'static>,
    decompression: DCtx<'static>,
    /// A frame on its way in or out.
    scratch: Vec<u8>,
}

/// How a compressed value came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Without its header.
    Bare,
    /// As the library wrote it.
    Whole,
}

/// How much to try, and with which knowledge.
pub(crate) enum Effort<'a> {
    Level(i32),
    Dictionary(&'a CDict<'static>),
}

impl Contexts {
    pub(crate) fn new() -> Self {
        Self { compression: CCtx::create(), decompression: DCtx::create(), scratch: Vec::new() }
    }

    /// Appends `input`, compressed, if that takes at most `len_max` bytes; otherwise `None`, with `out` as it was.
    pub(crate) fn compress(
        &mut self,
        effort: &Effort<'_>,
        input: &[u8],
        len_max: usize,
        out: &mut Vec<u8>,
    ) -> Option<Frame> {
        let (header, header_len) = header(input.len())?;
        // With less room the library gives up some bytes too early.
        let room = zstd_safe::compress_bound(input.len());
        if self.scratch.len() < room {
            self.scratch.resize(room, 0);
        }
        let frame = self.scratch.get_mut(..room)?;
        let written = match effort {
            Effort::Level(level) => self.compression.compress(frame, input, *level),
            Effort::Dictionary(dictionary) => self.compression.compress_using_cdict(frame, input, dictionary),
        };
        // An error would be one of memory: then the value stays raw.
        let frame = written.ok().and_then(|len| self.scratch.get(..len));
        let stored = frame.map(|frame| match frame.strip_prefix(header.get(..header_len).unwrap_or_default()) {
            Some(blocks) => (Frame::Bare, blocks),
            None => (Frame::Whole, frame),
        });
        let stored = stored.filter(|(_, bytes)| bytes.len() <= len_max);
        let form = stored.map(|(form, bytes)| {
            out.extend_from_slice(bytes);
            form
        });
        self.give_back();
        form
    }

    /// Appends the `len` bytes that `input` stands for.
    ///
    /// # Errors
    /// When the payload is damaged or stands for another number of bytes; `out` is as it was then.
    pub(crate) fn decompress(
        &mut self,
        frame: Frame,
        dictionary: Option<&DDict<'static>>,
        input: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let damaged = |reason: &str| CodecError::Payload { form: "zstd", reason: reason.to_string() };
        let whole = match frame {
            Frame::Whole => input,
            Frame::Bare => {
                let (header, header_len) = header(len).ok_or_else(|| damaged("too long"))?;
                self.scratch.clear();
                self.scratch.extend_from_slice(header.get(..header_len).unwrap_or_default());
                self.scratch.extend_from_slice(input);
                &self.scratch
            }
        };
        // Spare memory after the existing bytes; the library fills it, so it need not be cleared first.
        let start = out.len();
        out.reserve(len);
        let mut room = Cursor::new(&mut *out);
        room.set_position(start as u64);
        let written = match dictionary {
            None => self.decompression.decompress(&mut room, whole),
            Some(dictionary) => self.decompression.decompress_using_ddict(&mut room, whole, dictionary),
        };
        self.give_back();
        let reason = match written {
            Ok(written) if written == len => return Ok(()),
            Ok(_) => "the value has another length than promised",
            Err(code) => zstd_safe::get_error_name(code),
        };
        out.truncate(start);
        Err(damaged(reason))
    }

    fn give_back(&mut self) {
        if self.scratch.capacity() > SCRATCH_KEPT {
            self.scratch = Vec::new();
        }
    }
}

/// The header of a frame of one segment without checksum and dictionary id, and its length. `None` above 4 GiB.
fn header(len: usize) -> Option<([u8; HEADER_MAX], usize)> {
    let mut header = [0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0, 0];
    let [.., descriptor, a, b, c, d] = &mut header;
    let header_len = match len {
        0..256 => {
            (*descriptor, *a) = (0x20, len as u8);
            6
        }
        256..65_792 => {
            *descriptor = 0x60;
            [*a, *b] = ((len - 256) as u16).to_le_bytes();
            7
        }
        _ => {
            *descriptor = 0xa0;
            [*a, *b, *c, *d] = u32::try_from(len).ok()?.to_le_bytes();
            9
        }
    };
    Some((header, header_len))
}

/// Where a dictionary of zstd holds its id.
const ID: std::ops::Range<usize> = 4..8;

/// Trains a dictionary of at most `len_max` bytes. Equal samples give equal dictionaries.
///
/// # Errors
/// When there are too few samples (the library wants some dozens, and several times `len_max` in bytes), or they have
/// nothing in common.
pub fn train(samples: &[&[u8]], len_max: usize) -> Result<Vec<u8>, CodecError> {
    let sizes: Vec<usize> = samples.iter().map(|sample| sample.len()).collect();
    let joined = samples.concat();
    let mut dictionary = Vec::with_capacity(len_max);
    zstd_safe::train_from_buffer(&mut dictionary, &joined, &sizes).map_err(|code| CodecError::Training {
        samples: samples.len(),
        bytes: joined.len(),
        reason: zstd_safe::get_error_name(code).to_string(),
    })?;
    // Values name their dictionary in their own header, so frames need not: id 0 keeps four bytes out of each.
    dictionary.get_mut(ID).unwrap_or_default().fill(0);
    Ok(dictionary)
}

/// Whether bytes are a dictionary of zstd with id 0.
pub(crate) fn is_dictionary(bytes: &[u8]) -> bool {
    bytes.get(..ID.end) == Some(&[0x37, 0xa4, 0x30, 0xec, 0, 0, 0, 0])
}
