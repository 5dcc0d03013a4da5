//! Messages that others can provoke at any rate: one a second is enough.

use crate::UnixMs;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Lets one message a second pass, and counts the others.
#[derive(Debug, Default)]
pub struct OncePerSecond {
    /// The second of the last message that passed.
    second: AtomicI64,
    left_out: AtomicU64,
}

impl OncePerSecond {
    /// Whether a message may pass now: then with the number of those that were left out since the last one.
    pub fn pass(&self, now: UnixMs) -> Option<u64> {
        let second = now.div_euclid(1000);
        let before = self.second.load(Ordering::Relaxed);
        let is_first = second != before
            && self.second.compare_exchange(before, second, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_first {
            return Some(self.left_out.swap(0, Ordering::Relaxed));
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_a_second_passes_and_the_others_are_counted() {
        let rate = OncePerSecond::default();
        let passed: Vec<_> = [5_000, 5_001, 5_999, 6_000, 6_000, 4_000].map(|now| rate.pass(now)).into();
        assert_eq!(passed, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
