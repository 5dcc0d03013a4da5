//! What keeps a server from starting or running.

use crate::assembly::AssemblyError;
use crate::http_tokens::TokenFileError;
use durability::DurabilityError;
use std::io;
use std::path::PathBuf;
use tls::TlsError;

/// What keeps a server from starting or running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", if source.kind() == io::ErrorKind::AddrInUse {
        " (another program uses it: stop that one, or choose another with --port)"
    } else { "" })]
    Listen {
        /// The address or path.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Threads or event queues are not to be had, or fail.
    #[error("{0}")]
    System(#[from] io::Error),
    /// Nothing to listen on.
    #[error("nothing to listen on: port and tls-port are 0, and unixsocket is not set")]
    NoListener,
    /// The data cannot be brought back; nothing was served.
    #[error("{0}")]
    Recovery(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The data directory cannot be opened.
    #[error(
        "cannot open data directory {}: {source}; run as its owner, stop the process that uses it, or choose another directory \
         with --dir",
        path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: DurabilityError,
    },
    /// The data directory cannot be left in order.
    #[error(transparent)]
    Durability(#[from] DurabilityError),
    /// The server was forced to end although its data could not be saved.
    #[error("ended by force, and the last changes are lost: {why}")]
    Unsaved {
        /// What failed.
        why: String,
    },
    /// The audit log cannot be opened.
    #[error("cannot open the audit log {} (audit-log-file): {}", path.display(), vfs::reason(source))]
    Audit {
        /// Its file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// TLS is asked for, and its settings or files are wrong.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The file of tokens for the page is wrong.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The settings give no server.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
}
