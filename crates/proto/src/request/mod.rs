//! Requests: what clients send. An array of bulk strings, `*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`, or an inline line, `GET k`.
//!
//! ```text
//!  input   *2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPI        Complete { consumed: 20 }, then Incomplete { keep: 10 }
//!  spans              ^^^         ^
//! ```
//!
//! R1. A request may arrive split at any byte; the result is that of the unsplit bytes, and the work is linear in
//!     them: an unfinished request is continued where parsing stopped.
//! R2. Memory follows bytes received, never sizes announced. A parser between requests holds none.
//! R3. Limits are checked when a size is announced, before anything of that size arrives.
//! R4. After an empty request, a complete request or an error, the parser is as new. (CVE-2026-27623 was an empty request
//!     that left a parser between two states.)
//!
//! # What the caller keeps
//!
//! Spans are relative to the first byte of the request. After [`Progress::Incomplete`] the caller keeps the first `keep`
//! bytes of the input, appends what arrives later, and calls [`RequestParser::parse`] again with all of it. `keep` is
//! the whole input, except when a large bulk has been taken over:
//!
//! # Large bulks
//!
//! When an argument of at least [`LARGE_BULK_BYTES`] has not arrived completely, the parser moves what is there into a
//! buffer of its own, so that a value of 100 MB is not copied from buffer to buffer. `keep` is then the length of
//! what stands before it, which is still needed for the earlier arguments. The caller may read from the socket into
//! [`RequestParser::large_bulk`] until nothing is missing (line end included) and call `parse` with the kept bytes; or pass
//! received bytes behind the kept ones as always. The argument becomes one of [`Arguments::large`]; later arguments
//! follow behind the kept bytes as if the large one had never been there.

mod arguments;
mod error;
mod inline;
mod large;
#[cfg(test)]
mod tests;

pub use arguments::{Arguments, Span};
pub use error::ProtocolError;
pub use large::{LARGE_BULK_BYTES, LargeBulk};

use crate::number::parse_integer;
use large::Receiving;
use memchr::memchr;

/// What a client may send. Given at each call, since login and `CONFIG SET proto-max-bulk-len` change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest argument in bytes. Values above 4 GiB - 3 mean that.
    pub bulk_bytes_max: usize,
    /// The most arguments of one request.
    pub argument_count_max: usize,
    /// The longest inline request, and the longest line that announces a count or a length.
    pub inline_bytes_max: usize,
    /// Chooses the error text for what is too much now but would not be after a login.
    pub before_login: bool,
}

impl Limits {
    /// For a client that has yet to log in: a stranger makes the server hold next to nothing (CVE-2021-32675).
    pub const BEFORE_LOGIN: Self =
        Self { bulk_bytes_max: 16 * 1024, argument_count_max: 10, inline_bytes_max: 64 * 1024, before_login: true };

    /// For a client that may run commands, unless configured otherwise.
    pub const DEFAULT: Self = Self {
        bulk_bytes_max: 512 * 1024 * 1024,
        argument_count_max: 1_048_576,
        inline_bytes_max: 64 * 1024,
        before_login: false,
    };

    #[inline]
    fn check_argument_count(&self, count: u64) -> Result<(), ProtocolError> {
        if count <= self.argument_count_max as u64 {
            Ok(())
        } else if self.before_login && count <= Self::DEFAULT.argument_count_max as u64 {
            Err(ProtocolError::ArgumentCountBeforeLogin)
        } else {
            Err(ProtocolError::ArgumentCount)
        }
    }

