//! Whom a worker serves.

use base::KeyspaceId;
use engine::{Serve, Waiter};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a worker needs to serve others, and whom it has served. Empty nearly always.
#[derive(Default)]
pub(crate) struct Serving {
    /// Runs commands.
    pub(super) server: Option<Arc<dyn Serve>>,
    /// Keys changed by the running command that commands wait for.
    pub(super) ready: VecDeque<(KeyspaceId, Vec<u8>)>,
    /// Waiters that were served and not notified yet.
    pub(super) served: Vec<Arc<dyn Waiter>>,
}

impl Serving {
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(crate) fn push_ready(&mut self, space: KeyspaceId, key: &[u8]) {
        self.ready.push_back((space, key.to_vec()));
    }
}
