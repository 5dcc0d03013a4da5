//! The one mapping from what went wrong to the words on the wire: the error code first, then what was wrong.

use crate::limits::REPLY_BYTES_MAX;
use engine::Fetch;
use proto::ReplyBuffer;
use std::borrow::Cow;
use types::TypeError;

/// Why a command ended without doing anything.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// Rows have to be fetched, or something is to be prepared; the command runs again from its start (E1).
    Fetch,
    /// The reply is this error: code word and text, without the leading `-`.
    Error(ErrorText),
}

/// The text of an error. Bytes, since it may repeat what a client sent.
#[derive(PartialEq, Eq)]
pub struct ErrorText(Cow<'static, [u8]>);

impl ErrorText {
    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for ErrorText {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for ErrorText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl Stop {
    /// An error whose text is known at build time.
    pub const fn error(text: &'static str) -> Self {
        Self::Error(ErrorText(Cow::Borrowed(text.as_bytes())))
    }

    /// An error with numbers or names in it.
    pub fn error_with(text: impl Into<Vec<u8>>) -> Self {
        Self::Error(ErrorText(Cow::Owned(text.into())))
    }
}

impl From<Fetch> for Stop {
    fn from(_: Fetch) -> Self {
        Self::Fetch
    }
}

impl From<TypeError> for Stop {
    fn from(error: TypeError) -> Self {
        match error {
            TypeError::Fetch(_) => Self::Fetch,
            TypeError::WrongType => WRONG_TYPE,
            TypeError::NotInteger => NOT_INTEGER,
            TypeError::NotFloat => NOT_FLOAT,
            TypeError::Overflow => OVERFLOW,
            TypeError::NotFinite => NOT_FINITE,
            TypeError::StringTooLong => STRING_TOO_LONG,
            TypeError::LcsTooBig => LCS_TOO_BIG,
            TypeError::IdsExhausted => IDS_EXHAUSTED,
            TypeError::IdTooSmall => ID_TOO_SMALL,
            TypeError::EntryTooLong => ENTRY_TOO_LONG,
            TypeError::SameKey => SAME_KEY,
            TypeError::NotHyperLogLog => NOT_HYPERLOGLOG,
            TypeError::CorruptHyperLogLog => CORRUPT_HYPERLOGLOG,
            other => Self::error_with(format!("ERR {other}")),
        }
    }
}

/// The key holds another type.
pub const WRONG_TYPE: Stop = Stop::error("WRONGTYPE Operation against a key holding the wrong kind of value");
/// Not a decimal 64-bit integer.
pub const NOT_INTEGER: Stop = Stop::error("ERR value is not an integer or out of range");
/// Not a finite number.
pub const NOT_FLOAT: Stop = Stop::error("ERR value is not a valid float");
/// An increment would leave 64 bits.
pub const OVERFLOW: Stop = Stop::error("ERR increment or decrement would overflow");
/// An increment would leave the finite numbers.
pub const NOT_FINITE: Stop = Stop::error("ERR increment would produce NaN or Infinity");
/// A string would grow too long.
pub const STRING_TOO_LONG: Stop = Stop::error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
/// LCS would need more memory than a string may have.
pub const LCS_TOO_BIG: Stop =
    Stop::error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
/// The string under a key is not a HyperLogLog.
pub const NOT_HYPERLOGLOG: Stop = Stop::error("WRONGTYPE Key is not a valid HyperLogLog string value.");
/// The registers of a HyperLogLog are damaged.
pub const CORRUPT_HYPERLOGLOG: Stop = Stop::error("INVALIDOBJ Corrupted HLL object detected");
/// XADD after the last possible id.
pub const IDS_EXHAUSTED: Stop =
    Stop::error("ERR The stream has exhausted the last possible ID, unable to add more items");
/// XADD with an id that is not above the last.
pub const ID_TOO_SMALL: Stop =
    Stop::error("ERR The ID specified in XADD is equal or smaller than the target stream top item");
/// XADD of more than an entry may hold.
pub const ENTRY_TOO_LONG: Stop = Stop::error("ERR Elements are too large to be stored");
/// COPY and MOVE onto the key itself.
pub const SAME_KEY: Stop = Stop::error("ERR source and destination objects are the same");
/// A reply would take too much memory.
pub const REPLY_TOO_LONG: Stop = Stop::error(REPLY_TOO_LONG_TEXT);
/// The same, where the command has been left.
pub const REPLY_TOO_LONG_TEXT: &str = "ERR the reply would be longer than 192 MB";
/// Not a 32-bit integer, where one is asked for.
pub const NOT_INT32: Stop = Stop::error("ERR value is out of range, value must between -2147483648 and 2147483647");
/// No integer, or one below zero, where a count is asked for.
pub const NOT_POSITIVE: Stop = Stop::error("ERR value is out of range, must be positive");
/// Options that conflict, or an unknown one.
pub const SYNTAX: Stop = Stop::error("ERR syntax error");
/// The key has to be there.
pub const NO_SUCH_KEY: Stop = Stop::error("ERR no such key");
/// SELECT and its relatives beyond the configured databases.
pub const DB_OUT_OF_RANGE: Stop = Stop::error("ERR DB index is out of range");

/// A write beyond `maxmemory`, where nothing can be evicted.
pub const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";
/// The data is being loaded.
pub const LOADING: &str = "LOADING Onggi is loading the dataset in memory";
/// Writes are refused while checkpoints fail.
pub const CHECKPOINT_FAILED: &str = "MISCONF Onggi is configured to save checkpoints, but the last one failed. Commands that may change data are refused, \
     because of stop-writes-on-bgsave-error. See the server's log for the error, and mend its cause; writes go on after \
     the next checkpoint that succeeds";

/// A replica has no link to its primary.
pub const MASTER_DOWN: &str = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
/// What protected mode answers, in Valkey's words: tools look for them.
pub const DENIED: &str = "DENIED Running in protected mode because protected mode is enabled and no password is \
     set for the default user. In this mode connections are only accepted from the loopback interface. If you want to \
     connect from external computers, you may adopt one of the following solutions: 1) Just disable protected mode \
     sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting from the same host \
     the server is running, however MAKE SURE it's not publicly accessible from internet if you do so. Use CONFIG \
     REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode by editing the \
     configuration file, and setting the protected mode option to 'no', and then restarting the server. 3) If you \
     started the server manually just for testing, restart it with the '--protected-mode no' option. 4) Set up an \
     authentication password for the default user. NOTE: You only need to do one of the above things in order for the \
     server to start accepting connections from the outside.";

/// A write was refused by the log: `why`, and what to do. `None`: the log works again.
pub fn log_failed(why: Option<&str>) -> String {
    match why {
        Some(why) => format!("MISCONF Errors writing to the AOF file: {why}"),
        None => "TRYAGAIN the command log had failed and works again: repeat the command".to_owned(),
    }
}

/// Writes to a database on disk need a flush, and flushes fail: `why`.
pub fn flush_failed(why: &str) -> String {
    format!("MISCONF {why}. Writes to databases on disk are refused until a flush succeeds. The server tries again")
}

/// A write finds no memory: only a flush could free some, and flushes fail where there is a reason.
pub fn lacks_memory(why_no_flush: Option<&str>) -> Cow<'static, str> {
    why_no_flush.map_or(OUT_OF_MEMORY.into(), |why| flush_failed(why).into())
}

/// A command has panicked before it changed anything.
pub fn internal(name: &str) -> String {
    format!("ERR internal error in '{name}': a bug of this server; nothing was changed")
}

/// MULTI has queued more than one client may.
pub fn queue_too_long(bytes_max: usize) -> String {
    format!("ERR transaction queue exceeds {bytes_max} bytes (client-transaction-limit); connection closed")
}

/// An argument of this length was not kept, since all clients together hold too much.
pub fn argument_not_kept(bytes: usize) -> String {
    format!(
        "OOM command not allowed: its argument of {bytes} bytes is more than clients may hold now \
         (see maxmemory and maxmemory-clients)"
    )
}

/// The framing of requests is lost.
pub fn protocol(message: &[u8]) -> String {
    format!("ERR {}", String::from_utf8_lossy(message))
}

/// An error when a reply that is being put together from copies has grown too long.
#[inline]
pub fn check_reply(reply: &ReplyBuffer) -> Result<(), Stop> {
    if reply.copied_len() <= REPLY_BYTES_MAX { Ok(()) } else { Err(REPLY_TOO_LONG) }
}

/// The error for a wrong number of arguments; `name` in full (`config|get`).
pub fn wrong_arity(name: &str) -> Stop {
    Stop::error_with(format!("ERR wrong number of arguments for '{name}' command"))
}

/// An error that repeats what a client sent, byte by byte up to the first zero.
#[cold]
pub fn repeating(before: &str, sent: &[u8], after: &str) -> Stop {
    Stop::error_with([before.as_bytes(), up_to_zero(sent), after.as_bytes()].concat())
}

/// What a client sent, as error texts repeat it, where they have to be text.
pub fn shown(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(up_to_zero(bytes))
}

/// The bytes before the first zero.
pub fn up_to_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}
