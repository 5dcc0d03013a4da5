//! Replies: what the server writes, and what a client reads.
//!
//! ```text
//!  a command -> ReplyBuffer::integer(1) -> ":1\r\n" -> writev -> ... -> Parser::feed -> reply::Value::Integer(1)
//! ```

mod buffer;
mod memcached;
mod parser;
mod pipe;
mod push_frame;
mod ssdb;
#[cfg(test)]
mod tests;
mod value;
mod write;

pub use buffer::{ReplyBuffer, ReplyMark};
pub use parser::{DEPTH_MAX, Parser, ReplyError, skip_reply};
pub use push_frame::PushFrame;
pub use value::Value;
pub use write::{OpenReply, SHARED_BYTES_MIN};

/// The version of the protocol that a connection speaks. It starts with RESP2, and HELLO changes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Strings, integers, arrays and their nulls; everything else is written as one of these.
    #[default]
    Resp2,
    /// Also maps, sets, doubles, booleans, big numbers, verbatim strings, pushes, and one null.
    Resp3,
}
