//! The mailboxes of all workers: they are woken, and clients are closed, through them.

use crate::mailbox::Mailbox;
use crate::message::Message;
use command::clients::Closer;
use std::sync::{Arc, OnceLock};
use store::{Wake, WorkerSet};

/// Wakes workers through their mailboxes, and closes clients there.
#[derive(Default)]
pub(super) struct Mailboxes(pub(super) OnceLock<Vec<Arc<Mailbox<Message>>>>);

impl Mailboxes {
    pub(super) fn all(&self) -> &[Arc<Mailbox<Message>>] {
        self.0.get().map(Vec::as_slice).unwrap_or_default()
    }
}

impl Wake for Mailboxes {
    fn wake(&self, workers: WorkerSet) {
        let woken = self.all().iter().enumerate().filter(|(number, _)| workers.contains(*number));
        woken.for_each(|(_, mailbox)| mailbox.wake());
    }
}

impl Closer for Mailboxes {
    fn close(&self, worker: usize, id: u64) {
        if let Some(mailbox) = self.all().get(worker) {
            mailbox.send(Message::Close(id));
        }
    }

    fn end_wait(&self, worker: usize, id: u64) {
        if let Some(mailbox) = self.all().get(worker) {
            mailbox.send(Message::EndWait(id));
        }
    }

    fn follow_users(&self) {
        self.all().iter().for_each(|mailbox| mailbox.wake());
    }
}
