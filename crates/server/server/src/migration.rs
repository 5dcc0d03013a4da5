//! Takes keys to other servers for MIGRATE: connects, logs in, and has each key stored there by RESTORE.
//!
//! K1. At most [`THREADS_MAX`] threads do this, and none when there is nothing to do. More migrations wait in a
//!     queue.
//! K2. A migration takes as long as the other server answers each step within its time; a worker never waits for it.
//! K3. Each migration has a connection of its own, with TLS if `tls-replication` says so when the migration leaves.

use command::work::remote::{Migration, Migrator, SendOutcome, Sending, SentKey};
use parking_lot::Mutex;
use proto::reply::{Parser, Value};
use rdb::WriteError;
use std::collections::VecDeque;
use std::io::{self, BufWriter, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tls::{Contexts, Stream};

/// Migrations on their way at once.
const THREADS_MAX: usize = 8;
/// Keys that are sent before their answers are looked at.
const UNANSWERED_MAX: usize = 256;
const SEND_BYTES: usize = 64 << 10;
/// Bytes of an answer, which is a word or an error.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// All migrations of a server.
pub struct Migrations {
    queue: Arc<Mutex<Queue>>,
    tls: Arc<Contexts>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<Sending>>,
    threads: usize,
}

impl Migrations {
    /// Migrations whose connections use TLS if this has a configuration for them.
    pub fn new(tls: Arc<Contexts>) -> Self {
        Self { queue: Arc::default(), tls }
    }
}

impl Migrator for Migrations {
    fn send(&self, sending: Arc<Sending>) {
        let mut queue = self.queue.lock();
        queue.waiting.push_back(sending);
        if queue.threads == THREADS_MAX {
            return;
        }
        queue.threads += 1;
        drop(queue);
        let (own, tls) = (self.queue.clone(), self.tls.clone());
        if let Err(error) = thread::Builder::new().name("migration".into()).spawn(move || work(&own, &tls)) {
            let mut queue = self.queue.lock();
            queue.threads -= 1;
            // Without any thread none would take it.
            let left = if queue.threads == 0 { std::mem::take(&mut queue.waiting) } else { VecDeque::new() };
            drop(queue);
            let failure = format!("beginning: {error}");
            left.iter().for_each(|sending| {
                sending.end(SendOutcome { failure: Some(failure.clone()), ..SendOutcome::default() })
            });
        }
    }
}

fn work(queue: &Mutex<Queue>, tls: &Contexts) {
    loop {
        let sending = {
            let mut queue = queue.lock();
            let Some(sending) = queue.waiting.pop_front() else {
                queue.threads -= 1;
                return;
            };
            sending
        };
        let mut outcome = SendOutcome::default();
        if catch_unwind(AssertUnwindSafe(|| send(&sending.migration, tls, &mut outcome))).is_err() {
            outcome.failure = Some("by a bug of this server, which its log tells more about".into());
        }
        sending.end(outcome);
    }
}

fn send(migration: &Migration, tls: &Contexts, outcome: &mut SendOutcome) {
    let target = format!("{}:{}", migration.host, migration.port);
    let failure = match connect(migration, tls) {
        Err(error) => Some(format!("connecting to {target}: {}", told(&error))),
        Ok(socket) => match exchange(&socket, migration, outcome) {
            Ok(()) => None,
            Err(Failure::Packing(error)) => Some(format!("packing a key for {target}: {error}")),
            Err(Failure::Writing(error)) => Some(format!("writing to {target}: {}", told(&error))),
            Err(Failure::Reading(error)) => Some(format!("reading from {target}: {}", told(&error))),
        },
    };
    outcome.failure = failure;
}

/// An error, with what the system calls a time that has passed in words.
fn told(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer within the time given".into(),
        _ => error.to_string(),
    }
}

fn connect(migration: &Migration, tls: &Contexts) -> io::Result<Stream> {
    let port: u16 = migration.port.parse().map_err(|_| io::Error::other("the port is not a number below 65536"))?;
    let time = Duration::from_millis(migration.timeout_ms);
    let mut failed = io::Error::other("the name has no address");
    for address in (&migration.host[..], port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, time) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(time))?;
                socket.set_write_timeout(Some(time))?;
                return Stream::open(socket, &migration.host, tls.client());
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

