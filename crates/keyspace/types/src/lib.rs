//! Semantics of the data types: typed operations over [`engine::Keyspace`], under commands that know no storage.
//!
//! T1. No protocol here: outcomes are values, errors are [`TypeError`]s; RESP and memcached render the same outcome.
//! T2. An operation reads all it needs, decides, and then changes: only by [`engine::Effect`]s, through
//!     [`engine::Keyspace::apply`]. So a [`engine::Fetch`] never leaves a half-done change (E1). A row that was read
//!     once in a command is not fetched again by it, so looking a second time, between changes, is allowed.
//! T3. [`apply`] is the one place where an effect becomes stored bytes, for clients and for replay alike (E2).
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used))]

pub mod apply;
pub mod attributed;
pub mod bitfield;
pub mod bitmap;
mod bits;
pub mod collection;
pub mod counter;
pub mod decoder;
pub mod encoding;
pub mod error;
pub mod extended;
pub mod fields;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod kept;
pub mod lcs;
pub mod list;
mod list_changes;
pub mod range;
mod replacement;
pub mod restore;
pub mod set;
pub mod sort;
pub mod stream;
pub mod string;
pub mod walk;
pub mod zset;

pub use decoder::{Decoder, Source};
pub use error::TypeError;
pub use kept::Kept;
