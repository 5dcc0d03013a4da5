//! One connection to an SSDB.
//!
//! ```text
//! packet: (decimal length '\n' bytes '\n')* '\n'
//! ```

use super::Ssdb;
use crate::MigrateError;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Time after which a read without bytes returns.
const TICK: Duration = Duration::from_millis(50);

/// Longest silence while a reply is expected: a walk over many deleted rows takes its time.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Longest length of a block, in digits: SSDB has packets up to 128 MB.
const DIGITS_MAX: usize = 9;

const READ_LEN: usize = 256 << 10;

/// A connection that has logged in.
pub(super) struct Wire<S = TcpStream> {
    source: String,
    stream: S,
    /// Received bytes; those before `at` are read.
    buffer: Vec<u8>,
    at: usize,
    room: Vec<u8>,
}

/// The blocks of a packet.
pub(super) type Packet = Vec<Vec<u8>>;

impl Wire {
    pub fn open(ssdb: &Ssdb) -> Result<Self, MigrateError> {
        let opened = (ssdb.host.as_str(), ssdb.port).to_socket_addrs().and_then(|mut addresses| {
            let first = addresses.next().ok_or_else(|| io::Error::other("the name has no address"))?;
            let stream = TcpStream::connect_timeout(&first, CONNECT_WITHIN)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TICK))?;
            stream.set_write_timeout(Some(SILENCE_MAX))?;
            Ok(stream)
        });
        let stream = opened.map_err(|source| failed(&ssdb.to_string(), source))?;
        let mut wire = Self::over(ssdb.to_string(), stream);
        if let Some(password) = &ssdb.password {
            wire.ask(&[b"auth", password.as_bytes()])?;
        }
        Ok(wire)
    }
}

impl<S: Read + Write> Wire<S> {
    pub fn over(source: String, stream: S) -> Self {
        Self { source, stream, buffer: Vec::new(), at: 0, room: vec![0; READ_LEN] }
    }

    /// Sends a request.
    pub fn send(&mut self, blocks: &[&[u8]]) -> Result<(), MigrateError> {
        let mut packet = Vec::new();
        for block in blocks {
            packet.extend_from_slice(format!("{}\n", block.len()).as_bytes());
            packet.extend_from_slice(block);
            packet.push(b'\n');
        }
        packet.push(b'\n');
        self.stream.write_all(&packet).map_err(|source| failed(&self.source, source))
    }

    /// Sends a request, and gives what follows `ok` in its reply.
    pub fn ask(&mut self, blocks: &[&[u8]]) -> Result<Packet, MigrateError> {
        self.send(blocks)?;
        let mut reply = self.expect()?;
        if reply.first().map(Vec::as_slice) != Some(b"ok") {
            return Err(self.refused(blocks, &reply));
        }
        reply.remove(0);
        Ok(reply)
    }

    /// The next packet; blocks until it is there.
    pub fn expect(&mut self) -> Result<Packet, MigrateError> {
        let since = Instant::now();
        let mut received = self.buffer.len();
        let mut heard = since;
        loop {
            if let Some(packet) = self.poll()? {
                return Ok(packet);
            }
            if self.buffer.len() != received {
                (received, heard) = (self.buffer.len(), Instant::now());
            }
            if heard.elapsed() > SILENCE_MAX {
                return Err(failed(&self.source, io::Error::new(ErrorKind::TimedOut, "no answer for 60 seconds")));
            }
        }
    }

