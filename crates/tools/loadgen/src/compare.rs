//! Comparisons: several servers, one under load at a time, in rounds whose order rotates.
//!
//! ```text
//! round 1:  A B C     every server holds the same data throughout; a ratio is taken within a round, where both
//! round 2:  B C A     sides see the same state of the host, and the median is taken over the rounds
//! round 3:  C A B
//! ```

mod collections;
mod collections_memory;
mod eviction;
mod fresh;
mod memory;
mod resident;
pub mod rounds;
mod strings;
mod two_workers;
mod ycsb;

use crate::client::Client;
use crate::error::{BenchError, Result};
use crate::guest::Guest;
use crate::machine::{self, Machine};
use crate::measure::{self, LOAD_PIPELINE, LoadPlan, Measurement, Row, Settings};
use crate::process::Cores;
use crate::progress::Steps;
use crate::results::{FORMAT, Picture, Results, Section};
use crate::server::{Server, ServerRecord, ServerSpec, StartOptions};
use std::path::PathBuf;
use std::time::{Instant, SystemTime};
pub use ycsb::Plan as YcsbPlan;

/// A load average above this share of the cores, before anything was started, comes from other programs.
const QUIET_LOAD_PER_CORE: f64 = 0.25;

/// What to compare: an experiment that starts servers, loads them and returns tables. Suites of other programs
/// implement it too.
pub trait Suite {
    /// Its name on the command line and in paths.
    fn name(&self) -> &str;

    /// Whether it can load servers that speak the protocol of memcached.
    fn speaks_memcached(&self) -> bool {
        false
    }

    /// Runs it.
    ///
    /// # Errors
    /// A server cannot be started, loaded or measured.
    fn run(&self, harness: &mut Harness<'_>) -> Result<Vec<Section>>;
}

/// The suites of `onggi bench compare`.
#[derive(Clone, Debug)]
pub enum BuiltIn {
    /// CPU time per string command.
    Strings,
    /// CPU time per command on a collection; the named rows, or all if none is named.
    Collections(Vec<String>),
    /// Bytes per key, and per element of collections.
    Memory,
    /// Throughput of two workers.
    TwoWorkers,
    /// Hit ratios under a memory limit.
    Eviction,
    /// YCSB's core workloads.
    Ycsb(YcsbPlan),
    /// Rows of the user's own, without targets.
    Custom(Vec<Row>),
}

impl Suite for BuiltIn {
    fn name(&self) -> &str {
        match self {
            Self::Strings => "strings",
            Self::Collections(_) => "collections",
            Self::Memory => "memory",
            Self::TwoWorkers => "two-workers",
            Self::Eviction => "eviction",
            Self::Ycsb(_) => "ycsb",
            Self::Custom(_) => "custom",
        }
    }

    fn run(&self, harness: &mut Harness<'_>) -> Result<Vec<Section>> {
        match self {
            Self::Strings => strings::run(harness),
            Self::Collections(only) => collections::run(harness, only),
            Self::Memory => memory::run(harness),
            Self::TwoWorkers => two_workers::run(harness),
            Self::Eviction => eviction::run(harness),
            Self::Ycsb(plan) => ycsb::run(harness, plan),
            Self::Custom(rows) => strings::run_custom(harness, rows),
        }
    }
}

/// The plan of a comparison.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The servers.
    pub servers: Vec<ServerSpec>,
    /// What it may do to servers that ran before.
    pub guest: Guest,
    /// The one whose targets are judged.
    pub subject: String,
    /// The load.
    pub settings: Settings,
    /// Rounds, if they replace the suite's own number.
    pub rounds: Option<usize>,
    /// Seconds per window, if they replace the suite's own length.
    pub seconds: Option<f64>,
    /// Factor on the number of keys of the suites that bring their own.
    pub scale: f64,
    /// The parent of the servers' directories; the system's directory for temporary files if `None`.
    pub directory: Option<PathBuf>,
    /// Cores for the servers; `None` leaves them free.
    pub server_cores: Option<Cores>,
    /// Over unix sockets instead of TCP.
    pub unix_socket: bool,
    /// The command line, for the results.
    pub command_line: String,
}

/// Runs a suite.
///
/// # Errors
/// A server cannot be started, loaded or measured; no results are kept then.
pub fn run(plan: &Plan, suite: &dyn Suite) -> Result<Results> {
    run_with(plan, suite, Steps::new()).map(|(results, _)| results)
}

