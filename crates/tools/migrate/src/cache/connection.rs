//! One connection to a memcached, and the two requests that an import makes.

use super::Cache;
use crate::MigrateError;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Longest wait for a connection, and for bytes of a reply.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longest line of a reply: a name of 250 bytes, each of three characters, and the figures of its item.
const LINE_LEN_MAX: u64 = 4096;

/// Longest value: what memcached allows to be configured.
const VALUE_LEN_MAX: u64 = 1 << 30;

const READ_LEN: usize = 256 << 10;

/// An item that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub value: Vec<u8>,
    pub flags: u32,
    /// `None` for an item that does not expire.
    pub seconds_left: Option<i64>,
}

/// A connection that speaks the text protocol.
pub(super) struct Connection<S = TcpStream> {
    cache: Cache,
    stream: BufReader<S>,
}

impl Connection {
    pub fn open(cache: &Cache) -> Result<Self, MigrateError> {
        let opened = (cache.host.as_str(), cache.port).to_socket_addrs().and_then(|mut addresses| {
            let first = addresses.next().ok_or_else(|| io::Error::other("the name has no address"))?;
            let stream = TcpStream::connect_timeout(&first, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        });
        let stream = opened.map_err(|source| failed(cache, source))?;
        Ok(Self { cache: cache.clone(), stream: BufReader::with_capacity(READ_LEN, stream) })
    }
}

impl<S: Read + Write> Connection<S> {
    /// Asks for the names of all items, in the order of memcached's hash table: in that of its LRU lists, a name is
    /// missed whose item is moved to another list meanwhile. An early 1.6 has that order alone, and refuses the other.
    pub fn begin_dump(&mut self) -> Result<(), MigrateError> {
        self.send(b"lru_crawler metadump hash\r\n")?;
        let next = self.stream.fill_buf().map_err(|source| failed(&self.cache, source))?;
        // No name begins so, nor does the end.
        if next.first() != Some(&b'B') {
            return Ok(());
        }
        let line = self.line()?;
        if !line.starts_with(b"BADCLASS") {
            return Err(self.odd("names and their figures", &line));
        }
        self.send(b"lru_crawler metadump all\r\n")
    }

    /// The next name; `None` after the last one.
    pub fn next_name(&mut self) -> Result<Option<Vec<u8>>, MigrateError> {
        let line = self.line()?;
        if line == b"END" {
            return Ok(None);
        }
        let word = line.strip_prefix(b"key=").and_then(|rest| rest.split(|byte| *byte == b' ').next());
        match word.and_then(decode) {
            Some(name) => Ok(Some(name)),
            None => Err(self.odd("a name and its figures, or END", &line)),
        }
    }

    /// Asks for items. As many answers follow.
    pub fn ask(&mut self, names: &[Vec<u8>]) -> Result<(), MigrateError> {
        let mut requests = Vec::new();
        for name in names {
            requests.extend_from_slice(b"mg ");
            requests.extend_from_slice(name);
            requests.extend_from_slice(b" v f t\r\n");
        }
        self.send(&requests)
    }

    /// The next answer; `None` for an item that is gone.
    pub fn next_value(&mut self) -> Result<Option<Found>, MigrateError> {
        let line = self.line()?;
        if line == b"EN" {
            return Ok(None);
        }
        let Some((len, flags, seconds_left)) = head(&line) else {
            return Err(self.odd("VA or EN, as memcached 1.6 and later answer mg", &line));
        };
        let mut value = Vec::new();
        let read = (&mut self.stream).take(len + 2).read_to_end(&mut value);
        read.map_err(|source| failed(&self.cache, source))?;
        if !value.ends_with(b"\r\n") || value.len() as u64 != len + 2 {
            return Err(self.odd("a value of the length before it", &line));
        }
        value.truncate(value.len() - 2);
        Ok(Some(Found { value, flags, seconds_left }))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), MigrateError> {
        self.stream.get_mut().write_all(bytes).map_err(|source| failed(&self.cache, source))
    }

    fn line(&mut self) -> Result<Vec<u8>, MigrateError> {
        let mut line = Vec::new();
        let read = (&mut self.stream).take(LINE_LEN_MAX).read_until(b'\n', &mut line);
        read.map_err(|source| failed(&self.cache, source))?;
        if line.pop() != Some(b'\n') {
            return Err(failed(&self.cache, io::ErrorKind::UnexpectedEof.into()));
        }
        line.pop_if(|byte| *byte == b'\r');
        Ok(line)
    }

