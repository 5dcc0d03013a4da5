//! What can be wrong with an RDB file or a payload.

use crate::format::Form;
use std::fmt;
use std::io;

/// Every error of reading. Damage, what is not known, and a failing source stay apart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RdbError {
    /// Bytes that no server writes there.
    #[error("offset {offset}, in {place}: expected {expected}{}", Inside(*.inside))]
    Damaged {
        /// Where the part begins that is not as it should be. For a packed value, where the value begins.
        offset: u64,
        /// What was being read.
        place: Place,
        /// What should have been there.
        expected: &'static str,
        /// For a packed value: what it is packed as, and the byte in it, uncompressed.
        inside: Option<(&'static str, usize)>,
    },
    /// The source ends too early.
    #[error("offset {offset}, in {place}: expected {expected}, and the end was found")]
    Truncated {
        /// Where it ends.
        offset: u64,
        /// What was being read.
        place: Place,
        /// What should have followed.
        expected: &'static str,
    },
    /// The bytes up to the end are not those that were written.
    #[error("offset {offset}: checksum {computed:016x}, expected {stored:016x}")]
    Checksum {
        /// Where the checksum stands.
        offset: u64,
        /// The one that is stored.
        stored: u64,
        /// That of the bytes.
        computed: u64,
    },
    /// A version that is not known, or too old.
    #[error("version {version} of {server}'s format is not known; known are Redis' versions 6 to 12 and Valkey's 80")]
    Version {
        /// Whose magic the file has.
        server: &'static str,
        /// Its version.
        version: u32,
    },
    /// What cannot be taken, nor skipped, since only who wrote it knows its length.
    #[error("offset {offset}: {what}")]
    Unsupported {
        /// Where it begins.
        offset: u64,
        /// What it is.
        what: String,
    },
    /// Compressed strings expand to more than the reader allows.
    #[error("offset {offset}: what is compressed is longer than is allowed")]
    TooLong {
        /// Where the string begins that is one too much.
        offset: u64,
    },
    /// The source failed.
    #[error("offset {offset}: reading failed")]
    Io {
        /// How far it had been read.
        offset: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What of a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// Magic and version.
    Header,
    /// What stands between values; its first byte.
    Opcode(u8),
    /// The key of a value of this form.
    Key(Form),
    /// A value of this form.
    Value(Form),
    /// Where a value or an opcode begins.
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

/// Where in a packed value.
struct Inside(Option<(&'static str, usize)>);

impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((name, at)) => write!(f, " (byte {at} of the {name})"),
            None => Ok(()),
        }
    }
}

/// What is wrong with a packed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// What it is packed as.
    pub packing: &'static str,
    /// At which of its bytes.
    pub at: usize,
    /// What should have been there.
    pub expected: &'static str,
}
