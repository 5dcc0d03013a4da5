//! A blocking connection for the work around a run: logging in, reading INFO, emptying the server.

use crate::error::{BenchError, Result};
use crate::resp::{write_array_header, write_bulk};
use base::random::Rng;
use proto::reply::{Parser, Value};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tls::{ClientConfig, ClientSocket};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Address {
    /// `host:port`; an IPv6 address stands in brackets.
    Tcp(String),
    /// A unix socket.
    Unix(PathBuf),
}

impl std::str::FromStr for Address {
    type Err = BenchError;

    /// `host:port`, `:port`, a bare port, or a path (anything with a slash).
    fn from_str(text: &str) -> Result<Self> {
        let path = text.strip_prefix("unix:").or_else(|| text.contains('/').then_some(text));
        if let Some(path) = path.filter(|path| !text.starts_with("tcp://") && !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let text = text.strip_prefix("tcp://").unwrap_or(text);
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let host = if host.is_empty() { "127.0.0.1" } else { host };
        match port.parse::<u16>() {
            Ok(port) if port > 0 => Ok(Self::Tcp(format!("{host}:{port}"))),
            _ => {
                Err(BenchError::Usage(format!("address `{text}`: expected HOST:PORT, a port, or the path of a socket")))
            }
        }
    }
}

impl Address {
    /// The host alone; `None` for a unix socket.
    pub fn host(&self) -> Option<&str> {
        let Self::Tcp(text) = self else { return None };
        let (host, _) = text.rsplit_once(':')?;
        Some(host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host))
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// How a connection uses TLS.
#[derive(Clone, Debug)]
pub struct Security {
    /// What is trusted, and what is shown.
    pub config: Arc<ClientConfig>,
    /// The name that the server's certificate has to carry.
    pub name: String,
}

impl PartialEq for Security {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.config, &other.config) && self.name == other.name
    }
}

impl Eq for Security {}

/// How to begin a new connection: its security, then the login.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Login {
    /// User name; `None` for the default user.
    pub user: Option<String>,
    /// Password; `None` sends no AUTH. Kept out of results.
    #[serde(skip)]
    pub password: Option<String>,
    /// Database number.
    pub database: u32,
    /// Speak RESP3.
    pub resp3: bool,
    /// TLS; `None` for a plain connection. Kept out of results.
    #[serde(skip)]
    pub security: Option<Security>,
}

/// An open socket.
#[derive(Debug)]
pub enum Socket {
    /// Over TCP, without Nagle's delay.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
    /// Over TCP with TLS.
    Tls(Box<ClientSocket>),
}

/// Timeout of a control command: a server may be loading or saving when it receives one.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks whether the other side has given up.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Timeout of a step of the handshake of TLS: a server that is loading takes part in it.
const HANDSHAKE: Duration = Duration::from_secs(10);

impl Socket {
    /// Connects, blocking.
    ///
    /// # Errors
    /// The operating system's reason.
    pub fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(text) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in text.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            stream.set_read_timeout(Some(PATIENCE))?;
                            return Ok(Self::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Ok(Self::Unix(stream))
            }
        }
    }

    /// Adds TLS to a connection over TCP.
    fn secured(self, security: &Security) -> io::Result<Self> {
        let Self::Tcp(stream) = self else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "TLS is for TCP: give a host and a port"));
        };
        stream.set_read_timeout(Some(HANDSHAKE))?;
        let socket = ClientSocket::open(stream, &security.name, Arc::clone(&security.config))?;
        socket.set_read_timeout(PATIENCE)?;
        Ok(Self::Tls(Box::new(socket)))
    }
}

