//! The arguments: suites that start servers in directories of their own and measure what they store there.

use crate::cp_redis::{self, Choice, Way};
use crate::persistence::{Part, Persistence};
use crate::pmem;
use crate::ssdb::{self, Ssdb};
use clap::{Args, Parser, Subcommand, ValueEnum};
use loadgen::cli::Outcome;
use loadgen::cli::load::{DistributionName, LoadArgs};
use loadgen::cli::output::{DATED_RESULTS, command_line, compare_and_write, cores, results_directory, usual_servers};
use loadgen::compare::{Plan, Suite};
use loadgen::error::{BenchError, Result};
use loadgen::guest::Guest;
use loadgen::keys::THETA;
use loadgen::payload::Content;
use loadgen::process::Cores;
use loadgen::server::ServerSpec;
use loadgen::template::KeyFormat;
use loadgen::ycsb::workload::Workload;
use std::path::PathBuf;

/// Run the experiments of papers again, next to Redis and Valkey.
#[derive(Parser, Debug)]
#[command(name = "papers")]
pub struct Papers {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    Persistence(Box<PersistenceArgs>),
    CpRedis(Box<CpRedisArgs>),
    Ssdb(Box<SsdbArgs>),
    Pmem(Box<PmemArgs>),
}

impl Command {
    /// Runs the suite.
    pub fn run(self) -> Result<Outcome> {
        match self {
            Self::Persistence(args) => args.run(),
            Self::CpRedis(args) => args.run(),
            Self::Ssdb(args) => args.run(),
            Self::Pmem(args) => args.run(),
        }
    }
}

/// The common options of both suites.
#[derive(Args, Debug)]
struct DataArgs {
    /// A server: onggi, redis, valkey, arcus (persistence only), or NAME=COMMAND (with {port} and {dir}; variables may
    /// precede it). Programs are found as for `onggi bench compare`. ARCUS is named by ARCUS_MEMCACHED, left out if
    /// that is not set, and takes part only in the parts log and mixes. The first server is judged
    #[arg(long = "server", num_args = 1..)]
    servers: Vec<ServerSpec>,
    /// Where servers get their directories; the system's directory for temporary files if not given
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Factor on all amounts of data: 1 is full size, 0.01 a quick test
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Rounds, checkpoints, restarts and windows of every row, instead of their own number
    #[arg(short = 'r', long)]
    rounds: Option<usize>,
    /// Seconds per window, and before each checkpoint of the picture, instead of their own number
    #[arg(short = 's', long)]
    seconds: Option<f64>,
    /// Connections
    #[arg(short = 'c', long, default_value_t = 50)]
    connections: usize,
    /// Fixes every random choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cores for servers under load; core 0 if not given, where there is another one for the generator
    #[arg(long)]
    pin_server: Option<Cores>,
    /// Cores for the generator
    #[arg(long)]
    pin_client: Option<Cores>,
    /// Pin neither servers nor generator
    #[arg(long, conflicts_with_all = ["pin_server", "pin_client"])]
    no_pin: bool,
    /// Where results.json, README.md, index.html and the pictures go
    #[arg(short = 'o', long, default_value = DATED_RESULTS)]
    out: PathBuf,
}

/// What a suite says about its load; the rest is in [`DataArgs`].
struct Shape {
    keys: u64,
    threads: usize,
    warmup: f64,
    payload: Content,
}

/// What the parts add to the name of the results' directory, so that parts that run one after another do not overwrite
/// each other's results.
fn suffix<P: ValueEnum + PartialEq>(parts: &[P], all: &[P]) -> String {
    if parts == all {
        return String::new();
    }
    parts.iter().filter_map(ValueEnum::to_possible_value).map(|part| format!("-{}", part.get_name())).collect()
}

impl DataArgs {
    fn check(&self) -> Result<()> {
        match self.scale > 0.0 && self.scale <= 10.0 {
            true => Ok(()),
            false => Err(BenchError::Usage(format!("--scale {}: must be above 0 and at most 10", self.scale))),
        }
    }

