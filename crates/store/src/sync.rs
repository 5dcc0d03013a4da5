//! What locks are made of. A build with `--cfg shuttle` takes shuttle's atomics instead, whose every access is a point where
//! another thread may go on, so that tests run the same code under chosen schedules; see `tests/lock_order.rs`.

#[cfg(not(shuttle))]
mod chosen {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::AtomicU64;
    use std::time::{Duration, Instant};

    /// How long a worker that holds locks waits for a further one.
    #[derive(Default)]
    pub(crate) struct Patience(Option<Instant>);

    impl Patience {
        /// Long against what a command takes, short against a time slice of the scheduler.
        const LENGTH: Duration = Duration::from_micros(50);

        /// Whether the wait has lasted long enough. It begins with the first call, so that a lock which is free costs no
        /// reading of the clock.
        pub(crate) fn is_over(&mut self) -> bool {
            let now = Instant::now();
            now.duration_since(*self.0.get_or_insert(now)) >= Self::LENGTH
        }
    }
}

#[cfg(shuttle)]
mod chosen {
    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::atomic::AtomicU64;

    /// A wait without a clock: a few tries.
    #[derive(Default)]
    pub(crate) struct Patience(u32);

    impl Patience {
        const TRIES: u32 = 2;

        pub(crate) fn is_over(&mut self) -> bool {
            self.0 += 1;
            self.0 > Self::TRIES
        }
    }
}

pub(crate) use chosen::{AtomicU64, Patience, spin_loop};
