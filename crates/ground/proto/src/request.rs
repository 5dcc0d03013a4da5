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
//! R4. After an empty request, a complete request or an error, the parser is as new. (CVE-2026-27623 was an empty
//!     request that left a parser between two states.)
//!
//! # What the caller keeps
//!
//! Spans are relative to the first byte of the request. After [`Progress::Incomplete`] the caller keeps the first
//! `keep` bytes of the input, appends what arrives later, and calls [`RequestParser::parse`] again with all of it.
//! `keep` is the whole input, except when a large bulk has been taken over:
//!
//! # Large bulks
//!
//! When an argument of at least [`LARGE_BULK_BYTES`] has not arrived completely, the parser moves what is there into a
//! buffer of its own, so that a value of 100 MB is not copied from buffer to buffer. `keep` is then the length of what
//! stands before it, which is still needed for the earlier arguments. The caller may read from the socket into
//! [`RequestParser::large_bulk`] until nothing is missing (line end included) and call `parse` with the kept bytes; or
//! pass received bytes after the kept ones as always. The argument becomes one of [`Arguments::large`]; later arguments
//! follow the kept bytes as if the large one had never been there.

pub(crate) mod arguments;
mod cursor;
mod error;
mod inline;
mod large;
mod opening;
#[cfg(test)]
mod tests;
mod usual;

pub use arguments::{Arguments, Span};
pub use error::ProtocolError;
pub use large::{LARGE_BULK_BYTES, LargeBulk};
pub use opening::Opening;

use arguments::Mark;
use cursor::{Cursor, Next, Stop};
use large::Receiving;

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
    /// A request is complete, but one of its arguments was not kept ([`RequestParser::drop_large_bulk`]). Nothing has
    /// been appended.
    Dropped {
        /// The bytes of the input it took.
        consumed: usize,
        /// Length of the argument, or of the longest of several.
        bytes: usize,
    },
    /// An empty line, or an array of no elements: nothing to run and nothing to reply to.
    Empty {
        /// The bytes of the input it took.
        consumed: usize,
    },
    /// The request continues in bytes yet to arrive. Nothing has been appended.
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
    /// Length of the longest argument that was not kept.
    dropped_bytes: Option<usize>,
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
        let mark = out.mark();
        let Some(count) = usual::count(input).filter(|count| *count as usize <= limits.argument_count_max) else {
            return self.begin(Cursor::at_start(input), mark, input, limits, out);
        };
        let (offset, left) = usual::arguments(input, usual::COUNT_LEN, count, limits.bulk_bytes_max, out);
        if left > 0 {
            let cursor = Cursor { offset, scanned: 0, left, next: Next::Length };
            return self.begin(cursor, mark, input, limits, out);
        }
        check_not_http(input, mark, out)?;
        Ok(Progress::Complete { consumed: offset })
    }

    /// Parses the request at the start of `input` if it is complete, of the usual form, and begins like an earlier one:
    /// appends its arguments and returns the bytes it took. `None`, with nothing changed, means: call
    /// [`parse`](Self::parse).
    #[inline]
    pub fn parse_like(&self, opening: &Opening, input: &[u8], limits: &Limits, out: &mut Arguments) -> Option<usize> {
        if !opening.begins(input.first_chunk()?)
            || self.partial.is_some()
            || opening.count as usize > limits.argument_count_max
        {
            return None;
        }
        let mark = out.mark();
        out.push(opening.name);
        let (end, left) =
            usual::arguments(input, opening.end, opening.count.wrapping_sub(1), limits.bulk_bytes_max, out);
        if left > 0 {
            out.rewind(mark);
            return None;
        }
        Some(end)
    }

    /// Parses a new request by the general rules, from `cursor` on.
    #[inline(never)]
    fn begin(
        &mut self,
        mut cursor: Cursor,
        mark: Mark,
        input: &[u8],
        limits: &Limits,
        out: &mut Arguments,
    ) -> Result<Progress, ProtocolError> {
        match cursor.advance(input, limits, out) {
            Ok(Stop::Complete) => {
                check_not_http(input, mark, out)?;
                Ok(Progress::Complete { consumed: cursor.offset })
            }
            Ok(Stop::Empty) => Ok(Progress::Empty { consumed: cursor.offset }),
            Ok(Stop::Incomplete) if input.is_empty() => Ok(Progress::Incomplete { keep: 0 }),
            Ok(Stop::Incomplete) => {
                let arguments = out.split_off(mark);
                self.partial = Some(Box::new(Partial { cursor, arguments, receiving: None, dropped_bytes: None }));
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
        let receiving = self.partial.as_mut()?.receiving.as_mut();
        receiving.filter(|receiving| !receiving.is_dropped()).map(LargeBulk::new)
    }

    /// From now on keeps nothing of the large bulk being received. Framing continues: the parser skips what is missing,
    /// and the request ends as [`Progress::Dropped`]. Returns the bytes received so far, which may take time to free.
    pub fn drop_large_bulk(&mut self) -> Vec<u8> {
        let receiving = self.partial.as_mut().and_then(|partial| partial.receiving.as_mut());
        receiving.map(Receiving::drop_bytes).unwrap_or_default()
    }

    /// The part of [`held_bytes`](Self::held_bytes) that is the large bulk being received.
    pub fn large_bulk_bytes(&self) -> usize {
        self.partial.as_ref().and_then(|partial| partial.receiving.as_ref()).map_or(0, Receiving::held_bytes)
    }

    /// The bytes held for an unfinished request, for the accounting of a connection's memory.
    pub fn held_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| {
            let received = partial.receiving.as_ref().map_or(0, Receiving::held_bytes);
            received.saturating_add(partial.arguments.held_bytes()).saturating_add(size_of::<Partial>())
        })
    }

    /// Continues an unfinished request.
    #[inline(never)]
    fn resume(&mut self, input: &[u8], limits: &Limits, out: &mut Arguments) -> Result<Progress, ProtocolError> {
        let Some(mut partial) = self.partial.take() else { return Ok(Progress::Incomplete { keep: input.len() }) };
        match partial.advance(input, limits)? {
            Stop::Complete => {
                if let Some(bytes) = partial.dropped_bytes {
                    return Ok(Progress::Dropped { consumed: partial.cursor.offset, bytes });
                }
                let mark = out.mark();
                out.append(&mut partial.arguments);
                check_not_http(input, mark, out)?;
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
            if receiving.is_dropped() {
                self.dropped_bytes = self.dropped_bytes.max(Some(receiving.len()));
            }
            let bytes = self.receiving.take().map(Receiving::finish).transpose()?.unwrap_or_default();
            self.arguments.push_large(bytes).ok_or(ProtocolError::RequestTooLong)?;
            self.cursor.next_argument(self.cursor.offset.saturating_add(used));
        }
        self.cursor.advance(input, limits, &mut self.arguments)
    }
}

/// Refuses the request after `mark` if its first word shows that an HTTP client is talking.
#[inline]
fn check_not_http(input: &[u8], mark: Mark, out: &mut Arguments) -> Result<(), ProtocolError> {
    let name = out.first_after(mark).filter(|name| matches!(name.len(), 4 | 5));
    if name.is_some_and(|name| is_http(out.bytes(input, name))) {
        out.rewind(mark);
        return Err(ProtocolError::CrossProtocol);
    }
    Ok(())
}

/// Whether a command's name is one that HTTP requests begin with.
#[inline]
fn is_http(name: &[u8]) -> bool {
    match name.len() {
        4 => name.eq_ignore_ascii_case(b"post"),
        5 => name.eq_ignore_ascii_case(b"host:"),
        _ => false,
    }
}