    fn odd(&self, expected: &'static str, line: &[u8]) -> MigrateError {
        let received = line.escape_ascii().to_string().chars().take(80).collect();
        MigrateError::CacheReply { cache: self.cache.to_string(), expected, received }
    }
}

fn failed(cache: &Cache, source: io::Error) -> MigrateError {
    MigrateError::CacheConnection { cache: cache.to_string(), source }
}

/// The head of a value: length, flags, seconds that are left.
fn head(line: &[u8]) -> Option<(u64, u32, Option<i64>)> {
    let mut words = std::str::from_utf8(line).ok()?.strip_prefix("VA ")?.split(' ').filter(|word| !word.is_empty());
    let len = words.next()?.parse().ok().filter(|len| *len <= VALUE_LEN_MAX)?;
    let (mut flags, mut seconds) = (0, -1);
    for word in words {
        match word.split_at_checked(1)? {
            ("f", digits) => flags = digits.parse().ok()?,
            ("t", digits) => seconds = digits.parse::<i64>().ok()?,
            _ => {}
        }
    }
    Some((len, flags, (seconds >= 0).then_some(seconds)))
}

/// A name as the dump has it: percent-encoded.
fn decode(word: &[u8]) -> Option<Vec<u8>> {
    let (mut name, mut rest) = (Vec::with_capacity(word.len()), word.iter());
    while let Some(byte) = rest.next() {
        let mut digit = || rest.next().and_then(|byte| char::from(*byte).to_digit(16));
        name.push(match byte {
            b'%' => (digit()? * 16 + digit()?) as u8,
            byte => *byte,
        });
    }
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one text, and takes everything.
    struct Canned(io::Cursor<Vec<u8>>);

    impl Read for Canned {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.0.read(room)
        }
    }

    impl Write for Canned {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn connection(replies: &str) -> Connection<Canned> {
        let cache = Cache { host: "h".into(), port: 1 };
        Connection { cache, stream: BufReader::with_capacity(7, Canned(io::Cursor::new(replies.into()))) }
    }

    #[test]
    fn a_memcached_without_the_order_of_the_table_is_asked_for_that_of_its_lists() {
        for replies in ["key=a exp=-1\r\nEND\r\n", "BADCLASS invalid class id\r\nkey=a exp=-1\r\nEND\r\n"] {
            let mut names = connection(replies);
            names.begin_dump().unwrap();
            assert_eq!(names.next_name().unwrap(), Some(b"a".to_vec()));
        }
        let told = connection("BUSY currently processing crawler request\r\n").begin_dump().unwrap_err().to_string();
        assert!(told.contains("expected names") && told.contains("BUSY"), "{told}");
    }

    #[test]
    fn names_are_decoded_up_to_the_end() {
        let dump = "key=a%20b exp=-1 la=1 cas=2 fetch=no cls=1 size=63\r\nkey=plain exp=1700000000 la=1\r\nEND\r\n";
        let mut names = connection(dump);
        assert_eq!(names.next_name().unwrap(), Some(b"a b".to_vec()));
        assert_eq!(names.next_name().unwrap(), Some(b"plain".to_vec()));
        assert_eq!(names.next_name().unwrap(), None);
        for reply in ["BUSY currently processing crawler request\r\n", "ERROR\r\n", "key=%2\r\n", "key= x\r\n"] {
            let told = connection(reply).next_name().unwrap_err().to_string();
            assert!(told.contains("h:1") && told.contains("expected a name"), "{told}");
        }
        assert!(connection("key=cut").next_name().is_err());
    }

    #[test]
    fn values_have_flags_and_times() {
        let mut values = connection("VA 4 f7 t-1\r\na\r\nb\r\nEN\r\nVA 0 f0 t90\r\n\r\nVA 2 f4294967295 t0\r\nxy\r\n");
        let found = |value: &[u8], flags, seconds_left| Some(Found { value: value.to_vec(), flags, seconds_left });
        assert_eq!(values.next_value().unwrap(), found(b"a\r\nb", 7, None));
        assert_eq!(values.next_value().unwrap(), None);
        assert_eq!(values.next_value().unwrap(), found(b"", 0, Some(90)));
        assert_eq!(values.next_value().unwrap(), found(b"xy", u32::MAX, Some(0)));
        for reply in ["ERROR\r\n", "VA x f0\r\n", "VA 4 f0 t-1\r\nab\r\n", "VA 2 f0 t-1\r\nabcd", "VA 99999999999\r\n"]
        {
            assert!(connection(reply).next_value().is_err(), "{reply}");
        }
    }
}
