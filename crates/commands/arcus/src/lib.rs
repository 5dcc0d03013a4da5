//! A node of an ARCUS cluster, as arcus-memcached is one.
//!
//! ```text
//! commands (zkensemble, ready, cluster) <--> Cluster <--> Node, a thread <--zookeeper--> the ensemble
//!                                             '--> Ring: which keys are this node's
//! ```
//!
//! A1. Clients find the node by an ephemeral ZooKeeper node. It exists while the data is loaded and the session lives.
//! A2. The ring is that of ARCUS' clients. With another one, `scrub stale` would remove keys that clients ask for here.
//! A3. No worker waits for ZooKeeper. Only the node's thread does.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod cluster;
mod name;
mod node;
mod ring;

pub use cluster::{Cluster, Figures, Rejoin, parse_servers};
pub use name::{Place, own_address};
pub use node::{Node, Surroundings};
pub use ring::Ring;
