//! Redis' RDB files and DUMP payloads: a reader that trusts nothing, and a writer whose output Redis and Valkey load.
//!
//! ```text
//! file ----> Reader --items--> aux, functions, modules, FileEntry { key, expiration, Value }
//! payload -> dump::read ----------------------------------------------------------> Value
//!                                                                                    |
//! file <---- Writer <---------------------------------------------------------- Target: version 10, 11, Valkey 9
//! payload <- dump::write <-----------------------------------------------------------'
//! ```
//!
//! R1. No input is trusted: every returned value is well-formed, whatever the checksum says. Everything else is an
//!     error that names the offset, the opcode or type, and what the format requires there.
//! R2. Memory is proportional to the bytes read, never to a length that they claim.
//! R3. Nothing is guessed: an unknown type or opcode ends the reading, because its length is unknown too.
//!
//! Format: docs/formats/rdb.md.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod dump;
mod encode;
mod error;
mod format;
mod input;
pub mod origin;
mod packed;
mod read;
mod reader;
pub mod stored;
mod stream;
mod strings;
mod value;
mod writer;

pub use encode::{Target, WriteError};
pub use error::{Place, RdbError};
pub use format::{Dialect, Form, VERSION_OLDEST, VERSION_REDIS, VERSION_VALKEY};
pub use reader::{End, FileEntry, Item, Reader};
pub use stream::{Stream, StreamConsumer, StreamEntry, StreamGroup, StreamId, StreamPending};
pub use strings::Strings;
pub use value::{Hash, Module, Value, Zset};
pub use writer::Writer;
