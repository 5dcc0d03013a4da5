//! Scripts of clients, in Lua 5.1. A script runs on the worker that received it, inside one commit: its changes are one
//! record of the log, and nothing runs between its commands.
//!
//! ```text
//! EVAL -> rows -> run -> lua::Engine -> redis.call -> run -> command::call::call -> reply -> value of Lua
//!           |
//!           '--> cache: texts by SHA-1, for all workers
//! ```
//!
//! Its commands go through the rows that clients' commands go through, as those of EXEC do. The log has their
//! effects, never a script.
#![cfg_attr(not(feature = "lua"), forbid(unsafe_code))]

pub mod cache;
mod declared_keys;
pub mod figures;
mod function_rows;
#[cfg(feature = "lua")]
mod functions;
mod killing;
#[cfg(feature = "lua")]
mod libraries;
mod load;
#[cfg(feature = "lua")]
pub mod lua;
pub mod metadata;
#[cfg(feature = "lua")]
mod reach;
mod rows;
#[cfg(feature = "lua")]
mod run;
pub mod running;
pub mod shebang;

#[cfg(not(feature = "lua"))]
#[path = "functions_without_lua.rs"]
mod functions;
#[cfg(not(feature = "lua"))]
#[path = "run_without_lua.rs"]
mod run;

pub use cache::Scripts;
pub use function_rows::FAMILY as FUNCTIONS;
pub use load::load_library;
pub use rows::{FAMILIES, flags_of};

command::needs! {
    /// The parts of a server that the rows of this crate ask for.
    pub Needed: std::sync::Arc<Scripts>,
}
