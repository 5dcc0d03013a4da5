//! Named runs: the definition of a table row, how a server is loaded for it, and the resulting figures.

use crate::catalogue::TestSpec;
use crate::client::{Address, Client, Login};
use crate::error::{BenchError, Result};
use crate::generator::{self, Extent, Pace, Progress, Run, Totals};
use crate::keys::{Distribution, KeyStream};
use crate::memcached;
use crate::payload::{Content, Payload, Size};
use crate::process::{self, Cores, CpuTime};
use crate::template::{KeyFormat, Protocol, Template};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A server to load: its address and its process.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it listens.
    pub address: Address,
    /// How to log in.
    pub login: Login,
    /// Its process, if it runs on this machine.
    pub pid: Option<u32>,
    /// Its protocol.
    pub protocol: Protocol,
}

impl Target {
    /// Keys that it holds.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn key_count(&self) -> Result<u64> {
        match self.protocol {
            Protocol::Resp => Client::connect(&self.address, &self.login)?.key_count(),
            Protocol::Memcached => memcached::key_count(&self.address),
        }
    }
}

/// What stays the same over the rows of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Connections.
    pub connections: usize,
    /// Threads of the generator.
    pub threads: usize,
    /// How keys are spelled.
    pub key_format: KeyFormat,
    /// Size of the key range.
    pub keys: u64,
    /// The distribution of requested keys.
    pub distribution: Distribution,
    /// The content of values.
    pub content: Content,
    /// Fixes every random choice.
    pub seed: u64,
    /// Cores of the generator.
    pub generator_cores: Option<Cores>,
    /// Before each measured window.
    pub warmup_seconds: f64,
    /// Length of each measured window.
    pub seconds: f64,
}

/// One row: what is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Commands and loads.
    pub test: TestSpec,
    /// Requests in flight per connection.
    pub pipeline: usize,
    /// Length of values.
    pub value_size: Size,
    /// Closed loop or fixed rate.
    pub pace: Pace,
}

impl Row {
    /// A short name for tables: `get, pipeline 16, 64 B`.
    pub fn title(&self) -> String {
        let mut title = format!("{}, pipeline {}, {} B", self.test.name, self.pipeline, self.value_size);
        if let Pace::Rate(rate) = self.pace {
            title.push_str(&format!(", {rate} ops/s"));
        }
        title
    }
}

/// Microseconds at the usual percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean_us: f64,
    /// Half of all operations were faster.
    pub p50_us: f64,
    /// 90 %.
    pub p90_us: f64,
    /// 99 %.
    pub p99_us: f64,
    /// 99.9 %.
    pub p999_us: f64,
    /// The slowest.
    pub max_us: f64,
}

impl Latency {
    /// The figures of a histogram in nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            mean_us: histogram.mean() / 1e3,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: histogram.max() as f64 / 1e3,
        }
    }
}

/// What one window gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// Length of the window.
    pub seconds: f64,
    /// Replies in it.
    pub operations: u64,
    /// Replies per second.
    pub operations_per_second: f64,
    /// The server's CPU time per operation; `None` when its process is unknown.
    pub cpu_per_operation: Option<CpuTime>,
    /// The generator's own CPU time per operation, in microseconds.
    pub generator_us_per_operation: f64,
    /// Latencies.
    pub latency: Latency,
    /// Nil replies.
    pub misses: u64,
    /// Error replies.
    pub errors: u64,
    /// The first error's text.
    pub first_error: Option<String>,
}

impl Measurement {
    fn of(totals: &Totals) -> Self {
        let operations = totals.operations.max(1) as f64;
        let per_operation = |cpu: CpuTime| CpuTime {
            total_us: cpu.total_us / operations,
            user_us: cpu.user_us / operations,
            system_us: cpu.system_us / operations,
        };
        Self {
            seconds: totals.elapsed.as_secs_f64(),
            operations: totals.operations,
            operations_per_second: totals.operations as f64 / totals.elapsed.as_secs_f64().max(1e-9),
            cpu_per_operation: totals.server_cpu.map(per_operation),
            generator_us_per_operation: totals.own_cpu_us / operations,
            latency: Latency::of(&totals.latency),
            misses: totals.misses,
            errors: totals.errors,
            first_error: totals.first_error.clone(),
        }
    }
}

/// Measures one row on one server; returns its figures and the whole latency histogram.
///
/// # Errors
/// As [`generator::run`]; and [`BenchError::Refused`] when the server answered nothing but errors.
pub fn measure(
    target: &Target,
    settings: &Settings,
    row: &Row,
    watch: &mut dyn FnMut(Progress),
) -> Result<(Measurement, Histogram<u64>)> {
    let measured = Duration::from_secs_f64(settings.seconds);
    let totals = run_row(target, settings, row, measured, None, watch)?;
    Ok((Measurement::of(&totals), totals.latency))
}

/// Loads a server with one row until `until` is set, calling `watch` about every 50 ms.
///
/// # Errors
/// As [`measure`].
pub fn run_until(
    target: &Target,
    settings: &Settings,
    row: &Row,
    until: &AtomicBool,
    watch: &mut dyn FnMut(Progress),
) -> Result<()> {
    run_row(target, settings, row, LONGEST, Some(until), watch).map(|_| ())
}

/// Longer than any run.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

