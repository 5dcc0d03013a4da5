//! Just enough of the protocol: requests to bytes, replies to values, over one blocking socket.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A line such as `OK`.
    Line(String),
    /// An error, with its code.
    Error(String),
    /// An integer.
    Integer(i64),
    /// A string, or none.
    Bulk(Option<Vec<u8>>),
    /// An array; an aborted EXEC is an empty one.
    Array(Vec<Reply>),
}

impl Reply {
    /// The line `OK`.
    pub fn is_ok(&self) -> bool {
        matches!(self, Reply::Line(line) if line == "OK")
    }
}

/// Appends a request.
pub fn request<A: AsRef<[u8]>>(out: &mut Vec<u8>, words: &[A]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.as_ref().len()).as_bytes());
        out.extend_from_slice(word.as_ref());
        out.extend_from_slice(b"\r\n");
    }
}

/// A connection. Every error means that it is lost.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects; `patience` is the longest wait for a reply.
    pub fn open(port: u16, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream) })
    }

    /// The longest wait for a reply from now on.
    pub fn wait(&self, patience: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(patience))
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// One request and its reply.
    pub fn call<A: AsRef<[u8]>>(&mut self, words: &[A]) -> io::Result<Reply> {
        let mut bytes = Vec::new();
        request(&mut bytes, words);
        self.send(&bytes)?;
        self.reply()
    }

    /// The next reply.
    pub fn reply(&mut self) -> io::Result<Reply> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        let Some((&kind, rest)) = line.split_first() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let Some(rest) = rest.strip_suffix(b"\r\n") else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let text = String::from_utf8_lossy(rest).into_owned();
        let number = || text.parse::<i64>().map_err(|_| bad(&text));
        Ok(match kind {
            b'+' => Reply::Line(text),
            b'-' => Reply::Error(text),
            b':' => Reply::Integer(number()?),
            b'$' => match usize::try_from(number()?) {
                Err(_) => Reply::Bulk(None),
                Ok(len) => {
                    let mut bytes = vec![0; len + 2];
                    self.stream.read_exact(&mut bytes)?;
                    bytes.truncate(len);
                    Reply::Bulk(Some(bytes))
                }
            },
            b'*' => {
                let count = number()?.max(0);
                Reply::Array((0..count).map(|_| self.reply()).collect::<io::Result<_>>()?)
            }
            _ => return Err(bad(&String::from_utf8_lossy(&line))),
        })
    }

    /// Whether a reply, or the beginning of one, is there already.
    pub fn has_reply(&mut self) -> io::Result<bool> {
        let patience = self.stream.get_ref().read_timeout()?;
        self.wait(Duration::from_millis(1))?;
        let found = match self.stream.fill_buf() {
            Ok(bytes) => Ok(!bytes.is_empty()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(false),
            Err(error) => Err(error),
        };
        self.stream.get_ref().set_read_timeout(patience)?;
        found
    }

    /// Settings by their names, read in one CONFIG GET. A server that cannot be asked for several answers none.
    pub fn settings(&mut self, names: &[&str]) -> io::Result<BTreeMap<String, String>> {
        let Reply::Array(found) = self.call(&[&["CONFIG", "GET"], names].concat())? else {
            return Ok(BTreeMap::new());
        };
        let text = |reply: &Reply| match reply {
            Reply::Bulk(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        };
        Ok(found.as_chunks::<2>().0.iter().map(|[name, value]| (text(name), text(value))).collect())
    }

    /// All fields of a section of INFO, of one moment.
    pub fn info_section(&mut self, section: &str) -> io::Result<BTreeMap<String, String>> {
        let Reply::Bulk(Some(bytes)) = self.call(&["INFO", section])? else {
            return Ok(BTreeMap::new());
        };
        let text = String::from_utf8_lossy(&bytes);
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// A field of INFO; `None` when the server has none of that name.
    pub fn info(&mut self, section: &str, field: &str) -> io::Result<Option<String>> {
        Ok(self.info_section(section)?.remove(field))
    }
}

fn bad(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no reply: {text:?}"))
}
