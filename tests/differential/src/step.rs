//! What a run does, one step after another: requests on numbered connections, in a form that prints as a script.

use crate::request;
use crate::target::{Identity, Kind, Target};
use crate::text;

/// One argument of a request. What a server chose itself stands as a placeholder, filled in for each target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// These bytes.
    Bytes(Vec<u8>),
    /// `{id:N}`, the id of connection N.
    Id(usize),
    /// `{addr:N}`, the client's address of connection N.
    Address(usize),
    /// `{laddr:N}`, the server's address of connection N.
    LocalAddress(usize),
}

impl Argument {
    /// The bytes this argument is for one target.
    pub fn resolve(&self, target: &dyn Target) -> Vec<u8> {
        let of = |connection: usize, field: fn(&Identity) -> &Vec<u8>| field(target.identity(connection)).clone();
        match self {
            Argument::Bytes(bytes) => bytes.clone(),
            Argument::Id(connection) => of(*connection, |identity| &identity.id),
            Argument::Address(connection) => of(*connection, |identity| &identity.address),
            Argument::LocalAddress(connection) => of(*connection, |identity| &identity.local_address),
        }
    }

    /// The argument that an unquoted word of a script stands for.
    pub fn from_word(word: &str) -> Self {
        let placeholder = || {
            let (name, connection) = word.strip_prefix('{')?.strip_suffix('}')?.split_once(':')?;
            let connection = connection.parse().ok()?;
            match name {
                "id" => Some(Argument::Id(connection)),
                "addr" => Some(Argument::Address(connection)),
                "laddr" => Some(Argument::LocalAddress(connection)),
                _ => None,
            }
        };
        placeholder().unwrap_or_else(|| Argument::Bytes(word.as_bytes().to_vec()))
    }
}

impl std::fmt::Display for Argument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Argument::Bytes(bytes) => f.write_str(&text::quoted(bytes)),
            Argument::Id(connection) => write!(f, "{{id:{connection}}}"),
            Argument::Address(connection) => write!(f, "{{addr:{connection}}}"),
            Argument::LocalAddress(connection) => write!(f, "{{laddr:{connection}}}"),
        }
    }
}

/// What one step does on its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A request and its reply.
    Command(Vec<Argument>),
    /// A request as an inline line, and its reply.
    Inline(Vec<Argument>),
    /// A request that is not answered now: replies are off, or it blocks.
    Silent(Vec<Argument>),
    /// The reply owed to an earlier [`Action::Silent`].
    Reply(Vec<Argument>),
    /// Bytes as they are, and the number of replies they cause.
    Raw(Vec<u8>, usize),
    /// SCAN from cursor 0 to the end with these further arguments: all its keys, sorted.
    Scan(Vec<Argument>),
    /// Waits until the server counts the connection as blocked.
    Blocked,
    /// The server closes the connection; it is opened again.
    Closed,
    /// The client closes the connection and opens it again.
    Reopen,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The connection it happens on, from 1.
    pub connection: usize,
    /// What it does.
    pub action: Action,
    /// Kinds of targets that sit it out.
    pub without: Vec<Kind>,
}

impl Step {
    /// A request for all targets.
    pub fn command(connection: usize, arguments: Vec<Argument>) -> Self {
        Self { connection, action: Action::Command(arguments), without: Vec::new() }
    }

    /// A request of plain words for all targets.
    pub fn words(connection: usize, words: &[&str]) -> Self {
        Self::command(connection, words.iter().map(|word| Argument::Bytes(word.as_bytes().to_vec())).collect())
    }

    /// The arguments of its request, if it has one.
    pub fn arguments(&self) -> Option<&[Argument]> {
        match &self.action {
            Action::Command(arguments)
            | Action::Inline(arguments)
            | Action::Silent(arguments)
            | Action::Reply(arguments)
            | Action::Scan(arguments) => Some(arguments),
            _ => None,
        }
    }

    /// How many replies it waits for.
    pub fn replies(&self) -> usize {
        match &self.action {
            Action::Command(_) | Action::Inline(_) | Action::Reply(_) => 1,
            Action::Raw(_, replies) => *replies,
            _ => 0,
        }
    }

    /// Whether its bytes may be sent in one write with those of its neighbours.
    pub fn pipelines(&self) -> bool {
        !matches!(self.action, Action::Scan(_) | Action::Blocked | Action::Closed | Action::Reopen)
    }

    /// The bytes it sends to one target.
    pub fn bytes(&self, target: &dyn Target) -> Vec<u8> {
        let resolved = |arguments: &[Argument]| -> Vec<Vec<u8>> {
            arguments.iter().map(|argument| argument.resolve(target)).collect()
        };
        match &self.action {
            Action::Command(arguments) | Action::Silent(arguments) => request::encode(&resolved(arguments)),
            Action::Inline(arguments) => request::encode_inline(&resolved(arguments)),
            Action::Raw(bytes, _) => bytes.clone(),
            _ => Vec::new(),
        }
    }
}

/// As the line of a script.
impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let directive = match &self.action {
            Action::Command(_) => "",
            Action::Inline(_) => "!inline",
            Action::Silent(_) => "!silent",
            Action::Reply(_) => "!reply",
            Action::Scan(_) => "!scan",
            Action::Blocked => "!blocked",
            Action::Closed => "!closed",
            Action::Reopen => "!reopen",
            Action::Raw(..) => "!raw",
        };
        let mut words = Vec::new();
        if self.connection != 1 {
            words.push(format!("@{}", self.connection));
        }
        if !directive.is_empty() {
            words.push(directive.to_owned());
        }
        if let Action::Raw(bytes, replies) = &self.action {
            words.push(replies.to_string());
            words.push(format!("\"{}\"", text::escaped(bytes)));
        }
        words.extend(self.arguments().unwrap_or_default().iter().map(Argument::to_string));
        f.write_str(&words.join(" "))
    }
}
