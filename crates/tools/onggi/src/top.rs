//! `onggi top`: a running server in the terminal.

use crate::held::LoginArgs;
use crate::report::Report;
use clap::Args;
use loadgen::cli::security::SecurityArgs;
use loadgen::client::{Address, Login};
use std::process::ExitCode;
use std::time::Duration;

/// Shows a running server in the terminal: throughput, latency, memory, durability and warnings, and by the keys 2 to 5
/// its commands, clients, slow log and hot keys. It works with Redis and Valkey too.
///
/// Exit code: 0 done, 2 no connection, or no terminal.
#[derive(Args)]
pub struct TopArgs {
    /// The server: host:port, or unix:PATH.
    #[arg(long, visible_alias = "from", value_name = "ADDR", default_value = "127.0.0.1:6379")]
    addr: Address,
    #[command(flatten)]
    login: LoginArgs,
    #[command(flatten)]
    security: SecurityArgs,
    /// Seconds between two readings, from 0.1 to 3600.
    #[arg(short = 'i', long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Ends after this many readings.
    #[arg(short = 'c', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Prints a line of JSON for each reading in place of the view.
    #[arg(long)]
    json: bool,
}

/// Reads the time between two readings.
fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("`{text}` is not a number of seconds from 0.1 to 3600")),
    }
}

/// `onggi top`
pub fn run(args: TopArgs) -> ExitCode {
    let TopArgs { addr: address, login, security, interval, count, json } = args;
    let report = Report::new("top", json);
    let security = match security.security(&address, false) {
        Ok(security) => security,
        Err(error) => return report.failed(&error),
    };
    let login = Login { security, ..login.login() };
    match top::run(top::Options { address, login, interval, count, json }) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has closed the pipe, as `head` does.
        Err(top::TopError::Terminal(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => report.failed(&error),
    }
}
