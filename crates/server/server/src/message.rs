//! What other threads ask of a worker.

use crate::dialect::Language;
use crate::fetching::Fetched;
use crate::lent::{Back, Lent};
use crate::socket::Socket;
use crate::strangers::Stranger;
use command::Session;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// What other threads ask of a worker.
pub enum Message {
    /// Serve this connection.
    Accept {
        /// Its socket.
        socket: Socket,
        /// What it begins as.
        session: Box<Session>,
        /// What its client speaks.
        language: Language,
        /// Held until it has logged in.
        stranger: Option<Arc<Stranger>>,
    },
    /// Close this client.
    Close(u64),
    /// Look how this client's wait has ended.
    EndWait(u64),
    /// A row has come that requests of this worker wait for.
    Fetched(Fetched),
    /// Show this line to the connections that watch.
    Show(Arc<[u8]>),
    /// A script keeps this worker: serve its connections, as the attendant.
    Attend(usize, Vec<Lent>),
    /// Its script has ended: give them back.
    Leave(usize, Sender<Vec<Back>>),
    /// Say that all earlier turns have ended.
    Fence(Sender<()>),
    /// End.
    Stop,
}
