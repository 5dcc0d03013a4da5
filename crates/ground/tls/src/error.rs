//! What is wrong with a setting or a file of TLS.

use std::io;
use std::path::PathBuf;

/// Why a configuration cannot be made. Every message names the directive, and the file where there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A directive without which TLS does not work.
    #[error("{directive} is not set: {why}")]
    Missing {
        /// The directive.
        directive: &'static str,
        /// What needs it.
        why: &'static str,
    },
    /// A file or directory that cannot be read.
    #[error("{directive}: cannot read {}: {source}", path.display())]
    Read {
        /// The directive that names it.
        directive: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file that does not hold what it should.
    #[error("{directive}: {} {reason}", path.display())]
    Content {
        /// The directive that names it.
        directive: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong, as the rest of a sentence.
        reason: String,
    },
    /// A word that is unknown or not available.
    #[error("{directive}: {reason}")]
    Word {
        /// The directive.
        directive: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The parts do not work together.
    #[error("TLS cannot be configured: {0}")]
    Rejected(#[from] rustls::Error),
}

impl TlsError {
    /// The directive at fault, where there is a single one.
    pub fn directive(&self) -> Option<&'static str> {
        match self {
            Self::Missing { directive, .. }
            | Self::Read { directive, .. }
            | Self::Content { directive, .. }
            | Self::Word { directive, .. } => Some(directive),
            Self::Rejected(_) => None,
        }
    }
}
