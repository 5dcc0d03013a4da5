//! Comparisons: several servers, one under load at a time, in rounds whose order rotates.
//!
//! ```text
//! round 1:  A B C     every server holds the same data throughout; a ratio is taken within a round, where both
//! round 2:  B C A     sides see the same state of the host, and the median is taken over the rounds
//! round 3:  C A B
//! ```

mod collections;
mod collections_memory;
pub mod cp_redis;
mod eviction;
mod memory;
pub mod persistence;
mod rounds;
mod strings;
mod two_workers;

use crate::client::Client;
use crate::error::{BenchError, Result};
use crate::guest::Guest;
use crate::machine::{self, Machine};
use crate::measure::{self, LOAD_PIPELINE, LoadPlan, Measurement, Row, Settings};
use crate::process::Cores;
use crate::progress::Steps;
use crate::results::{FORMAT, Results, Section};
use crate::server::{Server, ServerRecord, ServerSpec, StartOptions};
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

/// A load average above this share of the cores, before anything was started, comes from other programs.
const QUIET_LOAD_PER_CORE: f64 = 0.25;

/// What to compare.
#[derive(Clone, Debug)]
pub enum Suite {
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
    /// The cost of the log, of checkpoints and of restarts; these parts of it.
    Persistence(Vec<persistence::Part>),
    /// The experiments of CP-Redis; these parts and payloads of them.
    CpRedis(cp_redis::Choice),
    /// Rows of the user's own, without targets.
    Custom(Vec<Row>),
}

impl Suite {
    /// Its name on the command line and in paths.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Strings => "strings",
            Self::Collections(_) => "collections",
            Self::Memory => "memory",
            Self::TwoWorkers => "two-workers",
            Self::Eviction => "eviction",
            Self::Persistence(_) => "persistence",
            Self::CpRedis(_) => "cp-redis",
            Self::Custom(_) => "custom",
        }
    }
}

/// The plan of a comparison.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What to compare.
    pub suite: Suite,
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
    /// Factor on the number of keys of the collections, memory, eviction, persistence and cp-redis suites.
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

/// Runs the comparison.
///
/// # Errors
/// A server cannot be started, loaded or measured; no results are kept then.
pub fn run(plan: &Plan) -> Result<Results> {
    let (began, clock, machine) = (SystemTime::now(), Instant::now(), Machine::read());
    if !plan.servers.iter().any(|server| server.name == plan.subject) {
        return Err(BenchError::Usage(format!("--subject {}: no server of that name", plan.subject)));
    }
    for (at, server) in plan.servers.iter().enumerate() {
        if plan.servers[..at].iter().any(|other| other.name == server.name) {
            return Err(BenchError::Usage(format!("two servers are named `{}`: write NAME=...", server.name)));
        }
    }
    if !matches!(plan.suite, Suite::Persistence(_))
        && let Some(server) = plan.servers.iter().find(|server| server.speaks_memcached())
    {
        return Err(BenchError::Usage(format!("server {}: only the persistence suite speaks memcached", server.name)));
    }
    let steps = Steps::new();
    if machine.load_average > machine.cores as f64 * QUIET_LOAD_PER_CORE {
        steps.warn(&format!(
            "the machine is busy (load average {} on {} cores): costs come out higher, intervals wider",
            machine.load_average, machine.cores
        ));
    }
    plan.guest.check(&plan.servers)?;
    let mut harness = Harness { plan, steps, records: Vec::new() };
    let mut pictures = Vec::new();
    let sections = sections(&mut harness, &mut pictures);
    // Also after a failure: the written keys do not belong to the user.
    let left = plan.guest.leave(&plan.servers);
    harness.steps.finish();
    let sections = sections?;
    left?.iter().for_each(|line| harness.steps.print(line));
    Ok(Results {
        format: FORMAT,
        suite: plan.suite.name().to_owned(),
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
        pictures,
    })
}

/// Runs the suite.
fn sections(harness: &mut Harness<'_>, pictures: &mut Vec<crate::results::Picture>) -> Result<Vec<Section>> {
    let plan = harness.plan;
    match &plan.suite {
        Suite::Strings => strings::run(harness),
        Suite::Collections(only) => collections::run(harness, only),
        Suite::Memory => memory::run(harness),
        Suite::TwoWorkers => two_workers::run(harness),
        Suite::Eviction => eviction::run(harness),
        Suite::Persistence(parts) => persistence::run(harness, parts, pictures),
        Suite::CpRedis(choice) => cp_redis::run(harness, choice),
        Suite::Custom(rows) => strings::run_custom(harness, rows),
    }
}

/// What the suites share: the plan, a progress bar, and the servers seen so far.
struct Harness<'p> {
    plan: &'p Plan,
    steps: Steps,
    records: Vec<ServerRecord>,
}

impl Harness<'_> {
    /// Starts one server and records its properties.
    fn start(&mut self, spec: &ServerSpec, options: &StartOptions) -> Result<Server> {
        self.steps.wait(&format!("starting {}", spec.name));
        let server = Server::start(spec, options)?;
        if !self.records.iter().any(|record| record.name == server.record.name) {
            self.records.push(server.record.clone());
        }
        Ok(server)
    }

    /// Starts all servers of the plan.
    fn start_all(&mut self, options: &StartOptions) -> Result<Vec<Server>> {
        let plan = self.plan;
        plan.servers.iter().map(|spec| self.start(spec, options)).collect()
    }

    /// Options that every start has in common.
    fn options(&self) -> StartOptions {
        StartOptions {
            directives: Vec::new(),
            workers: 1,
            cores: self.plan.server_cores.clone(),
            unix_socket: self.plan.unix_socket,
            directory: self.plan.directory.clone(),
        }
    }

    /// A number of keys, by the plan's scale.
    fn scaled(&self, keys: u64) -> u64 {
        ((keys as f64 * self.plan.scale) as u64).max(1000)
    }

    /// Writes keys, showing progress under `title`.
    fn load(&self, server: &Server, title: &str, load: &LoadPlan<'_>) -> Result<(Measurement, u64)> {
        self.steps.say(title);
        measure::load(&server.target, &self.plan.settings, load, &mut |progress| self.steps.advance(progress.fraction))
    }

    /// Gives the server exactly the data that a row needs, and checks that it has kept all of it. `first`: nothing was
    /// written to it before.
    fn load_for(&self, server: &Server, row: &Row, first: bool) -> Result<()> {
        if server.is_echo {
            return Ok(());
        }
        if !first || !server.is_own() {
            server.empty(&self.plan.guest)?;
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

    fn subject_section(&self, mut section: Section, targets: &[Option<crate::targets::Target>]) -> Section {
        for (row, target) in section.rows.iter_mut().zip(targets) {
            row.verdict = target.as_ref().and_then(|target| target.judge(row, &self.plan.subject, section.better));
        }
        section
    }
}
