//! What locks are made of. A build with `--cfg shuttle` takes shuttle's atomics instead: at each access another thread
//! may run, so tests run the same code under chosen schedules; see `tests/lock_order.rs`.

#[cfg(not(shuttle))]
mod chosen {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64};
    pub(crate) use std::thread::yield_now;
    use std::time::{Duration, Instant};

    /// How long a worker that holds locks waits for a further one.
    pub(crate) struct Patience {
        length: Duration,
        since: Option<Instant>,
    }

    impl Patience {
        /// Long against what a command takes, short against a time slice of the scheduler.
        pub(crate) fn for_a_command() -> Self {
            Self { length: Duration::from_micros(50), since: None }
        }

        /// For taking all locks, where a failure costs a new attempt at all of them.
        pub(crate) fn for_all_locks() -> Self {
            Self { length: Duration::from_millis(1), since: None }
        }

        /// Whether the wait has lasted long enough. It begins with the first call, so that a lock which is free costs
        /// no reading of the clock.
        pub(crate) fn is_over(&mut self) -> bool {
            let now = Instant::now();
            now.duration_since(*self.since.get_or_insert(now)) >= self.length
        }
    }
}

#[cfg(shuttle)]
mod chosen {
    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64};
    pub(crate) use shuttle::thread::yield_now;

    /// A wait without a clock: a few tries.
    #[derive(Default)]
    pub(crate) struct Patience(u32);

    impl Patience {
        const TRIES: u32 = 2;

        pub(crate) fn for_a_command() -> Self {
            Self::default()
        }

        pub(crate) fn for_all_locks() -> Self {
            Self::default()
        }

        pub(crate) fn is_over(&mut self) -> bool {
            self.0 += 1;
            self.0 > Self::TRIES
        }
    }
}

pub(crate) use chosen::{AtomicBool, AtomicU64, Patience, spin_loop, yield_now};
