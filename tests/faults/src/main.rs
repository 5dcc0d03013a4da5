//! Faults for a server that promises to keep what it was told: `kill -9`, power cuts, disks that are full, fail or are
//! slow. Eight writers load it, and know for each key what may be found afterwards.
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
//!
//! The stages `kill`, `power-cut` and `disk-faults` of the test runner run it.

mod judge;
mod kill;
mod load;
mod operation;
mod report;
mod resp;
mod server;
mod writer;

use clap::{Args, Parser, Subcommand, ValueEnum};
use judge::Promise;
use load::Company;
use report::Report;
use server::{Kind, Server};
use std::path::PathBuf;
use std::process::ExitCode;

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

    fn promise(&self) -> Promise {
        match self.mode {
            Mode::Sync => Promise::Sync,
            Mode::Async => Promise::Window(self.window_ms * 1000),
            Mode::Modes => Promise::Changing,
        }
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
}

/// Faults for a server that keeps what it was told.
#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    fault: Fault,
}

fn main() -> ExitCode {
    let failed = match Line::parse().fault {
        Fault::Kill { target, cycles, load_ms } => {
            let mut report = Report::new(&format!("kill, {}", target.mode.name()));
            let plan =
                kill::Plan { cycles, seed: target.seed, load_ms, promise: target.promise(), company: target.company() };
            match target.server(target.dir.join("data")) {
                Ok(server) => kill::run(&server, &plan, &mut report),
                Err(text) => report.fail("the server", &text),
            }
            report.close();
            report.failed
        }
    };
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
