//! What can go wrong.

use std::io;

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No server could be connected to, or the connection is lost. Another connection may continue the session.
    #[error("{server}: {source}")]
    Connection {
        /// The server.
        server: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The list of servers is empty.
    #[error("no server of ZooKeeper is named")]
    NoServer,
    /// The server has ended the session, and removed its ephemeral nodes.
    #[error("the session has expired")]
    Expired,
    /// The path has no node, or its parent has none.
    #[error("{path}: no such node")]
    NoNode {
        /// The path.
        path: String,
    },
    /// The path has a node already.
    #[error("{path}: the node exists")]
    NodeExists {
        /// The path.
        path: String,
    },
    /// Another refusal of the server.
    #[error("{path}: ZooKeeper answers error {code}")]
    Refused {
        /// The path.
        path: String,
        /// The code, as `KeeperException.Code` lists them.
        code: i32,
    },
    /// The server has sent what the protocol does not allow.
    #[error("{server}: a frame of {bytes} bytes cannot be read")]
    Frame {
        /// The server.
        server: String,
        /// Its length.
        bytes: usize,
    },
}

const EXPIRED: i32 = -112;
const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;

impl Error {
    /// The error of this code, in the reply to a request about this path.
    pub(crate) fn of(code: i32, path: &str) -> Self {
        let path = path.to_owned();
        match code {
            EXPIRED => Self::Expired,
            NO_NODE => Self::NoNode { path },
            NODE_EXISTS => Self::NodeExists { path },
            code => Self::Refused { path, code },
        }
    }

    /// Whether the connection is unusable; a new one may continue the session.
    pub fn is_disconnection(&self) -> bool {
        matches!(self, Self::Connection { .. } | Self::NoServer | Self::Frame { .. })
    }
}
