//! TLS for listeners and for connections to other servers: settings in OpenSSL's words become configurations of
//! `rustls`.
//!
//! ```text
//! Options --load--> Loaded { ServerConfig, ClientConfig } --put--> Contexts --> new connections
//! ```
//!
//! T1. Loading reads and checks every file before anything changes, so a bad file leaves the configuration in force.
//! T2. Each load makes new ticket keys. A session from before a reload is not resumed, so a new CA applies to all.
//! T3. A connection keeps the configuration with which it began.
//! T4. A load notes what the files held ([`Loaded::digest`]), so that a later look finds a change.

#![forbid(unsafe_code)]

pub mod certificate;
mod contexts;
mod der;
mod encrypted_key;
mod error;
mod files;
mod load;
mod socket;
mod stream;
mod suites;
mod verifier;

pub use contexts::Contexts;
pub use error::TlsError;
pub use load::{
    ClientAuth, ClientNames, ClientOptions, KeyPass, Loaded, Options, client_config, digest, load, system_ca_file,
};
pub use rustls::{ClientConfig, ServerConfig};
pub use socket::ClientSocket;
pub use stream::Stream;
