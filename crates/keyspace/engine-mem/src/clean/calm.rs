//! What cleaning remembers between its steps.

use crate::pages::{Backing, Pages};

/// Rounds of cleaning without a write, of twenty a second, after which it is calm.
pub(super) const CALM_ROUNDS: u8 = 10;

/// Whether entries come and go: looked for by rounds of cleaning, in what pages hold, so that writes have nothing to
/// note.
#[derive(Default)]
pub struct Calm {
    /// Live and free bytes of the pages when the last cleaning ended.
    pub(super) seen: (usize, usize),
    /// Rounds since they were others.
    pub(super) rounds: u8,
}

impl Calm {
    /// A round begins: whether it is calm.
    pub(super) fn is_calm<B: Backing>(&mut self, pages: &Pages<B>) -> bool {
        if self.seen != (pages.live_bytes(), pages.free_bytes()) {
            self.rounds = 0;
        }
        self.rounds >= CALM_ROUNDS
    }

    /// Cleaning has ended, for this round if nothing is left to do.
    pub(super) fn note<B: Backing>(&mut self, pages: &Pages<B>, goes_on: bool) {
        self.seen = (pages.live_bytes(), pages.free_bytes());
        self.rounds = self.rounds.saturating_add(u8::from(!goes_on));
    }
}

/// A walk over all directories that moves units out of sparse pages: the database and the hash it has come to.
#[derive(Default)]
pub struct TableCleaning {
    pub(super) space: usize,
    pub(super) from: u64,
}
