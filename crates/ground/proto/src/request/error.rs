use thiserror::Error;

/// Why a connection's input cannot be followed any further. Framing is lost, so the connection ends: after the error
/// reply that [`message`](Self::message) is the text of, or silently for [`CrossProtocol`](Self::CrossProtocol).
///
/// The texts are those of Valkey 9.1, which clients and tools match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// No line end within [`Limits::inline_bytes_max`](super::Limits) of the `*` of a request.
    #[error("Protocol error: too big mbulk count string")]
    ArgumentCountTooLong,
    /// The argument count is not an integer, or above [`Limits::argument_count_max`](super::Limits).
    #[error("Protocol error: invalid multibulk length")]
    ArgumentCount,
    /// More arguments than a client may send before it has logged in.
    #[error("Protocol error: unauthenticated multibulk length")]
    ArgumentCountBeforeLogin,
    /// No line end within [`Limits::inline_bytes_max`](super::Limits) of the start of an argument's length.
    #[error("Protocol error: too big bulk count string")]
    BulkLengthTooLong,
    /// An argument that does not begin with `$` but with this byte.
    #[error("Protocol error: expected '$', got '{}'", .0.escape_ascii())]
    ExpectedBulk(u8),
    /// An argument's length is not an integer, is negative, or above [`Limits::bulk_bytes_max`](super::Limits).
    #[error("Protocol error: invalid bulk length")]
    BulkLength,
    /// A longer argument than a client may send before it has logged in.
    #[error("Protocol error: unauthenticated bulk length")]
    BulkLengthBeforeLogin,
    /// A carriage return without its line feed, or an argument that does not end where its length says.
    #[error("Protocol error: invalid CRLF in request")]
    LineEnd,
    /// An inline request longer than [`Limits::inline_bytes_max`](super::Limits).
    #[error("Protocol error: too big inline request")]
    InlineTooLong,
    /// An inline request with a quote that is never closed.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// The caller let one request grow beyond the 2 GiB that a [`Span`](super::Span) reaches.
    #[error("Protocol error: too big request")]
    RequestTooLong,
    /// What comes is no packet of SSDB's protocol, or one that is too long.
    #[error("Protocol error: {0}")]
    Ssdb(crate::ssdb::Refusal),
    /// The first word is `POST` or `Host:`, so a browser or another HTTP client has been made to talk to this port. The
    /// connection is closed without a reply, before anything that follows in its input runs.
    #[error("HTTP request on a RESP connection")]
    CrossProtocol,
}

impl ProtocolError {
    /// The text of the error reply, without its `ERR` code. It may hold any byte the client sent, as `Display` does
    /// not: the reply writer replaces those that would break the framing.
    pub fn message(&self) -> Vec<u8> {
        match self {
            Self::ExpectedBulk(byte) => [b"Protocol error: expected '$', got '", &[*byte][..], b"'"].concat(),
            other => other.to_string().into_bytes(),
        }
    }
}