impl Socket {
    /// Sets the longest wait of a read.
    fn set_read_timeout(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(patience)),
            Self::Unix(stream) => stream.set_read_timeout(Some(patience)),
            Self::Tls(stream) => stream.set_read_timeout(patience),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// A blocking connection.
#[derive(Debug)]
pub struct Client {
    address: Address,
    socket: Socket,
    replies: Parser,
}

impl Client {
    /// Connects and logs in.
    ///
    /// # Errors
    /// [`BenchError::Connect`], or [`BenchError::Login`] when the server wants other credentials.
    pub fn connect(address: &Address, login: &Login) -> Result<Self> {
        let failed = |source| BenchError::Connect { address: address.to_string(), source };
        let mut socket = Socket::connect(address).map_err(failed)?;
        if let Some(security) = &login.security {
            socket = socket.secured(security).map_err(failed)?;
        }
        let mut client = Self { address: address.clone(), socket, replies: Parser::new() };
        client.introduce(login)?;
        Ok(client)
    }

    fn introduce(&mut self, login: &Login) -> Result<()> {
        if let Some(password) = &login.password {
            let answer = match &login.user {
                Some(user) => self.ask(&["AUTH", user, password])?,
                None => self.ask(&["AUTH", password])?,
            };
            self.expect_login(&answer)?;
        }
        if login.resp3 {
            let answer = self.ask(&["HELLO", "3"])?;
            self.expect_login(&answer)?;
        }
        if login.database > 0 {
            self.must(&["SELECT", &login.database.to_string()])?;
        }
        Ok(())
    }

    fn expect_login(&self, answer: &Value) -> Result<()> {
        let Some(reply) = error_text(answer) else { return Ok(()) };
        let address = self.address.to_string();
        if reply.contains("AUTH") || reply.starts_with("WRONGPASS") {
            return Err(BenchError::Login { address, reply });
        }
        Err(BenchError::Refused { address, command: "the login".to_owned(), reply })
    }

    /// Checks that the server accepts commands without a further login.
    ///
    /// # Errors
    /// [`BenchError::Login`] if it does not; else as [`Self::ask`].
    pub fn check_login(&mut self) -> Result<()> {
        let answer = self.ask(&["PING"])?;
        match error_text(&answer) {
            Some(reply) if reply.starts_with("NOAUTH") => {
                Err(BenchError::Login { address: self.address.to_string(), reply })
            }
            Some(reply) if reply.starts_with("ERR max number of clients") => {
                let (address, command) = (self.address.to_string(), "PING".to_owned());
                Err(BenchError::Refused { address, command, reply })
            }
            _ => Ok(()),
        }
    }

    /// Passes the socket to an event loop. No unread bytes may remain on it.
    pub fn into_socket(self) -> Socket {
        debug_assert!(self.replies.is_idle());
        self.socket
    }

    /// Sends one command and reads its reply, errors included.
    ///
    /// # Errors
    /// When the connection breaks or the reply is not RESP.
    pub fn ask(&mut self, command: &[&str]) -> Result<Value> {
        let words: Vec<_> = command.iter().map(|word| word.as_bytes()).collect();
        self.ask_bytes(&words)
    }

    /// The same with arguments of any bytes.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_bytes(&mut self, command: &[&[u8]]) -> Result<Value> {
        self.send_command(command)?;
        self.reply()
    }

