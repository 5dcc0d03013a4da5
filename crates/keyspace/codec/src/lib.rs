//! Compression of values.
//!
//! ```text
//!  value --Workspace::encode(Method)--> header | payload        stored: codec, length, dictionary
//!                             |
//!             lzf   lz4   zstd   zstd with an Encoder
//!                                     ^
//!  samples --Trainer--> Dictionary: a file each, durable before first use --> Dictionaries: which are in use
//! ```
//!
//! C1. A value is stored compressed only if that is shorter, header included.
//! C2. Whatever bytes are decoded, the answer is the value of the promised length or an error, and the memory taken is
//!     proportional to what the bytes can stand for.
//! C3. Values cause no allocation but the growth of the output: a thread keeps a [`Workspace`].
//!
//! [`lzf`] is also useful alone: RDB files hold strings in it.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod dictionaries;
pub mod dictionary;
mod dictionary_number;
mod error;
mod lz4;
pub mod lzf;
#[cfg(test)]
mod samples;
pub mod stored;
pub mod training;
mod workspace;
pub mod zstd;

pub use dictionaries::{Dictionaries, Encoder, Lease, Reader};
pub use dictionary::{Dictionary, FileHash};
pub use dictionary_number::DictionaryNumber;
pub use error::CodecError;
pub use workspace::{Method, ROOM, Workspace};
