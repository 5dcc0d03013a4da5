//! Suite `pmem`: repeats the experiment of Pmem-Redis. Keys are in memory, values of 1 KB in memory or on a tier, with
//! the log off and on.
//!
//! ```text
//! part      servers at a time   what is measured
//! cost      every server        CPU per GET and SET at pipelines 1 and 16
//! clients   every server        GETs and SETs per second by number of clients, 1 to 200
//! ```
//!
//! Onggi runs twice: as it is with a tier that takes values as they are written, and as `-dram` without. Persistent
//! memory is rare, so the tier is wherever `--tier-place` is. By default that is tmpfs, which is memory, with the same
//! stores past the caches and fences as on persistent memory. So the figures show what the program costs, not what a
//! slower medium adds.

use crate::persistence::{self, Data, LOG_ASYNC, LOG_OFF, settle_disk};
use loadgen::catalogue::TestSpec;
use loadgen::compare::rounds::{Effort, Figure};
use loadgen::compare::{Harness, Suite};
use loadgen::error::Result;
use loadgen::generator::Pace;
use loadgen::measure::{Row, Settings};
use loadgen::payload::Size;
use loadgen::results::{Better, Cell, ResultRow, Section};
use loadgen::server::{ScratchDirectory, Server, ServerSpec, StartOptions, new_directory};
use loadgen::targets::{SMALL_MARGIN_ROUNDS, SMALL_MARGIN_SECONDS, Target};
use std::path::PathBuf;

/// A part that can run alone.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// CPU per GET and SET at pipelines 1 and 16
    Cost,
    /// GETs and SETs per second with 1 to 200 clients
    Clients,
}

impl Part {
    /// All parts in the order in which they run.
    pub const ALL: [Self; 2] = [Self::Cost, Self::Clients];
}

/// What the tier is made of.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierMedium {
    /// Mapped persistent memory
    Dax,
    /// Mapped files
    Shared,
    /// Files
    File,
}

impl TierMedium {
    fn setting(self) -> &'static str {
        match self {
            Self::Dax => "dax",
            Self::Shared => "shared",
            Self::File => "file",
        }
    }
}

/// The suite.
#[derive(Clone, Debug)]
pub struct Pmem {
    /// Parts.
    pub parts: Vec<Part>,
    /// Where the tiers are.
    pub place: PathBuf,
    /// What they are made of.
    pub medium: TierMedium,
    /// What each read of a value and each 256 bytes written take in addition.
    pub delays_ns: Option<(u32, u32)>,
}

/// Two numbers of nanoseconds, with a comma between.
///
/// # Errors
/// What is wrong with them.
pub fn parse_delays(text: &str) -> std::result::Result<(u32, u32), String> {
    let parts = text.split_once(',').and_then(|(read, write)| Some((read.parse().ok()?, write.parse().ok()?)));
    parts.ok_or_else(|| format!("{text:?} is not two numbers of nanoseconds, as in 220,80"))
}

const KIB: Size = Size::exactly(1024);
const KEYS: u64 = 1_000_000;
/// Disk space of the logs at full size.
const DISK_BYTES: f64 = 60e9;

const PRECISE: Effort = Effort { rounds: SMALL_MARGIN_ROUNDS, seconds: SMALL_MARGIN_SECONDS };
/// The paper's number of runs.
const OF_PAPER: Effort = Effort { rounds: 10, seconds: 1.0 };
const CLIENTS: [usize; 6] = [1, 10, 20, 50, 100, 200];

/// The suffix of the server without a tier.
const DRAM: &str = "-dram";

/// A mode of the log, and what a SET on the tier may cost over one in memory with it.
struct Mode {
    name: &'static str,
    directives: &'static persistence::Directives,
    set_at_most: f64,
}

const MODES: [Mode; 2] = [
    Mode { name: "off", directives: LOG_OFF, set_at_most: 1.10 },
    Mode { name: "on", directives: LOG_ASYNC, set_at_most: 1.08 },
];
/// What a GET of the tier may cost over one in memory.
const GET_AT_MOST: f64 = 1.03;

const TESTS: [&str; 2] = ["get", "set"];
const PIPELINES: [usize; 2] = [1, 16];

