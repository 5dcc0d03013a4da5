//! A server that sends back what it receives. It is the lower bound for every server, because it pays only for the
//! kernel's work. A RESP request is an array of bulk strings, and so also a RESP reply: the generator can load it.

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::collections::HashMap;
use std::io::{self, Read, Write};

const LISTENER: Token = Token(0);
const READ_BUFFER_BYTES: usize = 64 << 10;

/// Serves forever on the requested number of threads; accepted connections are distributed round-robin.
///
/// # Errors
/// When the loop cannot be set up, or the listener fails.
pub fn serve(listener: std::net::TcpListener, threads: usize) -> io::Result<()> {
    let mut mailboxes = Vec::new();
    for _ in 1..threads.max(1) {
        let poll = Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), LISTENER)?;
        let (sender, receiver) = std::sync::mpsc::channel();
        mailboxes.push((sender, waker));
        std::thread::spawn(move || Loop::new(poll).run(|accepted| accepted.extend(receiver.try_iter())));
    }
    listener.set_nonblocking(true)?;
    let mut listener = TcpListener::from_std(listener);
    let poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut turn = 0;
    Loop::new(poll).run(|accepted| {
        while let Ok((stream, _)) = listener.accept() {
            let own = turn % (mailboxes.len() + 1);
            turn += 1;
            match own.checked_sub(1).map(|other| &mailboxes[other]) {
                None => accepted.push(stream),
                Some((sender, waker)) => {
                    // A thread that ended has dropped its receiver; then the connection is closed here.
                    if sender.send(stream).is_ok() {
                        let _ = waker.wake();
                    }
                }
            }
        }
    })
}

struct Loop {
    poll: Poll,
    connections: HashMap<usize, Connection>,
    next: usize,
}

struct Connection {
    stream: TcpStream,
    /// Bytes that the peer has not received yet; nothing more is read until it has.
    unsent: Vec<u8>,
}

impl Loop {
    fn new(poll: Poll) -> Self {
        Self { poll, connections: HashMap::new(), next: 1 }
    }

    /// `accept` puts new connections into the list when the listener or the mailbox has some.
    fn run(mut self, mut accept: impl FnMut(&mut Vec<TcpStream>)) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        let mut accepted = Vec::new();
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            for event in &events {
                if event.token() == LISTENER {
                    accept(&mut accepted);
                    for stream in accepted.drain(..) {
                        self.next += 1;
                        let mut connection = Connection { stream, unsent: Vec::new() };
                        connection.stream.set_nodelay(true)?;
                        let interest = Interest::READABLE | Interest::WRITABLE;
                        self.poll.registry().register(&mut connection.stream, Token(self.next), interest)?;
                        self.connections.insert(self.next, connection);
                    }
                    continue;
                }
                let id = event.token().0;
                let closed = self
                    .connections
                    .get_mut(&id)
                    .is_some_and(|each| each.echo(&mut buffer, event.is_read_closed()).is_err());
                if closed {
                    self.connections.remove(&id);
                }
            }
        }
    }
}

impl Connection {
    /// Sends back everything available. An error means that the connection has ended. `closed` means that the end of
    /// the stream came with the event, so a short read is not the last one.
    fn echo(&mut self, buffer: &mut [u8], closed: bool) -> io::Result<()> {
        loop {
            if !self.unsent.is_empty() {
                let unsent = std::mem::take(&mut self.unsent);
                self.send(&unsent)?;
                if !self.unsent.is_empty() {
                    return Ok(());
                }
            }
            match self.stream.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => {
                    self.send(&buffer[..length])?;
                    if length < buffer.len() && !closed && self.unsent.is_empty() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent = bytes.to_vec();
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
