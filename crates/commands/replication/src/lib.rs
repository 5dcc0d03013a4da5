//! The receiving half of the replication of Redis and Valkey: a connection to a primary (`PSYNC`), the copy of all data
//! that it sends, and the stream of commands after it, which a store applies.
//!
//! ```text
//! connect --> PING, AUTH, REPLCONF --> PSYNC id offset --> +FULLRESYNC id offset --> RDB file --> commands
//!                                                     '--> +CONTINUE [id] ---------------------> commands
//! commands --pump--> spool --apply--> store: changes, and the position after them, in one record
//! ```
//!
//! R1. Offsets count the bytes of the stream, as the primary counts them. A position is where the next byte stands.
//! R2. A position is used only for a primary that knows its id: `+CONTINUE` says so, and any other answer is a new
//!     copy.
//! R3. What a primary sends is bounded where this crate holds it: a line by [`LINE_LEN_MAX`]. The copy goes to a
//!     writer.
//!
//! Source: <https://valkey.io/topics/replication/>, and what `redis-server` 7.0 and `valkey-server` 9.1 send.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod apply;
mod copy;
mod error;
mod link;
pub mod load;
mod position;
mod primary;
mod pump;
pub mod record;
pub mod role;
pub mod runner;
mod source;
mod spool;

pub use copy::Copied;
pub use error::LinkError;
pub use link::{Acknowledger, Link, Opened, SILENCE_MAX, Terms};
pub use position::Position;
pub use primary::{Primary, PrimaryError, host_and_port};
pub use pump::Pump;
pub use role::{LinkState, Role};
pub use source::Source;
pub use spool::{Spool, SpoolReader};

/// Longest line that a primary may send, in bytes: a reply to a command of the handshake.
pub const LINE_LEN_MAX: u64 = 64 << 10;
