//! A place for one thread to sleep in, which costs those who might wake it one load while it is awake.
//!
//! P1. The thread says how it sleeps and then looks once more whether it should; whoever has news looks whether it
//!     sleeps. Both are `SeqCst`, so news are never slept over.

use std::sync::atomic::{AtomicU8, Ordering::*, fence};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

const AWAKE: u8 = 0;
/// Until somebody has news.
const IDLE: u8 = 1;
/// For some time, to let work gather; woken before only for good reason.
const NAP: u8 = 2;

/// The bed.
#[derive(Default)]
pub(crate) struct Sleeper {
    state: AtomicU8,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Sleeper {
    /// Sleeps until woken, or until `time` has passed (`None`: without end), unless `awake` says no. Any news wake it.
    pub fn idle(&self, time: Option<Duration>, awake: impl FnOnce() -> bool) {
        self.sleep(IDLE, time, awake);
    }

    /// Sleeps for `time`; only [`wake`](Self::wake) ends it before.
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
            // With the lock, so that the sleeper is either not in `wait` yet and will see the state, or in it.
            drop(self.lock.lock());
            self.woken.notify_one();
        }
    }
}