    #[inline]
    fn check_bulk_bytes(&self, len: u64) -> Result<(), ProtocolError> {
        if len <= self.bulk_bytes_max as u64 && len <= BULK_BYTES_EXPRESSIBLE {
            Ok(())
        } else if self.before_login && len <= Self::DEFAULT.bulk_bytes_max as u64 {
            Err(ProtocolError::BulkLengthBeforeLogin)
        } else {
            Err(ProtocolError::BulkLength)
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The longest argument whose length, with its line end, fits into 32 bits.
const BULK_BYTES_EXPRESSIBLE: u64 = u32::MAX as u64 - 2;

/// How far a call of [`RequestParser::parse`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A request is complete: its arguments, at least one, have been appended.
    Complete {
        /// The bytes of the input it took, which are done with once the request has run.
        consumed: usize,
    },
    /// An empty line, or an array of no elements: nothing to run and nothing to reply to.
    Empty {
        /// The bytes of the input it took.
        consumed: usize,
    },
    /// The request goes on in bytes yet to arrive. Nothing has been appended.
    Incomplete {
        /// The bytes of the input to pass again, followed by those that arrive. The others are with the parser.
        keep: usize,
    },
}

/// Parses the requests of one connection. Eight bytes between requests.
#[derive(Debug, Default)]
pub struct RequestParser {
    partial: Option<Box<Partial>>,
}

const _: () = assert!(size_of::<RequestParser>() == 8);

/// What is known of a request that has not arrived completely.
#[derive(Debug)]
struct Partial {
    cursor: Cursor,
    arguments: Arguments,
    receiving: Option<Receiving>,
}

/// Where parsing stands in the current request.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    /// Start of the line or body that comes next.
    offset: usize,
    /// The bytes from `offset` on that are known to hold no line end.
    scanned: usize,
    /// Arguments that have not been seen completely.
    left: u32,
    next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// `*3\r\n`
    Count,
    /// `$5\r\n`
    Length,
    /// The bytes of an argument of this length, and its line end.
    Body(usize),
    /// The rest of a body that is being received into a buffer of its own.
    LargeBody,
    /// A line of words.
    Inline,
}

/// Why the parsing of arguments stopped.
enum Stop {
    Complete,
    Empty,
    Incomplete,
}

impl RequestParser {
    /// A parser at the start of a request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a request has begun and not ended.
    pub fn is_partial(&self) -> bool {
        self.partial.is_some()
    }

    /// Parses the request that begins at `input[0]` and appends its arguments to `out`. The module says what
    /// the caller keeps between calls.
    ///
    /// # Errors
    ///
    /// Any [`ProtocolError`]: the bytes are not a request, or one above `limits`. Nothing is appended then.
    #[inline]
    pub fn parse(&mut self, input: &[u8], limits: &Limits, out: &mut Arguments) -> Result<Progress, ProtocolError> {
        if self.partial.is_some() {
            return self.resume(input, limits, out);
        }
        let next = match input.first() {
            Some(b'*') => Next::Count,
            Some(_) => Next::Inline,
            None => return Ok(Progress::Incomplete { keep: 0 }),
        };
        let mark = out.mark();
        let mut cursor = Cursor { offset: 0, scanned: 0, left: 0, next };
        match cursor.advance(input, limits, out) {
            Ok(Stop::Complete) => {
                let first = out.first_after(mark).map(|span| out.bytes(input, span));
                if first.is_some_and(is_http) {
                    out.rewind(mark);
                    return Err(ProtocolError::CrossProtocol);
                }
                Ok(Progress::Complete { consumed: cursor.offset })
            }
            Ok(Stop::Empty) => Ok(Progress::Empty { consumed: cursor.offset }),
            Ok(Stop::Incomplete) => {
                let mut arguments = Arguments::new();
                out.move_tail(mark, &mut arguments);
                self.partial = Some(Box::new(Partial { cursor, arguments, receiving: None }));
                Ok(self.stop_at_large_bulk(input))
            }
            Err(error) => {
                out.rewind(mark);
                Err(error)
            }
        }
    }

    /// The large bulk that is being received, to read the socket into.
    pub fn large_bulk(&mut self) -> Option<LargeBulk<'_>> {
        self.partial.as_mut()?.receiving.as_mut().map(LargeBulk::new)
    }

    /// The bytes held for an unfinished request, for the accounting of a connection's memory.
    pub fn held_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| {
            let received = partial.receiving.as_ref().map_or(0, Receiving::held_bytes);
            received.saturating_add(partial.arguments.held_bytes()).saturating_add(size_of::<Partial>())
        })
    }

    #[cold]
    #[inline(never)]
    fn resume(&mut self, input: &[u8], limits: &Limits, out: &mut Arguments) -> Result<Progress, ProtocolError> {
        let Some(mut partial) = self.partial.take() else { return Ok(Progress::Incomplete { keep: input.len() }) };
        match partial.advance(input, limits)? {
            Stop::Complete => {
                let first = partial.arguments.spans().first();
                if first.is_some_and(|span| is_http(partial.arguments.bytes(input, *span))) {
                    return Err(ProtocolError::CrossProtocol);
                }
                out.append(&mut partial.arguments);
                Ok(Progress::Complete { consumed: partial.cursor.offset })
            }
            Stop::Empty => Ok(Progress::Empty { consumed: partial.cursor.offset }),
            Stop::Incomplete => {
                self.partial = Some(partial);
                Ok(self.stop_at_large_bulk(input))
            }
        }
    }

    /// Takes an incomplete body over if it is large, and says what the caller keeps.
    fn stop_at_large_bulk(&mut self, input: &[u8]) -> Progress {
        let Some(partial) = &mut self.partial else { return Progress::Incomplete { keep: input.len() } };
        let cursor = &mut partial.cursor;
        if let Next::Body(len) = cursor.next
            && len >= LARGE_BULK_BYTES
        {
            let received = input.get(cursor.offset..).unwrap_or_default();
            partial.receiving = Some(Receiving::new(len, received));
            cursor.next = Next::LargeBody;
        }
        let keep = if cursor.next == Next::LargeBody { cursor.offset } else { input.len() };
        Progress::Incomplete { keep }
    }
}

