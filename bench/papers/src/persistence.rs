//! Suite `persistence`: the cost of keeping data. The log by mode, mixes of changes and reads, the picture of a
//! checkpoint under load, checkpoints and restarts alone, threads of a checkpoint, and data of extreme shapes.
//!
//! ```text
//! part       servers at a time          pinned   what is measured
//! log        every server, in turns     yes      CPU per SET at pipelines 1 and 16
//! mixes      the same ones              yes      CPU per operation of changes, 1:9 and 3:7; modes over off
//! picture    one                        yes      throughput every 100 ms, 1 ms probe, memory, while it saves
//! snapshot   every server               no       CPU and time of a checkpoint, and of a restart from it
//! threads    one                        no       the same by number of threads
//! extremes   one                        no       one huge value; very many tiny ones
//! ```
//!
//! Each server gets a fresh directory and all data over sockets. Redis and Valkey save in a forked child, so their cost
//! includes that of their children, and in their memory a shared page counts once.

pub(super) mod checkpoint;
mod extremes;
mod modes;
mod picture;
pub(super) mod snapshot;
pub(super) mod threads;

use loadgen::client::Client;
use loadgen::compare::{Harness, Suite};
use loadgen::error::{BenchError, Result};
use loadgen::keys::Distribution;
use loadgen::measure::{LOAD_PIPELINE, LoadPlan, Measurement, Settings};
use loadgen::payload::{Content, Size};
use loadgen::results::{Better, Cell, ResultRow, Section};
use loadgen::server::{Server, ServerSpec, StartOptions};
use loadgen::template::{KeyFormat, Protocol};
use rustix::fs::{statfs, statvfs};
use std::path::{Path, PathBuf};

/// A part that can run alone.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// CPU per SET with the log off, async and sync
    Log,
    /// CPU per operation of changes and reads mixed, by mode of the log
    Mixes,
    /// Throughput, latency and memory while a checkpoint runs
    Picture,
    /// Cost of a checkpoint and of a restart
    Snapshot,
    /// Checkpoints by number of threads
    Threads,
    /// One huge value, and very many tiny ones
    Extremes,
}

impl Part {
    /// All parts in the order in which they run.
    pub const ALL: [Self; 6] = [Self::Log, Self::Mixes, Self::Picture, Self::Snapshot, Self::Threads, Self::Extremes];
}

/// Directives of a start: name and value.
pub(super) type Directives = [(&'static str, &'static str)];

pub(super) const LOG_OFF: &Directives = &[("appendonly", "no")];
/// A rewrite of the log would be a fork in the middle of a window.
pub(super) const LOG_ASYNC: &Directives =
    &[("appendonly", "yes"), ("appendfsync", "everysec"), ("auto-aof-rewrite-percentage", "0")];
const LOG_SYNC: &Directives = &[("appendonly", "yes"), ("appendfsync", "always"), ("auto-aof-rewrite-percentage", "0")];

const SET: &str = "SET {key} {value}";
const KIB: Size = Size::exactly(1024);
pub(super) const MIB: f64 = (1 << 20) as f64;

/// The suite, with some of its parts.
#[derive(Clone, Debug)]
pub struct Persistence(pub Vec<Part>);

impl Suite for Persistence {
    fn name(&self) -> &str {
        "persistence"
    }

    fn speaks_memcached(&self) -> bool {
        true
    }

    fn run(&self, harness: &mut Harness<'_>) -> Result<Vec<Section>> {
        run(harness, &self.0)
    }
}

fn run(harness: &mut Harness<'_>, parts: &[Part]) -> Result<Vec<Section>> {
    let specs = startable(harness)?;
    let largest =
        DISK_BYTES.iter().filter(|(part, _)| parts.contains(part)).map(|&(_, bytes)| bytes).fold(0.0, f64::max);
    check_disk(harness, largest)?;
    let has = |part| parts.contains(&part);
    let mut sections = Vec::new();
    if has(Part::Log) || has(Part::Mixes) {
        sections.extend(modes::run(harness, &specs, has(Part::Log), has(Part::Mixes))?);
    }
    // ARCUS has no command for a checkpoint, which the other parts need.
    let specs: Vec<ServerSpec> = specs.into_iter().filter(|spec| !spec.speaks_memcached()).collect();
    if has(Part::Picture) {
        sections.extend(picture::run(harness, &specs)?);
    }
    if has(Part::Snapshot) {
        sections.extend(snapshot::run(harness, &specs)?);
    }
    if has(Part::Threads) {
        let content = harness.plan.settings.content.clone();
        sections.extend(threads::run(harness, &specs, &content, &|_, _| Ok(()))?);
    }
    if has(Part::Extremes) {
        sections.extend(extremes::run(harness, &specs)?);
    }
    Ok(sections)
}

