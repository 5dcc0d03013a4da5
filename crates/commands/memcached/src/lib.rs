//! The commands of memcached clients, over the same data as those of Redis clients.
//!
//! ```text
//!  proto::memcached::Parser -> Command -> Rows::row -> the path of every request: locks, call, log, reply
//! ```
//!
//! An item is a string; its flags, its CAS id and its expiration are fields of the entry. A key that holds another type
//! is absent for the commands that get items, and `TYPE_MISMATCH` for those that store them; `delete` and `touch` take
//! any type.
//! docs/protocol/memcached.md is the page about it.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used))]

mod arcus;
mod arguments;
mod delta;
mod details;
mod dumps;
mod files;
mod get;
mod item;
mod key_prefix;
mod listing;
mod meta;
mod meta_flags;
mod prefixes;
pub mod refusal;
mod refused;
mod rows;
mod service;
mod stats;
mod sticky;
mod storage;
mod sweep;
mod tally;
mod touch;

pub use arcus::command_lines::CommandLines;
pub use arcus::long_queries::LongQueries;
pub use details::Details;
pub use dumps::Dumps;
pub use files::Files;
pub use rows::{Mode, Rows};
pub use sweep::{Busy, Purpose, Sweep, Sweeps, silence};

command::needs! {
    /// The parts of a server that the rows of this crate ask for.
    pub Needed:
        std::sync::Arc<store::Store>,
        std::sync::Arc<Sweeps>,
        std::sync::Arc<Details>,
        std::sync::Arc<LongQueries>,
        std::sync::Arc<CommandLines>,
        std::sync::Arc<Dumps>,
        admin::ShutdownRequest,
}
