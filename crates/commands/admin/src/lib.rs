//! What operators ask a server: its figures, settings, commands, slow calls and memory. Each family is a file with the
//! rows of its commands and their functions; `server` joins [`FAMILIES`] to its table at startup.
//!
//! ```text
//! workers --> Figures, CommandLog, LatencyMonitor, HotKeys --> INFO, SLOWLOG, LATENCY, HOTKEYS
//! CONFIG SET --> change_settings --> Configuration --> Apply (the server) and follow (parts of Host)
//! ```
//!
//! A1. No figure is made up: what this server does not measure is left out, what it does not do is zero.
//! A2. A secret that passes through a command appears in no log: everything shown goes through
//! [`command::login::redacted`].
//! A3. Rows that look at whole keyspaces say so by their locks (`Locks::All`, or `Locks::Each` for mere figures); none
//!     takes a shard lock on its own, so that all of them can run inside MULTI.
#![forbid(unsafe_code)]

pub mod access;
pub mod backup;
pub mod catalogue;
pub mod clustering;
pub mod command_log;
pub mod config_rows;
pub mod configuration;
pub mod debug;
pub mod ending;
mod explain_reply;
mod explain_rows;
mod explanations;
pub mod histogram;
pub mod hot_key_session;
pub mod hot_keys;
mod hot_keys_rows;
pub mod info;
pub mod keyspaces;
pub mod latency;
pub mod latency_rows;
pub mod lolwut;
pub mod memory;
pub mod module_rows;
pub mod monitor;
pub mod persistence;
mod prefixes;
pub mod replication;
pub mod slow_rows;
mod stance;

pub use self::replication::become_primary;
pub use command::about::{self, About};
pub use command::configuration::{Apply, Configuration};
pub use command::figures::{self, Figures, WorkerFigures};
pub use command_log::CommandLog;
pub use configuration::{change_settings, follow, rewrite_settings, set_password};
pub use ending::{CALLED_OFF, EndOrder, ShutdownRequest};
pub use explanations::Explanations;
pub use latency::LatencyMonitor;
pub use stance::adjust_role;

use command::CommandSpec;

/// The rows of all families.
pub const FAMILIES: &[&[&CommandSpec]] = &[
    info::COMMANDS,
    config_rows::COMMANDS,
    catalogue::COMMANDS,
    keyspaces::COMMANDS,
    persistence::COMMANDS,
    ending::COMMANDS,
    backup::COMMANDS,
    slow_rows::COMMANDS,
    latency_rows::COMMANDS,
    hot_keys_rows::COMMANDS,
    memory::COMMANDS,
    debug::COMMANDS,
    monitor::COMMANDS,
    lolwut::COMMANDS,
    replication::COMMANDS,
    access::COMMANDS,
    module_rows::COMMANDS,
    clustering::COMMANDS,
];

/// Answers the lines of a HELP subcommand.
fn reply_help(ctx: &mut command::Ctx<'_>, lines: &[&str]) {
    ctx.reply.array(lines.len());
    lines.iter().for_each(|line| ctx.reply.simple(line));
}

command::needs! {
    /// The parts of a server that the rows of this crate ask for.
    pub Needed:
        std::sync::Arc<store::Store>,
        std::sync::Arc<CommandLog>,
        std::sync::Arc<LatencyMonitor>,
        std::sync::Arc<Explanations>,
        std::sync::Arc<script::Scripts>,
        ShutdownRequest,
}
