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
/// XADD behind the last id there is.
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
/// Options that do not fit together, or none that is known.
pub const SYNTAX: Stop = Stop::error("ERR syntax error");
/// The key has to be there.
pub const NO_SUCH_KEY: Stop = Stop::error("ERR no such key");
/// SELECT and its relatives beyond the configured databases.
pub const DB_OUT_OF_RANGE: Stop = Stop::error("ERR DB index is out of range");

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
pub(crate) fn up_to_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}
