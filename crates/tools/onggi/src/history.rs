//! `onggi history`: lists what can be restored.

use crate::held::{LoginArgs, Place};
use crate::progress::Progress;
use crate::tools::failed;
use base::Clock;
use base::clock::SystemClock;
use clap::Args;
use std::process::ExitCode;

/// Lists the moments that `onggi restore` can reach: checkpoints, flushes (FLUSHALL, FLUSHDB), and the time between
/// them. Changes nothing.
///
/// Exit code: 0 listed, 2 failed.
#[derive(Args)]
pub struct HistoryArgs {
    /// A data directory that no server uses, or a running server on this machine: HOST:PORT or unix:PATH.
    #[arg(value_name = "DIR|ADDR")]
    from: Place,
    #[command(flatten)]
    login: LoginArgs,
}

/// `onggi history`
pub fn run(args: &HistoryArgs) -> ExitCode {
    let progress = Progress::new();
    match args.from.with(&args.login, |source| Ok(inspect::history(progress.fs(), source)?)) {
        Ok(history) => {
            let lines = history.lines(SystemClock::new().now_ms(), &calendar::system_zone());
            lines.iter().for_each(|line| progress.say(line));
            ExitCode::SUCCESS
        }
        Err(error) => failed("history", &*error),
    }
}
