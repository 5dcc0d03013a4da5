//! Who sees calls that are done.

use crate::Args;
use crate::clients::ClientInfo;
use crate::spec::{Flags, KeySpec};
use crate::stats::WorkerStats;
use base::UnixMs;
use engine::Key;

/// Sees calls that are done; the slow log implements it. A part of the [`Host`](crate::Host), so that EXEC can show
/// what it ran.
pub trait Observer: Send + Sync {
    /// A call was made.
    fn done(&self, done: &Done<'_>);
}

/// A call that is done.
pub struct Done<'d> {
    /// How the command that ran behaves.
    pub flags: Flags,
    /// Where its keys stand.
    pub keys: &'static [KeySpec],
    /// The arguments.
    pub args: Args<'d>,
    /// The connection.
    pub client: &'d ClientInfo,
    /// The figures of the worker.
    pub stats: &'d WorkerStats,
    /// A key argument that was hashed on the way: its index and the key.
    pub hashed: Option<(usize, Key<'d>)>,
    /// Hashes another.
    pub hash: &'d dyn Fn(&'d [u8]) -> Key<'d>,
    /// Wall time of the command.
    pub now: UnixMs,
    /// How long it took.
    pub duration_ns: u64,
    /// How long the request was.
    pub request_bytes: usize,
    /// How long the reply is.
    pub reply_bytes: usize,
}

impl<'d> Done<'d> {
    /// The argument at `index` as a key.
    pub fn key(&self, index: usize) -> Key<'d> {
        match self.hashed {
            Some((at, key)) if at == index => key,
            _ => (self.hash)(self.args.bytes(index).unwrap_or_default()),
        }
    }
}