/// An Onggi with a tier and one without; others as they are.
pub fn in_ways(spec: &ServerSpec) -> Vec<ServerSpec> {
    let with = |suffix| spec.with_directives(suffix, vec![("compression", "off".to_owned())]);
    match spec.is_onggi() {
        true => vec![with(""), with(DRAM)],
        false => vec![spec.clone()],
    }
}

impl Suite for Pmem {
    fn name(&self) -> &str {
        "pmem"
    }

    fn run(&self, harness: &mut Harness<'_>) -> Result<Vec<Section>> {
        let specs = persistence::startable(harness)?;
        persistence::check_disk(harness, DISK_BYTES)?;
        let data = Data::new(harness.scaled(KEYS), KIB, harness.plan.settings.content.clone());
        let windows: usize = self.parts.iter().map(|part| part.windows(harness)).sum();
        harness.steps.expect(specs.len() * MODES.len() * (1 + windows));
        let mut measured = Vec::new();
        for mode in &MODES {
            let entrants = self.start(harness, &specs, mode, &data)?;
            for part in &self.parts {
                measured.push((mode, *part, part.measure(harness, &entrants, &data)?));
            }
        }
        let mut sections = Vec::new();
        for part in &self.parts {
            let of_part = measured.iter().filter(|(_, its, _)| its == part);
            let rows: Vec<(&Mode, &Work, &[Cell])> = of_part
                .flat_map(|(mode, _, works)| works.iter().map(|(work, cells)| (*mode, work, &cells[..])))
                .collect();
            sections.extend(part.sections(harness, &self.about(), &rows));
        }
        Ok(sections)
    }
}

/// A server, and the directory of its tier.
struct Entrant {
    server: Server,
    _tier: Option<ScratchDirectory>,
}

impl Pmem {
    fn about(&self) -> String {
        let delays = self.delays_ns.map_or(String::new(), |(read, write)| {
            format!(
                " A model of a slower medium: {read} ns more for each read of a value, {write} ns for each 256 bytes \
                 written."
            )
        });
        format!(
            "Keys of 16 B and values of 1 KB. The tier is in {} (`tier-medium {}`, `tier-policy write`).{delays}",
            self.place.display(),
            self.medium.setting()
        )
    }

    /// Starts and fills all servers.
    fn start(&self, harness: &mut Harness<'_>, specs: &[ServerSpec], mode: &Mode, data: &Data) -> Result<Vec<Entrant>> {
        let mut entrants = Vec::new();
        for spec in specs {
            let mut directives: Vec<_> =
                mode.directives.iter().map(|&(name, value)| (name, value.to_owned())).collect();
            let mut tier = None;
            if spec.is_onggi() && !spec.name.ends_with(DRAM) {
                let directory = tier.insert(new_directory("tier", Some(&self.place))?);
                let path = directory.0.display().to_string();
                let medium = self.medium.setting().to_owned();
                directives.extend([("tier-dir", path), ("tier-medium", medium), ("tier-policy", "write".to_owned())]);
                if let Some((read, write)) = self.delays_ns {
                    let delays = [("tier-read-delay-ns", read), ("tier-write-delay-ns", write)];
                    directives.extend(delays.map(|(name, ns)| (name, ns.to_string())));
                }
            }
            let server = harness.start(spec, &StartOptions { directives, ..harness.options() })?;
            data.load(harness, &server)?;
            entrants.push(Entrant { server, _tier: tier });
        }
        settle_disk(harness);
        Ok(entrants)
    }
}

/// One load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Work {
    test: &'static str,
    pipeline: usize,
    /// Those of the command line if `None`.
    clients: Option<usize>,
}

impl Work {
    fn title(&self, mode: &Mode) -> String {
        let test = self.test.to_uppercase();
        match self.clients {
            None => format!("{test}, log {}, pipeline {}", mode.name, self.pipeline),
            Some(clients) => format!("{test}, log {}, {clients} clients", mode.name),
        }
    }

    fn target(&self, mode: &Mode) -> Target {
        Target::factor_at_most(if self.test == "get" { GET_AT_MOST } else { mode.set_at_most })
    }
}

impl Part {
    fn works(self) -> Vec<Work> {
        let of_test = |test| match self {
            Self::Cost => PIPELINES.map(|pipeline| Work { test, pipeline, clients: None }).to_vec(),
            Self::Clients => CLIENTS.map(|clients| Work { test, pipeline: 1, clients: Some(clients) }).to_vec(),
        };
        TESTS.into_iter().flat_map(of_test).collect()
    }

