//! A session over one connection.

use crate::error::Error;
use crate::wire::{FRAME_BYTES_MAX, Frame, LENGTH_BYTES, Reader};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The shortest time that a server has to accept a connection.
const CONNECT_MIN: Duration = Duration::from_millis(500);

/// Paths of fired watches that are kept, each once. The client watches one; a server that sends others is damaged.
const FIRED_MAX: usize = 64;

/// Numbers of replies that answer no request.
const WATCH_FIRED: i32 = -1;
const PING: i32 = -2;

/// Numbers of requests.
mod op {
    pub(super) const CREATE: i32 = 1;
    pub(super) const DELETE: i32 = 2;
    pub(super) const EXISTS: i32 = 3;
    pub(super) const GET_DATA: i32 = 4;
    pub(super) const GET_CHILDREN: i32 = 8;
    pub(super) const SYNC: i32 = 9;
    pub(super) const PING: i32 = 11;
    pub(super) const CLOSE: i32 = -11;
}

/// All rights for everybody, as ARCUS and most tools create nodes.
const ALL_RIGHTS: i32 = 31;

/// How a session is known to the servers, across connections.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    id: i64,
    password: Vec<u8>,
    /// The newest change that was seen. A server that has not seen it yet refuses the connection.
    seen: i64,
}

/// How long a node lives, and what its name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is deleted.
    Persistent,
    /// Until the end of the session.
    Ephemeral,
    /// Until it is deleted; the server appends a growing number to the name.
    PersistentSequential,
}

/// An open connection, and the session on it.
#[derive(Debug)]
pub struct Session {
    stream: TcpStream,
    server: String,
    identity: Identity,
    timeout: Duration,
    next_number: i32,
    /// Received bytes that are not a whole frame yet.
    received: Vec<u8>,
    heard_at: Instant,
    sent_at: Instant,
    /// Paths whose watches have fired while a reply was waited for.
    fired: Vec<String>,
}

impl Session {
    /// Connects to the first of these `host:port` that answers, and begins a session, or continues the one of
    /// `identity`. A server may shorten or lengthen the time after which it ends a silent session.
    ///
    /// # Errors
    /// No server answers, or [`Error::Expired`]. Blocks for a third of `timeout` for each server, at most.
    pub fn open(servers: &[String], identity: &Identity, timeout: Duration) -> Result<Self, Error> {
        let mut last = Error::NoServer;
        for server in servers {
            match Self::open_at(server, identity, timeout) {
                Err(error) if error.is_disconnection() => last = error,
                opened => return opened,
            }
        }
        Err(last)
    }

    fn open_at(server: &str, identity: &Identity, timeout: Duration) -> Result<Self, Error> {
        let failed = |source| Error::Connection { server: server.to_owned(), source };
        let patience = timeout.checked_div(3).unwrap_or(timeout).max(CONNECT_MIN);
        let stream = connect(server, patience).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_write_timeout(Some(patience)).map_err(failed)?;
        let now = Instant::now();
        let mut session = Self {
            stream,
            server: server.to_owned(),
            identity: identity.clone(),
            timeout: patience,
            next_number: 1,
            received: Vec::new(),
            heard_at: now,
            sent_at: now,
            fired: Vec::new(),
        };
        let milliseconds = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let password = if identity.id == 0 { vec![0; 16] } else { identity.password.clone() };
        let hello = Frame::new().int(0).long(identity.seen).int(milliseconds).long(identity.id).bytes(&password);
        session.send(hello.flag(false))?;
        let frame = session.frame_within(patience)?;
        session.greeted(&frame)?;
        Ok(session)
    }

    /// Takes the reply to the first frame.
    fn greeted(&mut self, frame: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(frame);
        let read = (|| {
            let _version = reader.int()?;
            Some((reader.int()?, reader.long()?, reader.bytes()?.to_vec()))
        })();
        let (milliseconds, id, password) = read.ok_or_else(|| self.damaged(frame))?;
        let Some(milliseconds) = u64::try_from(milliseconds).ok().filter(|time| *time > 0) else {
            return Err(Error::Expired);
        };
        self.timeout = Duration::from_millis(milliseconds);
        (self.identity.id, self.identity.password) = (id, password);
        Ok(())
    }