    /// Runs the suite on `servers`, of which `subject`, or the first one, is judged. The results' directory has `parts`
    /// in its name.
    fn compare(
        self,
        suite: &dyn Suite,
        parts: &str,
        servers: Vec<ServerSpec>,
        subject: Option<String>,
        shape: Shape,
    ) -> Result<Outcome> {
        let load = LoadArgs {
            connections: self.connections,
            threads: shape.threads,
            keys: shape.keys,
            key_size: KeyFormat::default().size,
            key_prefix: KeyFormat::default().prefix,
            payload: shape.payload,
            distribution: DistributionName::Uniform,
            theta: THETA,
            seed: self.seed,
            seconds: self.seconds,
            warmup: shape.warmup,
            pin_client: self.pin_client,
        };
        let mut settings = load.settings()?;
        let (server_cores, generator_cores) = cores(!self.no_pin, self.pin_server, settings.generator_cores);
        settings.generator_cores = generator_cores;
        let out = results_directory(self.out, suite.name(), parts);
        let plan = Plan {
            guest: Guest::default(),
            subject: subject.unwrap_or_else(|| servers[0].name.clone()),
            servers,
            settings,
            rounds: self.rounds,
            seconds: self.seconds,
            scale: self.scale,
            directory: self.directory,
            server_cores,
            unix_socket: false,
            command_line: command_line("papers"),
        };
        compare_and_write(&plan, suite, &out)
    }
}

/// Measure the cost of keeping data: the log by mode, checkpoints with and without load, restarts.
///
/// Servers are started on free ports in fresh directories, so give --directory on the disk to be measured. At full size
/// the parts take about two hours, 16 GB of memory and 30 GB of disk.
///
/// Examples:
///   papers persistence --directory /var/tmp
///   papers persistence --part picture --scale 0.05 --server onggi valkey
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct PersistenceArgs {
    /// What to measure; everything if not given
    #[arg(long = "part", value_enum, value_delimiter = ',')]
    parts: Vec<Part>,
    /// The server whose targets are judged; the first one if not given
    #[arg(long)]
    subject: Option<String>,
    /// Seconds of load before each window
    #[arg(long, default_value_t = 0.5)]
    warmup: f64,
    /// Threads of the generator
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Content of values in log, mixes, picture and threads: constant or random
    #[arg(long, default_value = "constant")]
    payload: Content,
    #[command(flatten)]
    data: DataArgs,
}

/// Keys of the parts log and mixes at full size; the other parts have different numbers.
const LOG_KEYS: f64 = 1e6;

impl PersistenceArgs {
    pub fn run(mut self) -> Result<Outcome> {
        self.data.check()?;
        if matches!(self.payload, Content::Documents { .. }) {
            return Err(BenchError::Usage(
                "--payload: values of this suite have one length: constant or random".into(),
            ));
        }
        let parts = if self.parts.is_empty() { Part::ALL.to_vec() } else { self.parts };
        let named = std::mem::take(&mut self.data.servers);
        let named_none = named.is_empty();
        let mut servers = usual_servers(named)?;
        if named_none {
            servers.push("arcus".parse()?);
        }
        servers.retain(|server| !server.is_absent());
        if servers.is_empty() {
            return Err(BenchError::Usage("arcus is not on this machine: set ARCUS_MEMCACHED to its memcached".into()));
        }
        let shape = Shape {
            keys: ((LOG_KEYS * self.data.scale) as u64).max(1000),
            threads: self.threads,
            warmup: self.warmup,
            payload: self.payload,
        };
        let suffix = suffix(&parts, &Part::ALL);
        self.data.compare(&Persistence(parts), &suffix, servers, self.subject, shape)
    }
}

/// Repeat the measurements of CP-Redis (Sung and Park, 2019): memory, SETs and GETs, checkpoints and restarts with
/// values that are kept compressed, compared with Redis and Valkey, which keep them uncompressed.
///
/// Onggi runs in several ways, each a separate server in the tables. Servers are started on free ports in fresh
/// directories. At full size the parts take most of a day, 16 GB of memory and 30 GB of disk.
///
/// Examples:
///   papers cp-redis --directory /var/tmp
///   papers cp-redis --part load --payload documents --scale 0.02
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct CpRedisArgs {
    /// What to measure; everything if not given
    #[arg(long = "part", value_enum, value_delimiter = ',')]
    parts: Vec<cp_redis::Part>,
    /// Contents of values; by default all of them, one after another
    #[arg(long = "payload", value_enum, value_delimiter = ',')]
    payloads: Vec<cp_redis::Payload>,
    /// Directories in which JSON and texts are looked for
    #[arg(long, num_args = 1.., default_values = ["/usr/share", "/usr/lib"])]
    documents: Vec<PathBuf>,
    /// How Onggi keeps values; the first one given is judged
    #[arg(long = "way", value_enum, value_delimiter = ',', default_values = ["idle", "write", "off"])]
    ways: Vec<Way>,
    #[command(flatten)]
    data: DataArgs,
}

