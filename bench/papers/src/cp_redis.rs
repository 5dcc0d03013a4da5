//! Suite `cp-redis`: repeats the experiments of CP-Redis (Sung and Park, 2019), which keeps values compressed. It uses
//! the authors' values, which are a single repeated letter, and realistic values.
//!
//! ```text
//! part     servers at a time   what is measured
//! load     one                 W1 to W15: memory, CPU per SET, checkpoints and restarts, what is compressed for them
//! read     one                 R1 to R15: CPU per GET
//! threads  one                 checkpoints and restarts by number of threads
//! cost     every server        CPU per SET and GET of Onggi, Valkey and Redis, in rounds
//! ```
//!
//! Onggi is measured in several [ways](Way); the others keep values uncompressed. Counts are those of the paper, except
//! for rows whose data exceeds memory: these are cut to 6 GB, and state the factor.

mod background;
mod cost;
mod documents;
mod loads;
mod reads;

use crate::persistence;
use documents::Pool;
use loadgen::compare::{Harness, Suite};
use loadgen::error::{BenchError, Result};
use loadgen::payload::Content;
use loadgen::results::Section;
use loadgen::server::{ScratchDirectory, ServerSpec, new_directory};
use std::path::PathBuf;

/// A part that can run alone.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// W1 to W15: memory, CPU per SET, checkpoints, restarts
    Load,
    /// R1 to R15: CPU per GET
    Read,
    /// Checkpoints by number of threads
    Threads,
    /// CPU per SET and GET in rounds, values compressed in the background
    Cost,
}

impl Part {
    /// All parts in the order in which they run.
    pub const ALL: [Self; 4] = [Self::Load, Self::Read, Self::Threads, Self::Cost];
}

/// The content of values.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// One letter throughout, as in the paper
    Constant,
    /// Random bytes
    Random,
    /// JSON and text out of packages, of about the length of the row
    Documents,
}

impl Payload {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Constant, Self::Random, Self::Documents];

    fn title(self) -> &'static str {
        match self {
            Self::Constant => "constant bytes",
            Self::Random => "random bytes",
            Self::Documents => "real documents",
        }
    }
}

/// How Onggi keeps values.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// zstd with dictionaries, in the background; hot values stay uncompressed
    Idle,
    /// LZF on write, as in CP-Redis
    Write,
    /// Uncompressed
    Off,
}

impl Way {
    /// The server run in this way, under a separate name.
    pub fn of(self, spec: &ServerSpec) -> ServerSpec {
        let (suffix, directives): (_, &[(&'static str, &str)]) = match self {
            Self::Idle => (
                "",
                &[
                    ("compression", "zstd"),
                    ("compression-when", "idle"),
                    ("compression-idle-time", AT_ONCE.idle_seconds),
                    ("compression-cpu-percent", AT_ONCE.cpu_percent),
                ],
            ),
            Self::Write => ("-lzf", &[("compression", "lzf"), ("compression-when", "write")]),
            Self::Off => ("-off", &[("compression", "off")]),
        };
        // The other servers keep one file too.
        let all = directives.iter().chain(&[("checkpoint-retain-sets", "1")]);
        spec.with_directives(suffix, all.map(|&(name, value)| (name, value.to_owned())).collect())
    }
}

/// The parts of a run.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The parts.
    pub parts: Vec<Part>,
    /// What values hold.
    pub payloads: Vec<Payload>,
    /// Directories to search for documents.
    pub documents: Vec<PathBuf>,
}

/// When a server compresses in the background, by its settings.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// `compression-idle-time`.
    idle_seconds: &'static str,
    /// `compression-cpu-percent`.
    cpu_percent: &'static str,
}

/// Values become cold soon, so that background work ends within seconds instead of minutes.
const AT_ONCE: Schedule = Schedule { idle_seconds: "2", cpu_percent: "50" };

/// A length of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Length {
    name: &'static str,
    bytes: usize,
}

/// The lengths of the paper.
const LENGTHS: [Length; 5] = [
    Length { name: "0.002 KB", bytes: 2 },
    Length { name: "0.5 KB", bytes: 512 },
    Length { name: "1 KB", bytes: 1024 },
    Length { name: "10 KB", bytes: 10 << 10 },
    Length { name: "20 KB", bytes: 20 << 10 },
];
const KEY_BYTES: u64 = 16;

/// Keys and values of rows that do not fit into memory are cut to this.
const CUT_BYTES: f64 = 6e9;
/// Disk space of the largest row for one server: its data, the previous files and the files being written.
const DISK_BYTES: f64 = 30e9;

/// A row of one of the paper's tables.
#[derive(Clone, Debug, PartialEq)]
struct Scaled {
    count: u64,
    /// Relative to the paper's count.
    factor: f64,
}

impl Scaled {
    /// `count` values of this length, cut if necessary and allowed, times the plan's scale.
    fn new(count: u64, length: Length, is_whole: bool, scale: f64) -> Self {
        let bytes = (count * (KEY_BYTES + length.bytes as u64)) as f64;
        let cut = if is_whole { 1.0 } else { (CUT_BYTES / bytes).min(1.0) };
        let scaled = ((count as f64 * cut * scale) as u64).max(1000);
        Self { count: scaled, factor: scaled as f64 / count as f64 }
    }

    fn title(&self, name: &str, what: &str, length: Length) -> String {
        let factor = if self.factor == 1.0 { String::new() } else { format!(", {:.3} of the paper's", self.factor) };
        format!("{name}: {} {what} of {}{factor}", self.count, length.name)
    }
}

