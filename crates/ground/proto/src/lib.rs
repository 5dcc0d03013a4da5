//! The wire protocols, RESP2, RESP3, memcached's text protocol and SSDB's: bytes in, bytes out, no sockets.
//!
//! ```text
//!  bytes received -> request::RequestParser -> Arguments (spans of the input) -> a command runs
//!  bytes to send <- ReplyBuffer <- reply writers <----------------------------+
//! ```
//!
//! Everything here works on byte slices, so every parser is tested and fuzzed split at every offset.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used))]

pub mod memcached;
pub mod number;
pub mod reply;
pub mod request;
pub mod ssdb;

pub use reply::{OpenReply, Protocol, PushFrame, ReplyBuffer, ReplyMark};
pub use request::{Arguments, Limits, Opening, Progress, ProtocolError, RequestParser, Span};
