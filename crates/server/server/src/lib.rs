//! The server: workers with their event loops, connections, listeners, startup.
//!
//! ```text
//! listener --round robin--> worker: wait -> read -> executor (parse, batch, run) -> send -> upkeep
//!                                                      |
//!                                                    store
//! ```

mod ahead;
mod announce;
pub mod backlog;
mod blocked;
mod carrier;
pub mod client_memory;
mod closing;
pub mod connection;
pub mod data_directory;
mod deliver;
pub mod descriptors;
pub mod dialect;
mod ending;
pub mod executor;
pub mod fetching;
pub mod halt_poll;
pub mod held_output;
pub mod listen;
pub mod mailbox;
mod observe;
mod openings;
mod pace;
pub mod serve;
pub mod socket;
pub mod strangers;
mod sync;
mod turn;
mod turn_clock;
pub mod upkeep;
pub mod worker;
