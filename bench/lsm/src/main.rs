//! Runs one workload on LSM-trees, each in processes of its own, and prints what they wrote, took and cost.
//!
//! ```text
//! cargo run --release --features peers -- --engine plex leveldb rocksdb --dir DIR --out bench/results/DATE-lsm
//! ```

mod engines;
mod paper;
mod patterns;
mod plot;
mod process;
mod report;
mod steps;
mod workload;
mod ycsb;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::{Parser, ValueEnum};
use engines::{Contender, Dials, Failure, Name, Settings};
use patterns::Pattern;
use report::{Outcome, Report};
use serde::{Serialize, de::DeserializeOwned};
use steps::{Step, Subject};
use workload::Distribution;

#[derive(Parser)]
#[command(about = "LSM-trees side by side on one workload")]
struct Arguments {
    /// Engines, in the order of their turns; the first is the one that is judged.
    #[arg(long, value_enum, num_args = 1.., default_value = "plex")]
    engine: Vec<Name>,
    /// Number of keys; 952381 make the 2 GB workload, 9523810 the paper's 20 GB.
    #[arg(long, default_value_t = 952_381)]
    keys: u64,
    /// Memory of a memtable.
    #[arg(long, default_value_t = 4 << 20)]
    memtable_bytes: usize,
    #[arg(long, value_enum, default_value = "uniform")]
    distribution: Distribution,
    #[command(flatten)]
    dials: Dials,
    /// An empty or missing directory on the medium to be used; it is emptied again.
    #[arg(long)]
    dir: PathBuf,
    /// Where to put `results.json`, `README.md` and `space.svg`.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Only write: no reads, no replay of a log.
    #[arg(long)]
    only_writes: bool,
    /// The figures of the PlexDB paper in place of engines by name; only writes.
    #[arg(long, conflicts_with = "engine")]
    paper: bool,
    /// Patterns of work instead: puts and deletions, mixed lengths, expirations and others; all, or those named.
    #[arg(long, value_enum, num_args = 0.., conflicts_with = "paper")]
    patterns: Option<Vec<Pattern>>,
    /// Size of the patterns, in thousandths.
    #[arg(long, default_value_t = 1000)]
    scale: u64,
    /// What a process of this program is started for by another one.
    #[arg(long, hide = true)]
    step: Option<Step>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.step {
        Some(step) => run_step(&arguments, step).map(|()| true),
        None if arguments.patterns.is_some() => compare_patterns(&arguments),
        None => compare(&arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("onggi-bench-lsm: {error}");
            ExitCode::from(2)
        }
    }
}

/// Does one step in this process, for the first engine, and prints its figures.
fn run_step(arguments: &Arguments, step: Step) -> Result<(), Failure> {
    let subject = Subject {
        name: arguments.engine[0],
        dir: &arguments.dir,
        settings: Settings { memtable_bytes: arguments.memtable_bytes, dials: arguments.dials },
        keys: arguments.keys,
        distribution: arguments.distribution,
    };
    match step {
        Step::Write => print(&steps::write(&subject)?),
        Step::Read => print(&steps::read(&subject)?),
        Step::Ycsb => print(&steps::ycsb(&subject)?),
        Step::LeaveLog => steps::leave_log(&subject),
        Step::Replay => print(&steps::replay(&subject)?),
        Step::Pattern => {
            let pattern = arguments.patterns.iter().flatten().next().ok_or("no pattern is named")?;
            print(&patterns::run(&subject, *pattern, arguments.scale)?)
        }
    }
}

fn print(figures: &impl Serialize) -> Result<(), Failure> {
    println!("{}", serde_json::to_string(figures)?);
    Ok(())
}

