//! Faults for a server that promises to keep what it acknowledged: `kill -9`, power cuts, disks that are full, fail or
//! are slow. Eight writers load it, and know for each key what may be found afterwards.
//!
//! ```text
//! writers --> server --> [ fault ] --> server again --> judge: is it a beginning of what each writer did,
//!    \_____________ what was sent, what was answered _____________/        as long as was promised?
//! ```
//!
//! | Module | What it is |
//! |---|---|
//! | `operation` | what writers do, and what it leaves |
//! | `writer`, `load` | the load |
//! | `judge` | what may be found after a crash |
//! | `server`, `resp` | the server as a process and as an address |
//! | `kill`, `power`, `disk` | the faults |
//! | `codecs` | compression, which changes meanwhile |
//!
//! The stages `kill`, `power-cut` and `disk-faults` of the test runner run it.

mod codecs;
mod disk;
mod judge;
mod kill;
mod load;
mod operation;
mod power;
mod report;
mod resp;
mod server;
mod volume;
mod writer;

use clap::{Args, Parser, Subcommand, ValueEnum};
use judge::Promise;
use load::Company;
use report::Report;
use server::{Kind, Server};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use volume::{Format, Memory, Volume};

/// Size of a file system of our own; its image is sparse.
const VOLUME_MEGABYTES: u64 = 512;
/// Size of the disk that becomes full: what others keep from it, and 16 to fill.
const FULL_MEGABYTES: u64 = 48;
/// What the disk that fails has for its image: the file system's own tables, and a few seconds of load.
const FAILING_MEGABYTES: u64 = 28;

/// What is promised of what was answered.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// `appendfsync always`: nothing is lost.
    Sync,
    /// `appendfsync everysec`: what was answered before the window is there.
    Async,
    /// Both, and `no`, and no log at all, changed under load.
    Modes,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Sync => "sync",
            Mode::Async => "async",
            Mode::Modes => "modes that change",
        }
    }
}

#[derive(Args, Clone, Debug)]
struct Target {
    /// Which server.
    #[arg(long, value_enum, default_value = "onggi")]
    kind: Kind,
    /// Its program.
    #[arg(long)]
    program: PathBuf,
    /// A directive besides, as NAME=VALUE.
    #[arg(long = "option")]
    options: Vec<String>,
    /// An empty directory for what the run needs.
    #[arg(long)]
    dir: PathBuf,
    /// Seed of everything random.
    #[arg(long)]
    seed: u64,
    /// The mode of the log.
    #[arg(long, value_enum, default_value = "sync")]
    mode: Mode,
    /// What async mode may lose, in milliseconds.
    #[arg(long, default_value_t = 2000)]
    window_ms: u64,
    /// Strings are compressed, in ways that change. For `kill` and `power-cut`, and ten of them at least.
    #[arg(long)]
    compressed: bool,
}

impl Target {
    /// The server, with its data in a directory.
    fn server(&self, data: PathBuf) -> Result<Server, String> {
        let port = server::free_port().map_err(|error| error.to_string())?;
        let fsync = if matches!(self.mode, Mode::Async) { "everysec" } else { "always" };
        let mut options =
            vec![("appendonly".to_owned(), "yes".to_owned()), ("appendfsync".to_owned(), fsync.to_owned())];
        for option in &self.options {
            let (name, value) = option.split_once('=').ok_or_else(|| format!("{option}: NAME=VALUE is wanted"))?;
            options.push((name.to_owned(), value.to_owned()));
        }
        let output = self.dir.join("output");
        Ok(Server {
            kind: self.kind,
            program: self.program.clone(),
            port,
            dir: data,
            output,
            options,
            wrap: Vec::new(),
        })
    }

    /// A file system of our own, its image in a directory.
    fn volume(&self, image: &Path, format: Format) -> Result<Volume, String> {
        Volume::create(&image.join("image"), &self.dir.join("volume"), format, VOLUME_MEGABYTES)
    }

    fn promise(&self) -> Promise {
        match self.mode {
            Mode::Sync => Promise::Sync,
            Mode::Async => Promise::Window(self.window_ms * 1000),
            Mode::Modes => Promise::Changing,
        }
    }

    fn plan(&self, cycles: u64, load_ms: u64) -> kill::Plan {
        let (promise, company) = (self.promise(), self.company());
        kill::Plan { cycles, seed: self.seed, load_ms, promise, company, compressed: self.compressed }
    }

    /// The mode, as runs are named.
    fn name(&self) -> String {
        format!("{}{}", self.mode.name(), if self.compressed { ", compressed" } else { "" })
    }

