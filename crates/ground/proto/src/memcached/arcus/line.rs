//! What the line of a collection command says: the command, and the block that follows.

use super::super::limits::{DATA_BYTES_MAX, Limits};
use super::super::{Refusal, parse_unsigned};
use super::Arcus;
use super::family::Family;
use super::grammar::Create;

/// What follows a line.
#[derive(Clone, Copy)]
pub(super) enum Block {
    /// Another line.
    Nothing,
    /// An element.
    Element(u64),
    /// Words.
    Words { bytes: u64, count: u64, len_max: usize },
}

/// A line that was read.
pub(super) struct Read {
    pub(super) command: Arcus,
    pub(super) block: Block,
    /// The word of the line that is left out of the arguments: the length of the block.
    pub(super) left_out: Option<usize>,
}

/// Why a line is refused, and how many bytes after it are skipped.
pub(super) struct Wrong {
    pub(super) refusal: Refusal,
    pub(super) skipped: u64,
}

impl From<Refusal> for Wrong {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, skipped: 0 }
    }
}

impl Read {
    /// The same, unless its block is longer than the limits allow.
    pub(super) fn within(self, family: Family, limits: &Limits) -> Result<Self, Wrong> {
        let (refusal, bytes) = match self.block {
            Block::Element(bytes) if bytes.saturating_add(2) > limits.element_bytes_max as u64 => {
                (Refusal::ElementTooLarge, bytes)
            }
            Block::Words { bytes, count, .. } if family == Family::Map && count > limits.fields_max as u64 => {
                (Refusal::BadValue, bytes)
            }
            _ => return Ok(self),
        };
        Err(Wrong { refusal, skipped: bytes.saturating_add(2) })
    }
}

/// A command without a block, if its words are right.
pub(super) fn bare(command: Arcus, is_right: bool) -> Result<Read, Wrong> {
    match is_right {
        true => Ok(Read { command, block: Block::Nothing, left_out: None }),
        false => Err(Refusal::Format.into()),
    }
}

/// A command followed by an element, whose length is word `index` of the rest.
pub(super) fn with_element(command: Arcus, rest: &[&[u8]], index: usize, is_right: bool) -> Result<Read, Wrong> {
    let bytes = rest.get(index).and_then(|word| parse_unsigned(word)).filter(|bytes| *bytes <= DATA_BYTES_MAX);
    let bytes = bytes.filter(|_| is_right).ok_or(Refusal::Format)?;
    Ok(Read { command, block: Block::Element(bytes), left_out: Some(index) })
}

pub(super) fn create(command: Arcus, rest: &[&[u8]], family: Family) -> Result<Read, Wrong> {
    bare(command, Create::parse_whole(rest, family).is_some())
}

/// Whether the words from `from` on are those of an insert after its position and length.
pub(super) fn may_create(rest: &[&[u8]], from: usize, family: Family) -> bool {
    rest.get(from..).is_some_and(|words| Create::parse_optional(words, family).is_some())
}

/// A command followed by a line of words.
pub(super) fn words_block(
    command: Arcus,
    (bytes, count): (u64, u64),
    count_max: u64,
    len_max: usize,
) -> Result<Read, Wrong> {
    let bytes_max = count.saturating_mul(len_max as u64).saturating_add(count).saturating_sub(1);
    if count > count_max || count > (bytes / 2).saturating_add(1) || bytes > bytes_max {
        return Err(Wrong { refusal: Refusal::BadValue, skipped: bytes.saturating_add(2) });
    }
    Ok(Read { command, block: Block::Words { bytes, count, len_max }, left_out: None })
}
