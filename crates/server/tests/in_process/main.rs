//! The server in this process, by a clock of the tests: one worker without sockets (`harness`), or the whole of it with
//! listener, workers and sockets (`served`).
#![cfg(not(shuttle))]

mod clocks;
mod harness;
mod reply;
mod scan;
mod served;
mod spine;
mod threads;
