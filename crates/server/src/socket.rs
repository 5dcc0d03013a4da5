//! A client's socket: TCP or unix.

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use std::io::{self, IoSlice, Read, Write};

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
