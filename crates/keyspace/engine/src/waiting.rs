//! Commands that wait for keys: the state of a connection's wait, and what the store knows of waiting commands.
//!
//! ```text
//!             begin              claim             finish
//!     idle ----------> waiting ----------> served ----------> over    by the command that pushes, its keys locked
//!       ^                | ^                  |
//!       '----------------' '------------------'                       by the connection's worker: timeout, close
//!              end              finish                                (finish: there was no element for it)
//! ```
//!
//! N1. A wait ends by one atomic step on one word, whatever ends it: a push that serves it, its timeout, CLIENT
//!     UNBLOCK, the end of the connection. Each wait has a number, so a leftover of an earlier wait ends no later one.
//! N2. A server claims the wait before it serves it. Until it finishes, nothing else ends the wait. If there is nothing
//!     for the wait after all, the wait continues.

use crate::Type;
use crate::sync::AtomicU64;
use base::{DbIndex, Lsn};
use std::any::Any;
use std::sync::atomic::Ordering;

/// How CLIENT UNBLOCK ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unblock {
    /// As if its time had come.
    Timeout,
    /// With an error.
    Error,
}

/// Which of a connection's waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitNumber(u64);

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// A command served it.
    Served,
    /// CLIENT UNBLOCK asked for it.
    Unblocked(Unblock),
    /// What its own worker looked for has come: the end of its time, or of what it waited for.
    Over,
}

/// Where the wait of a connection's command stands.
#[derive(Debug)]
pub struct WaitState(AtomicU64);

/// The word: the number of the wait, and one of these.
const PHASE_BITS: u32 = 3;
const PHASE: u64 = (1 << PHASE_BITS) - 1;
const IDLE: u64 = 0;
const WAITING: u64 = 1;
const CLAIMED: u64 = 2;
const SERVED: u64 = 3;
const UNBLOCKED_TIMEOUT: u64 = 4;
const UNBLOCKED_ERROR: u64 = 5;
/// Its connection has closed: nothing ends it any more.
const CLOSED: u64 = 6;
/// As `WAITING`, but CLIENT UNBLOCK leaves it alone.
const FIRM: u64 = 7;

impl Default for WaitState {
    /// No wait.
    fn default() -> Self {
        Self(AtomicU64::new(IDLE))
    }
}

impl WaitNumber {
    fn word(self, phase: u64) -> u64 {
        self.0 << PHASE_BITS | phase
    }
}

impl WaitState {
    /// A wait begins. Called by the connection's worker, while there is none.
    pub fn begin(&self) -> WaitNumber {
        self.begin_as(WAITING)
    }

    /// As `begin`, for a wait that CLIENT UNBLOCK cannot end: whose end is work of its own, such as that of SHUTDOWN.
    pub fn begin_firm(&self) -> WaitNumber {
        self.begin_as(FIRM)
    }

    fn begin_as(&self, phase: u64) -> WaitNumber {
        let number = WaitNumber((self.0.load(Ordering::Relaxed) >> PHASE_BITS).wrapping_add(1));
        self.0.store(number.word(phase), Ordering::Release);
        number
    }

    /// Whether a command waits: no longer once something has ended that, even if its worker does not know it yet.
    pub fn is_waiting(&self) -> bool {
        matches!(self.0.load(Ordering::Acquire) & PHASE, WAITING | CLAIMED | FIRM)
    }

    /// Whether this wait can still be served.
    pub fn is_open(&self, wait: WaitNumber) -> bool {
        let word = self.0.load(Ordering::Acquire);
        word == wait.word(WAITING) || word == wait.word(CLAIMED)
    }

    /// Claims a wait, to serve it; false when it has ended.
    pub fn claim(&self, wait: WaitNumber) -> bool {
        self.step(wait.word(WAITING), wait.word(CLAIMED))
    }

    /// Finishes what [`WaitState::claim`] began: the wait is over, or there was nothing for it and it continues.
    pub fn finish(&self, wait: WaitNumber, is_served: bool) {
        // It fails for a connection that has closed meanwhile, which needs no answer.
        self.step(wait.word(CLAIMED), wait.word(if is_served { SERVED } else { WAITING }));
    }