fn run_row(
    target: &Target,
    settings: &Settings,
    row: &Row,
    measured: Duration,
    until: Option<&AtomicBool>,
    watch: &mut dyn FnMut(Progress),
) -> Result<Totals> {
    let commands = row
        .test
        .commands
        .iter()
        .map(|(text, weight)| Ok((Template::for_protocol(text, &settings.key_format, target.protocol)?, *weight)))
        .collect::<Result<Vec<_>>>()?;
    let keys = KeyStream::new(settings.distribution, settings.keys, settings.seed);
    let payload = Payload::new(&settings.content, row.value_size, settings.seed)?;
    let totals = generator::run(
        &Run {
            address: &target.address,
            login: &target.login,
            protocol: target.protocol,
            pid: target.pid,
            connections: settings.connections,
            threads: settings.threads,
            pipeline: row.pipeline,
            pace: row.pace,
            extent: Extent::Time { warmup: Duration::from_secs_f64(settings.warmup_seconds), measured },
            commands: &commands,
            fill: None,
            keys: &keys,
            key_count: settings.keys,
            newest: settings.keys,
            payload: &payload,
            ordered_fields: false,
            seed: settings.seed,
            cores: settings.generator_cores.as_ref(),
            drain: DRAIN,
            until,
        },
        watch,
    )?;
    check(target, &row.test.name, &totals)?;
    Ok(totals)
}

/// A few error replies are a figure; only errors, or no reply at all, mean that the run measured nothing.
fn check(target: &Target, command: &str, totals: &Totals) -> Result<()> {
    if totals.errors < totals.operations {
        return Ok(());
    }
    let (address, command) = (target.address.to_string(), command.to_owned());
    match totals.first_error.clone() {
        Some(reply) if reply.starts_with("NOAUTH") => Err(BenchError::Login { address, reply }),
        Some(reply) => Err(BenchError::Refused { address, command, reply }),
        None => Err(BenchError::Silent { address, command, seconds: totals.elapsed.as_secs_f64() }),
    }
}

/// How keys are written before they are measured.
#[derive(Clone, Debug)]
pub struct LoadPlan<'a> {
    /// The command that writes a key.
    pub command: &'a str,
    /// Number of different keys.
    pub keys: u64,
    /// How often each is written.
    pub rounds: u64,
    /// Length of values.
    pub value_size: Size,
    /// In order, or each key once at random.
    pub distribution: Distribution,
    /// Requests in flight per connection.
    pub pipeline: usize,
    /// The number of the first key to write, relative to the beginning; 0 to begin there.
    pub first_key: u64,
}

/// How long a fixed-rate run waits for late replies.
pub const DRAIN: Duration = Duration::from_secs(10);

/// Requests in flight per connection while loading.
pub const LOAD_PIPELINE: usize = 16;

/// Writes keys and waits until all are answered.
///
/// # Errors
/// As [`measure`].
pub fn load(
    target: &Target,
    settings: &Settings,
    plan: &LoadPlan<'_>,
    watch: &mut dyn FnMut(Progress),
) -> Result<(Measurement, u64)> {
    let commands = [(Template::for_protocol(plan.command, &settings.key_format, target.protocol)?, 1)];
    let keys = KeyStream::new(plan.distribution, plan.keys, settings.seed).starting_at(plan.first_key);
    let payload = Payload::new(&settings.content, plan.value_size, settings.seed)?;
    let totals = generator::run(
        &Run {
            address: &target.address,
            login: &target.login,
            protocol: target.protocol,
            pid: target.pid,
            connections: settings.connections,
            threads: settings.threads,
            pipeline: plan.pipeline,
            pace: Pace::Closed,
            extent: Extent::Operations(plan.keys * plan.rounds),
            commands: &commands,
            fill: None,
            keys: &keys,
            key_count: plan.keys,
            newest: plan.first_key + plan.keys,
            payload: &payload,
            ordered_fields: true,
            seed: settings.seed,
            cores: settings.generator_cores.as_ref(),
            drain: DRAIN,
            until: None,
        },
        watch,
    )?;
    check(target, plan.command, &totals)?;
    if let Some(reply) = totals.first_error.clone() {
        let (address, command) = (target.address.to_string(), plan.command.to_owned());
        return Err(BenchError::Refused { address, command, reply });
    }
    Ok((Measurement::of(&totals), totals.value_bytes))
}

/// Loads everything a test needs.
///
/// # Errors
/// As [`load`].
pub fn load_for(
    target: &Target,
    settings: &Settings,
    test: &TestSpec,
    value_size: Size,
    watch: &mut dyn FnMut(f64),
) -> Result<()> {
    for (command, rounds) in &test.loads {
        let plan = LoadPlan {
            command,
            keys: settings.keys,
            rounds: *rounds,
            value_size,
            distribution: Distribution::Sequential,
            pipeline: LOAD_PIPELINE,
            first_key: 0,
        };
        load(target, settings, &plan, &mut |progress| watch(progress.fraction))?;
    }
    Ok(())
}

/// The process that listens on an address, according to the server itself, if it runs on this machine.
///
/// # Errors
/// When the server cannot be reached or refuses the login.
pub fn find_pid(address: &Address, login: &Login) -> Result<Option<u32>> {
    let mut client = Client::connect(address, login)?;
    client.check_login()?;
    let local = match address {
        Address::Unix(_) => true,
        Address::Tcp(text) => text.starts_with("127.") || text.starts_with("localhost:") || text.starts_with("[::1]"),
    };
    let pid = client.info("server", "process_id").and_then(|text| text.parse().ok());
    Ok(pid.filter(|&pid| local && process::cpu_time(pid).is_ok()))
}
