//! Whole lives of a store with its log and its checkpoints, over a simulated disk: commands, checkpoints, switches,
//! crashes and starts.
//!
//! ```text
//! test thread: commands as worker 0 ---> store ---> log            SimFs records a crash point per operation;
//! walker:      durability.work(), as workers do                    each is cut by power, started from, and its
//! keeper:      durability.run()                                    state looked up among those the commands made
//! ```
//!
//! T1. Threads make the order of the disk's operations vary, so a test asserts only what holds for every order.
//! T2. A state is the digest of the store, with times, after a command. A start has to find one of them, at or after
//!     the last that was known to be durable before the crash.
//!
//! `ONGGI_CRASH_ROUNDS` multiplies the seeds of every test, and `ONGGI_TEST_SEED` gives others.

mod checkpoints;
mod crashes;
mod dictionaries;
mod disk;
mod failures;
mod fields;
mod golden;
mod history;
mod libraries;
mod life;
mod model;
mod modes;
mod positions;
mod starts;
mod switching;
mod tier;
