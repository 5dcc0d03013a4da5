//! One connection to a primary: the handshake, the copy, and the stream after it.

use crate::LINE_LEN_MAX;
use crate::copy::{self, Copied, End};
use crate::error::LinkError;
use crate::position::Position;
use crate::primary::Primary;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tls::{ClientConfig, Stream};

/// Longest silence of a primary, which sends a `PING` every ten seconds unless configured otherwise: its own default
/// for a replica's silence (`repl-timeout`).
pub const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The version of Valkey whose copies and commands are understood.
const VERSION: &str = "9.1.0";

/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Bytes that are read at once.
const READ_LEN: usize = 256 << 10;

/// What follows the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// A copy of all data, and then the stream from this position on.
    Copy(Position),
    /// The stream continues at this position, whose id may be a new one.
    Continue(Position),
}

/// What a replica says about itself, and how long it waits.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The port that the primary's INFO shows; 0 for a replica that listens nowhere.
    pub port: u16,
    /// The address that it shows; `None` for that of the connection.
    pub address: Option<String>,
    /// Longest silence of the primary.
    pub silence_max: Duration,
    /// How the connection uses TLS; `None` for a plain one.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { port: 0, address: None, silence_max: SILENCE_MAX, tls: None }
    }
}

/// A connection whose stream is read by [`Read`].
pub struct Link {
    primary: Primary,
    input: BufReader<Stream>,
}

/// Acknowledges what was processed. Clones share the connection.
#[derive(Clone)]
pub struct Acknowledger(Arc<Mutex<Stream>>);

impl Link {
    /// Connects and asks for the stream from a position on, or for all data. Blocks until the primary has answered, at
    /// most the silence of `terms` per reply. A primary that has first to write its copy sends line ends meanwhile.
    ///
    /// # Errors
    /// Every [`LinkError`].
    pub fn open(primary: &Primary, terms: &Terms, from: Option<&Position>) -> Result<(Self, Opened), LinkError> {
        let mut link = Self::connect(primary, terms)?;
        link.log_in()?;
        link.require("REPLCONF listening-port", &["REPLCONF", "listening-port", &terms.port.to_string()])?;
        if let Some(address) = &terms.address {
            // A primary that does not know it answers an error.
            link.ask(&["REPLCONF", "ip-address", address])?;
        }
        link.require("REPLCONF capa", &["REPLCONF", "capa", "eof", "capa", "psync2"])?;
        // Valkey chooses the format of the copy by it. Redis does not know it, and answers an error.
        link.ask(&["REPLCONF", "version", VERSION])?;
        let opened = link.synchronize(from)?;
        Ok((link, opened))
    }

    fn connect(primary: &Primary, terms: &Terms) -> Result<Self, LinkError> {
        let connected = (primary.host.as_str(), primary.port).to_socket_addrs().and_then(|mut addresses| {
            let first = addresses.next().ok_or_else(|| io::Error::other("the name has no address"))?;
            let connected = TcpStream::connect_timeout(&first, CONNECT_WITHIN);
            addresses.fold(connected, |done, next| done.or_else(|_| TcpStream::connect_timeout(&next, CONNECT_WITHIN)))
        });
        let socket = connected.map_err(LinkError::io(primary, "connect"))?;
        let silence_max = Some(terms.silence_max);
        let prepared = socket.set_nodelay(true).and_then(|()| socket.set_read_timeout(silence_max));
        let prepared = prepared.and_then(|()| socket.set_write_timeout(silence_max));
        prepared.map_err(LinkError::io(primary, "connect"))?;
        let stream = Stream::open(socket, &primary.host, terms.tls.clone());
        let stream = stream.map_err(LinkError::io(primary, "connect with TLS"))?;
        Ok(Self { primary: primary.clone(), input: BufReader::with_capacity(READ_LEN, stream) })
    }

    /// A primary with a password answers PING by an error, which AUTH then mends.
    fn log_in(&mut self) -> Result<(), LinkError> {
        if let Some(password) = self.primary.password.clone() {
            return match self.primary.user.clone() {
                Some(user) => self.require("AUTH", &["AUTH", &user, &password]),
                None => self.require("AUTH", &["AUTH", &password]),
            };
        }
        self.require("PING", &["PING"])
    }

