//! A string of the data as tools show it.

use crate::text;
use serde::Serialize;
use std::fmt;

/// Bytes to show of a key or value, unless all are requested.
const SHORT_LEN: usize = 64;

/// An escaped string of the data, or its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shortened {
    /// The bytes as [`text::escape`] gives them.
    pub text: String,
    /// Length of the whole string.
    pub bytes: u64,
    /// Whether `text` is only the beginning.
    pub shortened: bool,
}

impl Shortened {
    /// All of the bytes, or the first 64.
    pub fn new(bytes: &[u8], full: bool) -> Self {
        let shown = if full { bytes } else { bytes.get(..SHORT_LEN).unwrap_or(bytes) };
        Self { text: text::escape(shown), bytes: bytes.len() as u64, shortened: shown.len() < bytes.len() }
    }
}

impl fmt::Display for Shortened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.text.replace('"', "\\\""))?;
        if self.shortened { write!(f, "... ({})", text::size(self.bytes)) } else { Ok(()) }
    }
}
