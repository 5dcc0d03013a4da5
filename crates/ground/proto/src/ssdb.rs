//! Requests in SSDB's own protocol: packets of blocks, each with its length before it, ended by an empty line.
//!
//! ```text
//!  3\nget\n3\nkey\n\n     Request { consumed: 13 }
//!     ^^^    ^^^          arguments: get, key
//! ```
//!
//! P1. A packet may arrive split at any byte; the result is that of the unsplit bytes.
//! P2. The caller keeps the bytes of an incomplete packet, so memory follows the bytes received, never the announced
//!     ones. The parser keeps where the blocks of that packet are, so that no byte is read twice.
//! P3. Between packets a parser holds no memory.
//! P4. Where SSDB expects a line feed, a carriage return may precede it. Empty lines before a packet are skipped.

#[cfg(test)]
mod tests;

use crate::request::{Arguments, Span};
use memchr::memchr;

/// The longest line of a length, without its end. SSDB's is as long.
const HEAD_BYTES_MAX: usize = 18;

/// Empty lines that are skipped at a time, so that a stream of them does not keep a worker.
const BLANK_BYTES_MAX: usize = 4096;

/// What a packet may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a block.
    pub block_bytes_max: usize,
    /// Blocks of a packet.
    pub block_count_max: usize,
}

/// What stands at the start of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A packet, whose blocks were added.
    Request {
        /// Its length.
        consumed: usize,
    },
    /// Bytes that ask for nothing and get no reply.
    Nothing {
        /// How many.
        consumed: usize,
    },
    /// A part of a packet. The caller keeps it and calls again with more bytes appended.
    Incomplete,
    /// A request of Redis' protocol: the connection speaks that from here on.
    Resp,
    /// What comes is no packet, or one that is too long: the connection ends.
    Refused(Refusal),
}

/// Why a connection's input cannot be followed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The line before a block is no length.
    #[error("a packet is blocks with their lengths before them, and this is no length: send 3, a line feed and get")]
    Length,
    /// A block is longer than allowed.
    #[error("a block of {len} bytes is longer than the {max} that are allowed (proto-max-bulk-len)")]
    BlockTooLong {
        /// Its length.
        len: u64,
        /// The most that is allowed.
        max: usize,
    },
    /// A packet has more blocks than allowed.
    #[error("a packet has more than {max} blocks (proto-max-arguments)")]
    TooManyBlocks {
        /// The most that is allowed.
        max: usize,
    },
    /// A block does not end where its length says.
    #[error("a block does not end with a line feed after the bytes that its length says")]
    BlockEnd,
    /// The packet is longer than a [`Span`] reaches.
    #[error("a packet is longer than 2 GiB")]
    PacketTooLong,
}

/// Reads the packets of one connection.
///
/// ```
/// # use proto::ssdb::{Limits, Parser, Progress};
/// let (mut parser, mut arguments) = (Parser::default(), proto::Arguments::new());
/// let limits = Limits { block_bytes_max: 1 << 20, block_count_max: 1000 };
/// let input = b"3\nget\n3\nkey\n\n";
/// assert_eq!(parser.parse(input, &limits, &mut arguments), Progress::Request { consumed: 13 });
/// let words: Vec<_> = arguments.spans().iter().map(|span| arguments.bytes(input, *span)).collect();
/// assert_eq!(words, [&b"get"[..], b"key"]);
/// ```
#[derive(Debug, Default)]
pub struct Parser {
    /// The blocks of a packet that is not complete.
    blocks: Vec<Span>,
    /// Where in that packet to continue.
    at: usize,
}

/// One step in a packet.
enum Step {
    /// A block, and where the next one begins.
    Block(Span, usize),
    /// The end of the packet, and where the next one begins.
    End(usize),
    Incomplete,
    Refused(Refusal),
}

impl Parser {
    /// Bytes that it holds.
    pub fn held_bytes(&self) -> usize {
        size_of::<Self>().saturating_add(self.blocks.capacity().saturating_mul(size_of::<Span>()))
    }

    /// The packet at the start of `input`; its blocks are added to `out`. `input` is not empty. After
    /// [`Progress::Incomplete`] it begins with the same bytes again.
    pub fn parse(&mut self, input: &[u8], limits: &Limits, out: &mut Arguments) -> Progress {
        if self.at == 0 {
            let blank = input.iter().take(BLANK_BYTES_MAX).take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
            if blank > 0 {
                return Progress::Nothing { consumed: blank };
            }
            if input.first() == Some(&b'*') {
                return Progress::Resp;
            }
        }
        loop {
            match step(input, self.at, limits) {
                Step::Block(..) if self.blocks.len() >= limits.block_count_max => {
                    return self.refuse(Refusal::TooManyBlocks { max: limits.block_count_max });
                }
                Step::Block(block, next) => {
                    self.blocks.push(block);
                    self.at = next;
                }
                Step::End(next) => {
                    std::mem::take(&mut self.blocks).into_iter().for_each(|block| out.push(block));
                    self.at = 0;
                    return Progress::Request { consumed: next };
                }
                Step::Incomplete => return Progress::Incomplete,
                Step::Refused(refusal) => return self.refuse(refusal),
            }
        }
    }

    fn refuse(&mut self, refusal: Refusal) -> Progress {
        *self = Self::default();
        Progress::Refused(refusal)
    }
}

/// The block, or the end of the packet, that begins at `at`.
fn step(input: &[u8], at: usize, limits: &Limits) -> Step {
    let rest = input.get(at..).unwrap_or_default();
    // A longer line is no length.
    let shown = rest.get(..HEAD_BYTES_MAX.saturating_add(2)).unwrap_or(rest);
    let Some(end) = memchr(b'\n', shown) else {
        let is_head = shown.len() <= HEAD_BYTES_MAX.saturating_add(1) && is_beginning(shown);
        return if is_head { Step::Incomplete } else { Step::Refused(Refusal::Length) };
    };
    let line = shown.get(..end).unwrap_or_default();
    let digits = line.strip_suffix(b"\r").unwrap_or(line);
    let start = at.saturating_add(end).saturating_add(1);
    if digits.is_empty() {
        return Step::End(start);
    }
    let Some(len) = number(digits) else { return Step::Refused(Refusal::Length) };
    let max = limits.block_bytes_max;
    let Some(len) = usize::try_from(len).ok().filter(|len| *len <= max) else {
        return Step::Refused(Refusal::BlockTooLong { len, max });
    };
    let Some(span) = Span::new(start, len) else { return Step::Refused(Refusal::PacketTooLong) };
    let block_end = start.saturating_add(len);
    match input.get(block_end..).unwrap_or_default() {
        [b'\n', ..] => Step::Block(span, block_end.saturating_add(1)),
        [b'\r', b'\n', ..] => Step::Block(span, block_end.saturating_add(2)),
        [] | [b'\r'] => Step::Incomplete,
        [..] => Step::Refused(Refusal::BlockEnd),
    }
}

/// Whether this may be the beginning of a line with a length.
fn is_beginning(line: &[u8]) -> bool {
    line.strip_suffix(b"\r").unwrap_or(line).iter().all(u8::is_ascii_digit)
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.len() > HEAD_BYTES_MAX || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Eighteen digits fit.
    Some(
        digits.iter().fold(0, |sum: u64, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0')))),
    )
}
