//! A client's socket: TCP, TCP with TLS, or unix.

use crate::tls_socket::{Handshake, TlsSocket};
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use parking_lot::Mutex;
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// A connected, non-blocking socket.
#[derive(Debug)]
pub enum Socket {
    /// Over IPv4 or IPv6.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
    /// Over IPv4 or IPv6, with TLS.
    Tls(TlsHandle),
}

/// A connection with TLS. One that is lent has two handles, of which only one is used at a time.
#[derive(Debug)]
pub struct TlsHandle {
    tls: Arc<Mutex<TlsSocket>>,
    /// A descriptor of its own, for the events of the worker that it is lent to.
    own: Option<TcpStream>,
}

impl TlsHandle {
    /// The handle of a new connection.
    pub fn new(tls: TlsSocket) -> Self {
        Self { tls: Arc::new(Mutex::new(tls)), own: None }
    }

    /// A second handle.
    pub(crate) fn lent(tls: Arc<Mutex<TlsSocket>>, own: TcpStream) -> Self {
        Self { tls, own: Some(own) }
    }
}

/// Calls the same method on whichever socket it is.
macro_rules! either {
    ($socket:expr, $it:ident => $call:expr) => {
        match $socket {
            Socket::Tcp($it) => $call,
            Socket::Unix($it) => $call,
            Socket::Tls(handle) => {
                let mut guard = handle.tls.lock();
                let $it = &mut *guard;
                $call
            }
        }
    };
}

impl Socket {
    /// The peer's and our own address over TCP; `None` for a unix socket, or when the peer is gone already.
    pub fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Self::Tcp(socket) => Some((socket.peer_addr().ok()?, socket.local_addr().ok()?)),
            Self::Tls(socket) => {
                let tls = socket.tls.lock();
                Some((tls.tcp.peer_addr().ok()?, tls.tcp.local_addr().ok()?))
            }
            Self::Unix(_) => None,
        }
    }

    /// Whether a TLS handshake is not over: nothing is read or sent for the client before.
    #[inline]
    pub fn is_handshaking(&self) -> bool {
        matches!(self, Self::Tls(socket) if socket.tls.lock().is_handshaking())
    }

    /// Continues the handshake.
    ///
    /// # Errors
    /// See [`TlsSocket::shake`].
    pub fn shake(&mut self) -> io::Result<Handshake> {
        match self {
            Self::Tls(socket) => socket.tls.lock().shake(),
            Self::Tcp(_) | Self::Unix(_) => Ok(Handshake::Done),
        }
    }

    /// The certificate that the client has shown in its handshake, in DER.
    pub fn client_certificate(&self) -> Option<Vec<u8>> {
        match self {
            Self::Tls(socket) => socket.tls.lock().client_certificate().map(<[u8]>::to_vec),
            Self::Tcp(_) | Self::Unix(_) => None,
        }
    }

    /// Whether a read may give something although the last one came up short.
    #[inline]
    pub fn has_more(&self) -> bool {
        matches!(self, Self::Tls(socket) if socket.tls.lock().has_more())
    }

    /// Whether bytes that [`Write::write`] has taken wait to be sent.
    #[inline]
    pub fn has_pending(&self) -> bool {
        matches!(self, Self::Tls(socket) if socket.tls.lock().has_pending())
    }

    /// Sends such bytes; false when the socket takes no more.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send_pending(&mut self) -> io::Result<bool> {
        match self {
            Self::Tls(socket) => socket.tls.lock().send_pending(),
            Self::Tcp(_) | Self::Unix(_) => Ok(true),
        }
    }

    /// What a second handle needs, for TLS.
    pub(crate) fn tls(&self) -> Option<Arc<Mutex<TlsSocket>>> {
        match self {
            Self::Tls(handle) => Some(handle.tls.clone()),
            Self::Tcp(_) | Self::Unix(_) => None,
        }
    }

    /// Ends the connection for all descriptors of the socket.
    pub fn shut_down(&self) {
        // A peer that is gone already needs no notice.
        let _ = match self {
            Self::Tcp(socket) => socket.shutdown(Shutdown::Both),
            Self::Unix(socket) => socket.shutdown(Shutdown::Both),
            Self::Tls(socket) => socket.tls.lock().tcp.shutdown(Shutdown::Both),
        };
    }

    /// Notifies the peer that nothing more comes, where the protocol can say that.
    pub fn close(&mut self) {
        if let Self::Tls(socket) = self {
            socket.tls.lock().close();
        }
    }

    /// Makes the kernel probe a TCP peer that has been silent for `seconds`; 0 turns this off. If the kernel refuses,
    /// dead peers are found later.
    pub fn set_keepalive(&self, seconds: u32) {
        if seconds > 0 {
            let time = Duration::from_secs(seconds.into());
            let probes = TcpKeepalive::new().with_time(time).with_interval(time / 3).with_retries(3);
            let _ = match self {
                Self::Tcp(socket) => SockRef::from(socket).set_tcp_keepalive(&probes),
                Self::Tls(socket) => SockRef::from(&socket.tls.lock().tcp).set_tcp_keepalive(&probes),
                Self::Unix(_) => Ok(()),
            };
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tls(socket) => socket.tls.lock().tcp.as_raw_fd(),
            Self::Tcp(socket) => socket.as_raw_fd(),
            Self::Unix(socket) => socket.as_raw_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        either!(self, it => it.read(room))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, it => it.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, it => it.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Calls the same method on the operating system's socket.
macro_rules! source {
    ($socket:expr, $it:ident => $call:expr) => {
        match $socket {
            Socket::Tcp($it) => $call,
            Socket::Unix($it) => $call,
            Socket::Tls(TlsHandle { own: Some($it), .. }) => $call,
            Socket::Tls(handle) => {
                let $it = &mut handle.tls.lock().tcp;
                $call
            }
        }
    };
}

impl Source for Socket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        source!(self, it => it.register(registry, token, interests))
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        source!(self, it => it.reregister(registry, token, interests))
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        source!(self, it => it.deregister(registry))
    }
}
