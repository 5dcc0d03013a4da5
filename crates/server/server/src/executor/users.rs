//! Connections follow changes of their users: before each turn and each batch, one comparison of a counter.

use super::Executor;
use command::login::Login;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which changes of users the connections of a worker have taken over.
pub(super) struct UserChanges {
    /// Advances with every change of a user ([`command::acl::Users::generation`]).
    generation: Arc<AtomicU64>,
    /// The generation that the connections have taken over.
    seen: u64,
}

impl UserChanges {
    pub(super) fn new(login: &Login) -> Self {
        let generation = login.users.generation();
        Self { seen: generation.load(Ordering::Acquire), generation }
    }
}

impl Executor {
    /// Takes over changes of users since the last look.
    #[inline]
    pub(super) fn follow_users(&mut self) {
        if self.users.generation.load(Ordering::Acquire) != self.users.seen {
            self.follow_users_now();
        }
    }

    #[cold]
    fn follow_users_now(&mut self) {
        self.users.seen = self.users.generation.load(Ordering::Acquire);
        let ids: Vec<usize> = self.connections.iter().map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.follow_user_of(id));
    }

    /// Computes the rights of a connection. Closes it if its user was deleted or lost one of its channels.
    pub(super) fn follow_user_of(&mut self, id: usize) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.session.follow_users(self.users.seen) {
            self.shared.host.clients.kill(connection.session.id);
        }
    }
}
