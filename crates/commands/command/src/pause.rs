//! Commands held back: by CLIENT PAUSE until a moment, or writes while the server ends. The two are independent: CLIENT
//! UNPAUSE does not let writes through to a server that ends, and an end that is refused leaves CLIENT PAUSE in force.

use crate::Flags;
use base::UnixMs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// What a pause holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// Commands that may change entries.
    Writes,
    /// All commands.
    All,
}

/// The pause in force: a part of the [`Host`](crate::Host). Two pauses at once hold back what either does, until the
/// later of their ends. Clones are handles of the same.
#[derive(Clone, Debug, Default)]
pub struct Pause(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// First moment that CLIENT PAUSE does not cover; 0 when it is not in force.
    until: AtomicI64,
    all: AtomicBool,
    /// The server ends: writes are held back.
    is_ending: AtomicBool,
}

impl Pause {
    /// Pauses until the moment.
    pub fn pause(&self, now: UnixMs, until: UnixMs, what: Paused) {
        // The mode is set first: a worker that sees the new end must not miss that all commands are meant.
        if what == Paused::All {
            self.0.all.store(true, Ordering::Relaxed);
        } else if self.until(now).is_none() {
            self.0.all.store(false, Ordering::Relaxed);
        }
        self.0.until.fetch_max(until, Ordering::Release);
    }

    /// Holds writes back while the server ends.
    pub fn hold_for_end(&self) {
        self.0.is_ending.store(true, Ordering::Release);
    }

    /// Lets writes through again: the server does not end.
    pub fn release_from_end(&self) {
        self.0.is_ending.store(false, Ordering::Release);
    }

    /// Whether writes are held back since the server ends.
    pub fn is_ending(&self) -> bool {
        self.0.is_ending.load(Ordering::Acquire)
    }

    /// Ends the pause.
    pub fn unpause(&self) {
        self.0.until.store(0, Ordering::Release);
        self.0.all.store(false, Ordering::Relaxed);
    }

    /// Whether a command with these flags has to wait; of a transaction, the flags of all its commands.
    pub fn is_paused(&self, now: UnixMs, flags: Flags) -> bool {
        let is_write = flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE));
        match self.until(now) {
            Some(_) => is_write || self.0.all.load(Ordering::Relaxed),
            None => is_write && self.is_ending(),
        }
    }

    /// Whether anything is held back: two loads.
    #[inline]
    pub fn is_active(&self, now: UnixMs) -> bool {
        now < self.0.until.load(Ordering::Acquire) || self.is_ending()
    }

    /// When CLIENT PAUSE ends, if it is in force.
    pub fn until(&self, now: UnixMs) -> Option<UnixMs> {
        let until = self.0.until.load(Ordering::Acquire);
        (now < until).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_holds_back_what_it_names_until_its_end() {
        let pause = Pause::default();
        assert!(!pause.is_paused(5, Flags::WRITE));
        pause.pause(10, 20, Paused::Writes);
        assert!(pause.is_paused(19, Flags::WRITE.union(Flags::DENYOOM)));
        assert!(pause.is_paused(19, Flags::READONLY.union(Flags::MAY_REPLICATE)));
        assert!(!pause.is_paused(19, Flags::READONLY));
        assert!(!pause.is_paused(20, Flags::WRITE));
    }

    #[test]
    fn of_two_pauses_the_longer_and_the_stricter_hold() {
        let pause = Pause::default();
        pause.pause(10, 30, Paused::All);
        pause.pause(11, 20, Paused::Writes);
        assert!(pause.is_paused(29, Flags::READONLY));
        assert_eq!(pause.until(29), Some(30));
        assert_eq!(pause.until(30), None);
        pause.pause(31, 40, Paused::Writes);
        assert!(!pause.is_paused(32, Flags::READONLY), "the earlier mode ended with its pause");
    }

    #[test]
    fn unpause_ends_it_at_once() {
        let pause = Pause::default();
        pause.pause(10, 1000, Paused::All);
        pause.unpause();
        assert!(!pause.is_paused(11, Flags::WRITE));
        pause.pause(12, 20, Paused::Writes);
        assert!(!pause.is_paused(13, Flags::READONLY));
    }

    /// An end holds writes back on its own: UNPAUSE does not end that, and a refused end does not end a CLIENT PAUSE.
    #[test]
    fn an_end_and_a_pause_are_independent() {
        let pause = Pause::default();
        pause.pause(10, 20, Paused::All);
        pause.hold_for_end();
        pause.unpause();
        assert!(pause.is_paused(11, Flags::WRITE) && !pause.is_paused(11, Flags::READONLY));
        pause.pause(12, 20, Paused::All);
        assert!(pause.is_paused(12, Flags::READONLY) && !pause.is_paused(20, Flags::READONLY));
        pause.release_from_end();
        assert!(pause.is_paused(13, Flags::WRITE) && !pause.is_active(20));
    }
}