/// The servers of the plan that store data; the harness must be able to start all of them.
pub(super) fn startable(harness: &Harness<'_>) -> Result<Vec<ServerSpec>> {
    let specs: Vec<ServerSpec> = harness.plan.servers.iter().filter(|spec| !spec.is_echo()).cloned().collect();
    match specs.iter().find(|spec| !spec.is_startable()) {
        None => Ok(specs),
        Some(spec) => Err(BenchError::Usage(format!(
            "server {}: the {} suite starts every server in several ways; give a command",
            spec.name, harness.suite
        ))),
    }
}

/// Disk space of each part at full size, over all servers of three.
const DISK_BYTES: [(Part, f64); 6] = [
    (Part::Log, 24e9),
    (Part::Mixes, 24e9),
    (Part::Picture, 14e9),
    (Part::Snapshot, 20e9),
    (Part::Threads, 16e9),
    (Part::Extremes, 6e9),
];
/// `f_type` of an in-memory file system.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Refuses to begin without the space needed at full size: a run of an hour must not end in "no space left", and disk
/// figures must not come from memory.
pub(super) fn check_disk(harness: &Harness<'_>, full_bytes: f64) -> Result<()> {
    let path = directory(harness);
    let system = |op| move |error: rustix::io::Errno| BenchError::System { op, source: error.into() };
    let kind = statfs(&path).map_err(system("look at the file system of --directory"))?;
    if u64::try_from(kind.f_type) == Ok(TMPFS_MAGIC) {
        harness.steps.warn(&format!(
            "{} is in memory: syncs cost nothing there; give --directory on a real disk",
            path.display()
        ));
    }
    let space = statvfs(&path).map_err(system("look at the space of --directory"))?;
    let free = (space.f_bavail * space.f_frsize) as f64;
    let needed = full_bytes * harness.plan.scale;
    if free < needed {
        return Err(BenchError::Usage(format!(
            "{}: {:.0} GB free, up to {:.0} GB needed: give another --directory or a smaller --scale",
            path.display(),
            free / 1e9,
            needed / 1e9
        )));
    }
    Ok(())
}

fn directory(harness: &Harness<'_>) -> PathBuf {
    harness.plan.directory.clone().unwrap_or_else(std::env::temp_dir)
}

/// Settings that decide how a server keeps its data; a server's unknown ones are left out.
const SETTINGS: [&str; 17] = [
    "appendonly",
    "appendfsync",
    "save",
    "auto-aof-rewrite-percentage",
    "no-appendfsync-on-rewrite",
    "rdbcompression",
    "rdbchecksum",
    "rdb-save-incremental-fsync",
    "aof-use-rdb-preamble",
    "io-threads",
    "checkpoint-threads",
    "log-window",
    "compression",
    "compression-when",
    "compression-idle-time",
    "compression-cpu-percent",
    "checkpoint-retain-sets",
];

/// Starts a server and records its settings. Only a pinned one shares its core with its children.
pub(super) fn start(
    harness: &mut Harness<'_>,
    spec: &ServerSpec,
    directives: &Directives,
    pinned: bool,
) -> Result<Server> {
    let mut options = harness.options();
    options.directives = directives.iter().map(|&(name, value)| (name, value.to_owned())).collect();
    if !pinned {
        options.cores = None;
    }
    let server = harness.start(spec, &StartOptions { workers: 1, ..options })?;
    let line = settings_line(&server)?;
    harness.note_settings(&spec.name, line);
    Ok(server)
}

/// The settings that the server reports; for ARCUS, the file that it received.
fn settings_line(server: &Server) -> Result<String> {
    if server.target.protocol == Protocol::Memcached {
        let file = server.directory().map(|directory| directory.join("arcus.conf"));
        return Ok(file
            .and_then(|file| std::fs::read_to_string(file).ok())
            .unwrap_or_default()
            .trim()
            .replace('\n', ", "));
    }
    let mut client = Client::connect(&server.target.address, &server.target.login)?;
    let mut words = Vec::new();
    for name in SETTINGS {
        if let Some(value) = client.setting(name)? {
            words.push(format!("{name} {}", if value.is_empty() { "\"\"" } else { &value }));
        }
    }
    Ok(words.join(", "))
}

