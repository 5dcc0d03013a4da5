//! The arguments of `onggi bench` and what its subcommands do with them.

use crate::catalogue::{TESTS, TestSpec};
use crate::client::{Address, Login};
use crate::error::{BenchError, Result};
use crate::generator::Pace;
use crate::keys::{Distribution, THETA};
use crate::measure::{self, Latency, Measurement, Row, Settings, Target};
use crate::payload::{Content, Size};
use crate::process::{self, Cores};
use crate::template::{KeyFormat, PLACEHOLDERS};
use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

/// Load a server and measure it, or compare servers in interleaved rounds.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand, Debug)]
enum BenchCommand {
    Run(Box<RunArgs>),
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
    match args.command {
        BenchCommand::Run(args) => args.run(),
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
    /// Number of different keys
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
    /// Which keys are asked for
    #[arg(short = 'd', long, value_enum, default_value_t = DistributionName::Uniform)]
    distribution: DistributionName,
    /// Skew of zipfian and latest, between 0 and 1
    #[arg(long, default_value_t = THETA)]
    theta: f64,
    /// Fixes every random choice; each connection draws a sequence of its own from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length of a measured window in seconds
    #[arg(short = 's', long, default_value_t = 5.0)]
    seconds: f64,
    /// Seconds of load before each window
    #[arg(long, default_value_t = 0.5)]
    warmup: f64,
    /// Cores for the generator, such as 1 or 2-3
    #[arg(long)]
    pin_client: Option<Cores>,
}

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
        if !(self.seconds > 0.0 && self.warmup >= 0.0) {
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
            seconds: self.seconds,
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

/// Load one running server and print operations per second, its CPU time per operation, and latencies.
///
/// Example: onggi bench run --addr 127.0.0.1:6379 --test set,get --pipeline 1,16,64 --pin-server 0 --pin-client 1
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Where the server listens: HOST:PORT, a port, or the path of a unix socket
    #[arg(short = 'a', long, default_value = "127.0.0.1:6379")]
    addr: Address,
    /// The server's process, for its CPU time; found by INFO when the server is on this machine
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
        let login = Login { user: self.user, password: self.password, database: self.database, resp3: self.resp3 };
        let found = measure::find_pid(&self.addr, &login)?;
        let target = Target { address: self.addr, login, pid: self.pid.or(found) };
        if let (Some(pid), Some(cores)) = (target.pid, &self.pin_server) {
            process::pin_process(pid, cores)?;
        }
        let mut loaded = Vec::new();
        println!("{}", heading());
        for row in &rows {
            if !self.no_load {
                let needed = (row.test.loads.clone(), row.value_size);
                if !loaded.contains(&needed) {
                    let bar = progress_bar("loading");
                    let mut watch = |_: &str, progress| advance(&bar, progress);
                    measure::load_for(&target, &settings, &row.test, row.value_size, &mut watch)?;
                    bar.finish_and_clear();
                    loaded.push(needed);
                }
            }
            let mut windows = Vec::new();
            for _ in 0..self.rounds.max(1) {
                let bar = progress_bar(&row.title());
                windows.push(measure::measure(&target, &settings, row, &mut |progress| advance(&bar, progress))?.0);
                bar.finish_and_clear();
            }
            windows.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
            println!("{}", line(&row.title(), &windows[windows.len() / 2]));
        }
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

fn progress_bar(what: &str) -> ProgressBar {
    let bar = ProgressBar::new(1000);
    let style = ProgressStyle::with_template("{msg:34} [{bar:30}] {percent:>3} % {elapsed}");
    bar.set_style(style.expect("a constant template is valid").progress_chars("=> "));
    bar.set_message(what.to_owned());
    bar
}

fn advance(bar: &ProgressBar, progress: crate::generator::Progress) {
    bar.set_position((progress.fraction.clamp(0.0, 1.0) * 1000.0) as u64);
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
