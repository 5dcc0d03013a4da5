//! Why there is no stream.

use crate::primary::Primary;
use std::io;
use vfs::FsError;

/// Every error of a link. Text names the primary, what happened and what to do.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The operating system, or the network.
    #[error("{primary}: {what}: {source}")]
    Io {
        /// Which primary.
        primary: String,
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The file that holds what was received takes no more.
    #[error("{primary}: cannot store what was received: {source}")]
    Spool {
        /// Which primary.
        primary: String,
        /// Why.
        source: FsError,
    },
    /// The connection ended.
    #[error("{primary}: the connection ended while {what}")]
    Ended {
        /// Which primary.
        primary: String,
        /// What was being done.
        what: &'static str,
    },
    /// The primary answered an error.
    #[error("{primary}: {command} was refused: {reply}")]
    Refused {
        /// Which primary.
        primary: String,
        /// The command of the handshake.
        command: &'static str,
        /// The reply, without its first character.
        reply: String,
    },
    /// The primary cannot replicate now and may later: it loads, or has lost its own primary.
    #[error("{primary}: not ready: {reply}")]
    NotReady {
        /// Which primary.
        primary: String,
        /// The reply, without its first character.
        reply: String,
    },
    /// The server does not speak this protocol.
    #[error("{primary}: expected {expected}, received {received:?}")]
    Protocol {
        /// Which primary.
        primary: String,
        /// What should have come.
        expected: &'static str,
        /// What came.
        received: String,
    },
}

impl LinkError {
    pub(crate) fn io(primary: &Primary, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        let primary = primary.to_string();
        move |source| match source.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                Self::Ended { primary, what }
            }
            _ => Self::Io { primary, what, source },
        }
    }

    /// Whether a later attempt may succeed without a change by hand.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Ended { .. } | Self::NotReady { .. })
    }
}