/// Keys and values of a data set.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) keys: u64,
    key_format: KeyFormat,
    value_size: Size,
    content: Content,
}

impl Data {
    /// Keys of 16 bytes.
    pub(super) fn new(keys: u64, value_size: Size, content: Content) -> Self {
        Self { keys, key_format: KeyFormat::default(), value_size, content }
    }

    /// Bytes of all keys and values.
    fn bytes(&self) -> u64 {
        self.keys * (self.key_format.size + self.value_size.max) as u64
    }

    /// The plan's settings with this data.
    pub(super) fn settings(&self, harness: &Harness<'_>) -> Settings {
        Settings {
            keys: self.keys,
            key_format: self.key_format.clone(),
            content: self.content.clone(),
            ..harness.plan.settings.clone()
        }
    }

    /// Writes all of it and checks that it is there.
    pub(super) fn load(&self, harness: &Harness<'_>, server: &Server) -> Result<Measurement> {
        let plan = LoadPlan {
            command: SET,
            keys: self.keys,
            rounds: 1,
            value_size: self.value_size,
            distribution: Distribution::Sequential,
            pipeline: LOAD_PIPELINE,
            first_key: 0,
        };
        harness.steps.say(&format!("{}: loading {} keys", server.record.name, self.keys));
        let watch = &mut |progress: loadgen::generator::Progress| harness.steps.advance(progress.fraction);
        let (window, _) = loadgen::measure::load(&server.target, &self.settings(harness), &plan, watch)?;
        expect_keys(server, self.keys)?;
        Ok(window)
    }
}

/// # Errors
/// [`BenchError::Refused`] if the server holds another number of keys.
fn expect_keys(server: &Server, keys: u64) -> Result<()> {
    let held = server.target.key_count()?;
    if held == keys {
        return Ok(());
    }
    let (address, command) = (server.target.address.to_string(), "the number of keys".to_owned());
    Err(BenchError::Refused { address, command, reply: format!("{held} keys instead of {keys}") })
}

/// Flushes everything written so far to the disk, so that it does not disturb the next measurement.
pub(super) fn settle_disk(harness: &Harness<'_>) {
    harness.steps.wait("the disk settles");
    rustix::fs::sync();
}

/// All files below a directory, in the order of their names.
fn files_below(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_below(&entry.path())),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            // Neither a socket nor a link holds a server's data.
            _ => {}
        }
    }
    files.sort_unstable();
    files
}

/// Bytes of all files below a directory; files may appear and disappear meanwhile.
pub(super) fn bytes_below(path: &Path) -> u64 {
    files_below(path).iter().filter_map(|file| Some(std::fs::metadata(file).ok()?.len())).sum()
}

pub(super) fn section(title: &str, about: String, unit: &str, better: Better) -> Section {
    Section { title: title.to_owned(), about, unit: unit.to_owned(), better, rows: Vec::new() }
}

/// Adds a row, unless no server has a figure for it.
pub(super) fn push(harness: &Harness<'_>, section: &mut Section, title: String, cells: Vec<Cell>) {
    if !cells.is_empty() {
        section.rows.push(ResultRow::new(title, cells, &harness.plan.subject, section.better));
    }
}

/// One cell for each server that has samples.
pub(super) fn cells<'s>(samples: impl IntoIterator<Item = (&'s str, Vec<f64>)>) -> Vec<Cell> {
    samples.into_iter().filter(|(_, samples)| !samples.is_empty()).map(|(name, each)| Cell::new(name, each)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_counts_its_keys_and_values() {
        assert_eq!(Data::new(10, KIB, Content::Constant).bytes(), 10_400);
    }

    #[test]
    fn files_below_a_directory_are_summed() {
        let path = std::env::temp_dir().join(format!("onggi-bench-below-{}", std::process::id()));
        std::fs::create_dir_all(path.join("deeper")).unwrap();
        std::fs::write(path.join("a"), [0; 10]).unwrap();
        std::fs::write(path.join("deeper/b"), [0; 5]).unwrap();
        let (bytes, files) = (bytes_below(&path), files_below(&path));
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(files, [path.join("a"), path.join("deeper/b")]);
        assert_eq!((bytes, bytes_below(&path)), (15, 0));
    }

    #[test]
    fn a_row_needs_at_least_one_figure() {
        assert_eq!(cells([("a", vec![1.0]), ("b", Vec::new())]).len(), 1);
    }
}
