//! The command log: one ordered history of effects, in a compact binary form.
//!
//! R1. A record holds the effects of one command, or of one whole transaction; it is applied whole or not at all.
//! R2. Encoding is canonical: equal effects have equal bytes, and bytes that decode encode back to themselves.
//!
//! Format: docs/formats/command-log.md.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used))]

pub mod record;

pub use record::{DecodeError, RecordBuilder, effects};