    /// The next packet, or `None` if it is not there after a short wait.
    pub fn poll(&mut self) -> Result<Option<Packet>, MigrateError> {
        loop {
            if let Some(packet) = self.take()? {
                return Ok(Some(packet));
            }
            match self.stream.read(&mut self.room) {
                Ok(0) => {
                    let ended = io::Error::new(ErrorKind::UnexpectedEof, "the connection was closed");
                    return Err(failed(&self.source, ended));
                }
                Ok(read) => self.buffer.extend_from_slice(self.room.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
                Err(error) => return Err(failed(&self.source, error)),
            }
        }
    }

    /// The next packet of those that were received; `None` if none is complete.
    pub fn take(&mut self) -> Result<Option<Packet>, MigrateError> {
        let mut at = self.at;
        let mut packet = Packet::new();
        loop {
            let rest = self.buffer.get(at..).unwrap_or_default();
            let Some(end) = rest.iter().take(DIGITS_MAX + 2).position(|byte| *byte == b'\n') else {
                if rest.len() > DIGITS_MAX + 1 {
                    return Err(self.odd("the length of a block", rest));
                }
                return Ok(self.partial());
            };
            let line = rest.get(..end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                at += end + 1;
                if packet.is_empty() {
                    // Blank lines before a packet are none.
                    self.at = at;
                    continue;
                }
                self.at = at;
                return Ok(Some(packet));
            }
            let len = std::str::from_utf8(line).ok().and_then(|digits| digits.parse::<usize>().ok());
            let Some(len) = len else { return Err(self.odd("the length of a block", line)) };
            let (from, to) = (end + 1, end + 1 + len);
            match (rest.get(from..to), rest.get(to), rest.get(to + 1)) {
                (Some(block), Some(b'\n'), _) => {
                    packet.push(block.to_vec());
                    at += to + 1;
                }
                (Some(block), Some(b'\r'), Some(b'\n')) => {
                    packet.push(block.to_vec());
                    at += to + 2;
                }
                (_, None, _) | (_, Some(b'\r'), None) => return Ok(self.partial()),
                (_, Some(_), _) => return Err(self.odd("a line end after a block", rest.get(to..).unwrap_or_default())),
            }
        }
    }

    /// Drops what is read, to wait for more.
    fn partial(&mut self) -> Option<Packet> {
        self.buffer.drain(..self.at);
        self.at = 0;
        None
    }

    /// SSDB refuses a request.
    pub fn refused(&self, request: &[&[u8]], reply: &Packet) -> MigrateError {
        let words = reply.iter().map(|block| String::from_utf8_lossy(block).into_owned()).collect::<Vec<_>>();
        MigrateError::SsdbRefused {
            ssdb: self.source.clone(),
            request: String::from_utf8_lossy(request.first().copied().unwrap_or_default()).into_owned(),
            reply: words.join(" ").chars().take(200).collect(),
        }
    }

    pub fn odd(&self, expected: &'static str, received: &[u8]) -> MigrateError {
        let received = received.iter().take(60).copied().collect::<Vec<_>>();
        MigrateError::SsdbReply { ssdb: self.source.clone(), expected, received: received.escape_ascii().to_string() }
    }
}

pub(super) fn failed(ssdb: &str, source: io::Error) -> MigrateError {
    MigrateError::SsdbConnection { ssdb: ssdb.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Gives one byte at a time.
    struct Slow(Cursor<Vec<u8>>);

    impl Read for Slow {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut room[..1])
        }
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn wire(bytes: &[u8]) -> Wire<Slow> {
        Wire::over("h:8888".to_owned(), Slow(Cursor::new(bytes.to_vec())))
    }

    #[test]
    fn packets_arrive_in_pieces() {
        let mut wire = wire(b"\n2\nok\n3\na\nb\n\n2\r\nok\r\n0\r\n\r\n\r\n1\nx\n\n");
        assert_eq!(wire.expect().unwrap(), [b"ok".to_vec(), b"a\nb".to_vec()]);
        assert_eq!(wire.expect().unwrap(), [b"ok".to_vec(), b"".to_vec()]);
        assert_eq!(wire.expect().unwrap(), [b"x".to_vec()]);
        let ended = wire.expect().unwrap_err().to_string();
        assert!(ended.contains("the connection was closed"), "{ended}");
    }

    #[test]
    fn other_protocols_are_told_apart() {
        for foreign in [b"HTTP/1.1 400 Bad Request\r\n".as_slice(), b"-ERR unknown\r\n", b"3\nabcd\n", b"12345678901"] {
            let error = wire(foreign).expect().unwrap_err().to_string();
            assert!(error.contains("expected"), "{error}");
        }
    }
}
