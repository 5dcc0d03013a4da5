//! Compression of values.
//!
//! [`lzf`] is the format of liblzf, which RDB files carry.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod lzf;