    fn company(&self) -> Company {
        if matches!(self.mode, Mode::Modes) { Company::Modes } else { Company::Checkpoints }
    }
}

#[derive(Debug, Subcommand)]
enum Fault {
    /// Kills the server under load and while it starts.
    Kill {
        #[command(flatten)]
        target: Target,
        /// How often.
        #[arg(long, default_value_t = 60)]
        cycles: u64,
        /// Longest load before a kill.
        #[arg(long, default_value_t = 500)]
        load_ms: u64,
    },
    /// Cuts the power of a file system of its own under load. Needs root and a loop device.
    PowerCut {
        #[command(flatten)]
        target: Target,
        /// What the file system is.
        #[arg(long, value_enum, default_value = "ext4")]
        format: Format,
        /// How often.
        #[arg(long, default_value_t = 20)]
        cycles: u64,
        /// Longest load before a cut.
        #[arg(long, default_value_t = 500)]
        load_ms: u64,
    },
    /// A disk in memory that becomes full. Needs root.
    DiskFull {
        #[command(flatten)]
        target: Target,
        /// How often.
        #[arg(long, default_value_t = 3)]
        rounds: u64,
    },
    /// Syncs that fail, injected and real. Needs root and a loop device.
    SyncError {
        #[command(flatten)]
        target: Target,
        /// Which sync of each thread fails; one run each.
        #[arg(long, value_delimiter = ',', default_value = "1,2,3,5,9")]
        numbers: Vec<u64>,
    },
    /// A disk that takes a megabyte a second. Needs root and a loop device.
    SlowDisk {
        #[command(flatten)]
        target: Target,
        /// How long.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
    },
    /// A disk that takes nothing for a while. Needs root and a loop device.
    FrozenDisk {
        #[command(flatten)]
        target: Target,
        /// How long.
        #[arg(long, default_value_t = 3)]
        seconds: u64,
    },
}

/// Faults for a server that promises to keep what it acknowledged.
#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    fault: Fault,
}

fn main() -> ExitCode {
    let fault = Line::parse().fault;
    let mut report = Report::new(&fault.name());
    if let Err(text) = fault.run(&mut report) {
        report.fail("what the run needs", &text);
    }
    report.close();
    if report.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Fault {
    fn name(&self) -> String {
        match self {
            Fault::Kill { target, .. } => format!("kill, {}", target.name()),
            Fault::PowerCut { target, format, .. } => format!("power cut on {}, {}", format.name(), target.name()),
            Fault::DiskFull { target, .. } => format!("full disk, {}", target.mode.name()),
            Fault::SyncError { target, .. } => format!("sync error, {}", target.mode.name()),
            Fault::SlowDisk { target, .. } => format!("slow disk, {}", target.mode.name()),
            Fault::FrozenDisk { target, .. } => format!("frozen disk, {}", target.mode.name()),
        }
    }

    fn run(&self, report: &mut Report) -> Result<(), String> {
        match self {
            Fault::Kill { target, cycles, load_ms } => {
                kill::run(&target.server(target.dir.join("data"))?, &target.plan(*cycles, *load_ms), report);
            }
            Fault::PowerCut { target, format, cycles, load_ms } => {
                let volume = target.volume(&target.dir, *format)?;
                power::run(
                    &target.server(volume.place().join("data"))?,
                    &volume,
                    &target.plan(*cycles, *load_ms),
                    report,
                );
            }
            Fault::DiskFull { target, rounds } => {
                let memory = Memory::mount(&target.dir.join("memory"), FULL_MEGABYTES)?;
                disk::full(&target.server(memory.place().join("data"))?, &memory, *rounds, target.seed, report);
            }
            Fault::SyncError { target, numbers } => {
                let volume = target.volume(&target.dir, Format::Ext4)?;
                disk::injected(&target.server(volume.place().join("data"))?, &volume, numbers, target.seed, report);
                drop(volume);
                let memory = Memory::mount(&target.dir.join("memory"), FAILING_MEGABYTES)?;
                let volume = target.volume(memory.place(), Format::Ext4)?;
                disk::real(&target.server(volume.place().join("data"))?, &memory, &volume, target.seed, report);
            }
            Fault::SlowDisk { target, seconds } => {
                let volume = target.volume(&target.dir, Format::Ext4)?;
                let server = target.server(volume.place().join("data"))?;
                disk::slow(&server, &volume, *seconds, target.promise(), target.seed, report);
            }
            Fault::FrozenDisk { target, seconds } => {
                let volume = target.volume(&target.dir, Format::Ext4)?;
                let server = target.server(volume.place().join("data"))?;
                disk::frozen(&server, &volume, *seconds, target.promise(), target.seed, report);
            }
        }
        Ok(())
    }
}
