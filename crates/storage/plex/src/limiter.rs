//! A bound on the bytes that merges write in a second, so that they leave the device to others.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Bytes that are let through at once.
pub(crate) const PIECE_BYTES: u64 = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Limiter {
    bytes_per_second: u64,
    state: Mutex<State>,
    lifted: Condvar,
}

#[derive(Debug)]
struct State {
    /// When what was let through so far will have been written at the limit.
    free_at: Instant,
    is_lifted: bool,
}

impl Limiter {
    /// `None` for 0, which is no limit.
    pub fn new(bytes_per_second: u64) -> Option<Self> {
        let state = Mutex::new(State { free_at: Instant::now(), is_lifted: false });
        (bytes_per_second > 0).then(|| Self { bytes_per_second, state, lifted: Condvar::new() })
    }

    /// Waits until `bytes` may be written. Unused allowance is not saved up.
    pub fn pass(&self, bytes: u64) {
        let mut state = self.state.lock();
        let begin = state.free_at.max(Instant::now());
        state.free_at = begin + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        while !state.is_lifted && Instant::now() < begin {
            self.lifted.wait_until(&mut state, begin);
        }
    }

    /// Ends all waits: the database closes.
    pub fn lift(&self) {
        self.state.lock().is_lifted = true;
        self.lifted.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What passes takes at least as long as the limit says, and nothing waits once it is lifted.
    #[test]
    fn bytes_take_their_time() {
        let limiter = Limiter::new(1 << 20).expect("there is a limit");
        let begin = Instant::now();
        (0..5).for_each(|_| limiter.pass(PIECE_BYTES));
        assert!(begin.elapsed() >= Duration::from_millis(250), "four pieces of a sixteenth of a second each");
        std::thread::scope(|scope| {
            // Longer than any test may take, but for the lift.
            scope.spawn(|| (0..2).for_each(|_| limiter.pass(1 << 40)));
            limiter.lift();
        });
        assert!(Limiter::new(0).is_none());
    }
}
