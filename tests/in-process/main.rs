//! The server in this process, by a clock of the tests: one worker without sockets (`harness`), or the whole of it with
//! listener, workers and sockets (`served`).

mod budget;
mod checkpoint;
mod clocks;
mod collections;
mod compression;
mod disk_rows;
mod ending;
mod explain;
mod fake_log;
mod fetches;
mod greedy;
mod harness;
mod hot_keys;
mod key_waits;
mod leaves;
mod loading;
mod log_admission;
mod log_holds;
mod log_sockets;
mod messages;
mod migrate;
mod modes;
mod order;
mod pauses;
mod pieces;
mod preparing;
mod recovery;
mod replay;
mod reply;
mod scan;
mod served;
mod settings;
mod spine;
mod threads;
mod waits;