    /// What to continue with at another connection.
    pub fn identity(&self) -> Identity {
        self.identity.clone()
    }

    /// After how long a silence the servers end the session.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The server that is connected to.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Creates a node, and gives its path.
    ///
    /// # Errors
    /// [`Error::NodeExists`], [`Error::NoNode`] when it has no parent, and those of every request.
    pub fn create(&mut self, path: &str, data: &[u8], lifetime: Lifetime) -> Result<String, Error> {
        let flags = match lifetime {
            Lifetime::Persistent => 0,
            Lifetime::Ephemeral => 1,
            Lifetime::PersistentSequential => 2,
        };
        let body = |frame: Frame| {
            let rights = frame.bytes(path.as_bytes()).bytes(data).int(1).int(ALL_RIGHTS);
            rights.bytes(b"world").bytes(b"anyone").int(flags)
        };
        let reply = self.request(op::CREATE, path, body)?;
        Reader(&reply).text().ok_or_else(|| self.damaged(&reply))
    }

    /// Deletes a node, of any version.
    ///
    /// # Errors
    /// As [`Session::create`].
    pub fn delete(&mut self, path: &str) -> Result<(), Error> {
        self.request(op::DELETE, path, |frame| frame.bytes(path.as_bytes()).int(-1)).map(drop)
    }

    /// The names of a node's children. With `watch`, [`Session::wait`] gives the path when they change.
    ///
    /// # Errors
    /// [`Error::NoNode`], and those of every request.
    pub fn children(&mut self, path: &str, watch: bool) -> Result<Vec<String>, Error> {
        let reply = self.request(op::GET_CHILDREN, path, |frame| frame.bytes(path.as_bytes()).flag(watch))?;
        Reader(&reply).texts().ok_or_else(|| self.damaged(&reply))
    }

    /// The data of a node.
    ///
    /// # Errors
    /// As [`Session::children`].
    pub fn data(&mut self, path: &str) -> Result<Vec<u8>, Error> {
        let reply = self.request(op::GET_DATA, path, |frame| frame.bytes(path.as_bytes()).flag(false))?;
        let data = Reader(&reply).bytes().map(<[u8]>::to_vec);
        data.ok_or_else(|| self.damaged(&reply))
    }

    /// Whether this session owns the node, which goes with it.
    ///
    /// # Errors
    /// As [`Session::children`].
    pub fn owns(&mut self, path: &str) -> Result<bool, Error> {
        let reply = self.request(op::EXISTS, path, |frame| frame.bytes(path.as_bytes()).flag(false))?;
        let mut stat = Reader(&reply);
        let owner = (|| {
            // Two changes, two times, and three versions stand before the owner.
            for _ in 0..4 {
                stat.long()?;
            }
            for _ in 0..3 {
                stat.int()?;
            }
            stat.long()
        })();
        owner.map(|owner| owner == self.identity.id).ok_or_else(|| self.damaged(&reply))
    }

    /// Has the server see all changes below the path that others have seen.
    ///
    /// # Errors
    /// Those of every request.
    pub fn sync(&mut self, path: &str) -> Result<(), Error> {
        self.request(op::SYNC, path, |frame| frame.bytes(path.as_bytes())).map(drop)
    }

    /// Waits for a watch to fire, this long at most, and gives its path. Keeps the session alive meanwhile.
    ///
    /// # Errors
    /// The connection is lost: also when the server has been silent for two thirds of the session's time.
    pub fn wait(&mut self, time: Duration) -> Result<Option<String>, Error> {
        if let Some(path) = self.fired.pop() {
            return Ok(Some(path));
        }
        let third = self.timeout.checked_div(3).unwrap_or(self.timeout);
        if self.sent_at.elapsed() >= third {
            self.send(Frame::new().int(PING).int(op::PING))?;
        }
        if let Some(frame) = self.frame(time)? {
            self.took_unasked(&frame)?;
        }
        if self.heard_at.elapsed() >= third.saturating_mul(2) {
            return Err(self.lost(ErrorKind::TimedOut.into()));
        }
        Ok(self.fired.pop())
    }

