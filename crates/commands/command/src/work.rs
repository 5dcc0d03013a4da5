//! Work: what a request begins and does not end in its turn, so that neither a shard nor a worker waits for it.
//!
//! ```text
//! request --begins--> work --its end--> the request runs again with the result, or is answered
//!
//! steps    the worker does a step a turn, without locks                  SUNIONSTORE, ZREMRANGEBYRANK, SPOP of many
//! thread   another thread makes one result of an operand                 SORT, LREM, DUMP, slow hashes of passwords
//! remote   a thread with sockets sends keys, and another server answers  MIGRATE
//! reply    the worker writes a piece when the client has taken the last  LRANGE, HGETALL, SUNION
//! ```
//!
//! The first three come before the change or the reply ([`steps`] says how, F1 to F4); the last comes after the
//! command (P1 to P3 of [`reply`]). All count the memory that nothing but them keeps.

mod begin;
pub mod remote;
pub mod reply;
pub mod steps;
pub mod thread;
