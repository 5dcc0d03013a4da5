//! A connection with TLS to a server, for one thread. It blocks, or does not, as its socket does.
//!
//! K1. A short read does not say that nothing is left: the library may hold more records. Only `WouldBlock` says so.
//! K2. Without blocking, a write may leave ciphertext here after it accepted the bytes. `flush` sends it, so the caller
//!     calls it on every event that says that the socket takes bytes.

use crate::stream::Received;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig, ClientConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are taken from the socket at once: one of the longest records.
const READ_LEN: usize = 17 << 10;

/// A connection after its handshake.
#[derive(Debug)]
pub struct ClientSocket {
    socket: TcpStream,
    tls: ClientConnection,
    received: Received,
}

impl ClientSocket {
    /// Completes the handshake on a blocking socket. The certificate has to carry the name `host`. The time limits of
    /// the socket hold for each step.
    ///
    /// # Errors
    /// The name can be in no certificate, the server shows a bad certificate or none, it does not speak TLS, or the
    /// socket fails.
    pub fn open(socket: TcpStream, host: &str, config: Arc<ClientConfig>) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            let reason = format!("`{host}` is neither a host name nor an IP address, one of which TLS needs");
            io::Error::new(ErrorKind::InvalidInput, reason)
        })?;
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut &socket).map_err(|error| described(error, socket.read_timeout()))?;
        }
        Ok(Self { socket, tls, received: Received::default() })
    }

    /// Whether calls return `WouldBlock` rather than wait.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        self.socket.set_nonblocking(is_nonblocking)
    }

    /// Sets the longest wait of a read.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        self.socket.set_read_timeout(Some(time))
    }
}

/// With TLS 1.3, the server refuses a client after the client's side of the handshake.
fn refused(error: rustls::Error) -> io::Error {
    match error {
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            io::Error::new(ErrorKind::PermissionDenied, "the server needs a certificate of this client, and got none")
        }
        error => io::Error::new(ErrorKind::InvalidData, error),
    }
}

/// Says what a failed handshake usually means.
fn described(error: io::Error, patience: io::Result<Option<Duration>>) -> io::Error {
    let is_not_tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref())
        .is_some_and(|inner| matches!(inner, rustls::Error::InvalidMessage(_)));
    match error.kind() {
        _ if is_not_tls => io::Error::new(ErrorKind::InvalidData, format!("this port does not speak TLS: {error}")),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            let seconds = patience.ok().flatten().unwrap_or_default().as_secs();
            let reason = format!("no TLS handshake within {seconds} s; does this port speak TLS?");
            io::Error::new(ErrorKind::TimedOut, reason)
        }
        _ => error,
    }
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Read for ClientSocket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Redis ends a connection without the alert that announces it.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                result => return result,
            }
            if self.received.is_empty() {
                self.received.fill(&mut self.socket, READ_LEN)?;
            }
            // Without bytes, this is the end of the connection.
            self.tls.read_tls(&mut self.received)?;
            let processed = self.tls.process_new_packets();
            // An alert, or the answer to new keys. What the socket does not take now goes with the next write (K2).
            match self.flush() {
                Err(error) if error.kind() != ErrorKind::WouldBlock && processed.is_ok() => return Err(error),
                _ => {}
            }
            processed.map_err(refused)?;
        }
    }
}

impl Write for ClientSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let accepted = self.tls.writer().write(bytes)?;
        match self.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(accepted),
        }
    }

    /// Sends what was accepted.
    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket)?;
        }
        Ok(())
    }
}
