//! A client of ZooKeeper: sessions, nodes and watches. It blocks: a thread of its own drives it, without an event loop.
//!
//! ```text
//! Identity --Session::open--> Session --create, children, ...--> replies
//!    ^                           '-----wait--> a watch has fired, or nothing
//!    '------- Session::identity after a lost connection: the same session at another server
//! ```
//!
//! Z1. A session is over when a server says so ([`Error::Expired`]). A lost connection ends no session.
//! Z2. Watches belong to a connection: after a new connection the caller reads again what it watches.
//! Z3. A frame of a server is at most [`FRAME_BYTES_MAX`] long, and a damaged one is an error, never a panic.
//!
//! The protocol is that of ZooKeeper 3.4 and later (`zookeeper.jute` in its sources).
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

mod error;
mod session;
mod wire;

pub use error::Error;
pub use session::{Identity, Lifetime, Session};
pub use wire::FRAME_BYTES_MAX;
