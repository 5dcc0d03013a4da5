//! The server that receives a copy: requests, and the place after them, as one transaction.

use super::Target;
use super::place::KEY;
use crate::MigrateError;
use proto::reply::{Parser, Value};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use tls::{ClientConfig, Stream};

const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Longest wait for a reply: the server may wait for its disk.
const PATIENCE: Duration = Duration::from_secs(120);

const READ_LEN: usize = 64 << 10;

/// About the most bytes of a transaction, unless one value is larger, and the most requests.
const BATCH_BYTES: usize = 256 << 10;
const BATCH_REQUESTS: usize = 500;

/// Most arguments of a request that is made of rows which follow each other.
const ARGUMENTS_MAX: usize = 128;

/// Databases of a copy whose types have one each.
const DATABASES_APART: u32 = 4;

/// Requests of a transaction that was sent: each one's word and key.
type Sent = Vec<(&'static str, Vec<u8>)>;

/// A request that takes further arguments.
struct Open {
    word: &'static str,
    key: Vec<u8>,
    arguments: Vec<Vec<u8>>,
}

/// The connection, and the transaction that is collected.
pub(super) struct Receiver {
    name: String,
    /// The database of keys, and of the place.
    first: u32,
    /// Whether other types have databases of their own.
    is_separate: bool,
    /// The database that is selected behind what is collected.
    selected: u32,
    stream: Stream,
    parser: Parser,
    room: Vec<u8>,
    /// Complete requests.
    body: Vec<u8>,
    open: Option<Open>,
    open_bytes: usize,
    queued: Sent,
    sent: Option<Sent>,
    /// Requests that the server refused for the type of the key, and have not been asked for.
    refused: Vec<(String, String)>,
}

impl Receiver {
    /// Connects, logs in, and selects the database of keys.
    pub fn open(target: &Target, is_separate: bool, tls: Option<Arc<ClientConfig>>) -> Result<Self, MigrateError> {
        let place = &target.server;
        let opened = (place.host.as_str(), place.port).to_socket_addrs().and_then(|mut addresses| {
            let first = addresses.next().ok_or_else(|| io::Error::other("the name has no address"))?;
            let socket = TcpStream::connect_timeout(&first, CONNECT_WITHIN)?;
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Stream::open(socket, &place.host, tls)
        });
        let name = place.to_string();
        let stream = opened.map_err(|source| MigrateError::TargetConnection { target: name.clone(), source })?;
        let mut receiver = Self {
            name,
            first: target.database,
            is_separate,
            selected: target.database,
            stream,
            parser: Parser::new(),
            room: vec![0; READ_LEN],
            body: Vec::new(),
            open: None,
            open_bytes: 0,
            queued: Sent::new(),
            sent: None,
            refused: Vec::new(),
        };
        match (&place.user, &place.password) {
            (Some(user), Some(password)) => drop(receiver.ask(&[b"AUTH", user.as_bytes(), password.as_bytes()])?),
            (None, Some(password)) => drop(receiver.ask(&[b"AUTH", password.as_bytes()])?),
            _ => {}
        }
        // The last of them shows whether all are there.
        for database in receiver.databases().rev() {
            receiver.ask(&[b"SELECT", database.to_string().as_bytes()])?;
        }
        Ok(receiver)
    }

    /// The databases that receive rows.
    fn databases(&self) -> RangeInclusive<u32> {
        let more = if self.is_separate { DATABASES_APART - 1 } else { 0 };
        self.first..=self.first.saturating_add(more)
    }

    /// Sends a request for each of them, the first one last, and adds up the numbers of the replies.
    pub fn ask_each(&mut self, request: &[&[u8]]) -> Result<u64, MigrateError> {
        let mut sum = 0;
        for database in self.databases().rev() {
            self.ask(&[b"SELECT", database.to_string().as_bytes()])?;
            if let Value::Integer(number) = self.ask(request)? {
                sum += number.cast_unsigned();
            }
        }
        Ok(sum)
    }

    /// The database of a request.
    fn database_of(&self, word: &str) -> u32 {
        let number = match word {
            _ if !self.is_separate => 0,
            "HSET" | "HDEL" => 1,
            "ZADD" | "ZREM" => 2,
            "RPUSH" | "LPUSH" | "RPOP" | "LPOP" | "LSET" | "LTRIM" => 3,
            _ => 0,
        };
        self.first.saturating_add(number)
    }

    /// Lets what follows be about a database.
    fn select(&mut self, database: u32) {
        if self.selected != database {
            self.selected = database;
            let number = database.to_string().into_bytes();
            put(&mut self.body, &[b"SELECT", &number]);
            self.queued.push(("SELECT", number));
        }
    }

    /// Sends one request and waits for its reply. Nothing is being collected.
    pub fn ask(&mut self, request: &[&[u8]]) -> Result<Value, MigrateError> {
        let mut bytes = Vec::new();
        put(&mut bytes, request);
        self.write(&bytes)?;
        match self.reply()? {
            Value::Error(error) => {
                let word = String::from_utf8_lossy(request.first().copied().unwrap_or_default()).into_owned();
                Err(self.refusal(word, &error))
            }
            reply => Ok(reply),
        }
    }

    /// Adds a request to the transaction.
    pub fn add(&mut self, word: &'static str, key: &[u8], arguments: &[&[u8]]) {
        self.close();
        self.select(self.database_of(word));
        let mut request = vec![word.as_bytes(), key];
        request.extend_from_slice(arguments);
        put(&mut self.body, &request);
        self.queued.push((word, key.to_vec()));
    }

    /// Adds a request, or its arguments to the request before it with the same word and key.
    pub fn join(&mut self, word: &'static str, key: &[u8], arguments: &[&[u8]]) {
        let fits = |open: &Open| open.word == word && open.key == key && open.arguments.len() < ARGUMENTS_MAX;
        if !self.open.as_ref().is_some_and(fits) {
            self.close();
        }
        let open = self.open.get_or_insert_with(|| Open { word, key: key.to_vec(), arguments: Vec::new() });
        for argument in arguments {
            self.open_bytes += argument.len();
            open.arguments.push(argument.to_vec());
        }
    }

    fn close(&mut self) {
        if let Some(Open { word, key, arguments }) = self.open.take() {
            self.open_bytes = 0;
            self.select(self.database_of(word));
            let mut request = vec![word.as_bytes(), key.as_slice()];
            request.extend(arguments.iter().map(Vec::as_slice));
            put(&mut self.body, &request);
            self.queued.push((word, key));
        }
    }

    /// Whether the transaction is large enough.
    pub fn is_full(&self) -> bool {
        self.body.len() + self.open_bytes >= BATCH_BYTES || self.queued.len() >= BATCH_REQUESTS
    }

    /// Whether nothing is collected.
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.open.is_none()
    }

    /// Sends what is collected, with these changes of the place, once the transaction before it is done.
    pub fn commit(&mut self, place: &[(&[u8], &[u8])], removed: &[Vec<u8>]) -> Result<(), MigrateError> {
        self.close();
        if self.queued.is_empty() && place.is_empty() && removed.is_empty() {
            return Ok(());
        }
        self.select(self.first);
        self.settle()?;
        let mut bytes = Vec::with_capacity(self.body.len() + 256);
        put(&mut bytes, &[b"MULTI"]);
        bytes.append(&mut self.body);
        let mut sent = std::mem::take(&mut self.queued);
        if !place.is_empty() {
            let mut request: Vec<&[u8]> = vec![b"HSET", KEY];
            request.extend(place.iter().flat_map(|(field, value)| [*field, *value]));
            put(&mut bytes, &request);
            sent.push(("HSET", KEY.to_vec()));
        }
        if !removed.is_empty() {
            let mut request: Vec<&[u8]> = vec![b"HDEL", KEY];
            request.extend(removed.iter().map(Vec::as_slice));
            put(&mut bytes, &request);
            sent.push(("HDEL", KEY.to_vec()));
        }
        put(&mut bytes, &[b"EXEC"]);
        self.write(&bytes)?;
        self.sent = Some(sent);
        Ok(())
    }

    /// Waits until the transaction that was sent is done.
    pub fn settle(&mut self) -> Result<(), MigrateError> {
        let Some(sent) = self.sent.take() else { return Ok(()) };
        let mut refusal = None;
        // MULTI, and each request, which is queued.
        for at in 0..=sent.len() {
            if let Value::Error(error) = self.reply()? {
                let word = at.checked_sub(1).and_then(|at| sent.get(at)).map_or("MULTI", |(word, _)| word);
                refusal.get_or_insert_with(|| self.refusal(word.to_owned(), &error));
            }
        }
        let replies = match self.reply()? {
            Value::Array(replies) if refusal.is_none() => replies,
            Value::Error(error) => return Err(refusal.unwrap_or_else(|| self.refusal("EXEC".to_owned(), &error))),
            _ => return Err(refusal.unwrap_or_else(|| self.refusal("EXEC".to_owned(), b"no array"))),
        };
        for (reply, (word, key)) in replies.iter().zip(sent) {
            if let Some(error) = reply.as_error() {
                let request = format!("{word} \"{}\"", inspect::text::escape(&key));
                self.refused.push((request, String::from_utf8_lossy(error).into_owned()));
            }
        }
        Ok(())
    }

    /// Requests of transactions whose other requests were run, with the server's errors.
    pub fn take_refused(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.refused)
    }

    fn refusal(&self, request: String, error: &[u8]) -> MigrateError {
        MigrateError::TargetRefused {
            target: self.name.clone(),
            request,
            reply: String::from_utf8_lossy(error).into_owned(),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), MigrateError> {
        self.stream.write_all(bytes).map_err(|source| self.lost(source))
    }

    fn reply(&mut self) -> Result<Value, MigrateError> {
        loop {
            let next = self.parser.next_value().map_err(|error| self.lost(io::Error::other(error)))?;
            if let Some(value) = next {
                return Ok(value);
            }
            match self.stream.read(&mut self.room) {
                Ok(0) => {
                    let ended = io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed");
                    return Err(self.lost(ended));
                }
                Ok(read) => self.parser.feed(self.room.get(..read).unwrap_or_default()),
                // The signal that asks for the end.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(error)),
            }
        }
    }

    fn lost(&self, source: io::Error) -> MigrateError {
        MigrateError::TargetConnection { target: self.name.clone(), source }
    }
}

/// A request, in Redis' protocol.
fn put(out: &mut Vec<u8>, request: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", request.len()).as_bytes());
    for argument in request {
        out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
}
