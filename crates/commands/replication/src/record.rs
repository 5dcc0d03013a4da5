//! An append-only file, or the stream of a primary, from some offset on: one command after the other.
//!
//! ```text
//! #TS:1700000000\r\n | *3\r\n $3\r\n SET\r\n $1\r\n k\r\n $1\r\n v\r\n | ...
//! ```

use proto::Span;
use std::io::{self, BufRead, BufReader, Read};

/// Bytes that are read at once.
const READ_LEN: usize = 1 << 20;

/// Longest line of a number or an annotation.
const LINE_LEN_MAX: u64 = 1024;

/// What stands at a place of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A command; [`Records::command`] has its words.
    Command,
    /// When what follows was written, in seconds.
    Time(i64),
    /// An annotation that says something else.
    Annotation,
    /// The file ends here.
    End,
    /// The file ends before the command that begins here does.
    Cut,
}

/// Why a file cannot be read on.
#[derive(Debug)]
pub enum Bad {
    /// Bytes that no server writes there.
    Form {
        /// Where.
        offset: u64,
        /// What should be there.
        expected: &'static str,
    },
    /// The source cannot be read.
    Io(io::Error),
}

impl From<io::Error> for Bad {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads commands.
pub struct Records<R> {
    input: BufReader<R>,
    at: u64,
    line: Vec<u8>,
    words: Vec<u8>,
    spans: Vec<Span>,
}

impl<R: Read> Records<R> {
    /// Begins at `offset` of the file or stream, where the source stands.
    pub fn new(source: R, offset: u64) -> Self {
        let input = BufReader::with_capacity(READ_LEN, source);
        Self { input, at: offset, line: Vec::new(), words: Vec::new(), spans: Vec::new() }
    }

    /// Where the next command begins.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Whether bytes after it were read from the source already.
    pub fn has_more(&self) -> bool {
        !self.input.buffer().is_empty()
    }

    /// The words of the command that was read last: their bytes, and the place of each.
    pub fn command(&self) -> (&[u8], &[Span]) {
        (&self.words, &self.spans)
    }

