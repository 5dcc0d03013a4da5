//! `onggi bench`: a load generator and a comparison harness for servers that speak RESP, and for ARCUS. It observes
//! servers only through their sockets and through the kernel's information about their processes.
//!
//! ```text
//! cli -> measure -------> generator -> template, keys, payload, resp
//!   \--> compare/suite -> measure, server (starts and stops them)
//!          \-> stats -> results (JSON) -> report (Markdown, HTML)
//! ```
//!
//! What it measures, and why: on a small machine operations per second mean little, because generator and server share
//! it. The server's CPU time per operation and the bytes per key are repeatable. Still they drift with the host, so
//! servers are compared in interleaved rounds, and a ratio is the median over rounds with a bootstrap interval.

#![forbid(unsafe_code)]

pub mod catalogue;
pub mod cli;
pub mod client;
pub mod compare;
pub mod echo;
pub mod error;
pub mod generator;
pub mod guest;
pub mod interrupt;
pub mod keys;
pub mod machine;
pub mod measure;
pub mod memcached;
pub mod payload;
pub mod process;
pub mod progress;
pub mod report;
pub mod resp;
pub mod results;
pub mod server;
pub mod stats;
pub mod targets;
pub mod template;
pub mod ycsb;
