//! The general rules of a request: every form, every error, and stopping anywhere.

use super::{Arguments, Limits, ProtocolError, Span, inline, usual};
use crate::number::parse_integer;
use memchr::memchr;

/// Where parsing stands in the current request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    /// Start of the line or body that comes next.
    pub offset: usize,
    /// The bytes from `offset` on that are known to hold no line end.
    pub scanned: usize,
    /// Arguments that have not been seen completely.
    pub left: u32,
    pub next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
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
pub(super) enum Stop {
    Complete,
    Empty,
    Incomplete,
}

impl Cursor {
    /// Before the first byte of `input`, which decides the form of the request.
    pub(super) fn at_start(input: &[u8]) -> Self {
        let next = if input.first() == Some(&b'*') { Next::Count } else { Next::Inline };
        Self { offset: 0, scanned: 0, left: 0, next }
    }

    /// Parses as far as the input goes. On [`Stop::Incomplete`], `self` is where to continue.
    pub(super) fn advance(
        &mut self,
        input: &[u8],
        limits: &Limits,
        out: &mut Arguments,
    ) -> Result<Stop, ProtocolError> {
        if self.next == Next::Inline {
            return self.inline(input, limits, out);
        }
        if self.next == Next::Count {
            match self.count(input, limits)? {
                Stop::Complete => {}
                stop => return Ok(stop),
            }
        }
        loop {
            if self.next == Next::Length && self.scanned == 0 {
                (self.offset, self.left) = usual::arguments(input, self.offset, self.left, limits.bulk_bytes_max, out);
            }
            if self.left == 0 {
                return Ok(Stop::Complete);
            }
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
    }

    /// The line `*<count>\r\n`.
    fn count(&mut self, input: &[u8], limits: &Limits) -> Result<Stop, ProtocolError> {
        let Some(line) = self.line(input, limits, ProtocolError::ArgumentCountTooLong)? else {
            return Ok(Stop::Incomplete);
        };
        let count = line.get(1..).and_then(parse_integer).ok_or(ProtocolError::ArgumentCount)?;
        self.offset = line.len().saturating_add(2);
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
    fn length(&mut self, input: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let Some(line) = self.line(input, limits, ProtocolError::BulkLengthTooLong)? else { return Ok(None) };
        let Some(digits) = line.strip_prefix(b"$") else {
            return Err(ProtocolError::ExpectedBulk(line.first().copied().unwrap_or(b'\r')));
        };
        let len = parse_integer(digits).and_then(|len| u64::try_from(len).ok()).ok_or(ProtocolError::BulkLength)?;
        limits.check_bulk_bytes(len)?;
        self.offset = self.offset.saturating_add(line.len()).saturating_add(2);
        self.scanned = 0;
        Ok(Some(len as usize))
    }

    /// The line at `offset` without its line end, or `None` if it has not arrived completely.
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
            // Anything but a bulk gets this error, whatever it ends with.
            Some(_) => match (line.first(), self.next) {
                (Some(b'$'), _) | (_, Next::Count) => Err(ProtocolError::LineEnd),
                (first, _) => Err(ProtocolError::ExpectedBulk(first.copied().unwrap_or(b'\r'))),
            },
        }
    }

    /// A line of words.
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
    pub(super) fn next_argument(&mut self, offset: usize) {
        self.offset = offset;
        self.scanned = 0;
        self.left = self.left.wrapping_sub(1);
        self.next = Next::Length;
    }
}
