//! Listening sockets and the thread that accepts from them, dealing connections out to the workers in turn.

use crate::dialect::Language;
use crate::mailbox::Mailbox;
use crate::socket::Socket;
use mio::net::{TcpListener, UnixListener};
use mio::{Events, Interest, Poll, Token};
use parking_lot::Mutex;
use slab::Slab;
use socket2::{Domain, Protocol, Socket as RawSocket, Type};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A listening socket.
pub enum Listener {
    /// Over IPv4 or IPv6.
    Tcp(TcpListener),
    /// On this machine.
    Unix(UnixListener),
}

/// Where a listening socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An address and port.
    Tcp(SocketAddr),
    /// A socket file.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
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

/// Listens on a path, readable and writable as `mode` says from its first moment. A socket file on which no server
/// answers any more is replaced.
///
/// # Errors
/// The operating system's; `AddrInUse` when another server answers on the path.
pub fn listen_unix(path: &Path, mode: u32) -> io::Result<Listener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(ErrorKind::AddrInUse, "another server answers on this socket"));
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Bound under a name of its own and moved into place when its permissions are right: never open to others in
    // between (CVE-2023-45145).
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

/// What a listener expects of its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// Their language.
    pub language: Language,
    /// Whether they speak it over TLS.
    pub tls: bool,
}

impl Kind {
    /// Clients of this language, without TLS.
    pub fn plain(language: Language) -> Self {
        Self { language, tls: false }
    }

    /// Clients of this language, over TLS.
    pub fn tls(language: Language) -> Self {
        Self { language, tls: true }
    }
}

/// A listening socket, where it is, and what it expects of its clients.
pub struct Entrance {
    /// Where.
    pub endpoint: Endpoint,
    /// What its clients speak.
    pub kind: Kind,
    /// The socket.
    pub listener: Listener,
}

/// The address, and what its clients speak where that is not plain RESP: `127.0.0.1:11211 (memcached, TLS)`.
impl fmt::Display for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)?;
        f.write_str(match (self.kind.language, self.kind.tls) {
            (Language::Resp, false) => "",
            (Language::Resp, true) => " (TLS)",
            (Language::Memcached, false) => " (memcached)",
            (Language::Memcached, true) => " (memcached, TLS)",
            (Language::Ssdb, false) => " (SSDB)",
            (Language::Ssdb, true) => " (SSDB, TLS)",
        })
    }
}

impl Entrance {
    /// Its TCP address and kind; `None` for a socket file.
    fn tcp(&self) -> Option<(SocketAddr, Kind)> {
        match self.endpoint {
            Endpoint::Tcp(address) => Some((address, self.kind)),
            Endpoint::Unix(_) => None,
        }
    }
}

/// What other threads ask of the acceptor.
enum Order {
    /// Accept from these too.
    Add(Vec<Entrance>),
    /// Stop listening on these addresses.
    Remove(Vec<(SocketAddr, Kind)>),
    /// End.
    Stop,
}

/// Reaches the acceptor from other threads.
#[derive(Clone)]
pub struct AcceptorHandle {
    orders: Arc<Mailbox<Order>>,
    /// The TCP addresses listened on. Locked while they change, so that two changes follow each other.
    addresses: Arc<Mutex<Vec<(SocketAddr, Kind)>>>,
}

impl AcceptorHandle {
    /// Has the acceptor end.
    pub fn stop(&self) {
        self.orders.send(Order::Stop);
    }

    /// Listens on exactly these TCP addresses from now on; connections stay. An optional address that cannot be had is
    /// left out.
    ///
    /// # Errors
    /// The address that cannot be listened on and why; everything is then as it was.
    pub fn move_to(&self, wanted: &[Place], backlog: i32) -> Result<(), (SocketAddr, io::Error)> {
        let mut addresses = self.addresses.lock();
        let mut added = Vec::new();
        for place in wanted.iter().filter(|place| !addresses.contains(&(place.address, place.kind))) {
            added.extend(place.listen(backlog).map_err(|error| (place.address, error))?);
        }
        let is_wanted = |(address, kind): &(SocketAddr, Kind)| {
            wanted.iter().any(|place| place.address == *address && place.kind == *kind)
        };
        let (kept, removed) = addresses.iter().copied().partition::<Vec<_>, _>(is_wanted);
        *addresses = kept.into_iter().chain(added.iter().filter_map(Entrance::tcp)).collect();
        self.orders.send(Order::Add(added));
        self.orders.send(Order::Remove(removed));
        Ok(())
    }
}

/// A TCP address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where.
    pub address: SocketAddr,
    /// Whether the server does without when this machine does not have the address.
    pub optional: bool,
    /// What its clients speak.
    pub kind: Kind,
}

