//! What the word of a wait is made of. A build with `--cfg shuttle` takes shuttle's atomics instead, whose every access is a
//! point where another thread may go on, so that tests run the same code under chosen schedules.

#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::AtomicU64;
#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::AtomicU64;