impl CpRedisArgs {
    pub fn run(mut self) -> Result<Outcome> {
        self.data.check()?;
        let in_ways = |spec: ServerSpec| match spec.is_onggi() {
            true => self.ways.iter().map(|way| way.of(&spec)).collect(),
            false => vec![spec],
        };
        let named = std::mem::take(&mut self.data.servers);
        let servers: Vec<ServerSpec> = usual_servers(named)?.into_iter().flat_map(in_ways).collect();
        let parts = if self.parts.is_empty() { cp_redis::Part::ALL.to_vec() } else { self.parts };
        let payloads = if self.payloads.is_empty() { cp_redis::Payload::ALL.to_vec() } else { self.payloads };
        let suffix = suffix(&parts, &cp_redis::Part::ALL);
        let suite = Choice { parts, payloads, documents: self.documents };
        let shape = Shape { keys: 1_000_000, threads: 1, warmup: 0.5, payload: Content::Constant };
        self.data.compare(&suite, &suffix, servers, None, shape)
    }
}

/// Repeat the comparison of Redis and SSDB by YCSB: 1,000, 5,000 and 10,000 records with one to ten clients, and what
/// it left out, data of five times the memory.
///
/// Onggi takes part twice, in memory and with a database on disk. SSDB takes part as NAME=COMMAND or NAME@ADDRESS. At
/// full size the first part takes five hours: --rounds, --seconds and --clients make it shorter.
///
/// Examples:
///   papers ssdb --directory /var/tmp --part small --rounds 3 --seconds 2 --clients 1,4,10
///   papers ssdb --directory /var/tmp --part larger --scale 0.1
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct SsdbArgs {
    /// What to measure; everything if not given
    #[arg(long = "part", value_enum, value_delimiter = ',')]
    parts: Vec<ssdb::Part>,
    /// YCSB's workloads
    #[arg(short = 'w', long = "workload", value_delimiter = ',', default_value = "a,b,c,d,e,f")]
    workloads: Vec<String>,
    /// Numbers of clients; each is a row
    #[arg(long, value_delimiter = ',', default_values_t = 1..=10)]
    clients: Vec<usize>,
    #[command(flatten)]
    data: DataArgs,
}

impl SsdbArgs {
    pub fn run(mut self) -> Result<Outcome> {
        self.data.check()?;
        if let Some(wrong) = self.clients.iter().find(|clients| !(1..=1000).contains(*clients)) {
            return Err(BenchError::Usage(format!("--clients {wrong}: must be between 1 and 1000")));
        }
        let workloads = self.workloads.iter().map(|name| Workload::named(name)).collect::<Result<Vec<_>>>()?;
        let parts = if self.parts.is_empty() { ssdb::Part::ALL.to_vec() } else { self.parts };
        let servers = usual_servers(std::mem::take(&mut self.data.servers))?;
        let suffix = suffix(&parts, &ssdb::Part::ALL);
        let servers = servers.into_iter().flat_map(|spec| ssdb::variants(spec, self.data.scale)).collect();
        let suite = Ssdb { parts, workloads, clients: self.clients };
        let shape = Shape { keys: 10_000, threads: 1, warmup: 0.5, payload: Content::Random };
        self.data.compare(&suite, &suffix, servers, None, shape)
    }
}

