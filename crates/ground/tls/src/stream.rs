//! A blocking connection to another server, with or without TLS.
//!
//! C1. Clones share the connection. One of them reads, and others may write meanwhile: the reader waits for bytes
//!     without the lock.
//!     Only the reader takes bytes from the socket.
//! C2. A write waits until the socket has taken all of it, and blocks reads meanwhile. So both sides of a protocol
//!     must not send much at once.

use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are taken from the socket at once: four of the longest records. The TLS library takes 4 KB from a source
/// at once, which would be two system calls for each.
const READ_LEN: usize = 64 << 10;

/// A connection. See C1 about clones.
#[derive(Clone, Debug)]
pub struct Stream {
    socket: Arc<TcpStream>,
    tls: Option<Arc<Mutex<Session>>>,
}

/// The state of TLS, and bytes of the socket that it has not seen yet.
#[derive(Debug)]
struct Session {
    tls: ClientConnection,
    received: Received,
}

impl Stream {
    /// Completes the handshake where there is a configuration; without one, the connection stays plain. The time limits
    /// of the socket hold for each step.
    ///
    /// # Errors
    /// The name can be in no certificate, the other server shows a bad certificate or none, or the socket fails.
    pub fn open(socket: TcpStream, host: &str, config: Option<Arc<ClientConfig>>) -> io::Result<Self> {
        let Some(config) = config else { return Ok(Self { socket: Arc::new(socket), tls: None }) };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::new(ErrorKind::InvalidInput, "TLS needs a host name or an IP address"))?;
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut &socket)?;
        }
        let session = Session { tls, received: Received::default() };
        Ok(Self { socket: Arc::new(socket), tls: Some(Arc::new(Mutex::new(session))) })
    }

    /// Ends the connection: reads of all clones return at once.
    pub fn shutdown(&self) {
        // One that has ended stays so.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Lets a read return `WouldBlock` after this time without a byte.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn set_read_timeout(&self, time: Duration) -> io::Result<()> {
        self.socket.set_read_timeout(Some(time))
    }
}

impl Read for Stream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut socket = &*self.socket;
        let Some(session) = &self.tls else { return socket.read(room) };
        loop {
            let mut locked = session.lock();
            match locked.tls.reader().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
            if locked.received.is_empty() {
                drop(locked);
                // Waits, without the lock, until the socket has bytes or an end.
                socket.peek(&mut [0])?;
                locked = session.lock();
                locked.received.fill(&mut socket, READ_LEN)?;
            }
            let Session { tls, received } = &mut *locked;
            // Without bytes, this is the end of the connection.
            tls.read_tls(received)?;
            let processed = tls.process_new_packets();
            send_pending(tls, socket)?;
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }
}

/// Bytes of the socket, in order.
#[derive(Debug, Default)]
pub(crate) struct Received {
    bytes: Vec<u8>,
    taken: usize,
}

impl Received {
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    /// Replaces bytes that were all taken by what one read of the source gives, `len` at most; none at its end.
    pub(crate) fn fill(&mut self, source: &mut impl Read, len: usize) -> io::Result<()> {
        self.bytes.resize(len, 0);
        // A read that fails leaves nothing.
        self.taken = len;
        let len = source.read(&mut self.bytes)?;
        self.bytes.truncate(len);
        self.taken = 0;
        Ok(())
    }
}

impl Read for Received {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.get(self.taken..).unwrap_or_default().read(room)?;
        self.taken += read;
        Ok(read)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut socket = &*self.socket;
        let Some(tls) = &self.tls else { return socket.write(bytes) };
        let tls = &mut tls.lock().tls;
        let accepted = tls.writer().write(bytes)?;
        send_pending(tls, socket)?;
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn send_pending(tls: &mut ClientConnection, mut socket: &TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(&mut socket)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts reads, each of which gives all that there is room for.
    struct Source<'a>(&'a [u8], usize);

    impl Read for Source<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            self.0.read(room)
        }
    }

    /// Readers of 4 KB, as the TLS library is one, cause a read of the source per 64 KB.
    #[test]
    fn the_source_is_read_in_large_pieces() {
        let data: Vec<u8> = (0..300_000u32).map(|number| number as u8).collect();
        let (mut source, mut received, mut all) = (Source(&data, 0), Received::default(), Vec::new());
        let mut room = [0; 4096];
        loop {
            if received.is_empty() {
                received.fill(&mut source, READ_LEN).unwrap();
            }
            match received.read(&mut room).unwrap() {
                0 => break,
                len => all.extend_from_slice(&room[..len]),
            }
        }
        assert!(all == data);
        assert_eq!(source.1, data.len().div_ceil(READ_LEN) + 1, "and one that finds the end");
    }
}
