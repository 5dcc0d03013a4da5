//! `onggi bench`: passes its arguments to the load generator and turns the result into an exit code.

pub use loadgen::cli::BenchArgs;

use std::process::ExitCode;

/// Exit codes: 0 done (and, in a comparison, every target met), 1 a target missed, 2 could not run.
pub fn run(args: BenchArgs) -> ExitCode {
    match loadgen::cli::run(args) {
        Ok(loadgen::cli::Outcome::Done) => ExitCode::SUCCESS,
        Ok(loadgen::cli::Outcome::TargetMissed) => ExitCode::from(1),
        Err(error) => {
            eprintln!("onggi bench: {error}");
            vfs::further_causes(&error).iter().for_each(|cause| eprintln!("  because: {cause}"));
            ExitCode::from(2)
        }
    }
}
