//! A client's socket: TCP or unix.

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// A connected, non-blocking socket.
#[derive(Debug)]
pub enum Socket {
    /// Over IPv4 or IPv6.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
}

/// Calls the same method on whichever socket it is.
macro_rules! either {
    ($socket:expr, $it:ident => $call:expr) => {
        match $socket {
            Socket::Tcp($it) => $call,
            Socket::Unix($it) => $call,
        }
    };
}

impl Socket {
    /// The peer's and our own address over TCP; `None` for a unix socket, or when the peer is gone already.
    pub fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Self::Tcp(socket) => Some((socket.peer_addr().ok()?, socket.local_addr().ok()?)),
            Self::Unix(_) => None,
        }
    }

    /// Has the kernel probe a silent TCP peer after so many seconds; 0 leaves it alone. A kernel that refuses only finds dead
    /// peers later.
    pub fn set_keepalive(&self, seconds: u32) {
        if let Self::Tcp(socket) = self
            && seconds > 0
        {
            let time = Duration::from_secs(seconds.into());
            let probes = TcpKeepalive::new().with_time(time).with_interval(time / 3).with_retries(3);
            let _ = SockRef::from(socket).set_tcp_keepalive(&probes);
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        either!(self, it => it.as_raw_fd())
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

impl Source for Socket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        either!(self, it => it.register(registry, token, interests))
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        either!(self, it => it.reregister(registry, token, interests))
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        either!(self, it => it.deregister(registry))
    }
}
