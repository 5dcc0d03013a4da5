//! The same commands to several servers, the same replies from all of them.
//!
//! ```text
//!     scripts/*.txt ----> steps --\                          /-> Valkey 9.1, the reference
//!     grammar/*.txt -> random -----> session (in lockstep) ----> Redis 7.0, the second opinion
//!          values, seed      ^           |                   \-> Onggi
//!                          shrink <--- judge: bytes, else data/normalisers.txt, else docs/protocol/differences.md
//! ```
//!
//! I1. A reply is the reference's byte for byte, or one row of a table says what of it is and why. Both tables are
//!     data, and a row of differences that nothing hits fails the test.
//! I2. Whatever a random sequence does repeats from its printed seed on every server: no reply depends on the clock,
//!     on the order of two connections, or on the memory of the machine.
//!
//! Scripts check every option and every error of every command once; random sequences check what commands do to the
//! keys that others left. `README.md` of this crate says how to run both, and how a family is added.
#![forbid(unsafe_code)]

pub mod big;
pub mod differences;
pub mod generate;
pub mod grammar;
pub mod judge;
pub mod messages;
pub mod normalise;
pub mod pattern;
pub mod payload;
pub mod random;
pub mod request;
pub mod resp;
pub mod scope;
pub mod script;
pub mod session;
pub mod shrink;
pub mod state;
pub mod step;
pub mod target;
pub mod text;
pub mod values;
