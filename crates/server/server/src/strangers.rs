//! Connections that have not logged in. Their number is limited.
//!
//! When one more arrives, the oldest is closed. If the new one were refused instead, an attacker that keeps the places
//! occupied could lock all clients out. This way a client gets in if it logs in before `max` others have arrived.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// The queue's dead entries are swept out when it is this many times longer than there may be strangers.
const SWEEP_FACTOR: usize = 4;

/// Connections that have not logged in, oldest at the front. Owned by the thread that accepts.
#[derive(Default)]
pub struct Strangers {
    queue: VecDeque<(u64, Weak<Stranger>)>,
    count: Arc<AtomicUsize>,
}

/// Held by a connection until it has logged in.
#[derive(Debug)]
pub struct Stranger(Arc<AtomicUsize>);

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Strangers {
    /// Takes a new connection in. Gives what it holds until it has logged in, and which other client is to be closed
    /// because there are more than `max` now.
    pub fn enter(&mut self, client: u64, max: usize) -> (Arc<Stranger>, Option<u64>) {
        let stranger = Arc::new(Stranger(self.count.clone()));
        let is_full = self.count.fetch_add(1, Ordering::Relaxed) >= max;
        let oldest = if is_full { self.pop_oldest() } else { None };
        if self.queue.len() > max.saturating_mul(SWEEP_FACTOR) {
            self.queue.retain(|(_, stranger)| stranger.strong_count() > 0);
        }
        self.queue.push_back((client, Arc::downgrade(&stranger)));
        (stranger, oldest)
    }

    fn pop_oldest(&mut self) -> Option<u64> {
        while let Some((client, stranger)) = self.queue.pop_front() {
            if stranger.strong_count() > 0 {
                return Some(client);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let mut strangers = Strangers::default();
        let (first, none) = strangers.enter(1, 2);
        assert_eq!(none, None);
        let (second, none) = strangers.enter(2, 2);
        assert_eq!(none, None);
        let (third, closed) = strangers.enter(3, 2);
        assert_eq!(closed, Some(1));
        drop((first, second));
        let (fourth, none) = strangers.enter(4, 2);
        assert_eq!(none, None, "one has logged in");
        assert_eq!(strangers.enter(5, 2).1, Some(3), "who logged in is passed over");
        drop((third, fourth));
        assert_eq!(strangers.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_queue_stays_short() {
        let mut strangers = Strangers::default();
        let _stays = strangers.enter(0, 8);
        for client in 1..10_000 {
            assert_eq!(strangers.enter(client, 8).1, None, "each logs in at once");
            assert!(strangers.queue.len() <= 8 * SWEEP_FACTOR + 1);
        }
    }
}