    fn figure(self) -> (Figure, Effort) {
        match self {
            Self::Cost => (Figure::CpuPerOperation, PRECISE),
            Self::Clients => (Figure::OperationsPerSecond, OF_PAPER),
        }
    }

    /// Windows of each server.
    fn windows(self, harness: &Harness<'_>) -> usize {
        self.works().len() * harness.effort(self.figure().1).rounds
    }

    fn measure(self, harness: &Harness<'_>, entrants: &[Entrant], data: &Data) -> Result<Vec<(Work, Vec<Cell>)>> {
        let servers: Vec<&Server> = entrants.iter().map(|entrant| &entrant.server).collect();
        let (figure, effort) = self.figure();
        let settings = data.settings(harness);
        let measure = |work: Work| {
            let row =
                Row { test: TestSpec::parse(work.test)?, pipeline: work.pipeline, value_size: KIB, pace: Pace::Closed };
            let connections = work.clients.unwrap_or(settings.connections);
            let settings = Settings { connections, ..settings.clone() };
            let effort = harness.effort(effort);
            let around = &mut |_, _| Ok(());
            Ok((work, harness.interleave_around(&settings, &servers, &row, effort, figure, around)?))
        };
        self.works().into_iter().map(measure).collect()
    }

    fn sections(self, harness: &Harness<'_>, about: &str, rows: &[(&Mode, &Work, &[Cell])]) -> Vec<Section> {
        let (figure, _) = self.figure();
        let (title, what) = match self {
            Self::Cost => (
                "CPU time per operation",
                "User and system time of the server's process, cleaning of the tier included, over the operations it \
                 answered.",
            ),
            Self::Clients => (
                "Operations per second by clients",
                "Pipeline 1. Server and generator share the machine: a figure for orientation.",
            ),
        };
        let about = format!("{what} {about}");
        let mut table = persistence::section(title, about.clone(), figure.unit(), figure.better());
        let subject = &harness.plan.subject;
        for (mode, work, cells) in rows {
            table.rows.push(ResultRow::new(work.title(mode), cells.to_vec(), subject, table.better));
        }
        let costs = (self == Self::Cost).then(|| costs(harness, &about, rows));
        std::iter::once(table).chain(costs).collect()
    }
}

/// The server with a tier over the one without.
fn costs(harness: &Harness<'_>, about: &str, rows: &[(&Mode, &Work, &[Cell])]) -> Section {
    let subject = &harness.plan.subject;
    let base = format!("{subject}{DRAM}");
    let about = format!("The CPU time per operation over that of the same program without a tier, in rounds. {about}");
    let mut quotients = persistence::section("What the tier costs", about, "times the CPU time", Better::Lower);
    let mut targets = Vec::new();
    for (mode, work, cells) in rows {
        let cell = |name: &str| cells.iter().find(|cell| cell.server == name);
        let Some((own, dram)) = cell(subject).zip(cell(&base)) else { continue };
        let samples = own.samples.iter().zip(&dram.samples).map(|(own, dram)| own / dram.max(1e-12)).collect();
        let cell = Cell { windows: own.windows.clone(), ..Cell::new(subject, samples) };
        quotients.rows.push(ResultRow::new(work.title(mode), vec![cell], subject, quotients.better));
        targets.push(Some(work.target(mode)));
    }
    harness.subject_section(quotients, &targets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn works_have_titles_of_their_own_and_compile() {
        let works: Vec<Work> = Part::ALL.into_iter().flat_map(Part::works).collect();
        let titles: HashSet<String> = works.iter().flat_map(|work| MODES.iter().map(|mode| work.title(mode))).collect();
        assert_eq!(titles.len(), works.len() * MODES.len());
        assert!(works.iter().all(|work| TestSpec::parse(work.test).is_ok()));
    }

    #[test]
    fn delays_are_two_numbers() {
        assert_eq!(parse_delays("220,80"), Ok((220, 80)));
        for wrong in ["", "220", "220,", "a,b", "1,2,3", "-1,2"] {
            assert!(parse_delays(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_onggi_runs_with_a_tier_and_without() {
        let names = |name: &str| in_ways(&name.parse().unwrap()).into_iter().map(|spec| spec.name).collect::<Vec<_>>();
        assert_eq!(names("onggi"), ["onggi", "onggi-dram"]);
        assert_eq!(names("redis"), ["redis"]);
    }
}
