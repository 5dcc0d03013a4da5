//! How long a worker looks for events before it sleeps, by how long it waited lately.
//!
//! Falling asleep and waking costs a worker two switches of threads and, on a core with nothing else to do, a halt,
//! which a virtual machine leaves and enters through its host: several microseconds in which neither the worker nor the
//! client that sent the request makes progress. Clients that are answered at once send again in less than that. So a
//! worker whose last waits were that short polls for a while, and yields to other threads of its core between two
//! polls; one whose waits are long sleeps at once.
//!
//! The rule is that of the halt polling of Linux' KVM (`Documentation/virt/kvm/halt-polling.rst`): the window grows
//! while waits end a little after it, and is closed by a wait that no window would have covered.

/// Longest window. A client that sends one request at a time is back after 25 us and more: for it no worker stays
/// awake.
const WINDOW_NS_MAX: u64 = 20_000;

/// The first window after none.
const WINDOW_NS_MIN: u64 = 5_000;

/// The window of one worker.
#[derive(Default)]
pub struct HaltPoll {
    window_ns: u64,
}

impl HaltPoll {
    /// How long to poll before the next sleep, in nanoseconds; 0 when polling would find nothing.
    #[inline]
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }

    /// Says how long a wait took, looks and sleep together.
    #[inline]
    pub fn waited(&mut self, ns: u64) {
        if ns > WINDOW_NS_MAX {
            self.window_ns = 0;
        } else if ns > self.window_ns {
            self.window_ns = (self.window_ns * 2).clamp(WINDOW_NS_MIN, WINDOW_NS_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_waits_open_the_window_and_a_long_one_closes_it() {
        let mut poll = HaltPoll::default();
        assert_eq!(poll.window_ns(), 0, "a worker begins by sleeping at once");
        poll.waited(3_000);
        assert_eq!(poll.window_ns(), WINDOW_NS_MIN);
        poll.waited(4_000);
        assert_eq!(poll.window_ns(), WINDOW_NS_MIN, "the window covers it");
        for _ in 0..10 {
            poll.waited(19_000);
        }
        assert_eq!(poll.window_ns(), WINDOW_NS_MAX);
        poll.waited(WINDOW_NS_MAX + 1);
        assert_eq!(poll.window_ns(), 0);
    }

    #[test]
    fn a_client_that_sends_one_request_at_a_time_keeps_no_worker_awake() {
        let mut poll = HaltPoll::default();
        for _ in 0..100 {
            poll.waited(25_000);
            assert_eq!(poll.window_ns(), 0);
        }
    }
}
