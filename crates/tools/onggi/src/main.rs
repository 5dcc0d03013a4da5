//! The `onggi` program: one binary, one subcommand per task. Each subcommand has its own module with its arguments and
//! its `run`; this file only dispatches.

mod backup;
mod bench;
mod cli;
mod config_cmd;
mod confined;
mod export;
mod held;
mod history;
mod import;
mod log;
mod progress;
mod renewal;
mod report;
mod restore;
mod serve;
mod shell;
mod signals;
mod supervisor;
mod tls;
mod tools;
mod top;
mod web;

use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: heap::Allocator = heap::Allocator;

/// Onggi, a key-value server for the clients of Redis.
///
/// Without a command it starts the server: `onggi [FILE] [--directive value ...]`.
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
    #[command(disable_help_flag = true)]
    Cli(Box<cli::CliArgs>),
    Check(tools::CheckArgs),
    Completions(shell::CompletionsArgs),
    Config(config_cmd::ConfigArgs),
    Export(export::ExportArgs),
    History(history::HistoryArgs),
    Import(import::ImportArgs),
    Inspect(tools::InspectArgs),
    Man(shell::ManArgs),
    Repair(tools::RepairArgs),
    Restore(restore::RestoreArgs),
    /// Runs the server: `onggi serve [FILE] [--directive value ...]`.
    #[command(disable_help_flag = true)]
    Serve(serve::ServeArgs),
    Top(top::TopArgs),
}

fn main() -> ExitCode {
    let words = with_command(std::env::args_os().collect());
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => return report::refused(&words, &error).unwrap_or_else(|| error.exit()),
    };
    match cli.command {
        Command::Backup(args) => backup::run(&args),
        Command::Bench(args) => bench::run(args),
        Command::Cli(args) => cli::run(*args),
        Command::Check(args) => tools::check(&args),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Config(args) => config_cmd::run(args),
        Command::Export(args) => export::run(&args),
        Command::History(args) => history::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Inspect(args) => tools::inspect(&args),
        Command::Man(args) => shell::man(&args, Cli::command()),
        Command::Repair(args) => tools::repair(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Serve(args) => serve::run(args),
        Command::Top(args) => top::run(args),
    }
}

/// The command line, with `serve` where it names no command. As for redis-server, it may be empty, or begin with a file
/// or an option.
fn with_command(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_serve = match words.get(1) {
        None => true,
        Some(word) => !is_for_clap(word) && (begins_option(word) || is_path(word)),
    };
    if is_serve {
        words.insert(1, "serve".into());
    }
    words
}

/// A command, or an option that every program has.
fn is_for_clap(word: &OsStr) -> bool {
    let always = ["-h", "--help", "-V", "--version", "help"];
    always.iter().any(|known| word == *known)
        || Cli::command().get_subcommands().any(|command| word == command.get_name())
}

fn begins_option(word: &OsStr) -> bool {
    word == "-" || word.as_encoded_bytes().starts_with(b"--")
}

/// A mistyped command is not a path: `onggi chekc` suggests the correct command.
fn is_path(word: &OsStr) -> bool {
    word.as_encoded_bytes().iter().any(|byte| b"/.".contains(byte)) || std::path::Path::new(word).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_starts_without_a_command() {
        for (line, expected) in [
            ("onggi", "onggi serve"),
            ("onggi --port 7000", "onggi serve --port 7000"),
            ("onggi redis.conf --port 7000", "onggi serve redis.conf --port 7000"),
            ("onggi /etc/onggi/conf", "onggi serve /etc/onggi/conf"),
            ("onggi -", "onggi serve -"),
            ("onggi serve x.conf", "onggi serve x.conf"),
            ("onggi check /data", "onggi check /data"),
            ("onggi chekc /data", "onggi chekc /data"),
            ("onggi --version", "onggi --version"),
            ("onggi --help", "onggi --help"),
        ] {
            let words = with_command(line.split(' ').map(OsString::from).collect());
            assert_eq!(words.join(OsStr::new(" ")), expected);
        }
    }

    #[test]
    fn all_tools_take_the_same_words() {
        for line in [
            "onggi check /data",
            "onggi check --dir /data",
            "onggi repair /data --yes",
            "onggi repair --yes --dir /data",
            "onggi inspect /data/MANIFEST",
            "onggi inspect --dir /data --json",
            "onggi export --dir /data dump.rdb",
            "onggi import dump.rdb --dir /data",
            "onggi import dump.rdb --into /data",
            "onggi backup --addr 127.0.0.1:7000 --into /backup",
            "onggi backup --from 127.0.0.1:7000 --into /backup",
            "onggi top --addr 127.0.0.1:7000",
            "onggi top --from 127.0.0.1:7000 -i 0.5 -c 3 --json",
        ] {
            if let Err(error) = Cli::try_parse_from(line.split(' ')) {
                panic!("{line}: {error}");
            }
        }
        assert!(Cli::try_parse_from(["onggi", "check"]).is_err(), "one of the two is needed");
        assert!(Cli::try_parse_from(["onggi", "check", "a", "--dir", "b"]).is_err(), "one, not two");
    }
}
