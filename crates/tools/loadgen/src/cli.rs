//! The arguments of `onggi bench` and its subcommands.

mod compare;
pub mod load;
pub mod output;
mod run;
pub mod security;
mod ycsb;

use crate::catalogue::TESTS;
use crate::error::{BenchError, Result};
use crate::report::markdown;
use crate::results::Results;
use crate::template::PLACEHOLDERS;
use crate::{echo, interrupt, process};
use clap::{Args, Subcommand};
use compare::CompareArgs;
use run::{FillArgs, RunArgs};
use serde_json::{Value, json};
use std::path::PathBuf;
use ycsb::YcsbArgs;

/// Load a server and measure it, or compare servers in interleaved rounds.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
    /// Prints one JSON object with the figures, and no progress.
    #[arg(long, global = true)]
    json: bool,
}

impl BenchArgs {
    /// Whether the figures are wanted as JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }
}

#[derive(Subcommand, Debug)]
enum BenchCommand {
    Run(Box<RunArgs>),
    Load(Box<FillArgs>),
    Compare(Box<CompareArgs>),
    Ycsb(Box<YcsbArgs>),
    Report(ReportArgs),
    Echo(EchoArgs),
    /// List the tests by name and the placeholders of command templates
    List,
}

/// The outcome of a benchmark that could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done; every target met, where there were targets.
    Done,
    /// Done, but a comparison missed a target.
    TargetMissed,
}

/// A benchmark that could run.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The outcome.
    pub outcome: Outcome,
    /// The figures, for `--json`.
    pub fields: Value,
}

impl From<Outcome> for Finished {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, fields: json!({}) }
    }
}

/// Runs the subcommand. With `--json` it prints nothing, and the caller prints the figures.
///
/// # Errors
/// Any [`BenchError`]; nothing is retried.
pub fn run(args: BenchArgs) -> Result<Finished> {
    let is_json = args.json;
    process::raise_descriptor_limit();
    if !matches!(args.command, BenchCommand::Echo(_)) {
        interrupt::watch()?;
    }
    match args.command {
        BenchCommand::Run(args) => args.run(is_json),
        BenchCommand::Load(args) => args.run(is_json),
        BenchCommand::Compare(args) => args.run(is_json),
        BenchCommand::Ycsb(args) => args.run(is_json),
        BenchCommand::Report(args) => args.run(is_json),
        BenchCommand::Echo(_) if is_json => {
            Err(BenchError::Usage("--json: echo has no figures; it serves until it is ended".to_owned()))
        }
        BenchCommand::Echo(args) => args.run().map(Finished::from),
        BenchCommand::List if is_json => Ok(Finished { outcome: Outcome::Done, fields: listed() }),
        BenchCommand::List => {
            list();
            Ok(Outcome::Done.into())
        }
    }
}
/// Draw README.md and index.html again from a results.json.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The directory that holds results.json
    directory: PathBuf,
}

impl ReportArgs {
    fn run(self, is_json: bool) -> Result<Finished> {
        let results = Results::read(&self.directory.join("results.json"))?;
        crate::report::write(&results, &self.directory)?;
        if !is_json {
            println!("{}", markdown::tables(&results).trim_start());
        }
        Ok(Finished { outcome: Outcome::Done, fields: output::fields(&results) })
    }
}

/// Serve as the bare echo server, the lower bound of comparisons: it sends back what it receives.
#[derive(Args, Debug)]
pub struct EchoArgs {
    /// Port on 127.0.0.1
    #[arg(short = 'p', long)]
    port: u16,
    /// Threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

impl EchoArgs {
    fn run(self) -> Result<Outcome> {
        let address = format!("127.0.0.1:{}", self.port);
        let listener = std::net::TcpListener::bind(&address)
            .map_err(|source| BenchError::Connect { address: address.clone(), source })?;
        echo::serve(listener, self.threads).map_err(|source| BenchError::System { op: "serve echoes", source })?;
        Ok(Outcome::Done)
    }
}

/// The tests and the placeholders, as [`list`] prints them.
fn listed() -> Value {
    let tests = TESTS.iter().map(|test| json!({ "name": test.name, "command": test.command })).collect::<Vec<_>>();
    json!({ "tests": tests, "placeholders": PLACEHOLDERS.split("; ").collect::<Vec<_>>() })
}

fn list() {
    println!("Tests (--test):");
    for test in TESTS {
        println!("  {:<10} {}", test.name, test.command);
    }
    println!("  {:<10} set and get by weight, such as mixed:1:9", "mixed");
    println!("\nPlaceholders (--command):");
    for line in PLACEHOLDERS.split("; ") {
        println!("  {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct Bench {
        #[command(flatten)]
        args: BenchArgs,
    }

    pub fn parse(line: &str) -> std::result::Result<BenchCommand, clap::Error> {
        Bench::try_parse_from(shell_words::split(line).unwrap()).map(|bench| bench.args.command)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Bench::command().debug_assert();
    }
}
