//! Requests in memcached's text protocol: a line of words; some are followed by a block of data.
//!
//! ```text
//!  set k 0 0 5\r\nhello\r\n     Request { command: Set, consumed: 20 }
//!      ^           ^^^^^        arguments: set, k, hello, 0, 0
//!  get a b\r\n                  Request { command: GetMore }, then Request { command: Get }
//! ```
//!
//! The parser gives each request as a [`Command`] and its arguments, in an order that does not depend on where the
//! data stands: command, key, data, then the numbers. A line that names several keys becomes one request for each
//! key. A line that is refused becomes a [`Refusal`].
//!
//! M1. A request may arrive split at any byte; the result is that of the unsplit bytes.
//! M2. The caller keeps the bytes of an incomplete request, so memory follows the bytes received, never the announced
//!     ones.
//! M3. Between requests a parser holds no memory.
//! M4. Error recovery is that of memcached 1.6: a line refused for its syntax announces no data, so its data is read
//!     as the next command; data refused for its size is skipped.

pub mod arcus;
mod limits;
mod line;
mod meta;
mod number;
mod parser;
#[cfg(test)]
mod tests;

pub use arcus::Arcus;
pub use limits::Limits;
pub use meta::encode_key;
pub use number::{parse_signed, parse_unsigned};
pub use parser::{Parser, Progress};

/// What a request asks for. The arguments of each begin with the command's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `get key`: the last key of its line.
    Get,
    /// `get key`: more keys follow.
    GetMore,
    /// `gets key`: the last key of its line.
    Gets,
    /// `gets key`: more keys follow.
    GetsMore,
    /// `gat key exptime`: the last key of its line.
    Gat,
    /// `gat key exptime`: more keys follow.
    GatMore,
    /// `gats key exptime`: the last key of its line.
    Gats,
    /// `gats key exptime`: more keys follow.
    GatsMore,
    /// `get`, `gets`, `gat` or `gats` without a key.
    GetNothing,
    /// `set key data flags exptime [noreply]`
    Set,
    /// `add key data flags exptime [noreply]`
    Add,
    /// `replace key data flags exptime [noreply]`
    Replace,
    /// `append key data flags exptime [noreply]`
    Append,
    /// `prepend key data flags exptime [noreply]`
    Prepend,
    /// `cas key data flags exptime id [noreply]`
    Cas,
    /// `set key` whose data was too long and is skipped: the item goes. `[noreply]`
    SetTooLarge,
    /// `delete key [noreply]`
    Delete,
    /// `incr key delta [noreply]`
    Incr,
    /// `decr key delta [noreply]`
    Decr,
    /// `touch key exptime [noreply]`
    Touch,
    /// `flush_all [delay] [noreply]`
    FlushAll,
    /// `verbosity level [noreply]`
    Verbosity,
    /// `cache_memlimit megabytes [noreply]`
    MemoryLimit,
    /// `version`
    Version,
    /// `stats [words]`
    Stats,
    /// `mg key flags`
    MetaGet,
    /// `ms key data flags`
    MetaSet,
    /// `md key flags`
    MetaDelete,
    /// `ma key flags`
    MetaArithmetic,
    /// `me key`
    MetaDebug,
    /// `mn`
    MetaNoop,
    /// `quit`
    Quit,
    /// A request of the ARCUS dialect.
    Arcus(Arcus),
    /// A line that is refused.
    Refused(Refusal),
}

/// Why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such command, or a wrong number of words.
    Unknown,
    /// A key that is too long, or a word that is not the number it has to be.
    Format,
    /// The words of `delete`.
    DeleteFormat,
    /// Data that does not end in a line end.
    Data,
    /// An item that is longer than allowed; its data is skipped.
    TooLarge,
    /// `touch` and `gat` with an expiration that is not a number.
    Expiration,
    /// `incr` and `decr` with a delta that is not a number.
    Delta,
    /// More flags than a meta command takes.
    FlagCount,
    /// A key that is not the base64 text that it is said to be.
    Key,
    /// An element of a collection that is longer than allowed; it is skipped.
    ElementTooLarge,
    /// A field of a map that is longer than allowed.
    FieldTooLong,
    /// Counts of keys or fields that cannot be right; they are skipped.
    BadValue,
    /// `sop get` of more members than allowed.
    TooManyMembers,
    /// `bop pwg` of more neighbours than allowed.
    TooManyNeighbours,
}

impl Refusal {
    /// The reply.
    pub fn text(self) -> &'static str {
        match self {
            Self::Unknown => "ERROR",
            Self::Format => "CLIENT_ERROR bad command line format",
            Self::DeleteFormat => "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
            Self::Data => "CLIENT_ERROR bad data chunk",
            Self::TooLarge => "SERVER_ERROR object too large for cache",
            Self::Expiration => "CLIENT_ERROR invalid exptime argument",
            Self::Delta => "CLIENT_ERROR invalid numeric delta argument",
            Self::FlagCount => "CLIENT_ERROR options flags are too long",
            Self::Key => "CLIENT_ERROR error decoding key",
            Self::ElementTooLarge => "CLIENT_ERROR too large value",
            Self::FieldTooLong => "CLIENT_ERROR too long field name",
            Self::BadValue => "CLIENT_ERROR bad value",
            Self::TooManyMembers => "CLIENT_ERROR invalid: too many count",
            Self::TooManyNeighbours => "CLIENT_ERROR too large count value",
        }
    }
}