impl Partial {
    fn advance(&mut self, input: &[u8], limits: &Limits) -> Result<Stop, ProtocolError> {
        if let Some(receiving) = &mut self.receiving {
            let arrived = input.get(self.cursor.offset..).unwrap_or_default();
            let used = receiving.append(arrived);
            if receiving.missing() > 0 {
                return Ok(Stop::Incomplete);
            }
            let bytes = self.receiving.take().map(Receiving::finish).transpose()?.unwrap_or_default();
            self.arguments.push_large(bytes).ok_or(ProtocolError::RequestTooLong)?;
            self.cursor.next_argument(self.cursor.offset.saturating_add(used));
        }
        self.cursor.advance(input, limits, &mut self.arguments)
    }
}

impl Cursor {
    /// Parses as far as the input goes. On [`Stop::Incomplete`], `self` is where to go on.
    #[inline]
    fn advance(&mut self, input: &[u8], limits: &Limits, out: &mut Arguments) -> Result<Stop, ProtocolError> {
        if self.next == Next::Inline {
            return self.inline(input, limits, out);
        }
        if self.next == Next::Count {
            match self.count(input, limits)? {
                Stop::Complete => {}
                stop => return Ok(stop),
            }
        }
        while self.left > 0 {
            let len = match self.next {
                Next::Body(len) => len,
                _ => match self.length(input, limits)? {
                    Some(len) => len,
                    None => return Ok(Stop::Incomplete),
                },
            };
            let end = self.offset.saturating_add(len);
            match input.get(end..).and_then(|tail| tail.first_chunk()) {
                Some(b"\r\n") => {}
                Some(_) => return Err(ProtocolError::LineEnd),
                None => {
                    self.next = Next::Body(len);
                    return Ok(Stop::Incomplete);
                }
            }
            out.push(Span::new(self.offset, len).ok_or(ProtocolError::RequestTooLong)?);
            self.next_argument(end.wrapping_add(2));
        }
        Ok(Stop::Complete)
    }

    /// The line `*<count>\r\n`.
    #[inline]
    fn count(&mut self, input: &[u8], limits: &Limits) -> Result<Stop, ProtocolError> {
        let (count, line) = match input.first_chunk() {
            Some([b'*', digit @ b'1'..=b'9', b'\r', b'\n']) => (i64::from(digit.wrapping_sub(b'0')), 4),
            _ => match self.line(input, limits, ProtocolError::ArgumentCountTooLong)? {
                None => return Ok(Stop::Incomplete),
                Some(line) => {
                    let digits = line.get(1..).unwrap_or_default();
                    let count = parse_integer(digits).ok_or(ProtocolError::ArgumentCount)?;
                    (count, line.len().wrapping_add(2))
                }
            },
        };
        self.offset = self.offset.wrapping_add(line);
        self.scanned = 0;
        if count <= 0 {
            return Ok(Stop::Empty);
        }
        limits.check_argument_count(count.unsigned_abs())?;
        self.left = u32::try_from(count).map_err(|_| ProtocolError::ArgumentCount)?;
        self.next = Next::Length;
        Ok(Stop::Complete)
    }

    /// The line `$<length>\r\n`.
    #[inline]
    fn length(&mut self, input: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let rest = input.get(self.offset..).unwrap_or_default();
        let (len, line) = match rest.first_chunk().and_then(|word| short_length(u64::from_le_bytes(*word))) {
            Some(short) => short,
            None => match self.line(input, limits, ProtocolError::BulkLengthTooLong)? {
                None => return Ok(None),
                Some([b'$', digits @ ..]) => {
                    let len = parse_integer(digits).and_then(|len| u64::try_from(len).ok());
                    (len.ok_or(ProtocolError::BulkLength)?, digits.len().wrapping_add(3))
                }
                Some(line) => return Err(ProtocolError::ExpectedBulk(line.first().copied().unwrap_or(b'\r'))),
            },
        };
        limits.check_bulk_bytes(len)?;
        self.offset = self.offset.wrapping_add(line);
        self.scanned = 0;
        Ok(Some(len as usize))
    }