/// Runs all steps on all engines; whether all targets are met.
fn compare(arguments: &Arguments) -> Result<bool, Failure> {
    let dir = &arguments.dir;
    if dir.exists() && dir.read_dir()?.next().is_some() {
        return Err(format!("{} is not empty", dir.display()).into());
    }
    let (begin, mut outcomes) = (Instant::now(), Vec::new());
    let mut report = Report::begin(arguments.keys, arguments.memtable_bytes, arguments.distribution);
    let contenders = if arguments.paper {
        paper::contenders(arguments.dials)
    } else {
        arguments.engine.iter().map(|name| Contender::new(*name, arguments.dials)).collect()
    };
    for contender in &contenders {
        let name = &contender.label;
        let database = dir.join(name.replace(' ', "-"));
        let process = |step| Turn { arguments, contender, dir: &database, step };
        eprintln!("{name}: writing");
        let writing = process(Step::Write).figures()?;
        let (mut reading, mut ycsb, mut replay) = (None, None, None);
        if !arguments.only_writes && !arguments.paper {
            eprintln!("{name}: reading");
            reading = Some(process(Step::Read).figures()?);
            eprintln!("{name}: YCSB");
            ycsb = Some(process(Step::Ycsb).figures()?);
            std::fs::remove_dir_all(&database)?;
            eprintln!("{name}: replaying a log");
            process(Step::LeaveLog).until_killed()?;
            replay = Some(process(Step::Replay).figures()?);
        }
        std::fs::remove_dir_all(&database)?;
        outcomes.push(Outcome { engine: name.clone(), writing, reading, ycsb, replay });
    }
    let claims = if arguments.paper { paper::claims(&outcomes) } else { Vec::new() };
    report.end(outcomes, claims, begin.elapsed());
    let text = report.to_markdown();
    print!("{text}");
    if let Some(out) = &arguments.out {
        std::fs::create_dir_all(out)?;
        std::fs::write(out.join("README.md"), text)?;
        std::fs::write(out.join("space.svg"), plot::space(&report.outcomes))?;
        std::fs::write(out.join("results.json"), serde_json::to_string(&report)? + "\n")?;
    }
    Ok(report.is_met())
}

/// Runs patterns on all engines. An engine that fails a pattern stands in the table with that.
fn compare_patterns(arguments: &Arguments) -> Result<bool, Failure> {
    let chosen = arguments.patterns.as_ref().filter(|chosen| !chosen.is_empty());
    let load = || std::fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next().map(str::to_owned);
    let (before, mut outcomes) = (load(), Vec::new());
    for pattern in chosen.map_or(&patterns::ALL[..], |chosen| chosen) {
        for name in &arguments.engine {
            eprintln!("{name}: {pattern}");
            let contender = Contender::new(*name, arguments.dials);
            let database = arguments.dir.join(format!("{name}-{pattern}"));
            let turn = Turn { arguments, contender: &contender, dir: &database, step: Step::Pattern };
            let mut command = turn.command()?;
            command.arg(format!("--patterns={pattern}")).arg(format!("--scale={}", arguments.scale));
            let output = command.stderr(Stdio::piped()).output()?;
            outcomes.push(if output.status.success() {
                Ok(serde_json::from_slice::<patterns::Figures>(&output.stdout)?)
            } else {
                let said = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
                Err((*pattern, name.to_string(), said))
            });
            // An engine that failed at once left none.
            let _ = std::fs::remove_dir_all(&database);
        }
    }
    let head = format!(
        "`--patterns`, memtable {} bytes, scale {}; load {} to {}.",
        arguments.memtable_bytes,
        arguments.scale,
        before.unwrap_or_default(),
        load().unwrap_or_default()
    );
    let text = patterns::to_markdown(&outcomes, &head);
    print!("{text}");
    if let Some(out) = &arguments.out {
        std::fs::create_dir_all(out)?;
        std::fs::write(out.join("README.md"), text)?;
        let figures: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        std::fs::write(out.join("results.json"), serde_json::to_string(&figures)? + "\n")?;
    }
    Ok(true)
}

/// A process of this program that does one step.
struct Turn<'a> {
    arguments: &'a Arguments,
    contender: &'a Contender,
    dir: &'a Path,
    step: Step,
}

impl Turn<'_> {
    fn command(&self) -> Result<Command, Failure> {
        let word = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
            value().map(|value| value.get_name().to_owned()).unwrap_or_default()
        };
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(format!("--engine={}", self.contender.name))
            .arg(format!("--step={}", word(&|| self.step.to_possible_value())))
            .arg(format!("--keys={}", self.arguments.keys))
            .arg(format!("--memtable-bytes={}", self.arguments.memtable_bytes))
            .arg(format!("--distribution={}", word(&|| self.arguments.distribution.to_possible_value())))
            .args(self.contender.dials.arguments())
            .arg("--dir")
            .arg(self.dir)
            .stderr(Stdio::inherit());
        Ok(command)
    }

    fn figures<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let output = self.command()?.output()?;
        if !output.status.success() {
            return Err(format!("{}, {:?}: {}", self.contender.label, self.step, output.status).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    fn until_killed(&self) -> Result<(), Failure> {
        let status = self.command()?.status()?;
        match status.signal() {
            Some(_) => Ok(()),
            None => Err(format!("{}, {:?}: {status}", self.contender.label, self.step).into()),
        }
    }
}
