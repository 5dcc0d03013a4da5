//! `onggi bench ycsb`: the core workloads of YCSB.

use super::Finished;
use super::output::{
    DATED_RESULTS, command_line, compare_and_write, compare_quietly, cores, results_directory, usual_servers,
};
use crate::client::Address;
use crate::compare::{BuiltIn, Plan, Suite, YcsbPlan};
use crate::error::{BenchError, Result};
use crate::guest::Guest;
use crate::keys::{Distribution, THETA};
use crate::measure::Settings;
use crate::payload::Content;
use crate::process::Cores;
use crate::server::ServerSpec;
use crate::template::KeyFormat;
use crate::ycsb::workload::Workload;
use crate::ycsb::{KEY_PREFIX, Record};
use clap::Args;
use std::path::PathBuf;

/// Run the core workloads of YCSB on one or several servers, in interleaved rounds.
///
/// Records are hashes and an index of their keys, as the binding of YCSB for Redis keeps them, with the keys, values
/// and distributions of YCSB itself. Its figures can be put next to those of `ycsb run redis`, whose clients wait for
/// each reply as these do.
///
/// Servers are named as in `onggi bench compare`, and presets are started in the same way. A server that runs already
/// must hold no keys. What is written there begins with `user` or is `_indices`, and is removed at the end.
///
/// Examples:
///   onggi bench ycsb --workload a,b,c --records 100000 --server onggi valkey
///   onggi bench ycsb --workload e --clients 1,4,10 --server 'disk=onggi serve --port {port} --dir {dir}
///     --database "0 engine disk" --maxmemory 256mb'
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct YcsbArgs {
    /// The workloads, in this order: a (updates), b (mostly reads), c (only reads), d (reads of the latest), e (scans)
    /// and f (read-modify-write). Records are loaded anew after one that inserts
    #[arg(short = 'w', long = "workload", value_delimiter = ',', default_value = "a,b,c,d,e,f")]
    workloads: Vec<String>,
    /// Records at the beginning
    #[arg(long, default_value_t = 100_000)]
    records: u64,
    /// Numbers of clients, each a thread with a connection; each number is a row
    #[arg(short = 'c', long, value_delimiter = ',', default_value = "8")]
    clients: Vec<usize>,
    /// Operations per second of all clients, instead of as fast as replies come; latency then counts from the time at
    /// which an operation was due
    #[arg(long)]
    rate: Option<f64>,
    /// Fields of a record
    #[arg(long, default_value_t = 10)]
    field_count: usize,
    /// Bytes of a field
    #[arg(long, default_value_t = 100)]
    field_length: usize,
    /// The longest scan, in records
    #[arg(long, default_value_t = 100)]
    scan_length: u64,
    /// A server, as in `onggi bench compare`
    #[arg(long = "server", num_args = 1..)]
    servers: Vec<ServerSpec>,
    /// Delete all data of this running server: it may hold keys, and receives FLUSHALL before each load and at the end
    #[arg(long, num_args = 1.., value_name = "ADDRESS")]
    flush_the_data_of: Vec<Address>,
    /// The server that the others are compared with; the first one if not given
    #[arg(long)]
    subject: Option<String>,
    /// Windows of each server and row
    #[arg(short = 'r', long)]
    rounds: Option<usize>,
    /// Length of a window in seconds
    #[arg(short = 's', long)]
    seconds: Option<f64>,
    /// Seconds of load before each window
    #[arg(long, default_value_t = 0.5)]
    warmup: f64,
    /// Fixes every random choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cores for the servers; core 0 if not given, where there is another one for the clients
    #[arg(long)]
    pin_server: Option<Cores>,
    /// Cores for the clients; the last one if not given
    #[arg(long)]
    pin_client: Option<Cores>,
    /// Pin neither servers nor clients
    #[arg(long, conflicts_with_all = ["pin_server", "pin_client"])]
    no_pin: bool,
    /// Where results.json, README.md and index.html go
    #[arg(short = 'o', long, default_value = DATED_RESULTS)]
    out: PathBuf,
}

/// More clients than any server of one machine needs.
const CLIENTS_MAX: usize = 1000;

impl YcsbArgs {
    pub(super) fn run(self, is_json: bool) -> Result<Finished> {
        let usage = |text: String| Err(BenchError::Usage(text));
        let workloads = self.workloads.iter().map(|name| Workload::named(name)).collect::<Result<Vec<_>>>()?;
        if self.records == 0 || self.field_count == 0 || self.scan_length == 0 {
            return usage("--records, --field-count and --scan-length must be at least 1".to_owned());
        }
        if let Some(wrong) = self.clients.iter().find(|clients| !(1..=CLIENTS_MAX).contains(*clients)) {
            return usage(format!("--clients {wrong}: must be between 1 and {CLIENTS_MAX}"));
        }
        if let Some(rate) = self.rate.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
            return usage(format!("--rate {rate}: must be positive"));
        }
        let is_time = |seconds: f64| (0.0..=86_400.0).contains(&seconds);
        if !(is_time(self.warmup) && self.seconds.is_none_or(|seconds| seconds > 0.0 && is_time(seconds))) {
            return usage("--seconds must be positive, --warmup not negative, both at most a day".to_owned());
        }
        let (server_cores, generator_cores) = cores(!self.no_pin, self.pin_server, self.pin_client);
        let settings = Settings {
            connections: self.clients.iter().copied().max().unwrap_or(1),
            threads: self.clients.iter().copied().max().unwrap_or(1),
            key_format: KeyFormat { prefix: KEY_PREFIX.to_owned(), size: KEY_PREFIX.len() + 19 },
            keys: self.records,
            distribution: Distribution::Zipfian { theta: THETA },
            content: Content::Random,
            seed: self.seed,
            generator_cores,
            warmup_seconds: self.warmup,
            seconds: self.seconds.unwrap_or_default(),
        };
        let suite = BuiltIn::Ycsb(YcsbPlan {
            workloads,
            clients: self.clients,
            rate: self.rate,
            record: Record { fields: self.field_count, field_bytes: self.field_length },
            records: self.records,
            scan_max: self.scan_length,
        });
        let servers = usual_servers(self.servers)?;
        let plan = Plan {
            subject: self.subject.unwrap_or_else(|| servers[0].name.clone()),
            servers,
            guest: Guest {
                flushed: self.flush_the_data_of,
                prefixes: [KEY_PREFIX, "_indices"].map(String::from).into(),
            },
            settings,
            rounds: self.rounds,
            seconds: self.seconds,
            scale: 1.0,
            directory: None,
            server_cores,
            unix_socket: false,
            command_line: command_line("onggi"),
        };
        let out = results_directory(self.out, suite.name(), "");
        match is_json {
            true => compare_quietly(&plan, &suite, &out),
            false => compare_and_write(&plan, &suite, &out).map(Finished::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::tests::parse;
    use crate::cli::{BenchArgs, BenchCommand, run};

    /// What a value may not be is said before any server is started.
    #[test]
    fn bad_values_are_refused() {
        for (options, word) in [
            ("--workload g", "--workload g"),
            ("--records 0", "--records"),
            ("--clients 0", "--clients 0"),
            ("--clients 1001", "--clients 1001"),
            ("--rate 0", "--rate 0"),
            ("--seconds 0", "--seconds"),
            ("--warmup=-1", "--warmup"),
        ] {
            let command: BenchCommand = parse(&format!("bench ycsb {options}")).unwrap();
            let error = run(BenchArgs { command, json: true }).unwrap_err().to_string();
            assert!(error.contains(word), "{options}: {error}");
        }
    }
}
