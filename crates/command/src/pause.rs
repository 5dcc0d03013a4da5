//! CLIENT PAUSE: commands held back until a moment. Meant for handing over to another server without losing writes.

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

/// The pause in force: a part of the [`Host`](crate::Host). Two pauses at once hold back what either does, until the later
/// of their ends. Clones are handles of the same.
#[derive(Clone, Debug, Default)]
pub struct Pause(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// First moment that is not paused; 0 when nothing is.
    until: AtomicI64,
    all: AtomicBool,
}

impl Pause {
    /// Pauses until the moment.
    pub fn pause(&self, now: UnixMs, until: UnixMs, what: Paused) {
        // The mode is set first: a worker that sees the new end must not miss that all commands are meant.
        if what == Paused::All {
            self.0.all.store(true, Ordering::Relaxed);
        } else if !self.is_active(now) {
            self.0.all.store(false, Ordering::Relaxed);
        }
        self.0.until.fetch_max(until, Ordering::Release);
    }

    /// Ends the pause.
    pub fn unpause(&self) {
        self.0.until.store(0, Ordering::Release);
        self.0.all.store(false, Ordering::Relaxed);
    }

    /// Whether a command with these flags has to wait; of a transaction, the flags of all its commands. False at the cost
    /// of one load when nothing was ever paused.
    #[inline]
    pub fn is_paused(&self, now: UnixMs, flags: Flags) -> bool {
        self.is_active(now)
            && (flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE)) || self.0.all.load(Ordering::Relaxed))
    }

    /// Whether anything is held back.
    #[inline]
    pub fn is_active(&self, now: UnixMs) -> bool {
        now < self.0.until.load(Ordering::Acquire)
    }

    /// When the pause ends, if one is in force: what the executor waits for.
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
}