    /// Ends the session: its ephemeral nodes go at once.
    ///
    /// # Errors
    /// The server was not reached; then they go when it has missed the session long enough.
    pub fn close(mut self) -> Result<(), Error> {
        self.request(op::CLOSE, "", |frame| frame).map(drop)
    }

    /// Sends a request and gives the body of its reply.
    fn request(&mut self, kind: i32, path: &str, body: impl FnOnce(Frame) -> Frame) -> Result<Vec<u8>, Error> {
        let number = self.next_number;
        self.next_number = self.next_number.checked_add(1).unwrap_or(1);
        self.send(body(Frame::new().int(number).int(kind)))?;
        let deadline = Instant::now().checked_add(self.timeout);
        loop {
            let left = deadline.map_or(self.timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
            let frame = self.frame_within(left)?;
            let mut reader = Reader(&frame);
            let head = (|| Some((reader.int()?, reader.long()?, reader.int()?)))();
            let (answered, change, code) = head.ok_or_else(|| self.damaged(&frame))?;
            if answered != number {
                self.took_unasked(&frame)?;
                continue;
            }
            self.identity.seen = self.identity.seen.max(change);
            return if code == 0 { Ok(reader.0.to_vec()) } else { Err(Error::of(code, path)) };
        }
    }

    /// Takes a frame that answers no request: a watch, or the reply to a ping.
    fn took_unasked(&mut self, frame: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(frame);
        let number = reader.int().ok_or_else(|| self.damaged(frame))?;
        if number != WATCH_FIRED {
            return Ok(());
        }
        let event = (|| {
            let (_change, _code) = (reader.long()?, reader.int()?);
            let (_kind, _state) = (reader.int()?, reader.int()?);
            reader.text()
        })();
        let path = event.ok_or_else(|| self.damaged(frame))?;
        if !self.fired.contains(&path) && self.fired.len() < FIRED_MAX {
            self.fired.push(path);
        }
        Ok(())
    }

    fn send(&mut self, frame: Frame) -> Result<(), Error> {
        self.stream.write_all(&frame.finish()).map_err(|error| self.lost(error))?;
        self.sent_at = Instant::now();
        Ok(())
    }

    /// The next frame, which has to come within this time.
    fn frame_within(&mut self, time: Duration) -> Result<Vec<u8>, Error> {
        self.frame(time)?.ok_or_else(|| self.lost(ErrorKind::TimedOut.into()))
    }

    /// The next frame; `None` when none has come within this time.
    fn frame(&mut self, time: Duration) -> Result<Option<Vec<u8>>, Error> {
        let deadline = Instant::now().checked_add(time);
        loop {
            if let Some(frame) = self.whole_frame()? {
                self.heard_at = Instant::now();
                return Ok(Some(frame));
            }
            let left = deadline.map_or(time, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left)).map_err(|error| self.lost(error))?;
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(self.lost(ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.received.extend(bytes.get(..count).unwrap_or_default()),
                Err(error) if is_for_now(&error) => {}
                Err(error) => return Err(self.lost(error)),
            }
        }
    }

    /// Takes a whole frame out of what was received.
    fn whole_frame(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let Some(length) = Reader(&self.received).int() else { return Ok(None) };
        let length = usize::try_from(length).ok().filter(|length| *length <= FRAME_BYTES_MAX);
        let length = length.ok_or_else(|| self.damaged(&self.received))?;
        let end = length.saturating_add(LENGTH_BYTES);
        if self.received.len() < end {
            return Ok(None);
        }
        let rest = self.received.split_off(end);
        let mut frame = std::mem::replace(&mut self.received, rest);
        frame.drain(..LENGTH_BYTES);
        Ok(Some(frame))
    }

    fn lost(&self, source: io::Error) -> Error {
        Error::Connection { server: self.server.clone(), source }
    }

    fn damaged(&self, frame: &[u8]) -> Error {
        Error::Frame { server: self.server.clone(), bytes: frame.len() }
    }
}

fn is_for_now(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Connects to one of the addresses of a name.
fn connect(server: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::from(ErrorKind::NotFound);
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests;
