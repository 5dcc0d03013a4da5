//! The socket of a connection that another worker has.

use crate::socket::Socket;
use command::clients::ClientInfo;
use mio::net::{TcpStream, UnixStream};
use std::io;
use std::os::fd::BorrowedFd;

/// A second descriptor of the client's socket. Only for a connection lent by a worker that waits (A1 in
/// [`desk`](crate::desk)).
///
/// # Errors
/// There are too many descriptors.
pub(crate) fn duplicate(info: &ClientInfo) -> io::Result<Socket> {
    if info.descriptor < 0 {
        return Err(io::ErrorKind::NotConnected.into());
    }
    // SAFETY: the descriptor is open during this call: only the worker of the connection closes it, and that worker
    // waits until the connection that it has lent is given back.
    let own = unsafe { BorrowedFd::borrow_raw(info.descriptor) }.try_clone_to_owned()?;
    Ok(match info.is_local() {
        true => Socket::Unix(UnixStream::from_std(own.into())),
        false => Socket::Tcp(TcpStream::from_std(own.into())),
    })
}
