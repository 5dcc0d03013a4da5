//! What the mailbox is made of. A build with `--cfg shuttle` takes shuttle's lock and atomics instead: at each use
//! another thread may run, so tests run the same code under chosen schedules; see `tests/schedules.rs`.

#[cfg(not(shuttle))]
mod chosen {
    pub(crate) use parking_lot::Mutex;
    pub(crate) use std::sync::atomic::AtomicBool;
}

#[cfg(shuttle)]
mod chosen {
    pub(crate) use shuttle::sync::atomic::AtomicBool;
    use shuttle::sync::{MutexGuard, PoisonError};

    /// Shuttle's lock without poisoning, as that of `parking_lot` is.
    #[derive(Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

pub(crate) use chosen::{AtomicBool, Mutex};
