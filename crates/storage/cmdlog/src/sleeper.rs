//! A place for one thread to sleep. While it is awake, a wake-up costs one load.
//!
//! P1. The thread announces how it sleeps, then checks once more whether it should. A thread with news checks whether
//!     the sleeper sleeps. Both use `SeqCst`, so no wake-up is lost.

use std::sync::atomic::{AtomicU8, Ordering::*, fence};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

const AWAKE: u8 = 0;
/// Sleeps until any news.
const IDLE: u8 = 1;
/// Sleeps for some time, to let work gather; only [`Sleeper::wake`] ends it early.
const NAP: u8 = 2;

/// Holds at most one sleeping thread.
#[derive(Default)]
pub(crate) struct Sleeper {
    state: AtomicU8,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Sleeper {
    /// Sleeps until woken, or until `time` has passed (`None`: no limit), unless `awake` returns true. Any news wakes
    /// it.
    pub fn idle(&self, time: Option<Duration>, awake: impl FnOnce() -> bool) {
        self.sleep(IDLE, time, awake);
    }

    /// Sleeps for `time`; only [`wake`](Self::wake) ends it early.
    pub fn nap(&self, time: Duration, awake: impl FnOnce() -> bool) {
        self.sleep(NAP, Some(time), awake);
    }

    fn sleep(&self, how: u8, time: Option<Duration>, awake: impl FnOnce() -> bool) {
        let until = time.map(|time| Instant::now() + time);
        let mut lock = self.lock.lock();
        self.state.store(how, SeqCst);
        fence(SeqCst);
        if !awake() {
            while self.state.load(SeqCst) != AWAKE {
                match until {
                    None => self.woken.wait(&mut lock),
                    Some(until) => {
                        if self.woken.wait_until(&mut lock, until).timed_out() {
                            break;
                        }
                    }
                }
            }
        }
        self.state.store(AWAKE, SeqCst);
    }

    /// Ends an idle sleep, but not a nap. The caller has passed a `SeqCst` fence since its news (P1).
    #[inline]
    pub fn wake_if_idle(&self) {
        if self.state.load(Relaxed) == IDLE {
            self.wake();
        }
    }

    /// Ends any sleep.
    #[inline]
    pub fn wake(&self) {
        if self.state.load(Relaxed) != AWAKE && self.state.swap(AWAKE, SeqCst) != AWAKE {
            // With the lock held, the sleeper is either not in `wait` yet and will see the state, or in it.
            drop(self.lock.lock());
            self.woken.notify_one();
        }
    }
}
