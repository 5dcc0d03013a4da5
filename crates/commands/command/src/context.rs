//! What a command's function is given, and so what it is: the two name each other. Rows, the table, sessions and the
//! parts of the host do not know them, since what runs a row is a parameter of theirs; here it gets its value.

use crate::about::About;
use crate::figures::Figures;
use crate::host::Parts;
use crate::spec::{Answer, Runs, Spec};
use crate::stats::WorkerStats;
use crate::{Args, Stop, error, session, table};
use base::{DbIndex, Rng, UnixMs};
use engine::{Key, Keyspace, Value};
use proto::ReplyBuffer;
use push::{Outlets, PubSub, Tracking};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use types::string::parse_integer;

/// One row of the command table.
pub type CommandSpec = Spec<Run>;

/// A row found.
pub type Row = table::Row<Run>;

/// All commands of a server.
pub type CommandTable = table::Table<Run>;

/// What a connection has said about itself.
pub type Session = session::Session<Run>;

/// What a command does when its name and arity are right.
#[derive(Clone, Copy)]
pub enum Run {
    /// Runs under the locks that [`CommandSpec::locks`](Spec::locks) asks for.
    Call(Handler),
    /// Answers from the entry under its first key, and changes nothing but its access stamp.
    Read(Answer),
    /// Has subcommands; alone it is only the first word.
    Container(&'static [&'static CommandSpec]),
}

/// A command's function. An error leaves nothing changed and becomes the reply.
pub type Handler = fn(&mut Ctx<'_>) -> Result<(), Stop>;

impl Runs for Run {
    fn subcommands(&self) -> Option<&'static [&'static CommandSpec]> {
        match self {
            Self::Call(_) | Self::Read(_) => None,
            Self::Container(rows) => Some(rows),
        }
    }
}

/// All commands, and the parts of the server that they need. Assembled once at startup, then only read.
pub struct Host {
    /// All commands.
    pub table: Arc<CommandTable>,
    parts: Parts,
}

impl Host {
    /// A server with this identity, these commands and figures, and these channels and tracked keys. All else is as in
    /// one that has default settings and no client yet.
    pub fn new(
        about: About,
        table: Arc<CommandTable>,
        figures: Arc<Figures>,
        channels: (Arc<PubSub>, Arc<Tracking>),
    ) -> Self {
        let names = table.rows().iter().map(|(name, _)| name.as_str());
        Self { parts: Parts::new(about, names, figures, channels), table }
    }

    /// For commands that run without a server, such as those of a log that is imported: no client listens.
    pub fn alone(table: Arc<CommandTable>) -> Self {
        let silent = Arc::new(Outlets::new(1, |_| {}));
        let channels = (Arc::new(PubSub::new(silent.clone())), Arc::new(Tracking::new(silent, |_| {})));
        Self::new(About::new(&mut Rng::new(0), 0, None), table, Arc::new(Figures::new(Vec::new())), channels)
    }

    /// Adds a part of an upper crate, replacing one of the same type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, part: T) -> Self {
        self.parts.add(part);
        self
    }
}

impl Deref for Host {
    type Target = Parts;

    #[inline]
    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl DerefMut for Host {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.parts
    }
}

/// One running request: arguments in, reply out, the locked keyspaces, and the client.
pub struct Ctx<'a> {
    /// The row that is running.
    pub spec: &'static CommandSpec,
    /// The arguments, name first; arity is right.
    pub args: Args<'a>,
    /// Where the reply goes. A function that fails leaves nothing in it: the caller rolls it back.
    pub reply: &'a mut ReplyBuffer,
    /// The keyspaces, with the shards locked that the row asks for.
    pub ks: &'a mut dyn Keyspace,
    /// The connection.
    pub session: &'a mut Session,
    /// The parts of the server.
    pub host: &'a Host,
    /// The figures of the worker that runs it.
    pub stats: &'a WorkerStats,
    /// A key argument that was hashed on the way here: its index and the key.
    pub hashed: Option<(usize, Key<'a>)>,
}

impl<'a> Ctx<'a> {
    /// The argument at `index` as a key of the selected database.
    #[inline]
    pub fn key(&self, index: usize) -> Key<'a> {
        match self.hashed {
            Some((at, key)) if at == index => key,
            _ => self.ks.key(self.args.bytes(index).unwrap_or_default()),
        }
    }

    /// The argument at `index` as a value to store.
    #[inline]
    pub fn value(&self, index: usize) -> Value<'a> {
        self.args.value(index).unwrap_or(Value::Bytes(&[]))
    }

    /// The argument at `index` as a 64-bit integer.
    ///
    /// # Errors
    /// The usual words when it is not one.
    #[inline]
    pub fn integer(&self, index: usize) -> Result<i64, Stop> {
        parse_integer(&self.args[index]).ok_or(error::NOT_INTEGER)
    }

    /// Whether the argument at `index` is this word, in any case.
    #[inline]
    pub fn is_word(&self, index: usize, word: &str) -> bool {
        self.args[index].eq_ignore_ascii_case(word.as_bytes())
    }

    /// The argument at `index` as the number of a database that exists.
    ///
    /// # Errors
    /// Not an integer, or out of range.
    pub fn database(&self, index: usize) -> Result<DbIndex, Stop> {
        let number = i32::try_from(self.integer(index)?).map_err(|_| error::NOT_INT32)?;
        let db = DbIndex(u32::try_from(number).map_err(|_| error::DB_OUT_OF_RANGE)?);
        self.ks.space_of(db).map(|_| db).ok_or(error::DB_OUT_OF_RANGE)
    }

    /// Wall time of this command.
    pub fn now(&self) -> UnixMs {
        self.ks.now()
    }
}
