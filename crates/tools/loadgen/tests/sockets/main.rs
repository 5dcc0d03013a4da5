//! Tests over real sockets, against a tiny server in this process.

mod compare;
mod generator;
mod support;
mod ycsb;
