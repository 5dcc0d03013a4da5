//! The atomics of a wait's word. A build with `--cfg shuttle` takes shuttle's atomics instead: at each access another
//! thread may run, so tests run the same code under chosen schedules.

#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::AtomicU64;
#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::AtomicU64;
