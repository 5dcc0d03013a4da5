//! The commands of SSDB's clients in its own protocol, over the same data as those of Redis clients.
//!
//! ```text
//!  proto::ssdb::Parser -> Rows::row -> the path of every request: locks, call, log, reply
//!  multi_get and the like of many names -> some names a turn -> the reply
//!  keys, scan, hlist, zlist, qlist -> a walk over all names, a slice a turn -> the first of them, in order
//! ```
//!
//! A key of SSDB is a string, a hash is a hash, a zset is a sorted set whose scores are integers, and a queue is a
//! list. All of them share one key space: a name has one type.
//! docs/protocol/ssdb.md is the page about it.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used))]

mod answer;
mod arguments;
mod hash;
mod in_order;
mod kv;
mod kv_bits;
mod many;
mod pieces;
mod queue;
mod range;
mod refused;
mod rows;
mod service;
mod walk;
mod zset;
mod zset_ranges;

pub use rows::Rows;

command::needs! {
    /// The parts of a server that the rows of this crate ask for.
    pub Needed: std::sync::Arc<store::Store>,
}
