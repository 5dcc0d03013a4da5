//! What a command's function is given.

use crate::stats::WorkerStats;
use crate::{Args, CommandSpec, Host, Session, Stop, error};
use base::{DbIndex, UnixMs};
use engine::{Key, Keyspace, Value};
use proto::ReplyBuffer;
use types::string::parse_integer;

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