    /// The line at `offset` without its line end, or `None` if it has not arrived completely.
    #[cold]
    #[inline(never)]
    fn line<'a>(
        &mut self,
        input: &'a [u8],
        limits: &Limits,
        too_long: ProtocolError,
    ) -> Result<Option<&'a [u8]>, ProtocolError> {
        let rest = input.get(self.offset..).unwrap_or_default();
        let unseen = rest.get(self.scanned..).unwrap_or_default();
        let found = memchr(b'\r', unseen);
        let len = found.map_or(rest.len(), |at| self.scanned.wrapping_add(at));
        if len > limits.inline_bytes_max {
            return Err(too_long);
        }
        self.scanned = len;
        let line = rest.get(..len).unwrap_or_default();
        match rest.get(len.wrapping_add(1)) {
            None => Ok(None),
            Some(b'\n') => Ok(Some(line)),
            // What is no bulk is told so, whatever it ends with.
            Some(_) => match (line.first(), self.next) {
                (Some(b'$'), _) | (_, Next::Count) => Err(ProtocolError::LineEnd),
                (first, _) => Err(ProtocolError::ExpectedBulk(first.copied().unwrap_or(b'\r'))),
            },
        }
    }

    #[inline(never)]
    fn inline(&mut self, input: &[u8], limits: &Limits, out: &mut Arguments) -> Result<Stop, ProtocolError> {
        let unseen = input.get(self.scanned..).unwrap_or_default();
        let found = memchr(b'\n', unseen);
        let len = found.map_or(input.len(), |at| self.scanned.wrapping_add(at));
        if len > limits.inline_bytes_max {
            return Err(ProtocolError::InlineTooLong);
        }
        self.scanned = len;
        if found.is_none() {
            return Ok(Stop::Incomplete);
        }
        let before = out.len();
        inline::split(input, len, limits, out)?;
        self.offset = len.wrapping_add(1);
        Ok(if out.len() > before { Stop::Complete } else { Stop::Empty })
    }

    /// Steps over an argument that ends before `offset`.
    #[inline]
    fn next_argument(&mut self, offset: usize) {
        self.offset = offset;
        self.scanned = 0;
        self.left = self.left.wrapping_sub(1);
        self.next = Next::Length;
    }
}

/// Reads `$<length>\r\n` with one to four digits from the eight bytes at its start: the length, and that of the line.
/// `None` for any other line. Branches on the number of digits, since these are predicted while the digits are on the
/// critical path from one argument to the next.
#[inline]
fn short_length(word: u64) -> Option<(u64, usize)> {
    let digit = |at: u32| word.wrapping_shr(at.wrapping_mul(8)).wrapping_sub(u64::from(b'0')) & 0xff;
    let (one, two) = (digit(1), digit(2));
    if word & 0xffff_00ff == 0x0a0d_0024 {
        return (one <= 9).then_some((one, 4));
    }
    let leading = one.wrapping_sub(1) <= 8;
    if word & 0xff_ff00_00ff == 0x0a_0d00_0024 {
        let len = one.wrapping_mul(10).wrapping_add(two);
        return (leading && two <= 9).then_some((len, 5));
    }
    let three = digit(3);
    let len = one.wrapping_mul(100).wrapping_add(two.wrapping_mul(10)).wrapping_add(three);
    let digits = leading && two <= 9 && three <= 9;
    if word & 0xffff_0000_00ff == 0x0a0d_0000_0024 {
        return digits.then_some((len, 6));
    }
    if word & 0xff_ff00_0000_00ff == 0x0a_0d00_0000_0024 {
        let four = digit(4);
        return (digits && four <= 9).then_some((len.wrapping_mul(10).wrapping_add(four), 7));
    }
    None
}

/// Whether a command's name shows that an HTTP client is talking.
#[inline]
fn is_http(name: &[u8]) -> bool {
    match name.len() {
        4 => name.eq_ignore_ascii_case(b"post"),
        5 => name.eq_ignore_ascii_case(b"host:"),
        _ => false,
    }
}
