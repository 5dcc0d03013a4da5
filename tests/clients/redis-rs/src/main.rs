//! An application on redis-rs: the largest English dictionary of Debian, the names of all Unicode characters, and the
//! ISO registers of languages, countries and scripts as JSON documents.
//!
//! Catalogues: Debian wamerican-insane 2020.12.07-2, unicode-data 15.0.0-1, iso-codes 4.15.0-1.
//! Usage: HOST PORT PASSWORD UNIX_SOCKET. The server must be empty; it is flushed at the end.

mod bitmaps;
mod catalogue;
mod connections;
mod counters;
mod expirations;
mod harness;
mod large;
mod transactions;

use harness::{Harness, equal};
use redis::Commands;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, host, port, password, unix] = &arguments[..] else {
        eprintln!("usage: HOST PORT PASSWORD UNIX_SOCKET");
        return ExitCode::from(2);
    };
    let h = Harness::new(host, port.parse().expect("a port"), password, unix);
    for area in
        [catalogue::run, expirations::run, counters::run, bitmaps::run, transactions::run, large::run, connections::run]
    {
        area(&h);
    }
    h.check("the server is left empty", || {
        let mut r = h.connection();
        let () = r.flushall()?;
        equal(redis::cmd("DBSIZE").query::<i64>(&mut r)?, 0)
    });
    if h.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
