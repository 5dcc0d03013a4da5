//! Errors of reading an RDB file or a payload.

use crate::format::Form;
use std::fmt;
use std::io;

/// Every error of reading. Damage, unknown parts and a failing source are distinct.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RdbError {
    /// Bytes that no server writes there.
    #[error("offset {offset}, in {place}: expected {expected}{}", Inside(*.inside))]
    Damaged {
        /// The offset of the invalid part. For a packed value, the offset of the value.
        offset: u64,
        /// The part being read.
        place: Place,
        /// What the format requires there.
        expected: &'static str,
        /// For a packed value: its packing, and the offset of the fault in it, uncompressed.
        inside: Option<(&'static str, usize)>,
    },
    /// The source ends too early.
    #[error("offset {offset}, in {place}: expected {expected}, and the end was found")]
    Truncated {
        /// The offset of the end.
        offset: u64,
        /// The part being read.
        place: Place,
        /// What should have followed.
        expected: &'static str,
    },
    /// The bytes before the end were changed.
    #[error("offset {offset}: checksum {computed:016x}, expected {stored:016x}")]
    Checksum {
        /// The offset of the checksum.
        offset: u64,
        /// The stored checksum.
        stored: u64,
        /// The computed checksum.
        computed: u64,
    },
    /// An unknown version, or one that is too old.
    #[error("version {version} of {server}'s format is not known; known are Redis' versions 6 to 12 and Valkey's 80")]
    Version {
        /// The server of the file's magic.
        server: &'static str,
        /// Its version.
        version: u32,
    },
    /// A part that can be neither read nor skipped, because only its writer knows its length.
    #[error("offset {offset}: {what}")]
    Unsupported {
        /// The offset of the part.
        offset: u64,
        /// A description of the part.
        what: String,
    },
    /// Compressed strings expand to more than the reader allows.
    #[error("offset {offset}: what is compressed is longer than is allowed")]
    TooLong {
        /// The offset of the string that exceeds the limit.
        offset: u64,
    },
    /// The source failed.
    #[error("offset {offset}: reading failed")]
    Io {
        /// The offset reached.
        offset: u64,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// Magic and version.
    Header,
    /// An opcode between values; its first byte.
    Opcode(u8),
    /// The key of a value of this form.
    Key(Form),
    /// A value of this form.
    Value(Form),
    /// The beginning of a value or an opcode.
    Next,
    /// The version and checksum of a payload.
    Footer,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the header"),
            Self::Opcode(number) => write!(f, "opcode {number}"),
            Self::Key(form) => write!(f, "the key of {form}"),
            Self::Value(form) => form.fmt(f),
            Self::Next => f.write_str("the space between values"),
            Self::Footer => f.write_str("the footer"),
        }
    }
}

/// The position in a packed value.
struct Inside(Option<(&'static str, usize)>);

impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((name, at)) => write!(f, " (byte {at} of the {name})"),
            None => Ok(()),
        }
    }
}

/// A fault in a packed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// Its packing.
    pub packing: &'static str,
    /// The offset of the fault in it.
    pub at: usize,
    /// What the format requires there.
    pub expected: &'static str,
}
