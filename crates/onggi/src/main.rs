//! The `onggi` program: one binary, one subcommand per job. Each subcommand lives in a module of its own that holds
//! its arguments and its `run`; this file only chooses between them.

mod backup;
mod bench;
mod config_cmd;
mod export;
mod held;
mod history;
mod import;
mod progress;
mod restore;
mod serve;
mod tools;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: heap::Allocator = heap::Allocator;

/// Onggi, a key-value server for the clients of Redis.
#[derive(Parser)]
#[command(name = "onggi", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Backup(backup::BackupArgs),
    Bench(bench::BenchArgs),
    Check(tools::CheckArgs),
    Config(config_cmd::ConfigArgs),
    Export(export::ExportArgs),
    History(history::HistoryArgs),
    Import(import::ImportArgs),
    Inspect(tools::InspectArgs),
    Repair(tools::RepairArgs),
    Restore(restore::RestoreArgs),
    /// Runs the server: `onggi serve [FILE] [--directive value ...]`.
    #[command(disable_help_flag = true)]
    Serve(serve::ServeArgs),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Backup(args) => backup::run(&args),
        Command::Bench(args) => bench::run(args),
        Command::Check(args) => tools::check(&args),
        Command::Config(args) => config_cmd::run(args),
        Command::Export(args) => export::run(&args),
        Command::History(args) => history::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Inspect(args) => tools::inspect(&args),
        Command::Repair(args) => tools::repair(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Serve(args) => serve::run(args),
    }
}
