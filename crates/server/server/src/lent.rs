//! Connections on their way between a worker and the attendant ([`desk`](crate::desk)).

use crate::connection::Connection;
use crate::socket::Socket;

/// A connection that another worker is to serve for a while.
pub struct Lent {
    /// Its id at home.
    pub(crate) place: usize,
    pub(crate) connection: Box<Connection>,
    /// Its socket, by a descriptor of its own.
    pub(crate) socket: Socket,
}

/// A connection that was lent.
pub struct Back {
    /// Its id at home.
    pub(crate) place: usize,
    /// Its client.
    pub(crate) client: u64,
    /// `None` when it was closed.
    pub(crate) connection: Option<Box<Connection>>,
}
