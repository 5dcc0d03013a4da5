//! Listening sockets and the thread that accepts from them, dealing connections out to the workers in turn.

use crate::socket::Socket;
use mio::net::{TcpListener, UnixListener};
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// A listening socket.
pub enum Listener {
    /// Over IPv4 or IPv6.
    Tcp(TcpListener),
    /// On this machine.
    Unix(UnixListener),
}

/// Listens on an address. IPv6 sockets take IPv6 only, so that both families can be bound side by side.
///
/// # Errors
/// The operating system's: the port is in use, the address is not this machine's, no permission.
pub fn listen_tcp(address: SocketAddr, backlog: i32) -> io::Result<Listener> {
    let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(Listener::Tcp(TcpListener::from_std(socket.into())))
}

/// Listens on a path, readable and writable as `mode` says from its first moment. A socket file that nobody answers on any
/// more is replaced.
///
/// # Errors
/// The operating system's; `AddrInUse` when somebody answers on the path.
pub fn listen_unix(path: &Path, mode: u32) -> io::Result<Listener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(ErrorKind::AddrInUse, "another server answers on this socket"));
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Bound under a name of its own and moved into place when its permissions are right: never open to others in between
    // (CVE-2023-45145).
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let private = parent.join(format!(".onggi-{}", std::process::id()));
    std::fs::create_dir(&private)?;
    let result = (|| {
        std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o700))?;
        let inner = private.join("s");
        let listener = UnixListener::bind(&inner)?;
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(mode))?;
        std::fs::rename(&inner, path)?;
        Ok(listener)
    })();
    std::fs::remove_dir_all(&private)?;
    result.map(Listener::Unix)
}

impl Listener {
    fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Socket::Unix(listener.accept()?.0)),
        }
    }
}

/// Accepts until `deal` says stop. Runs on a thread of its own.
///
/// # Errors
/// When the event queue fails. Errors of single connections are dropped with them.
pub fn accept_loop(
    mut listeners: Vec<Listener>,
    mut deal: impl FnMut(Socket),
    stopping: impl Fn() -> bool,
) -> io::Result<()> {
    let mut poll = Poll::new()?;
    for (index, listener) in listeners.iter_mut().enumerate() {
        match listener {
            Listener::Tcp(listener) => poll.registry().register(listener, Token(index), Interest::READABLE)?,
            Listener::Unix(listener) => poll.registry().register(listener, Token(index), Interest::READABLE)?,
        }
    }
    let mut events = Events::with_capacity(64);
    // Accepting fails when the process has no descriptor left; the connection stays in the backlog, and since the queue is
    // edge-triggered it is tried again after a while.
    let mut again = false;
    while !stopping() {
        let wait = Duration::from_millis(if again { 20 } else { 100 });
        match poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            result => result?,
        }
        let woken: Vec<usize> =
            if again { (0..listeners.len()).collect() } else { events.iter().map(|event| event.token().0).collect() };
        again = false;
        for index in woken {
            loop {
                match listeners[index].accept() {
                    Ok(socket) => deal(socket),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                    Err(_) => {
                        again = true;
                        break;
                    }
                }
            }
        }
    }
    Ok(())
}