impl Place {
    /// Listens there; `None` when it is optional and this machine does not have it.
    ///
    /// # Errors
    /// See [`listen_tcp`].
    pub fn listen(&self, backlog: i32) -> io::Result<Option<Entrance>> {
        match listen_tcp(self.address, backlog) {
            Ok(listener) => Ok(Some(Entrance { endpoint: Endpoint::Tcp(self.address), kind: self.kind, listener })),
            Err(error) if self.optional && error.kind() != ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Accepts connections, on a thread of its own.
///
/// The queue is edge-triggered: each listener that has woken is accepted from until it has no more. Accepting fails
/// when the process has no descriptor left; the connection then stays in the kernel's queue and is tried again after a
/// while.
pub struct Acceptor {
    poll: Poll,
    listeners: Slab<Entrance>,
    handle: AcceptorHandle,
}

/// Token of the orders; listeners count up from 0.
const ORDERS: Token = Token(usize::MAX);

/// Time until accepting is tried again when no descriptor is left.
const RETRY: Duration = Duration::from_millis(20);

impl Acceptor {
    /// Accepts from these listeners, once [`run`](Self::run) is called.
    ///
    /// # Errors
    /// When the operating system gives no event queue.
    pub fn new(listeners: Vec<Entrance>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), ORDERS)?;
        let addresses = listeners.iter().filter_map(Entrance::tcp).collect();
        let handle = AcceptorHandle {
            orders: Arc::new(Mailbox::new(move || waker.wake())),
            addresses: Arc::new(Mutex::new(addresses)),
        };
        let mut acceptor = Self { poll, listeners: Slab::new(), handle };
        listeners.into_iter().try_for_each(|entrance| acceptor.add(entrance))?;
        Ok(acceptor)
    }

    /// How other threads reach it.
    pub fn handle(&self) -> AcceptorHandle {
        self.handle.clone()
    }

    /// Gives each accepted connection, and what its client speaks, to `deal`, until it is stopped.
    ///
    /// # Errors
    /// When the event queue fails. Errors of single connections are dropped with them.
    pub fn run(mut self, mut deal: impl FnMut(Socket, Kind)) -> io::Result<()> {
        let mut events = Events::with_capacity(64);
        let (mut orders, mut woken) = (Vec::new(), Vec::new());
        let mut again = false;
        loop {
            match self.poll.poll(&mut events, again.then_some(RETRY)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            }
            self.handle.orders.take(&mut orders);
            for order in orders.drain(..) {
                match order {
                    Order::Stop => return Ok(()),
                    Order::Add(listeners) => {
                        listeners.into_iter().try_for_each(|entrance| self.add(entrance))?;
                    }
                    Order::Remove(addresses) => {
                        self.listeners.retain(|_, entrance| entrance.tcp().is_none_or(|it| !addresses.contains(&it)));
                    }
                }
            }
            woken.clear();
            match again {
                true => woken.extend(self.listeners.iter().map(|(index, _)| index)),
                false => woken.extend(events.iter().map(|event| event.token().0)),
            }
            again = woken.iter().any(|index| !self.accept_all(*index, &mut deal));
        }
    }

    fn add(&mut self, mut entrance: Entrance) -> io::Result<()> {
        let place = self.listeners.vacant_entry();
        let token = Token(place.key());
        match &mut entrance.listener {
            Listener::Tcp(listener) => self.poll.registry().register(listener, token, Interest::READABLE)?,
            Listener::Unix(listener) => self.poll.registry().register(listener, token, Interest::READABLE)?,
        }
        place.insert(entrance);
        Ok(())
    }

    /// Accepts until there is nothing more; false when something is left that could not be taken.
    fn accept_all(&self, index: usize, deal: &mut impl FnMut(Socket, Kind)) -> bool {
        let Some(Entrance { listener, kind, .. }) = self.listeners.get(index) else { return true };
        loop {
            match listener.accept() {
                Ok(socket) => deal(socket, *kind),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(_) => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::thread;

    fn loopback() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    /// A listener on a free port, and its address.
    fn listener() -> (SocketAddr, Listener) {
        let listener = listen_tcp(loopback(), 16).unwrap();
        let Listener::Tcp(tcp) = &listener else { unreachable!() };
        (tcp.local_addr().unwrap(), listener)
    }

    /// Listening moves to other addresses while a connection stays, a place in use changes nothing, and the thread
    /// ends.
    #[test]
    fn moves_and_stops() {
        let (first, second, taken) = (listener(), listener(), listener());
        let (old, new) = (first.0, second.0);
        drop(second);
        let kind = Kind::plain(Language::Memcached);
        let endpoint = Endpoint::Tcp(old);
        let acceptor = Acceptor::new(vec![Entrance { endpoint, kind, listener: first.1 }]).unwrap();
        let handle = acceptor.handle();
        let thread = thread::spawn(move || {
            let mut sockets = Vec::new();
            acceptor.run(|mut socket, found| {
                assert_eq!(found, kind);
                socket.write_all(b"hello").unwrap();
                sockets.push(socket);
            })
        });
        let greeted = |address: SocketAddr| {
            let mut stream = TcpStream::connect(address)?;
            let mut hello = [0; 5];
            stream.read_exact(&mut hello)?;
            Ok::<_, io::Error>(stream)
        };
        let stays = greeted(old).unwrap();
        let place = |address| Place { address, optional: false, kind };
        let refused = handle.move_to(&[place(new), place(taken.0)], 16).unwrap_err();
        assert_eq!((refused.0, refused.1.kind()), (taken.0, ErrorKind::AddrInUse));
        greeted(old).unwrap();
        assert!(greeted(new).is_err(), "nothing has changed");
        handle.move_to(&[place(new), place(old)], 16).unwrap();
        greeted(old).unwrap();
        greeted(new).unwrap();
        handle.move_to(&[place(new)], 16).unwrap();
        // The old listener goes when its thread has read the order; what is still queued there may be reset.
        while greeted(old).is_ok() {}
        greeted(new).unwrap();
        assert!(stays.take_error().unwrap().is_none());
        handle.stop();
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn optional_places_may_be_missing() {
        let nowhere = "192.0.2.1:0".parse().unwrap();
        assert!(Place { address: nowhere, optional: true, kind: Kind::default() }.listen(16).unwrap().is_none());
        assert!(Place { address: nowhere, optional: false, kind: Kind::default() }.listen(16).is_err());
    }
}