/// The values of all rows.
struct Values {
    payload: Payload,
    pools: Vec<(Length, Pool)>,
}

impl Values {
    /// Values of about this length; `None` if there are no such documents.
    fn content(&self, length: Length) -> Option<Content> {
        match self.payload {
            Payload::Constant => Some(Content::Constant),
            Payload::Random => Some(Content::Random),
            Payload::Documents => {
                let (_, pool) = self.pools.iter().find(|(its, _)| *its == length)?;
                Some(Content::Documents { path: pool.path.clone() })
            }
        }
    }

    /// Their description, for the head of a table.
    fn about(&self) -> String {
        match self.payload {
            Payload::Constant => "Values are one letter throughout, which is what the paper's are.".to_owned(),
            Payload::Random => "Values are random bytes, which nothing makes shorter.".to_owned(),
            Payload::Documents => {
                let pools: Vec<String> = self.pools.iter().map(|(length, pool)| pool.sentence(length.name)).collect();
                format!(
                    "Values are JSON and text out of packages, of half to one and a half times the length, drawn at \
                     random: {}.",
                    pools.join(", ")
                )
            }
        }
    }
}

impl Suite for Choice {
    fn name(&self) -> &str {
        "cp-redis"
    }

    fn run(&self, harness: &mut Harness<'_>) -> Result<Vec<Section>> {
        run(harness, self)
    }
}

fn run(harness: &mut Harness<'_>, choice: &Choice) -> Result<Vec<Section>> {
    let specs = persistence::startable(harness)?;
    persistence::check_disk(harness, DISK_BYTES)?;
    let (mut sections, mut scratch) = (Vec::new(), None);
    for &payload in &choice.payloads {
        let values = values(harness, choice, payload, &mut scratch)?;
        for part in Part::ALL.into_iter().filter(|part| choice.parts.contains(part)) {
            sections.extend(match part {
                Part::Load => loads::run(harness, &specs, &values)?,
                Part::Read => reads::run(harness, &specs, &values)?,
                Part::Threads => threads(harness, &specs, &values)?,
                Part::Cost => cost::run(harness, &specs, &values)?,
            });
        }
    }
    Ok(sections)
}

/// The values of a payload; documents are collected into a separate directory.
fn values(
    harness: &Harness<'_>,
    choice: &Choice,
    payload: Payload,
    scratch: &mut Option<ScratchDirectory>,
) -> Result<Values> {
    let mut pools = Vec::new();
    if payload == Payload::Documents {
        let lengths = || LENGTHS.into_iter().chain([cost::DOCUMENTS]).filter(|length| length.bytes > LENGTHS[0].bytes);
        harness.steps.wait("looking for documents");
        let directory = scratch.insert(new_directory("documents", harness.plan.directory.as_deref())?);
        let ranges: Vec<_> = lengths().map(range).collect();
        let found = documents::collect(&choice.documents, &ranges, &directory.0)?;
        pools = lengths().zip(found).filter(|(_, pool)| pool.documents > 0).collect();
        if pools.is_empty() {
            return Err(BenchError::Usage("no JSON and no text below --documents: name other directories".to_owned()));
        }
        for length in lengths().filter(|length| pools.iter().all(|(its, _)| its != length)) {
            harness.steps.warn(&format!("no documents of about {}: its rows are left out", length.name));
        }
    }
    Ok(Values { payload, pools })
}

/// Shortest and longest document of a length.
fn range(length: Length) -> (usize, usize) {
    if length == cost::DOCUMENTS { cost::DOCUMENTS_RANGE } else { (length.bytes / 2, length.bytes * 3 / 2) }
}

/// The table of threads, with 1 KB values.
fn threads(harness: &mut Harness<'_>, specs: &[ServerSpec], values: &Values) -> Result<Vec<Section>> {
    let Some(content) = values.content(LENGTHS[2]) else { return Ok(Vec::new()) };
    let mut sections = persistence::threads::run(harness, specs, &content, &background::finish)?;
    for section in &mut sections {
        section.title.push_str(&format!(", {}", values.payload.title()));
        section.about.push_str(&format!(" {}", values.about()));
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_memory_are_cut_and_say_so() {
        let [_, _, _, ten, twenty] = LENGTHS;
        let row = Scaled::new(2_500_000, twenty, false, 1.0);
        assert!((row.count as f64 * (16.0 + 20_480.0) - 6e9).abs() < 1e6, "{row:?}");
        assert_eq!(row.title("W15", "SETs", twenty), format!("W15: {} SETs of 20 KB, 0.117 of the paper's", row.count));
        let whole = Scaled::new(500_000, ten, true, 1.0);
        assert_eq!(whole.title("W9", "SETs", ten), "W9: 500000 SETs of 10 KB");
        assert_eq!(Scaled::new(500_000, ten, true, 0.1).count, 50_000);
        assert_eq!(Scaled::new(100_000, ten, true, 1e-6).count, 1000);
    }

    #[test]
    fn every_way_has_a_name_of_its_own() {
        let spec: ServerSpec = "onggi".parse().unwrap();
        let names: Vec<String> = [Way::Idle, Way::Write, Way::Off].map(|way| way.of(&spec).name).into();
        assert_eq!(names, ["onggi", "onggi-lzf", "onggi-off"]);
    }
}
