//! A socket with TLS. It keeps the contract of a plain one, so the worker's loop is the same for both.
//!
//! ```text
//! socket --ciphertext--> rustls --plaintext--> room of the reader
//! socket <-- pending <-- rustls <--plaintext-- replies
//! ```
//!
//! S1. A read that comes up short has taken all: the socket has no more ciphertext, and rustls no more plaintext.
//!     Where that does not hold, [`TlsSocket::has_more`] says so.
//! S2. Accepted plaintext counts as sent, and may be pending as ciphertext. [`TlsSocket::has_pending`] then keeps the
//!     connection among those to be sent to, and open.
//! S3. Nothing is read or written for the client before the handshake is over: [`TlsSocket::shake`] takes its steps.

use mio::net::TcpStream;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;

/// Reads from the socket for one read of the worker, each of a few KiB: a client that sends records without content
/// gets no more of a turn.
const RECEIVES_MAX: usize = 64;

/// A connection over TCP with TLS.
#[derive(Debug)]
pub struct TlsSocket {
    pub(crate) tcp: TcpStream,
    tls: ServerConnection,
    /// The next read may give something although no event announces it.
    has_more: bool,
    /// What the next read fails with: this one had plaintext to give.
    failure: Option<io::Error>,
}

/// How far a handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// It is over.
    Done,
    /// It continues when the client has sent more.
    Waits,
}

/// What a read from the socket gave.
enum Received {
    /// Ciphertext, as much as was there.
    All,
    /// Ciphertext, and there may be more.
    Some,
    /// The client sends nothing more.
    End,
    /// Nothing for now.
    Nothing,
}

/// Reads from a socket and notes whether it was emptied.
struct Tap<'a> {
    tcp: &'a mut TcpStream,
    is_short: bool,
}

impl Read for Tap<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.tcp.read(room)?;
        self.is_short = read < room.len();
        Ok(read)
    }
}

impl TlsSocket {
    /// A connection whose handshake has not begun.
    ///
    /// # Errors
    /// What rustls has against the configuration.
    pub fn new(tcp: TcpStream, config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self { tcp, tls: ServerConnection::new(config)?, has_more: false, failure: None })
    }

    /// Whether the handshake is not over.
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Continues the handshake, as far as the client has sent its part.
    ///
    /// # Errors
    /// The client's part is wrong, or it has left.
    pub fn shake(&mut self) -> io::Result<Handshake> {
        self.has_more = false;
        for _ in 0..RECEIVES_MAX {
            let received = self.receive()?;
            self.send_pending()?;
            if !self.tls.is_handshaking() {
                return Ok(Handshake::Done);
            }
            match received {
                Received::Some => {}
                Received::All | Received::Nothing => return Ok(Handshake::Waits),
                Received::End => return Err(ErrorKind::UnexpectedEof.into()),
            }
        }
        self.has_more = true;
        Ok(Handshake::Waits)
    }

    /// Whether a read may give something although the last one came up short.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Whether ciphertext waits to be sent.
    pub fn has_pending(&self) -> bool {
        self.tls.wants_write()
    }

    /// Sends ciphertext; true when none is left, false when the socket takes no more.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send_pending(&mut self) -> io::Result<bool> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.tcp) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Announces to the client that nothing more comes, if the socket takes it at once. Not during a handshake: the
    /// client may not even speak TLS.
    pub fn close(&mut self) {
        if self.is_handshaking() {
            return;
        }
        self.tls.send_close_notify();
        let _ = self.send_pending();
    }

    /// The certificate that the client has shown, in DER; `None` without one.
    pub fn client_certificate(&self) -> Option<&[u8]> {
        Some(self.tls.peer_certificates()?.first()?)
    }

    /// Reads ciphertext once and decrypts it.
    fn receive(&mut self) -> io::Result<Received> {
        let mut tap = Tap { tcp: &mut self.tcp, is_short: false };
        let received = match self.tls.read_tls(&mut tap) {
            Ok(0) => Received::End,
            Ok(_) if tap.is_short => Received::All,
            Ok(_) => Received::Some,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Received::Nothing),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(Received::Some),
            Err(error) => return Err(error),
        };
        if let Err(error) = self.tls.process_new_packets() {
            // The alert that gives the client the reason.
            let _ = self.send_pending();
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
        Ok(received)
    }

    /// Puts plaintext into the room; true when the client's TLS sends nothing more.
    fn take_plaintext(&mut self, room: &mut [u8], filled: &mut usize) -> io::Result<bool> {
        while let Some(rest) = room.get_mut(*filled..).filter(|rest| !rest.is_empty()) {
            match self.tls.reader().read(rest) {
                Ok(0) => return Ok(true),
                Ok(read) => *filled += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The connection ended without close_notify. Requests that have come whole are run, as over plain TCP.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Reads into the room until it is full, or nothing more is there.
    fn fill(&mut self, room: &mut [u8], filled: &mut usize) -> io::Result<()> {
        let mut is_emptied = false;
        for _ in 0..RECEIVES_MAX {
            if self.take_plaintext(room, filled)? {
                self.has_more = *filled > 0;
                return Ok(());
            }
            if *filled == room.len() {
                return Ok(());
            }
            if is_emptied {
                return if *filled > 0 { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) };
            }
            match self.receive()? {
                Received::Some | Received::End => {}
                Received::All | Received::Nothing => is_emptied = true,
            }
        }
        self.has_more = true;
        if *filled > 0 { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
    }
}

impl Read for TlsSocket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.has_more = false;
        let mut filled = 0;
        let result = self.fill(room, &mut filled);
        // Answers of rustls itself: new keys, tickets.
        let result = result.and(self.send_pending().map(|_| ()));
        match result {
            Err(error) if filled > 0 => {
                (self.failure, self.has_more) = (Some(error), true);
                Ok(filled)
            }
            Err(error) => Err(error),
            Ok(()) => Ok(filled),
        }
    }
}

impl Write for TlsSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.send_pending()? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let accepted = self.tls.writer().write_vectored(slices)?;
        self.send_pending()?;
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
