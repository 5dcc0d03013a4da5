//! The server: workers with their event loops, connections, listeners, startup.
//!
//! ```text
//! listener --round robin--> worker: wait -> read -> executor (parse, batch, run) -> send -> upkeep
//!                                                      |
//!                                                    store
//! ```

mod ahead;
mod announce;
pub mod assembly;
mod audit_file;
pub mod backlog;
mod blocked;
mod certificate_login;
pub mod client_memory;
mod closing;
mod cluster_node;
pub mod connection;
pub mod data_directory;
mod deliver;
pub mod descriptors;
pub mod desk;
pub mod dialect;
mod encryption;
mod ending;
pub mod executor;
pub mod fetching;
pub mod halt_poll;
pub mod held_output;
mod http_tokens;
mod key_route;
mod lent;
mod lent_socket;
pub mod listen;
pub mod mailbox;
pub mod message;
mod migration;
pub mod observe;
mod openings;
pub mod others;
mod pace;
mod protection;
mod replica;
pub mod serve;
mod serve_error;
pub mod socket;
mod store_settings;
pub mod strangers;
mod sync;
pub mod tls_socket;
mod turn;
mod turn_clock;
pub mod upkeep;
pub mod worker;

command::needs! {
    /// The parts of a server that this crate itself asks for, in addition to those of other crates' lists.
    pub Needed: std::sync::Arc<tls::Contexts>, observe::Observed,
}
