//! The copy of all data: an RDB file in the stream, by its length or up to a mark.

use std::io::{self, BufRead, Write};

/// Length of the mark that ends a copy whose length the primary did not know.
pub(crate) const MARK_LEN: usize = 40;

/// How much of a copy was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Bytes so far.
    pub bytes: u64,
    /// All of its bytes; `None` where the primary sends them while it makes them.
    pub total: Option<u64>,
}

/// How the end of a copy is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// After as many bytes.
    Length(u64),
    /// At these bytes, which are not part of it.
    Mark([u8; MARK_LEN]),
}

impl End {
    /// All bytes of the copy, if they are known.
    pub fn total(self) -> Option<u64> {
        match self {
            Self::Length(len) => Some(len),
            Self::Mark(_) => None,
        }
    }

    /// Reads the head of a copy: `$89` or `$EOF:` and the mark. `None` for any other line.
    pub fn parse(line: &str) -> Option<Self> {
        let text = line.strip_prefix('$')?;
        match text.strip_prefix("EOF:") {
            Some(mark) => Some(Self::Mark(mark.as_bytes().try_into().ok()?)),
            None => Some(Self::Length(text.parse().ok()?)),
        }
    }
}

/// Passes a copy on. Returns its bytes; `read` is called with their number after each piece.
///
/// # Errors
/// As the input or the output; `UnexpectedEof` if the input ends first.
pub(crate) fn pass(
    input: &mut impl BufRead,
    end: End,
    out: &mut dyn Write,
    read: &mut dyn FnMut(u64),
) -> io::Result<u64> {
    match end {
        End::Length(len) => pass_length(input, len, out, read),
        End::Mark(mark) => pass_up_to(input, &mark, out, read),
    }
}

fn pass_length(input: &mut impl BufRead, len: u64, out: &mut dyn Write, read: &mut dyn FnMut(u64)) -> io::Result<u64> {
    let mut left = len;
    while left > 0 {
        let piece = filled(input)?;
        let take = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        out.write_all(piece.get(..take).unwrap_or_default())?;
        input.consume(take);
        left -= take as u64;
        read(len - left);
    }
    Ok(len)
}

/// The primary sends nothing after the mark before it has an acknowledgement, so the mark is at the end of what was
/// received.
fn pass_up_to(
    input: &mut impl BufRead,
    mark: &[u8; MARK_LEN],
    out: &mut dyn Write,
    read: &mut dyn FnMut(u64),
) -> io::Result<u64> {
    let mut total = 0;
    // The last bytes, which may be the beginning of the mark or all of it.
    let mut held: Vec<u8> = Vec::new();
    loop {
        let piece = filled(input)?;
        let len = piece.len();
        held.extend_from_slice(piece);
        input.consume(len);
        let sure = held.len().saturating_sub(MARK_LEN);
        let is_end = held.get(sure..).is_some_and(|last| last == mark);
        out.write_all(held.get(..sure).unwrap_or_default())?;
        held.drain(..sure);
        total += sure as u64;
        read(total);
        if is_end {
            return Ok(total);
        }
    }
}

fn filled(input: &mut impl BufRead) -> io::Result<&[u8]> {
    let piece = input.fill_buf()?;
    if piece.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(piece) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor, Read};

    /// Gives at most as many bytes at once.
    struct Slow<'a>(Cursor<&'a [u8]>, usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = buffer.len().min(self.1);
            self.0.read(&mut buffer[..len])
        }
    }

    #[test]
    fn heads() {
        assert_eq!(End::parse("$89"), Some(End::Length(89)));
        assert_eq!(End::parse(&format!("$EOF:{}", "a".repeat(40))), Some(End::Mark([b'a'; 40])));
        for line in ["", "89", "$", "$-1", "$x", "$EOF:", "$EOF:abc"] {
            assert_eq!(End::parse(line), None, "{line}");
        }
    }

    /// Both forms, in pieces of every size; a beginning of the mark inside the copy is data.
    #[test]
    fn copies_end_where_they_end() {
        let mark = *b"0123456789abcdef0123456789abcdef01234567";
        let data = [&mark[..39], b"data", &mark[1..], &mark[..20]].concat();
        for pieces in 1..data.len() + MARK_LEN {
            let mut out = Vec::new();
            let sent = [&data[..], &mark].concat();
            let mut input = BufReader::with_capacity(64, Slow(Cursor::new(&sent), pieces));
            assert_eq!(pass(&mut input, End::Mark(mark), &mut out, &mut |_| ()).unwrap(), data.len() as u64);
            assert_eq!(out, data, "pieces of {pieces}");

            let (mut out, sent) = (Vec::new(), [&data[..], b"*1\r\n"].concat());
            let mut input = BufReader::with_capacity(64, Slow(Cursor::new(&sent), pieces));
            let len = data.len() as u64;
            assert_eq!(pass(&mut input, End::Length(len), &mut out, &mut |_| ()).unwrap(), len);
            assert_eq!(out, data, "pieces of {pieces}");
            let mut rest = Vec::new();
            input.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, b"*1\r\n");
        }
    }

    #[test]
    fn a_copy_that_is_cut_is_an_error() {
        for end in [End::Length(9), End::Mark([b'm'; 40])] {
            let mut input = BufReader::new(&b"12345678"[..]);
            let error = pass(&mut input, end, &mut Vec::new(), &mut |_| ()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
