//! The commands. Each is a row of the table ([`CommandSpec`]) and a function from arguments ([`Args`]) to a typed
//! operation in `types` and back to a reply; one file per family under [`redis`].
//!
//! K1. A function reads its arguments and all entries first; an error or a fetch leaves nothing changed and nothing in
//!     the reply (the caller rolls the reply back to where it was).
//! K2. A command reaches only keys that its key specification names: those are the shards that are locked.
//! K3. Words on the wire stand in `error` and in the families, nowhere below.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used))]

pub mod about;
pub mod absent;
pub mod acl;
pub mod args;
pub mod attempt;
pub mod audit;
pub mod blocking;
pub mod caching;
pub mod call;
pub mod clients;
pub mod configuration;
pub mod context;
mod databases;
pub mod drawing;
pub mod error;
pub mod figures;
pub mod gate;
pub mod host;
pub mod limits;
pub mod login;
pub mod observer;
pub mod pause;
mod payload;
mod permutation;
mod publish;
pub mod reach;
pub mod redis;
pub mod sampler;
pub mod session;
pub mod spec;
pub mod stats;
pub mod table;
pub mod waiting;
pub mod watchers;
pub mod work;

pub use args::Args;
pub use context::{CommandSpec, CommandTable, Ctx, Handler, Host, Row, Run, Session};
pub use error::Stop;
pub use spec::{Argument, ArgumentFlags, ArgumentKind, Categories, Deprecated, Docs, Flags, KeyFlags, KeySpec, Locks};
