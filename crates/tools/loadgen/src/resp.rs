//! The part of RESP that a load generator needs on its hot path: writing requests, and parsing replies without keeping
//! them. Control commands read their replies with `proto::reply::Parser`, which keeps them.
//!
//! [`ReplyWalker`] receives bytes from a socket, split anywhere, and reports one [`Reply`] for each complete top-level
//! reply. It stores no reply: a bulk string is a number of bytes to skip, an array is a number of elements to skip. So
//! nesting needs no stack and a 1 GB reply needs no memory.

/// How a top-level reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Any value, the empty one included.
    Value,
    /// `$-1`, `*-1` or `_`: for a read, a miss.
    Nil,
    /// `-...` or `!...`.
    Error,
}

/// The walker met a byte that begins no RESP reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotResp(pub u8);

/// Appends `*<n>` for a request of `n` arguments.
pub fn write_array_header(out: &mut Vec<u8>, n: usize) {
    out.push(b'*');
    write_decimal(out, n as u64);
    out.extend_from_slice(b"\r\n");
}

/// Appends one argument as a bulk string.
pub fn write_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'$');
    write_decimal(out, bytes.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends `n` in decimal, without leading zeros.
pub fn write_decimal(out: &mut Vec<u8>, n: u64) {
    let mut digits = [0; 20];
    let start = decimal(n, &mut digits);
    out.extend_from_slice(&digits[start..]);
}

/// Writes `n` right-aligned into `digits` and returns where it begins.
pub(crate) fn decimal(mut n: u64, digits: &mut [u8; 20]) -> usize {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return at;
        }
    }
}

/// Parses a stream of replies; see the module.
#[derive(Debug, Default)]
pub struct ReplyWalker {
    /// Elements missing before the current top-level reply is complete; 0 between replies.
    elements: u64,
    /// Remaining bytes of a bulk string, including its CRLF.
    bulk: u64,
    /// The kind of the current top-level reply, known from its first byte.
    kind: Option<Reply>,
    /// The beginning of a header line that a read cut off; an error line is kept whole for [`Self::error`].
    line: Vec<u8>,
    first_error: Option<String>,
}

/// Longer header lines are skipped without being kept.
const LINE_BYTES_MAX: usize = 512;

impl ReplyWalker {
    /// Parses `input` and calls `each` once for every top-level reply that ends in it.
    ///
    /// # Errors
    /// [`NotResp`] if a reply begins with a byte that is no RESP type; the stream cannot be parsed any further.
    pub fn walk(&mut self, mut input: &[u8], mut each: impl FnMut(Reply)) -> Result<(), NotResp> {
        while !input.is_empty() {
            if self.bulk > 0 {
                let passed = (input.len() as u64).min(self.bulk);
                input = &input[passed as usize..];
                self.bulk -= passed;
                if self.bulk == 0 {
                    self.element_done(&mut each);
                }
                continue;
            }
            let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
                let room = LINE_BYTES_MAX - self.line.len().min(LINE_BYTES_MAX);
                self.line.extend_from_slice(&input[..input.len().min(room)]);
                return Ok(());
            };
            let (head, rest) = input.split_at(end + 1);
            input = rest;
            if self.line.is_empty() {
                self.header(head, &mut each)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(head);
                self.header(&line, &mut each)?;
            }
        }
        Ok(())
    }

    /// The first error reply seen, if any.
    pub fn error(&self) -> Option<&str> {
        self.first_error.as_deref()
    }

    #[inline]
    fn header(&mut self, line: &[u8], each: &mut impl FnMut(Reply)) -> Result<(), NotResp> {
        let (&kind, rest) = line.split_first().ok_or(NotResp(0))?;
        if self.elements == 0 {
            self.elements = 1;
            self.kind = None;
        }
        match kind {
            b'$' | b'=' | b'!' => match length(rest) {
                Some(bytes) => {
                    self.note(if kind == b'!' { Reply::Error } else { Reply::Value });
                    self.bulk = bytes + 2;
                }
                None => {
                    self.note(Reply::Nil);
                    self.element_done(each);
                }
            },
            b'+' | b':' | b',' | b'#' | b'(' => {
                self.note(Reply::Value);
                self.element_done(each);
            }
            b'_' => {
                self.note(Reply::Nil);
                self.element_done(each);
            }
            b'-' => {
                if self.first_error.is_none() {
                    self.first_error = Some(String::from_utf8_lossy(rest).trim_end().to_owned());
                }
                self.note(Reply::Error);
                self.element_done(each);
            }
            b'*' | b'~' | b'>' => self.aggregate(length(rest), 1, each),
            b'%' => self.aggregate(length(rest), 2, each),
            // An attribute precedes the reply that it describes and is not an element of its own.
            b'|' => self.elements += 2 * length(rest).unwrap_or(0),
            other => return Err(NotResp(other)),
        }
        Ok(())
    }

    fn aggregate(&mut self, count: Option<u64>, each_is: u64, each: &mut impl FnMut(Reply)) {
        self.note(if count.is_some() { Reply::Value } else { Reply::Nil });
        self.elements += count.unwrap_or(0) * each_is;
        self.element_done(each);
    }

    #[inline]
    fn note(&mut self, kind: Reply) {
        self.kind.get_or_insert(kind);
    }

    #[inline]
    fn element_done(&mut self, each: &mut impl FnMut(Reply)) {
        self.elements -= 1;
        if self.elements == 0 {
            each(self.kind.take().unwrap_or(Reply::Value));
        }
    }
}

