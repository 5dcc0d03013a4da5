//! Reports of what durability does.

use config::Settings;

/// Receives reports of what happens.
pub trait Tell: Send + Sync {
    /// A sentence for the server's log.
    fn say(&self, text: &str);

    /// The same for what an operator has to look at.
    fn warn(&self, text: &str) {
        self.say(text);
    }

    /// The server is to end at once, and why.
    fn stop(&self, text: &str);

    /// Which part of its life the server is in, for what supervises it.
    fn phase(&self, _phase: Phase) {}

    /// Settings of the log have changed.
    fn follow(&self, _settings: &Settings) {}
}

/// The part of its life that a server is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It loads its data: how much is done.
    Loading {
        /// Of a hundred.
        percent: u64,
    },
    /// It serves clients.
    Ready,
    /// It ends.
    Stopping,
}
