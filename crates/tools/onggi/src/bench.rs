//! `onggi bench`: passes its arguments to the load generator and turns the result into an exit code.

pub use loadgen::cli::BenchArgs;

use crate::report::Report;
use loadgen::cli::{Finished, Outcome};
use std::process::ExitCode;

/// Exit codes: 0 done (and, in a comparison, every target met), 1 a target missed, 2 could not run.
pub fn run(args: BenchArgs) -> ExitCode {
    let report = Report::new("bench", args.is_json());
    match loadgen::cli::run(args) {
        Ok(Finished { outcome, fields }) => report.result(u8::from(outcome == Outcome::TargetMissed), &[], fields),
        Err(error) => report.failed(&error),
    }
}
