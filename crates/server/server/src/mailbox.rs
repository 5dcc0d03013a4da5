//! How other threads reach a worker: a list of messages and a wake-up of its loop.
//!
//! M1. A message is in the list before the wake-up is sent, and the worker empties the list after it woke: no message
//!     is lost.
//! M2. The wake-up is a system call, so only a sender that finds the list empty makes it.

use crate::sync::{AtomicBool, Mutex};
use std::io;
use std::sync::atomic::Ordering;

/// A worker's letter box.
pub struct Mailbox<M> {
    messages: Mutex<Vec<M>>,
    /// Set while a wake-up is on its way; cleared by the worker before it looks.
    pending: AtomicBool,
    wake: Box<dyn Fn() -> io::Result<()> + Send + Sync>,
}

impl<M> Mailbox<M> {
    /// A box whose owner is woken by `wake`.
    pub fn new(wake: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { messages: Mutex::new(Vec::new()), pending: AtomicBool::new(false), wake: Box::new(wake) }
    }

    /// Leaves a message.
    pub fn send(&self, message: M) {
        self.messages.lock().push(message);
        self.wake();
    }

    /// Wakes the worker without a message: something it watches has changed.
    pub fn wake(&self) {
        // The exchange comes after the message was added (or the watched thing changed), and the worker clears the flag
        // before it looks: either it sees what changed, or this call sees the cleared flag and wakes it again.
        if !self.pending.swap(true, Ordering::AcqRel)
            && let Err(error) = (self.wake)()
        {
            // An eventfd refuses a write only when its counter is full, and then a wake-up is on its way.
            debug_assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
        }
    }

    /// Takes the messages that `is_meant` names, for another worker than the one they were left for.
    pub fn take_some(&self, is_meant: impl Fn(&M) -> bool) -> Vec<M> {
        self.messages.lock().extract_if(.., |message| is_meant(message)).collect()
    }

    /// Takes all messages. Called by the worker when it woke.
    pub fn take(&self, into: &mut Vec<M>) -> bool {
        let woken = self.pending.swap(false, Ordering::AcqRel);
        if woken {
            into.append(&mut self.messages.lock());
        }
        woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    /// Every message of many senders arrives, though wake-ups are saved (M1, M2).
    #[test]
    fn no_message_is_lost() {
        const COUNT: usize = 10_000;
        let (sender, receiver) = channel();
        let mailbox = Arc::new(Mailbox::new(move || sender.send(()).map_err(io::Error::other)));
        let senders: Vec<_> = (0..3)
            .map(|_| {
                let mailbox = mailbox.clone();
                std::thread::spawn(move || (0..COUNT).for_each(|number| mailbox.send(number)))
            })
            .collect();
        let mut messages = Vec::new();
        while messages.len() < 3 * COUNT {
            receiver.recv().expect("a wake-up comes while messages are missing");
            mailbox.take(&mut messages);
        }
        senders.into_iter().for_each(|sender| sender.join().expect("senders do not fail"));
    }
}