/// Repeat the experiment of Pmem-Redis: GET and SET of 1 KB values that are in memory or on a tier, with the log off
/// and on, compared with Redis and Valkey.
///
/// Onggi runs with a tier that takes values as they are written, and as `onggi-dram` without. Servers are started on
/// free ports in fresh directories. At full size this takes two hours, 16 GB of memory and 60 GB of disk.
///
/// Examples:
///   papers pmem --directory /var/tmp
///   papers pmem --part cost --scale 0.1 --rounds 5 --seconds 2
///   papers pmem --part cost --tier-delays-ns 220,80
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct PmemArgs {
    /// What to measure; everything if not given
    #[arg(long = "part", value_enum, value_delimiter = ',')]
    parts: Vec<pmem::Part>,
    /// The parent of the tiers' directories
    #[arg(long, default_value = "/dev/shm")]
    tier_place: PathBuf,
    /// What the tiers are made of
    #[arg(long, value_enum, default_value = "shared")]
    tier_medium: pmem::TierMedium,
    /// Nanoseconds that each read of a value takes in addition, and each 256 bytes written: a model of a slower medium
    /// than `shared`
    #[arg(long, value_name = "READ,WRITE", value_parser = pmem::parse_delays)]
    tier_delays_ns: Option<(u32, u32)>,
    #[command(flatten)]
    data: DataArgs,
}

impl PmemArgs {
    pub fn run(mut self) -> Result<Outcome> {
        self.data.check()?;
        let named = std::mem::take(&mut self.data.servers);
        let servers: Vec<ServerSpec> = usual_servers(named)?.iter().flat_map(pmem::in_ways).collect();
        let parts = if self.parts.is_empty() { pmem::Part::ALL.to_vec() } else { self.parts };
        let suffix = suffix(&parts, &pmem::Part::ALL);
        let suite =
            pmem::Pmem { parts, place: self.tier_place, medium: self.tier_medium, delays_ns: self.tier_delays_ns };
        let shape = Shape { keys: 1_000_000, threads: 1, warmup: 0.5, payload: Content::Constant };
        self.data.compare(&suite, &suffix, servers, None, shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> std::result::Result<Command, clap::Error> {
        Papers::try_parse_from(line.split(' ')).map(|papers| papers.command)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Papers::command().debug_assert();
    }

    #[test]
    fn parts_of_persistence_can_be_chosen() {
        let Ok(Command::Persistence(args)) =
            parse("papers persistence --part log,picture --scale 0.05 --server onggi valkey")
        else {
            panic!("a valid line is refused");
        };
        assert_eq!(args.parts, [Part::Log, Part::Picture]);
        assert_eq!(args.data.servers.len(), 2);
        assert!(parse("papers persistence --part nothing").is_err());
        assert_eq!(suffix(&args.parts, &Part::ALL), "-log-picture");
        assert_eq!(suffix(&Part::ALL, &Part::ALL), "");
        let Ok(Command::Persistence(args)) = parse("papers persistence --scale 0") else { panic!("refused by clap") };
        assert!(args.run().unwrap_err().to_string().contains("--scale"));
    }

    #[test]
    fn the_comparison_with_ssdb_can_be_chosen() {
        let Ok(Command::Ssdb(args)) = parse("papers ssdb --part larger --workload e --scale 0.1 --server onggi") else {
            panic!("a valid line is refused");
        };
        assert_eq!((&args.parts[..], args.clients.len()), (&[ssdb::Part::Larger][..], 10));
        for wrong in ["--workload g", "--clients 0", "--scale 0"] {
            let Ok(Command::Ssdb(args)) = parse(&format!("papers ssdb {wrong}")) else { panic!("refused by clap") };
            assert!(args.run().unwrap_err().to_string().contains(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_experiments_of_cp_redis_can_be_chosen() {
        let Ok(Command::CpRedis(args)) =
            parse("papers cp-redis --part load,read --payload documents --documents a b --way write --scale 0.01")
        else {
            panic!("a valid line is refused");
        };
        assert_eq!(args.parts, [cp_redis::Part::Load, cp_redis::Part::Read]);
        assert_eq!((args.payloads.len(), args.documents.len(), &args.ways[..]), (1, 2, &[Way::Write][..]));
        assert!(parse("papers cp-redis --way nothing").is_err());
        let Ok(Command::CpRedis(args)) = parse("papers cp-redis --scale 0") else { panic!("refused by clap") };
        assert_eq!(args.ways, [Way::Idle, Way::Write, Way::Off]);
        assert!(args.run().unwrap_err().to_string().contains("--scale"));
    }
}
