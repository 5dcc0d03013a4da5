//! Work that takes more than a turn.

pub mod remote;
pub mod reply;
pub mod steps;
pub mod thread;
