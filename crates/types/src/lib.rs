//! Semantics of the data types: typed operations over [`engine::Keyspace`], under commands that know no storage.
//!
//! T1. No protocol here: outcomes are values, errors are [`TypeError`]s; RESP and memcached render the same outcome.
//! T2. An operation reads all it needs, decides, and then changes: only by [`engine::Effect`]s, through
//!     [`engine::Keyspace::apply`]. So a [`engine::Fetch`] never leaves a half-done change (E1).
//! T3. [`apply`] is the one place where an effect becomes stored bytes, for clients and for replay alike (E2).
#![forbid(unsafe_code)]

pub mod apply;
pub mod error;
pub mod generic;
pub mod string;

pub use error::TypeError;