    /// Sends one command, whose arguments may be any bytes, and reads no reply.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn send_command(&mut self, command: &[&[u8]]) -> Result<()> {
        let mut request = Vec::new();
        write_array_header(&mut request, command.len());
        for word in command {
            write_bulk(&mut request, word);
        }
        self.send(&request)
    }

    /// Sends commands in one piece, and reads their replies, errors included. The caller bounds their number.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_all(&mut self, commands: &[Vec<Vec<u8>>]) -> Result<Vec<Value>> {
        let mut request = Vec::new();
        for command in commands {
            write_array_header(&mut request, command.len());
            command.iter().for_each(|word| write_bulk(&mut request, word));
        }
        self.send(&request)?;
        commands.iter().map(|_| self.reply()).collect()
    }

    /// Writes what `more` gives until it gives nothing, and passes each reply to `take` as soon as it is there, until
    /// that gives true. Neither side waits for the other. Ends too when everything is written and no reply has come for
    /// `patience`.
    ///
    /// # Errors
    /// As [`Self::ask`], and what `more` and `take` give.
    pub fn pipe(
        &mut self,
        more: &mut dyn FnMut() -> io::Result<Vec<u8>>,
        patience: Option<Duration>,
        take: &mut dyn FnMut(&Value) -> io::Result<bool>,
    ) -> Result<()> {
        let address = self.address.to_string();
        let broken = |source| BenchError::Connect { address: address.clone(), source };
        rustix::io::ioctl_fionbio(&self.socket, true).map_err(|error| broken(error.into()))?;
        let (mut bytes, mut written, mut is_all) = (Vec::new(), 0, false);
        let (mut room, mut heard) = (vec![0; 64 << 10], Instant::now());
        loop {
            if written == bytes.len() && !is_all {
                (bytes, written) = (more().map_err(broken)?, 0);
                (is_all, heard) = (bytes.is_empty(), Instant::now());
            }
            let mut moved = false;
            if written < bytes.len() {
                match self.socket.write(&bytes[written..]) {
                    Ok(length) => (written, moved) = (written + length, true),
                    Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(broken(error)),
                }
            }
            match self.socket.flush() {
                Err(error) if !is_timeout(&error) => return Err(broken(error)),
                _ => {}
            }
            match self.socket.read(&mut room) {
                Ok(0) => return Err(BenchError::Closed { address }),
                Ok(length) => {
                    (moved, heard) = (true, Instant::now());
                    self.replies.feed(&room[..length]);
                    let foreign = |error| broken(io::Error::new(io::ErrorKind::InvalidData, error));
                    while let Some(value) = self.replies.next_value().map_err(foreign)? {
                        if take(&value).map_err(broken)? {
                            return Ok(());
                        }
                    }
                }
                Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(error)),
            }
            if moved {
                continue;
            }
            if is_all && patience.is_some_and(|patience| heard.elapsed() >= patience) {
                return Ok(());
            }
            let wanted = if is_all { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
            match poll(&mut [PollFd::new(&self.socket, wanted)], Some(&LOOK_AGAIN)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(broken(error.into())),
            }
        }
    }

    /// The next reply or message; `None` if none is complete after `patience`.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn next_within(&mut self, patience: Duration) -> Result<Option<Value>> {
        let set = self.socket.set_read_timeout(patience);
        set.map_err(|source| BenchError::Connect { address: self.address.to_string(), source })?;
        match self.reply() {
            Ok(value) => Ok(Some(value)),
            Err(BenchError::Connect { source, .. }) if is_timeout(&source) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends `SET key value` with a value of `bytes` random bytes, generated and sent piece by piece.
    ///
    /// # Errors
    /// As [`Self::must`].
    pub fn set_random(&mut self, key: &str, bytes: u64, seed: u64) -> Result<()> {
        let mut request = Vec::new();
        write_array_header(&mut request, 3);
        write_bulk(&mut request, b"SET");
        write_bulk(&mut request, key.as_bytes());
        request.extend_from_slice(format!("${bytes}\r\n").as_bytes());
        self.send(&request)?;
        let (mut rng, mut piece, mut left) = (Rng::new(seed), vec![0; 1 << 20], bytes);
        while left > 0 {
            let length = left.min(piece.len() as u64);
            rng.fill(&mut piece[..length as usize]);
            self.send(&piece[..length as usize])?;
            left -= length;
        }
        self.send(b"\r\n")?;
        let answer = self.reply()?;
        match error_text(&answer) {
            None => Ok(()),
            Some(reply) => {
                let (address, command) = (self.address.to_string(), format!("SET of {bytes} bytes"));
                Err(BenchError::Refused { address, command, reply })
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.socket.write_all(bytes).map_err(|source| BenchError::Connect { address: self.address.to_string(), source })
    }

    /// Reads one reply, errors included.
    fn reply(&mut self) -> Result<Value> {
        let broken = |source| BenchError::Connect { address: self.address.to_string(), source };
        let mut buffer = [0; 4096];
        loop {
            let foreign = |error| broken(io::Error::new(io::ErrorKind::InvalidData, error));
            if let Some(value) = self.replies.next_value().map_err(foreign)? {
                return Ok(value);
            }
            match self.socket.read(&mut buffer) {
                Ok(0) => return Err(BenchError::Closed { address: self.address.to_string() }),
                Ok(length) => self.replies.feed(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(error)),
            }
        }
    }

    /// Sends one command and treats an error reply as an error.
    ///
    /// # Errors
    /// [`BenchError::Login`] for `NOAUTH`, [`BenchError::Refused`] for other error replies; else as [`Self::ask`].
    pub fn must(&mut self, command: &[&str]) -> Result<Value> {
        let answer = self.ask(command)?;
        let Some(reply) = error_text(&answer) else { return Ok(answer) };
        let address = self.address.to_string();
        if reply.starts_with("NOAUTH") {
            return Err(BenchError::Login { address, reply });
        }
        Err(BenchError::Refused { address, command: command.join(" "), reply })
    }

    /// One field of `INFO section`, such as `redis_version`; `None` if the server does not report it.
    pub fn info(&mut self, section: &str, field: &str) -> Option<String> {
        self.info_fields(section).ok()?.remove(field)
    }

    /// All fields of `INFO section`.
    ///
    /// # Errors
    /// As [`Self::must`].
    pub fn info_fields(&mut self, section: &str) -> Result<HashMap<String, String>> {
        let answer = self.must(&["INFO", section])?;
        let text = String::from_utf8_lossy(answer.as_bytes().unwrap_or_default());
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Ok(fields.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned())).collect())
    }

    /// The value of one setting; `None` where the server has no setting of that name.
    ///
    /// # Errors
    /// As [`Self::must`].
    pub fn setting(&mut self, name: &str) -> Result<Option<String>> {
        let answer = self.must(&["CONFIG", "GET", name])?;
        let value = match &answer {
            Value::Array(pair) => pair.get(1).and_then(Value::as_bytes),
            _ => None,
        };
        Ok(value.map(|value| String::from_utf8_lossy(value).into_owned()))
    }

    /// Keys in the database.
    ///
    /// # Errors
    /// As [`Self::must`].
    pub fn key_count(&mut self) -> Result<u64> {
        match self.must(&["DBSIZE"])? {
            Value::Integer(count) => Ok(count.max(0) as u64),
            other => Err(BenchError::Refused {
                address: self.address.to_string(),
                command: "DBSIZE".to_owned(),
                reply: format!("{other:?}"),
            }),
        }
    }
}

fn error_text(answer: &Value) -> Option<String> {
    answer.as_error().map(|text| String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let tcp = |text: &str| Address::Tcp(text.to_owned());
        assert_eq!("6379".parse::<Address>().unwrap(), tcp("127.0.0.1:6379"));
        assert_eq!(":6379".parse::<Address>().unwrap(), tcp("127.0.0.1:6379"));
        assert_eq!("db:1".parse::<Address>().unwrap(), tcp("db:1"));
        assert_eq!("tcp://[::1]:1".parse::<Address>().unwrap(), tcp("[::1]:1"));
        assert_eq!(tcp("[::1]:1").host(), Some("::1"));
        assert_eq!(tcp("db:1").host(), Some("db"));
        assert_eq!("unix:s".parse::<Address>().unwrap(), Address::Unix("s".into()));
        assert_eq!("/run/s".parse::<Address>().unwrap(), Address::Unix("/run/s".into()));
        for bad in ["", "host", "host:0", "host:99999"] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }
}
