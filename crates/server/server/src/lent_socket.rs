//! The socket of a connection that another worker has.

use crate::connection::Connection;
use crate::socket::{Socket, TlsHandle};
use mio::net::{TcpStream, UnixStream};
use std::io;
use std::os::fd::BorrowedFd;

/// A second descriptor of the client's socket, and its state of TLS. Only for a connection of a worker that does
/// nothing else meanwhile (A1 in [`desk`](crate::desk)).
///
/// # Errors
/// There are too many descriptors.
pub(crate) fn duplicate(connection: &Connection) -> io::Result<Socket> {
    let info = &connection.session.info;
    if info.descriptor < 0 {
        return Err(io::ErrorKind::NotConnected.into());
    }
    // SAFETY: the descriptor is open during this call: only the worker of the connection closes it, and that worker
    // makes this call.
    let own = unsafe { BorrowedFd::borrow_raw(info.descriptor) }.try_clone_to_owned()?;
    Ok(match (&connection.tls, info.is_local()) {
        (Some(tls), _) => Socket::Tls(TlsHandle::lent(tls.clone(), TcpStream::from_std(own.into()))),
        (None, true) => Socket::Unix(UnixStream::from_std(own.into())),
        (None, false) => Socket::Tcp(TcpStream::from_std(own.into())),
    })
}
