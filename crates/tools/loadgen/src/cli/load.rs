//! The request load: its shape, its rows, and the address of the server.

use crate::catalogue::TestSpec;
use crate::cli::security::SecurityArgs;
use crate::client::{Address, Login};
use crate::error::{BenchError, Result};
use crate::generator::Pace;
use crate::keys::{Distribution, THETA};
use crate::measure::{self, Row, Settings, Target};
use crate::payload::{Content, Size};
use crate::process::{self, Cores};
use crate::template::{KEY_PREFIX, KeyFormat, Protocol};
use clap::{Args, ValueEnum};

/// What both `run` and `compare` take: the shape of the load.
#[derive(Args, Debug, Clone)]
pub struct LoadArgs {
    /// Connections
    #[arg(short = 'c', long, default_value_t = 50)]
    pub connections: usize,
    /// Threads of the generator
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Number of different keys; the suites memory and eviction have their own, see --scale
    #[arg(short = 'k', long, default_value_t = 1_000_000)]
    pub keys: u64,
    /// Length of keys in bytes
    #[arg(long, default_value_t = 16)]
    pub key_size: usize,
    /// What every key starts with
    #[arg(long, default_value = KEY_PREFIX)]
    pub key_prefix: String,
    /// Content of values: constant, random, or file:PATH (a document a line, or the files of a directory)
    #[arg(long, default_value = "constant")]
    pub payload: Content,
    /// Which keys are asked for; the suites memory and eviction have their own
    #[arg(short = 'd', long, value_enum, default_value_t = DistributionName::Uniform)]
    pub distribution: DistributionName,
    /// Skew of zipfian and latest, between 0 and 1
    #[arg(long, default_value_t = THETA)]
    pub theta: f64,
    /// Fixes every random choice; each connection draws a separate sequence from it
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Length of a measured window in seconds; 5, or the suite's own
    #[arg(short = 's', long)]
    pub seconds: Option<f64>,
    /// Seconds of load before each window
    #[arg(long, default_value_t = 0.5)]
    pub warmup: f64,
    /// Cores for the generator, such as 1 or 2-3
    #[arg(long)]
    pub pin_client: Option<Cores>,
}

/// A measured window, where nothing else is said.
const WINDOW_SECONDS: f64 = 5.0;

/// Which keys are asked for.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum DistributionName {
    /// Each equally often
    Uniform,
    /// A few very often
    Zipfian,
    /// A few of those written last very often
    Latest,
    /// One after another
    Sequential,
    /// Each once, in a random order
    Shuffled,
}

impl LoadArgs {
    /// As the generator takes it.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn settings(&self) -> Result<Settings> {
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

/// The rows to measure: tests by name or commands as templates, each at every pipeline depth and value size.
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
    /// then counts from the time at which a request was due
    #[arg(long)]
    rate: Option<f64>,
}

impl RowArgs {
    pub(super) fn rows(&self) -> Result<Vec<Row>> {
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
    /// Pin all threads of the server to these cores, such as 0 or 0-1
    #[arg(long)]
    pin_server: Option<Cores>,
    #[command(flatten)]
    security: SecurityArgs,
}

impl TargetArgs {
    pub(super) fn target(self) -> Result<Target> {
        let security = self.security.security(&self.addr, false)?;
        let login =
            Login { user: self.user, password: self.password, database: self.database, resp3: self.resp3, security };
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

#[cfg(test)]
mod tests {
    use crate::cli::BenchCommand;
    use crate::cli::tests::parse;

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
