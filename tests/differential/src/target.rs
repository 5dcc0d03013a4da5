//! What a server under comparison must be able to do, whatever it is: a process with a socket or a server in this
//! process driven by a clock of the test.

pub mod peers;
pub mod process;
#[cfg(test)]
pub mod toy;

use std::io;

/// Which server it is; decides which differences from the reference are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Valkey 9.1, the reference: no difference is accepted between two of them.
    Valkey,
    /// Redis 7.0, the second opinion: it may differ where [`differences`](crate::differences) says the peers do.
    Redis,
    /// This project's server: it may differ where the design demands it.
    Onggi,
}

impl Kind {
    /// The word that names it in environment variables, scripts and reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Valkey => "valkey",
            Kind::Redis => "redis",
            Kind::Onggi => "onggi",
        }
    }

    /// The kind named by `word`.
    pub fn from_name(word: &str) -> Option<Self> {
        [Kind::Valkey, Kind::Redis, Kind::Onggi].into_iter().find(|kind| kind.name() == word)
    }
}

/// How a target knows one of its connections; what scripts write as `{id:1}`, `{addr:1}` and `{laddr:1}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The number that CLIENT ID answers.
    pub id: Vec<u8>,
    /// The client's end, `ip:port`.
    pub address: Vec<u8>,
    /// The server's end, `ip:port`.
    pub local_address: Vec<u8>,
}

impl Identity {
    /// Reads the line that CLIENT INFO answers; fields that are missing stay empty.
    pub fn from_client_info(line: &[u8]) -> Self {
        let field = |name: &[u8]| {
            let mut words = line.split(|byte| byte.is_ascii_whitespace());
            words.find_map(|word| word.strip_prefix(name)).unwrap_or_default().to_vec()
        };
        Self { id: field(b"id="), address: field(b"addr="), local_address: field(b"laddr=") }
    }
}

/// What came back where a reply was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The bytes of one reply, with the pushes that came before it.
    Reply(Vec<u8>),
    /// The server closed the connection first.
    Closed,
    /// Nothing, or only part of a reply, within the time limit.
    Silence(Vec<u8>),
    /// Bytes that are no reply.
    Malformed(Vec<u8>),
}

/// A server that takes part. Connections are small numbers; each is opened before it is used.
pub trait Target {
    /// Which server it is.
    fn kind(&self) -> Kind;

    /// What reports call it, unique among the targets of a run.
    fn name(&self) -> &str;

    /// Opens connection `connection`, closing the one that had its number.
    ///
    /// # Errors
    /// When the server does not accept it: it has ended, or never came up.
    fn open(&mut self, connection: usize) -> io::Result<()>;

    /// How the server knows an open connection.
    fn identity(&self, connection: usize) -> &Identity;

    /// Sends bytes. A connection that is already closed is reported by the next [`receive`](Target::receive).
    fn send(&mut self, connection: usize, bytes: &[u8]);

    /// Waits for the next `replies` replies; after the first that is not [`Outcome::Reply`] the rest repeat it.
    fn receive(&mut self, connection: usize, replies: usize) -> Vec<Outcome>;

    /// Waits for the server to close the connection: [`Outcome::Closed`] if it does, with unread bytes as
    /// [`Outcome::Malformed`], and [`Outcome::Silence`] if it keeps the connection open.
    fn await_close(&mut self, connection: usize) -> Outcome;

    /// Ends the server whatever state it is in and starts it empty.
    ///
    /// # Errors
    /// When it does not come up again.
    fn restart(&mut self) -> io::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_come_from_the_line_of_client_info() {
        let line = b"id=7 addr=127.0.0.1:5000 laddr=127.0.0.1:6379 fd=8 name=\n";
        let identity = Identity::from_client_info(line);
        assert_eq!(identity.id, b"7");
        assert_eq!(identity.address, b"127.0.0.1:5000");
        assert_eq!(identity.local_address, b"127.0.0.1:6379");
    }
}