    fn synchronize(&mut self, from: Option<&Position>) -> Result<Opened, LinkError> {
        match from {
            Some(position) => self.send(&["PSYNC", &position.id, &(position.offset + 1).to_string()])?,
            None => self.send(&["PSYNC", "?", "-1"])?,
        }
        let line = self.reply("waiting for the answer to PSYNC")?;
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next(), from) {
            (Some("+FULLRESYNC"), Some(id), Some(offset), _) => {
                let position = Position::parse(id, offset);
                position.map(Opened::Copy).ok_or_else(|| self.odd("an id and an offset", &line))
            }
            (Some("+CONTINUE"), None, _, Some(position)) => Ok(Opened::Continue(position.clone())),
            (Some("+CONTINUE"), Some(id), None, Some(position)) => {
                let continued = Position::parse(id, &position.offset.to_string());
                continued.map(Opened::Continue).ok_or_else(|| self.odd("an id", &line))
            }
            _ => match line.strip_prefix('-') {
                Some(reply) if reply.starts_with("NOMASTERLINK") || reply.starts_with("LOADING") => {
                    Err(LinkError::NotReady { primary: self.primary.to_string(), reply: reply.to_owned() })
                }
                Some(reply) => Err(self.refused("PSYNC", reply)),
                None => Err(self.odd("+FULLRESYNC or +CONTINUE", &line)),
            },
        }
    }

    /// Passes the copy on after [`Opened::Copy`]; the stream follows. Calls `read` with what is received so far.
    /// Returns all bytes.
    ///
    /// # Errors
    /// Every [`LinkError`]; one of the output is [`LinkError::Io`].
    pub fn pass_copy(&mut self, out: &mut dyn Write, read: &mut dyn FnMut(Copied)) -> Result<u64, LinkError> {
        const WHAT: &str = "receiving the copy";
        let line = self.reply(WHAT)?;
        let end = End::parse(&line).ok_or_else(|| self.odd("the head of an RDB file", &line))?;
        let total = end.total();
        let mut each = |bytes| read(Copied { bytes, total });
        copy::pass(&mut self.input, end, out, &mut each).map_err(LinkError::io(&self.primary, WHAT))
    }

    /// What acknowledges.
    pub fn acknowledger(&self) -> Acknowledger {
        Acknowledger(Arc::new(Mutex::new(self.input.get_ref().clone())))
    }

    /// Lets a read return `WouldBlock` after this time without a byte.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn set_patience(&self, patience: Duration) -> Result<(), LinkError> {
        self.input.get_ref().set_read_timeout(patience).map_err(LinkError::io(&self.primary, "set a timeout"))
    }

    /// Sends a command of the handshake; its reply.
    fn ask(&mut self, words: &[&str]) -> Result<String, LinkError> {
        self.send(words)?;
        self.reply("waiting for a reply")
    }

    /// Sends a command of the handshake and expects a status.
    fn require(&mut self, command: &'static str, words: &[&str]) -> Result<(), LinkError> {
        let line = self.ask(words)?;
        match line.strip_prefix('-') {
            Some(reply) => Err(self.refused(command, reply)),
            None if line.starts_with('+') => Ok(()),
            None => Err(self.odd("a status", &line)),
        }
    }

    fn send(&mut self, words: &[&str]) -> Result<(), LinkError> {
        let sent = self.input.get_mut().write_all(&request(words));
        sent.map_err(LinkError::io(&self.primary, "sending the handshake"))
    }

    /// The next line that is not empty. An empty one keeps the connection alive.
    fn reply(&mut self, what: &'static str) -> Result<String, LinkError> {
        loop {
            let mut line = Vec::new();
            let read = (&mut self.input).take(LINE_LEN_MAX).read_until(b'\n', &mut line);
            read.map_err(LinkError::io(&self.primary, what))?;
            let text = String::from_utf8_lossy(&line);
            match line.last() {
                Some(b'\n') if text.trim_end().is_empty() => {}
                Some(b'\n') => return Ok(text.trim_end().to_owned()),
                None => return Err(LinkError::Ended { primary: self.primary.to_string(), what }),
                Some(_) => return Err(self.odd("a line", &text)),
            }
        }
    }

    fn refused(&self, command: &'static str, reply: &str) -> LinkError {
        LinkError::Refused { primary: self.primary.to_string(), command, reply: reply.to_owned() }
    }

    fn odd(&self, expected: &'static str, received: &str) -> LinkError {
        let received = received.chars().take(80).collect();
        LinkError::Protocol { primary: self.primary.to_string(), expected, received }
    }
}

impl Read for Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer)
    }
}

impl Acknowledger {
    /// Ends the connection: reads of it return at once. One that has ended stays so.
    pub fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).shutdown();
    }

    /// Says how far the stream was processed.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn acknowledge(&self, offset: u64) -> io::Result<()> {
        let bytes = request(&["REPLCONF", "ACK", &offset.to_string()]);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&bytes)
    }
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests;
