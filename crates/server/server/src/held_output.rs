//! Which part of a connection's output may be sent, when replies wait for the log.
//!
//! ```text
//! unsent output   +OK :1 $3 abc | +OK +OK | :7 ...        a mark: from here on only when durable >= lsn
//!                               ^ lsn 100 ^ lsn 180
//! ```
//!
//! The connection keeps executing meanwhile: later output follows the marks, and goes when they are passed.
//!
//! O1. Positions and LSNs of marks ascend. So the output up to the first mark that is not passed may be sent, and a
//!     reply that waits for no more than the mark before it needs none of its own.
//! O2. Replies written between two checks of the log share a mark: one sync will mostly make them durable together.

use base::Lsn;
use std::collections::VecDeque;

/// The marks of one connection. Holds no memory until there is one.
#[derive(Debug, Default)]
pub struct HeldOutput {
    marks: VecDeque<Mark>,
    /// Bytes sent; positions of marks count from the same beginning.
    sent: u64,
    /// The log was not checked since the last mark was made.
    is_open: bool,
}

#[derive(Debug)]
struct Mark {
    from: u64,
    lsn: Lsn,
}

/// Marks that a connection without any keeps memory for.
const MARKS_KEPT: usize = 16;

impl HeldOutput {
    /// Holds everything after the first `unsent` bytes of the unsent output until the log is durable up to `lsn`.
    pub fn hold(&mut self, unsent: usize, lsn: Lsn) {
        match self.marks.back_mut() {
            Some(last) if last.lsn >= lsn => {}
            Some(last) if self.is_open => last.lsn = lsn,
            _ => {
                self.marks.push_back(Mark { from: self.sent + unsent as u64, lsn });
                self.is_open = true;
            }
        }
    }

    /// How many of `unsent` bytes may be sent when the log is durable up to here.
    #[inline]
    pub fn sendable(&mut self, unsent: usize, durable: Lsn) -> usize {
        if self.marks.is_empty() { unsent } else { self.pass(durable).unwrap_or(unsent) }
    }

    /// Forgets the marks that are passed; gives the bytes before the next one.
    fn pass(&mut self, durable: Lsn) -> Option<usize> {
        self.is_open = false;
        while self.marks.front().is_some_and(|mark| mark.lsn <= durable) {
            self.marks.pop_front();
        }
        if self.marks.is_empty() && self.marks.capacity() > MARKS_KEPT {
            self.marks = VecDeque::new();
        }
        self.marks.front().map(|mark| (mark.from - self.sent) as usize)
    }

    /// Bytes of output were sent.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        self.sent += count as u64;
    }

    /// Whether anything waits, or did when it was last looked at.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// The memory it holds.
    pub fn held_bytes(&self) -> usize {
        self.marks.capacity() * size_of::<Mark>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_goes_up_to_the_first_mark_that_is_not_passed() {
        let mut held = HeldOutput::default();
        assert_eq!(held.sendable(10, Lsn(0)), 10);
        held.advance(10);
        held.hold(5, Lsn(100));
        assert_eq!(held.sendable(20, Lsn(99)), 5);
        held.advance(5);
        held.hold(15, Lsn(180));
        assert_eq!(held.sendable(30, Lsn(99)), 0);
        assert_eq!(held.sendable(30, Lsn(100)), 15);
        held.advance(10);
        assert_eq!(held.sendable(20, Lsn(150)), 5);
        assert_eq!(held.sendable(20, Lsn(180)), 20);
        assert!(held.is_empty());
    }

    #[test]
    fn replies_of_one_turn_share_a_mark() {
        let mut held = HeldOutput::default();
        held.hold(0, Lsn(10));
        held.hold(5, Lsn(20));
        held.hold(10, Lsn(15));
        assert_eq!(held.sendable(12, Lsn(19)), 0);
        held.hold(12, Lsn(20));
        assert_eq!(held.marks.len(), 1, "what the mark before waits for as well needs no mark");
        held.hold(12, Lsn(21));
        held.hold(14, Lsn(22));
        assert_eq!(held.marks.len(), 2);
        assert_eq!((held.sendable(20, Lsn(20)), held.sendable(20, Lsn(21)), held.sendable(20, Lsn(22))), (12, 12, 20));
    }

    #[test]
    fn a_long_queue_gives_its_memory_back() {
        let mut held = HeldOutput::default();
        for lsn in 1..=1000 {
            held.hold(lsn as usize, Lsn(lsn));
            held.sendable(2000, Lsn(0));
        }
        assert!(held.held_bytes() >= 16_000);
        assert_eq!(held.sendable(2000, Lsn(500)), 501);
        assert_eq!(held.sendable(2000, Lsn(1000)), 2000);
        assert_eq!(held.held_bytes(), 0);
    }
}