/// As [`run`], with these steps, which it gives back.
///
/// # Errors
/// As there.
pub fn run_with(plan: &Plan, suite: &dyn Suite, steps: Steps) -> Result<(Results, Steps)> {
    let (began, clock, machine) = (SystemTime::now(), Instant::now(), Machine::read());
    if !plan.servers.iter().any(|server| server.name == plan.subject) {
        return Err(BenchError::Usage(format!("--subject {}: no server of that name", plan.subject)));
    }
    for (at, server) in plan.servers.iter().enumerate() {
        if plan.servers[..at].iter().any(|other| other.name == server.name) {
            return Err(BenchError::Usage(format!("two servers are named `{}`: write NAME=...", server.name)));
        }
    }
    if !suite.speaks_memcached()
        && let Some(server) = plan.servers.iter().find(|server| server.speaks_memcached())
    {
        let why = format!("server {}: suite {} does not speak memcached", server.name, suite.name());
        return Err(BenchError::Usage(why));
    }
    if machine.load_average > machine.cores as f64 * QUIET_LOAD_PER_CORE {
        steps.warn(&format!(
            "the machine is busy (load average {} on {} cores): costs come out higher, intervals wider",
            machine.load_average, machine.cores
        ));
    }
    plan.guest.check(&plan.servers)?;
    let mut harness = Harness { plan, suite: suite.name(), steps, pictures: Vec::new(), records: Vec::new() };
    let sections = suite.run(&mut harness);
    // Also after a failure: the written keys do not belong to the user.
    let left = plan.guest.leave(&plan.servers);
    harness.steps.finish();
    let sections = sections?;
    left?.iter().for_each(|line| harness.steps.print(line));
    let results = Results {
        format: FORMAT,
        suite: suite.name().to_owned(),
        started: machine::utc(began),
        seconds: clock.elapsed().as_secs_f64(),
        command_line: plan.command_line.clone(),
        generator: format!("onggi bench {}", env!("CARGO_PKG_VERSION")),
        load_average_end: Machine::read().load_average,
        machine,
        settings: plan.settings.clone(),
        subject: plan.subject.clone(),
        servers: harness.records,
        sections,
        pictures: harness.pictures,
    };
    Ok((results, harness.steps))
}

/// What the suites share: the plan, a progress bar, and the servers seen so far.
pub struct Harness<'p> {
    /// What was asked for.
    pub plan: &'p Plan,
    /// The suite's name.
    pub suite: &'p str,
    /// The progress bar.
    pub steps: Steps,
    /// The pictures of the results.
    pub pictures: Vec<Picture>,
    records: Vec<ServerRecord>,
}

impl Harness<'_> {
    /// Starts one server and records its properties.
    ///
    /// # Errors
    /// It does not start, or not in time.
    pub fn start(&mut self, spec: &ServerSpec, options: &StartOptions) -> Result<Server> {
        self.steps.wait(&format!("starting {}", spec.name));
        let server = Server::start(spec, options)?;
        if !self.records.iter().any(|record| record.name == server.record.name) {
            self.records.push(server.record.clone());
        }
        Ok(server)
    }

    /// Starts all servers of the plan.
    ///
    /// # Errors
    /// One of them does not start.
    pub fn start_all(&mut self, options: &StartOptions) -> Result<Vec<Server>> {
        let plan = self.plan;
        plan.servers.iter().map(|spec| self.start(spec, options)).collect()
    }

    /// Notes a line on the settings that a server runs with.
    pub fn note_settings(&mut self, server: &str, line: String) {
        if let Some(record) = self.records.iter_mut().find(|record| record.name == server)
            && !record.settings.contains(&line)
        {
            record.settings.push(line);
        }
    }

    /// Options that every start has in common.
    pub fn options(&self) -> StartOptions {
        StartOptions {
            directives: Vec::new(),
            workers: 1,
            cores: self.plan.server_cores.clone(),
            unix_socket: self.plan.unix_socket,
            directory: self.plan.directory.clone(),
        }
    }

    /// A number of keys, by the plan's scale.
    pub fn scaled(&self, keys: u64) -> u64 {
        ((keys as f64 * self.plan.scale) as u64).max(1000)
    }

    /// Writes keys, showing progress under `title`.
    ///
    /// # Errors
    /// The server refuses a write, or ends.
    pub fn load(&self, server: &Server, title: &str, load: &LoadPlan<'_>) -> Result<(Measurement, u64)> {
        self.steps.say(title);
        measure::load(&server.target, &self.plan.settings, load, &mut |progress| self.steps.advance(progress.fraction))
    }

    /// Gives the server exactly the data that a row needs, and checks that it has kept all of it. `first`: nothing was
    /// written to it before.
    ///
    /// # Errors
    /// The server refuses a write, ends, or holds fewer keys than were written.
    pub fn load_for(&self, server: &Server, row: &Row, first: bool) -> Result<()> {
        if server.is_echo {
            return Ok(());
        }
        if !first || !server.is_own() {
            self.plan.guest.empty(server)?;
        }
        for (command, rounds) in &row.test.loads {
            let load = LoadPlan {
                command,
                keys: self.plan.settings.keys,
                rounds: *rounds,
                value_size: row.value_size,
                distribution: crate::keys::Distribution::Sequential,
                pipeline: LOAD_PIPELINE,
                first_key: 0,
            };
            self.load(server, &format!("loading {}", server.record.name), &load)?;
        }
        let held = Client::connect(&server.target.address, &server.target.login)?.key_count();
        if let Ok(held) = held
            && !row.test.loads.is_empty()
            && held < self.plan.settings.keys
        {
            let (address, command) = (server.target.address.to_string(), "DBSIZE".to_owned());
            let reply = format!("{held} keys after writing {}", self.plan.settings.keys);
            return Err(BenchError::Refused { address, command, reply });
        }
        Ok(())
    }

    /// Judges the rows of a table by their targets.
    pub fn subject_section(&self, mut section: Section, targets: &[Option<crate::targets::Target>]) -> Section {
        for (row, target) in section.rows.iter_mut().zip(targets) {
            row.verdict = target.as_ref().and_then(|target| target.judge(row, &self.plan.subject, section.better));
        }
        section
    }
}