    /// Whether the command that was read last has this name.
    pub fn is_named(&self, name: &str) -> bool {
        let bytes = self.spans.first().and_then(|span| span.of(&self.words));
        bytes.is_some_and(|bytes| bytes.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Reads what comes next. A command of any length takes as much memory as the file has bytes of it.
    ///
    /// # Errors
    /// Bytes that no server writes, or the source.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Next, Bad> {
        self.words.clear();
        self.spans.clear();
        let begin = self.at;
        if !self.read_line()? {
            return Ok(if self.line.is_empty() { Next::End } else { self.cut(begin, b"*#")? });
        }
        match self.line.split_first() {
            Some((b'#', text)) => Ok(annotation(text)),
            Some((b'*', digits)) => {
                let count = number(digits).filter(|count| *count > 0);
                let count = count.ok_or(Bad::Form { offset: begin, expected: "a number of words after *" })?;
                self.read_words(begin, count)
            }
            _ => Err(Bad::Form { offset: begin, expected: "a command, which begins with *" }),
        }
    }

    fn read_words(&mut self, begin: u64, count: u64) -> Result<Next, Bad> {
        for _ in 0..count {
            let offset = self.at;
            if !self.read_line()? {
                return self.cut(begin, b"$");
            }
            let len = match self.line.split_first() {
                Some((b'$', digits)) => number(digits),
                _ => None,
            };
            let len = len.ok_or(Bad::Form { offset, expected: "the length of a word after $" })?;
            let start = self.words.len();
            let read = (&mut self.input).take(len).read_to_end(&mut self.words)? as u64;
            let mut end = [0; 2];
            let read_end = read_up_to(&mut self.input, &mut end)?;
            self.at += read + read_end as u64;
            if read < len || read_end < end.len() {
                return Ok(Next::Cut);
            }
            if end != *b"\r\n" {
                return Err(Bad::Form { offset, expected: "a word as long as is said before it" });
            }
            let span = Span::new(start, self.words.len() - start);
            self.spans.push(span.ok_or(Bad::Form { offset: begin, expected: "a command of at most 2 GiB" })?);
        }
        Ok(Next::Command)
    }

    /// Reads up to the end of a line, without it; false when the file ends before.
    fn read_line(&mut self) -> Result<bool, Bad> {
        self.line.clear();
        let offset = self.at;
        let read = (&mut self.input).take(LINE_LEN_MAX).read_until(b'\n', &mut self.line)? as u64;
        self.at += read;
        if self.line.pop_if(|last| *last == b'\n').is_some() {
            self.line.pop_if(|last| *last == b'\r');
            return Ok(true);
        }
        if read == LINE_LEN_MAX {
            return Err(Bad::Form { offset, expected: "the end of a line" });
        }
        Ok(false)
    }

    /// A line that was begun, and may be that of a command that was cut.
    fn cut(&self, begin: u64, first: &[u8]) -> Result<Next, Bad> {
        match self.line.first() {
            Some(byte) if !first.contains(byte) => {
                Err(Bad::Form { offset: begin, expected: "a command, which begins with *" })
            }
            _ => Ok(Next::Cut),
        }
    }
}

fn annotation(text: &[u8]) -> Next {
    text.strip_prefix(b"TS:")
        .and_then(number)
        .and_then(|at| i64::try_from(at).ok())
        .map_or(Next::Annotation, Next::Time)
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Fills the buffer as far as there is something.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match input.read(room) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use std::path::Path;
    use vfs::{FileSystem, OpenOptions, SimFs};

    /// What stands in a file: the words of each command, and what ends it.
    fn read(bytes: &[u8]) -> (Vec<Vec<String>>, Result<Next, &'static str>) {
        let (fs, path) = (SimFs::new(1), Path::new("/log"));
        fs.open(path, OpenOptions::write().create()).unwrap().write_all_at(bytes, 0).unwrap();
        let mut records = Records::new(Source::open(&fs, path, 0).unwrap().0, 0);
        let mut commands = Vec::new();
        loop {
            match records.next() {
                Ok(Next::Command) => {
                    let (words, spans) = records.command();
                    let words = spans.iter().map(|span| String::from_utf8_lossy(span.of(words).unwrap()).into_owned());
                    commands.push(words.collect());
                }
                Ok(Next::Time(_) | Next::Annotation) => {}
                Ok(end) => return (commands, Ok(end)),
                Err(Bad::Form { expected, .. }) => return (commands, Err(expected)),
                Err(Bad::Io(error)) => panic!("{error}"),
            }
        }
    }

    const WHOLE: &[u8] = b"#TS:1700000000\r\n*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n";

    /// Each beginning of a file is whole up to a command, or cut in one.
    #[test]
    fn a_file_may_end_anywhere() {
        let (commands, end) = read(WHOLE);
        assert_eq!(
            (commands, end),
            (vec![vec!["MULTI".to_owned()], vec!["SET".into(), "k".into(), "a\r\nb".into()]], Ok(Next::End))
        );
        for length in 0..WHOLE.len() {
            let (commands, end) = read(&WHOLE[..length]);
            let is_whole = [0, 16, 31].contains(&length);
            assert_eq!(end, Ok(if is_whole { Next::End } else { Next::Cut }), "cut at {length}");
            assert_eq!(commands.len(), usize::from(length >= 31), "cut at {length}");
        }
    }

    #[test]
    fn what_no_server_writes_is_told() {
        for (bytes, expected) in [
            (&b"SET k v\r\n"[..], "begins with *"),
            (b"\0\0\0\0", "begins with *"),
            (b"*0\r\n", "a number of words"),
            (b"*x\r\n", "a number of words"),
            (b"*1\r\n:3\r\n", "after $"),
            (b"*1\r\n$-1\r\n", "after $"),
            (b"*1\r\n$2\r\nabc\r\n", "as long as is said"),
            (&[b'*'; 2000], "the end of a line"),
        ] {
            let (commands, end) = read(bytes);
            assert!(
                commands.is_empty() && end.unwrap_err().contains(expected),
                "{:?}",
                bytes.escape_ascii().to_string()
            );
        }
    }

    /// A length that leads beyond the file costs no memory.
    #[test]
    fn a_huge_length_is_a_cut() {
        assert_eq!(read(b"*1\r\n$999999999999999\r\nabc").1, Ok(Next::Cut));
        assert_eq!(read(b"*999999999999999\r\n$1\r\na\r\n").1, Ok(Next::Cut));
    }
}