    /// Ends whatever wait there is for CLIENT UNBLOCK; false when there is none that it may end, or it is ending
    /// already.
    pub fn unblock(&self, how: Unblock) -> bool {
        let word = self.0.load(Ordering::Acquire);
        let phase = match how {
            Unblock::Timeout => UNBLOCKED_TIMEOUT,
            Unblock::Error => UNBLOCKED_ERROR,
        };
        word & PHASE == WAITING && self.step(word, word & !PHASE | phase)
    }

    /// How this wait has ended. It ends now if `is_over` says so and no other thread was faster. `None` while it
    /// continues. Called by the connection's worker; gives the end once.
    pub fn end(&self, wait: WaitNumber, is_over: bool) -> Option<WaitEnd> {
        let idle = wait.word(IDLE);
        if is_over && (self.step(wait.word(WAITING), idle) || self.step(wait.word(FIRM), idle)) {
            return Some(WaitEnd::Over);
        }
        let end = match self.0.load(Ordering::Acquire) & PHASE {
            SERVED => WaitEnd::Served,
            UNBLOCKED_TIMEOUT => WaitEnd::Unblocked(Unblock::Timeout),
            UNBLOCKED_ERROR => WaitEnd::Unblocked(Unblock::Error),
            _ => return None,
        };
        self.0.store(idle, Ordering::Release);
        Some(end)
    }

    /// The connection has closed.
    pub fn close(&self) {
        self.0.store(CLOSED, Ordering::Release);
    }

    fn step(&self, from: u64, to: u64) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A command that waits for keys, as the store sees it. Only the code that runs commands knows what it does
/// ([`Serve`](crate::Serve)).
pub trait Waiter: Any + Send + Sync {
    /// The database of its keys.
    fn db(&self) -> DbIndex;

    /// Visits every key that it reaches when it runs, and says whether it waits for it.
    fn visit_keys(&self, visit: &mut dyn FnMut(&[u8], bool));

    /// Whether it can still be served; if not, it is forgotten.
    fn is_open(&self) -> bool;

    /// Whether it is worth running when one of its keys holds this, or nothing. The answer for nothing never changes.
    fn wants(&self, found: Option<Type>) -> bool;

    /// The client whose changes those of serving it are; 0 for none.
    fn client(&self) -> u64 {
        0
    }

    /// Ends the wait with its answer, to be sent once the log is durable up to `hold`. `wrote` is the position after
    /// what serving it has changed.
    fn settle(&self, wrote: Option<Lsn>, hold: Option<Lsn>);

    /// Has the answer sent.
    fn wake(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_once() {
        let state = WaitState::default();
        assert!(!state.is_waiting() && !state.unblock(Unblock::Error));
        let first = state.begin();
        assert!(state.is_waiting() && state.is_open(first));
        assert_eq!(state.end(first, false), None);
        assert!(state.claim(first) && !state.claim(first), "nobody else serves it");
        assert!(!state.unblock(Unblock::Error) && state.is_open(first));
        assert_eq!(state.end(first, true), None, "nor ends it meanwhile");
        state.finish(first, false);
        assert!(state.claim(first), "there was nothing for it, and it went on");
        state.finish(first, true);
        assert!(!state.is_open(first) && !state.is_waiting());
        assert_eq!(state.end(first, true), Some(WaitEnd::Served));
        assert_eq!(state.end(first, true), None);

        let second = state.begin();
        assert!(!state.claim(first) && !state.is_open(first), "what is left of the first wait does not end the second");
        assert!(state.unblock(Unblock::Error) && !state.claim(second) && !state.unblock(Unblock::Timeout));
        assert_eq!(state.end(second, false), Some(WaitEnd::Unblocked(Unblock::Error)));
        let third = state.begin();
        assert_eq!(state.end(third, true), Some(WaitEnd::Over));
        assert!(!state.claim(third));

        let firm = state.begin_firm();
        assert!(state.is_waiting() && !state.unblock(Unblock::Error) && !state.unblock(Unblock::Timeout));
        assert_eq!(state.end(firm, false), None);
        assert_eq!(state.end(firm, true), Some(WaitEnd::Over));
    }

    #[test]
    fn a_closed_connection_waits_no_more() {
        let state = WaitState::default();
        let wait = state.begin();
        assert!(state.claim(wait));
        state.close();
        state.finish(wait, false);
        assert!(!state.is_open(wait) && !state.is_waiting() && !state.claim(wait));
    }
}
