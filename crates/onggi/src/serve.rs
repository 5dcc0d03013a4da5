//! `onggi serve`: starts the server.

use clap::Args;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Arguments as redis-server takes them.
#[derive(Args)]
pub struct ServeArgs {
    /// `[FILE] [--directive value ...]`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Runs the server until it is told to stop.
pub fn run(args: ServeArgs) -> ExitCode {
    let mut port = 6379;
    let mut worker_count = std::thread::available_parallelism().map_or(1, usize::from);
    for pair in args.words.windows(2) {
        match pair[0].as_str() {
            "--port" => port = pair[1].parse().expect("port"),
            "--workers" => worker_count = pair[1].parse().expect("workers"),
            _ => {}
        }
    }
    let listener = server::listen::listen_tcp(([127, 0, 0, 1], port).into(), 511).expect("listen");
    let options = server::serve::Options { worker_count, shard_count: 64, database_count: 16 };
    server::serve::serve(&options, vec![listener], Arc::new(base::random::OsEntropy), &AtomicBool::new(false))
        .expect("serve");
    ExitCode::SUCCESS
}
