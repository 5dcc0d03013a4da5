//! A connection of a browser or of Prometheus, with or without TLS.
//!
//! S1. The handshake takes its steps with the first reads, so a client that delays it delays no other.
//! S2. Accepted plaintext may be pending as ciphertext: it goes with the next write or flush.
//! S3. A connection that is over, or past its time ([`Visit`]), fails with its next read or write.

use crate::visit::Visit;
use rustls::{ServerConfig, ServerConnection};
use std::future::Future;
use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// An accepted connection.
pub struct Socket {
    tcp: TcpStream,
    tls: Option<Box<ServerConnection>>,
    visit: Arc<Visit>,
    login_within: Duration,
    /// The last traffic.
    last: Instant,
    timer: Pin<Box<Sleep>>,
}

/// Reads and writes without waiting.
struct Tap<'a>(&'a TcpStream);

impl Read for Tap<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(room)
    }
}

impl Write for Tap<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Socket {
    /// A connection whose handshake, if it has one, has not begun.
    ///
    /// # Errors
    /// What rustls has against the configuration.
    pub fn new(
        tcp: TcpStream,
        config: Option<Arc<ServerConfig>>,
        visit: Arc<Visit>,
        login_within: Duration,
    ) -> Result<Self, rustls::Error> {
        let tls = config.map(ServerConnection::new).transpose()?.map(Box::new);
        let timer = Box::pin(tokio::time::sleep(login_within));
        Ok(Self { tcp, tls, visit, login_within, last: Instant::now(), timer })
    }

    /// Fails if the connection is over (S3).
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.visit.is_over(context.waker()) {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        let Some(deadline) = self.visit.deadline(self.last, self.login_within) else { return Ok(()) };
        if self.timer.deadline().into_std() != deadline {
            self.timer.as_mut().reset(deadline.into());
        }
        match self.timer.as_mut().poll(context) {
            Poll::Ready(()) => Err(ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

/// Sends ciphertext until none is left.
fn poll_send(tcp: &TcpStream, tls: &mut ServerConnection, context: &mut Context<'_>) -> Poll<io::Result<()>> {
    while tls.wants_write() {
        match tls.write_tls(&mut Tap(tcp)) {
            Ok(0) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(tcp.poll_write_ready(context))?,
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
    Poll::Ready(Ok(()))
}

/// Reads plaintext; none at the end of the connection.
fn poll_plaintext(
    tcp: &TcpStream,
    tls: &mut ServerConnection,
    context: &mut Context<'_>,
    room: &mut [u8],
) -> Poll<io::Result<usize>> {
    loop {
        // Steps of the handshake, alerts, tickets. What the socket does not take now goes later (S2).
        if let Poll::Ready(sent) = poll_send(tcp, tls, context) {
            sent?;
        }
        match tls.reader().read(room) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // The connection ended without close_notify.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Poll::Ready(Ok(0)),
            result => return Poll::Ready(result),
        }
        match tls.read_tls(&mut Tap(tcp)) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                ready!(tcp.poll_read_ready(context))?;
                continue;
            }
            Ok(0) if tls.is_handshaking() => return Poll::Ready(Ok(0)),
            result => result?,
        };
        if let Err(error) = tls.process_new_packets() {
            // The alert that gives the client the reason, if the socket takes it at once.
            let _ = poll_send(tcp, tls, context);
            return Poll::Ready(Err(io::Error::new(ErrorKind::InvalidData, error)));
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        socket.check(context)?;
        match &mut socket.tls {
            None => ready!(Pin::new(&mut socket.tcp).poll_read(context, room))?,
            Some(tls) => {
                let read = ready!(poll_plaintext(&socket.tcp, tls, context, room.initialize_unfilled()))?;
                // The first plaintext follows the handshake.
                if let Some(certificate) = tls.peer_certificates().and_then(<[_]>::first) {
                    socket.visit.show(certificate);
                }
                room.advance(read);
            }
        }
        socket.last = Instant::now();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        socket.check(context)?;
        let written = match &mut socket.tls {
            None => ready!(Pin::new(&mut socket.tcp).poll_write(context, bytes))?,
            Some(tls) => {
                ready!(poll_send(&socket.tcp, tls, context))?;
                let accepted = tls.writer().write(bytes)?;
                if let Poll::Ready(sent) = poll_send(&socket.tcp, tls, context) {
                    sent?;
                }
                accepted
            }
        };
        socket.last = Instant::now();
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        socket.check(context)?;
        match &mut socket.tls {
            None => Pin::new(&mut socket.tcp).poll_flush(context),
            Some(tls) => poll_send(&socket.tcp, tls, context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        if let Some(tls) = socket.tls.as_mut().filter(|tls| !tls.is_handshaking()) {
            tls.send_close_notify();
            // A client that takes nothing gets no announcement.
            let _ = poll_send(&socket.tcp, tls, context);
        }
        Pin::new(&mut socket.tcp).poll_shutdown(context)
    }
}