/// The number in a header line such as `12\r\n`; `None` for a negative one.
#[inline]
fn length(digits: &[u8]) -> Option<u64> {
    let mut n: u64 = 0;
    for &byte in digits {
        match byte {
            b'0'..=b'9' => n = n.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')),
            b'-' => return None,
            _ => break,
        }
    }
    Some(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"+OK\r\n$3\r\nabc\r\n$-1\r\n*2\r\n$1\r\na\r\n*1\r\n:5\r\n-ERR no\r\n%1\r\n+k\r\n,1.5\r\n\
        *0\r\n_\r\n|1\r\n+a\r\n+b\r\n$0\r\n\r\n!3\r\nbad\r\n*-1\r\n";

    fn expected() -> Vec<Reply> {
        use Reply::{Error, Nil, Value};
        vec![Value, Value, Nil, Value, Error, Value, Value, Nil, Value, Error, Nil]
    }

    /// Protects against a reply that is lost or counted twice when a read ends inside it: tests every split of the
    /// stream in two.
    #[test]
    fn replies_are_counted_whatever_the_split() {
        for cut in 0..=STREAM.len() {
            let (mut walker, mut seen) = (ReplyWalker::default(), Vec::new());
            for part in [&STREAM[..cut], &STREAM[cut..]] {
                walker.walk(part, |reply| seen.push(reply)).unwrap();
            }
            assert_eq!(seen, expected(), "cut at {cut}");
            assert_eq!(walker.error(), Some("ERR no"));
        }
    }

    #[test]
    fn replies_are_counted_byte_by_byte() {
        let (mut walker, mut seen) = (ReplyWalker::default(), Vec::new());
        for byte in STREAM {
            walker.walk(std::slice::from_ref(byte), |reply| seen.push(reply)).unwrap();
        }
        assert_eq!(seen, expected());
    }

    #[test]
    fn foreign_bytes_are_refused() {
        assert_eq!(ReplyWalker::default().walk(b"HTTP/1.1 400\r\n", |_| {}), Err(NotResp(b'H')));
    }

    #[test]
    fn requests_are_framed() {
        let mut out = Vec::new();
        write_array_header(&mut out, 2);
        write_bulk(&mut out, b"GET");
        write_bulk(&mut out, b"");
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n");
    }
}
