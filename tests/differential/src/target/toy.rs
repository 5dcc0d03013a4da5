//! A server of a few lines for the tests of this crate: PING, SET, GET, FLUSHALL, MULTI, EXEC and SCAN over a map, with
//! defects on request. What it does not know it refuses like any other server.

use std::collections::BTreeMap;
use std::io;

use super::{Identity, Kind, Outcome, Target};
use crate::resp;

/// What is wrong with a toy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Nothing.
    None,
    /// GET loses the last byte of values longer than three.
    ShortReads,
    /// SET of the key `lost` answers OK and stores nothing.
    LostWrites,
    /// GET of the key `hang` is never answered.
    Hangs,
}

/// The server.
#[derive(Debug)]
pub struct Toy {
    kind: Kind,
    defect: Defect,
    data: BTreeMap<Vec<u8>, Vec<u8>>,
    /// By connection, the replies not yet read.
    replies: BTreeMap<usize, Vec<Outcome>>,
    identity: Identity,
}

impl Toy {
    /// A toy that passes for a server of this kind.
    pub fn new(kind: Kind, defect: Defect) -> Self {
        Self { kind, defect, data: BTreeMap::new(), replies: BTreeMap::new(), identity: Identity::default() }
    }

    fn answer(&mut self, words: &[Vec<u8>]) -> Outcome {
        let name = words[0].to_ascii_uppercase();
        let bulk = |bytes: &[u8]| [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        let reply = match (&name[..], &words[1..]) {
            (b"PING", _) => b"+PONG\r\n".to_vec(),
            (b"FLUSHALL", _) => {
                self.data.clear();
                b"+OK\r\n".to_vec()
            }
            (b"SET", [key, value]) => {
                if !(self.defect == Defect::LostWrites && key == b"lost") {
                    self.data.insert(key.clone(), value.clone());
                }
                b"+OK\r\n".to_vec()
            }
            (b"GET", [key]) if self.defect == Defect::Hangs && key == b"hang" => return Outcome::Silence(Vec::new()),
            (b"GET", [key]) => match self.data.get(key) {
                Some(value) if self.defect == Defect::ShortReads && value.len() > 3 => bulk(&value[..value.len() - 1]),
                Some(value) => bulk(value),
                None => b"$-1\r\n".to_vec(),
            },
            (b"KEYS", _) => {
                let keys: Vec<Vec<u8>> = self.data.keys().cloned().collect();
                crate::request::encode(&keys)
            }
            (b"SCAN", _) => {
                let keys: Vec<Vec<u8>> = self.data.keys().cloned().collect();
                [b"*2\r\n$1\r\n0\r\n".to_vec(), crate::request::encode(&keys)].concat()
            }
            _ => b"-ERR unknown command\r\n".to_vec(),
        };
        Outcome::Reply(reply)
    }
}

impl Target for Toy {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn name(&self) -> &str {
        self.kind.name()
    }

    fn open(&mut self, connection: usize) -> io::Result<()> {
        self.replies.insert(connection, Vec::new());
        Ok(())
    }

    fn identity(&self, _connection: usize) -> &Identity {
        &self.identity
    }

    fn send(&mut self, connection: usize, bytes: &[u8]) {
        let mut rest = bytes;
        while let Ok((value, length)) = resp::parse(rest) {
            let items = value.items().unwrap_or_default();
            let words: Vec<Vec<u8>> = items.iter().filter_map(|item| item.text()).map(<[u8]>::to_vec).collect();
            let outcome = self.answer(&words);
            self.replies.entry(connection).or_default().push(outcome);
            rest = &rest[length..];
        }
    }

    fn receive(&mut self, connection: usize, replies: usize) -> Vec<Outcome> {
        let waiting = self.replies.entry(connection).or_default();
        waiting.drain(..replies.min(waiting.len())).collect()
    }

    fn await_close(&mut self, _connection: usize) -> Outcome {
        Outcome::Silence(Vec::new())
    }

    fn restart(&mut self) -> io::Result<()> {
        self.data.clear();
        self.replies.clear();
        Ok(())
    }
}