enum Failure {
    Packing(WriteError),
    Writing(io::Error),
    Reading(io::Error),
}

/// Sends everything, and takes note of what the other server has. What it answered before a failure counts.
fn exchange(socket: &Stream, migration: &Migration, outcome: &mut SendOutcome) -> Result<(), Failure> {
    let mut to = BufWriter::with_capacity(SEND_BYTES, socket.clone());
    let mut from = Answers { socket: socket.clone(), parser: Parser::new(), unread: 0 };
    let mut greeting = Vec::new();
    if !migration.login.is_empty() {
        let mut words: Vec<&[u8]> = vec![b"AUTH"];
        words.extend(migration.login.iter().map(Vec::as_slice));
        greeting.push(words);
    }
    let db = migration.db.to_string();
    greeting.push(vec![b"SELECT", db.as_bytes()]);
    for words in &greeting {
        request(&mut to, words).map_err(Failure::Writing)?;
    }
    to.flush().map_err(Failure::Writing)?;
    // Nothing is sent to a database that was not chosen.
    let is_welcome = greeting.iter().try_fold(true, |is_welcome, _| Ok(from.is_ok(outcome)? && is_welcome));
    if !is_welcome.map_err(Failure::Reading)? {
        return Ok(());
    }
    for (at, sent) in migration.keys.iter().enumerate() {
        let payload = sent.content.payload().map_err(Failure::Packing)?;
        restore(&mut to, sent, &payload).map_err(Failure::Writing)?;
        drop(payload);
        let sent = at + 1;
        if sent - outcome.is_there.len() >= UNANSWERED_MAX {
            to.flush().map_err(Failure::Writing)?;
            while sent - outcome.is_there.len() > UNANSWERED_MAX / 2 {
                from.note_key(outcome)?;
            }
        }
    }
    to.flush().map_err(Failure::Writing)?;
    while outcome.is_there.len() < migration.keys.len() {
        from.note_key(outcome)?;
    }
    Ok(())
}

fn restore(to: &mut impl Write, sent: &SentKey, payload: &[u8]) -> io::Result<()> {
    let ttl = sent.ttl_ms.to_string();
    let mut words: Vec<&[u8]> = vec![b"RESTORE", &sent.key, ttl.as_bytes(), payload];
    if sent.replace {
        words.push(b"REPLACE");
    }
    request(to, &words)
}

fn request(to: &mut impl Write, words: &[&[u8]]) -> io::Result<()> {
    write!(to, "*{}\r\n", words.len())?;
    for word in words {
        write!(to, "${}\r\n", word.len())?;
        to.write_all(word)?;
        to.write_all(b"\r\n")?;
    }
    Ok(())
}

/// What the other server answers.
struct Answers {
    socket: Stream,
    parser: Parser,
    /// Bytes read of the answer that is not whole yet.
    unread: usize,
}

impl Answers {
    /// Whether the next answer is good; if it is an error, the first such is kept.
    fn is_ok(&mut self, outcome: &mut SendOutcome) -> io::Result<bool> {
        match self.next()? {
            Value::Simple(_) => Ok(true),
            Value::Error(text) => {
                outcome.refusal.get_or_insert(text);
                Ok(false)
            }
            _ => Err(io::Error::other("the answer is neither a word nor an error: is it a server of this kind?")),
        }
    }

    fn note_key(&mut self, outcome: &mut SendOutcome) -> Result<(), Failure> {
        let is_there = self.is_ok(outcome).map_err(Failure::Reading)?;
        outcome.is_there.push(is_there);
        Ok(())
    }

    fn next(&mut self) -> io::Result<Value> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(value) = self.parser.next_value().map_err(io::Error::other)? {
                self.unread = 0;
                return Ok(value);
            }
            if self.unread > ANSWER_BYTES_MAX {
                return Err(io::Error::other("an answer is longer than 64 KiB"));
            }
            match self.socket.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => {
                    self.parser.feed(&buffer[..count]);
                    self.unread += count;
                }
            }
        }
    }
}
