//! The experiments of the papers that Onggi learned from, run again next to Redis and Valkey, with the generator and
//! the harness of `onggi bench`.
//!
//! | Suite | Paper |
//! |---|---|
//! | `persistence` | ARCUS: command log by mode, the picture of a checkpoint under load, restarts |
//! | `cp-redis` | CP-Redis (Sung and Park, 2019): values that are kept compressed |
//! | `pmem` | Pmem-Redis: keys in memory, values on a mapped medium |
//! | `ssdb` | Redis and SSDB compared by YCSB: small data, and data larger than memory |

#![forbid(unsafe_code)]

mod cli;
mod cp_redis;
mod persistence;
mod pmem;
mod ssdb;

use clap::Parser;
use loadgen::cli::Outcome;
use std::process::ExitCode;

/// Exit codes: 0 done and every target met, 1 a target missed, 2 could not run.
fn main() -> ExitCode {
    let papers = cli::Papers::parse();
    loadgen::process::raise_descriptor_limit();
    let done = loadgen::interrupt::watch().and_then(|()| papers.command.run());
    match done {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::TargetMissed) => ExitCode::from(1),
        Err(error) => {
            eprintln!("papers: {error}");
            let mut cause = std::error::Error::source(&error);
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            ExitCode::from(2)
        }
    }
}
