//! Part `cost`: what background compression of values costs commands. All servers hold the same values, and are loaded
//! in rounds, one at a time.
//!
//! Incompressible values stay as they are, so one process can be switched before each window between trying and not
//! trying. Processes of one program differ permanently by some percent, which is more than the cost of trying.

use super::{AT_ONCE, Length, Payload, Schedule, Values, background};
use crate::persistence::{Data, LOG_OFF, start};
use loadgen::catalogue::TestSpec;
use loadgen::client::Client;
use loadgen::compare::Harness;
use loadgen::compare::rounds::{Effort, Figure, Moment};
use loadgen::error::Result;
use loadgen::generator::Pace;
use loadgen::keys::{Distribution, THETA};
use loadgen::measure::{Row, Settings};
use loadgen::payload::Size;
use loadgen::results::{Cell, ResultRow, Section};
use loadgen::server::{Server, ServerSpec};
use loadgen::targets::{Kind, SMALL_MARGIN_ROUNDS, SMALL_MARGIN_SECONDS, Target};
use std::time::Duration;

const KEYS: u64 = 1_000_000;
const BYTES: usize = 1024;
/// Documents of this part: short ones, on which the paper's codec saves almost nothing.
pub(super) const DOCUMENTS: Length = Length { name: "100 B to 2 KB", bytes: 100 };
pub(super) const DOCUMENTS_RANGE: (usize, usize) = (100, 2048);
const EFFORT: Effort = Effort { rounds: SMALL_MARGIN_ROUNDS, seconds: SMALL_MARGIN_SECONDS };
/// The default schedule of a server with background compression, set once its load is compressed.
const BY_DEFAULT: Schedule = Schedule { idle_seconds: "60", cpu_percent: "20" };
/// Decompressed values have become cold after this time.
const COLD: Duration = Duration::from_secs(3);

const LEVEL_WITH_VALKEY: Target = Target::over_valkey(1.0, None);
const LEVEL_WITH_REDIS: Target = Target { kind: Kind::Factor("redis"), must: 1.0, moonshot: None };
/// The permitted cost of detecting incompressible values.
const IN_VAIN: Target = Target::factor_at_most(1.03);

struct Work {
    test: &'static str,
    pipeline: usize,
    is_zipfian: bool,
    /// While the pass over all values runs.
    in_pass: bool,
    target: Option<Target>,
}

const fn zipfian(test: &'static str, pipeline: usize, in_pass: bool) -> Work {
    Work { test, pipeline, is_zipfian: true, in_pass, target: Some(LEVEL_WITH_VALKEY) }
}

const WORKS: [Work; 10] = [
    zipfian("set", 1, false),
    zipfian("set", 16, false),
    zipfian("get", 1, false),
    zipfian("get", 16, false),
    zipfian("set", 1, true),
    zipfian("set", 16, true),
    zipfian("get", 1, true),
    zipfian("get", 16, true),
    Work { test: "get", pipeline: 1, is_zipfian: false, in_pass: false, target: Some(LEVEL_WITH_REDIS) },
    Work { test: "get", pipeline: 16, is_zipfian: false, in_pass: false, target: None },
];

impl Work {
    fn title(&self) -> String {
        let keys = if self.is_zipfian { format!("zipfian {THETA} keys") } else { "uniform keys".to_owned() };
        let pass = if self.in_pass { ", while all values are compressed" } else { "" };
        format!("{}, pipeline {}, {keys}{pass}", self.test, self.pipeline)
    }
}

pub(super) fn run(harness: &mut Harness<'_>, specs: &[ServerSpec], values: &Values) -> Result<Vec<Section>> {
    let length = if values.payload == Payload::Documents { DOCUMENTS } else { Length { name: "1 KB", bytes: BYTES } };
    let Some(content) = values.content(length) else { return Ok(Vec::new()) };
    let effort = harness.effort(EFFORT);
    harness.steps.expect(specs.len() * (1 + WORKS.len() * effort.rounds));
    let data = Data::new(harness.scaled(KEYS), Size::exactly(length.bytes), content);
    let entrants = Entrants::start(harness, specs, &data, values.payload == Payload::Random)?;

    let figure = Figure::CpuPerOperation;
    let (about, title) = (values.about(), values.payload.title());
    let mut table = Section {
        title: format!("CPU time per operation, {title}"),
        about: format!(
            "User and system time of the server's process over the operations it answered; {} keys with values of {}, \
             all compressed in the background beforehand where the server does that; then those used again within a \
             minute are kept as they are, and a fifth of the time may go to compressing, as by default. {about}",
            data.keys, length.name
        ),
        unit: figure.unit().to_owned(),
        better: figure.better(),
        rows: Vec::new(),
    };
    for work in &WORKS {
        let row = Row {
            test: TestSpec::parse(work.test)?,
            pipeline: work.pipeline,
            value_size: Size::exactly(length.bytes),
            pace: Pace::Closed,
        };
        let distribution = if work.is_zipfian { Distribution::Zipfian { theta: THETA } } else { Distribution::Uniform };
        let settings = Settings { distribution, ..data.settings(harness) };
        let cells = entrants.interleave(harness, &settings, &row, effort, work.in_pass)?;
        table.rows.push(ResultRow::new(work.title(), cells, &harness.plan.subject, table.better));
    }
    let costs = costs_section(harness, values, &table);
    let targets = WORKS.map(|work| work.target);
    Ok(std::iter::once(harness.subject_section(table, &targets)).chain(costs).collect())
}

/// A server under a separate name.
struct Place {
    name: String,
    process: usize,
    /// The value of `compression`, in a process that has two places.
    codec: Option<String>,
}

/// All servers, and their processes.
struct Entrants {
    processes: Vec<Server>,
    places: Vec<Place>,
}

impl Entrants {
    /// Starts and fills them. With `one_process`, the subject also appears as the same server without compression.
    fn start(harness: &mut Harness<'_>, specs: &[ServerSpec], data: &Data, one_process: bool) -> Result<Self> {
        let (subject, base) = (harness.plan.subject.clone(), base_of(&harness.plan.subject));
        let (mut processes, mut places) = (Vec::new(), Vec::<Place>::new());
        for spec in specs {
            let own = places.iter_mut().find(|place| one_process && place.name == subject && spec.name == base);
            if let Some(own) = own {
                let process = own.process;
                own.codec = connect(&processes[process])?.setting("compression")?;
                places.push(Place { name: spec.name.clone(), process, codec: Some("off".to_owned()) });
                continue;
            }
            let server = start(harness, spec, LOG_OFF, true)?;
            data.load(harness, &server)?;
            background::finish(harness, &server)?;
            set_schedule(&server, BY_DEFAULT)?;
            places.push(Place { name: spec.name.clone(), process: processes.len(), codec: None });
            processes.push(server);
        }
        Ok(Self { processes, places })
    }

    fn interleave(
        &self,
        harness: &Harness<'_>,
        settings: &Settings,
        row: &Row,
        effort: Effort,
        in_pass: bool,
    ) -> Result<Vec<Cell>> {
        let around = &mut |at: usize, moment| match moment {
            Moment::Before => self.prepare(harness, &self.places[at], in_pass),
            Moment::Behind => Ok(()),
        };
        let servers: Vec<&Server> = self.places.iter().map(|place| &self.processes[place.process]).collect();
        let mut cells = harness.interleave_around(settings, &servers, row, effort, Figure::CpuPerOperation, around)?;
        for (cell, place) in cells.iter_mut().zip(&self.places) {
            cell.server.clone_from(&place.name);
        }
        Ok(cells)
    }

    /// Prepares a process for its measurement.
    fn prepare(&self, harness: &Harness<'_>, place: &Place, in_pass: bool) -> Result<()> {
        let server = &self.processes[place.process];
        if let Some(codec) = &place.codec {
            let mut client = connect(server)?;
            let is_switched = client.setting("compression")?.as_ref() != Some(codec);
            client.must(&["CONFIG", "SET", "compression", codec])?;
            if is_switched && !in_pass {
                // The detection of its values' compressibility must not fall into the window.
                set_schedule(server, AT_ONCE)?;
                background::finish(harness, server)?;
                set_schedule(server, BY_DEFAULT)?;
            }
        }
        if in_pass { begin_pass(harness, server) } else { Ok(()) }
    }
}

/// The name of the same server without compression.
fn base_of(subject: &str) -> String {
    format!("{subject}-off")
}

fn connect(server: &Server) -> Result<Client> {
    Client::connect(&server.target.address, &server.target.login)
}

/// Sets the pace of a server's background compression. With the default, values used within a minute stay uncompressed;
/// with the fast one, everything becomes cold while other servers have their turn.
fn set_schedule(server: &Server, schedule: Schedule) -> Result<()> {
    let mut client = connect(server)?;
    if client.setting("compression-when")?.is_some_and(|when| when == "idle") {
        let Schedule { idle_seconds, cpu_percent } = schedule;
        client.must(&[
            "CONFIG",
            "SET",
            "compression-idle-time",
            idle_seconds,
            "compression-cpu-percent",
            cpu_percent,
        ])?;
    }
    Ok(())
}

/// Makes a server with background compression start again with all its values.
fn begin_pass(harness: &Harness<'_>, server: &Server) -> Result<()> {
    let mut client = connect(server)?;
    let (Some(codec), Some(when)) = (client.setting("compression")?, client.setting("compression-when")?) else {
        return Ok(());
    };
    if codec == "off" || when != "idle" {
        return Ok(());
    }
    harness.steps.wait(&format!("{}: values are decompressed again", server.record.name));
    client.must(&["CONFIG", "SET", "compression", "off"])?;
    background::wait_until_quiet(&mut client, COLD, 0)?;
    client.must(&["CONFIG", "SET", "compression", &codec])?;
    Ok(())
}

/// The subject relative to the same server without compression; on incompressible values there is a bound.
fn costs_section(harness: &Harness<'_>, values: &Values, table: &Section) -> Option<Section> {
    let subject = &harness.plan.subject;
    let base = base_of(subject);
    let is_in_vain = values.payload == Payload::Random;
    let in_vain = if is_in_vain { " in vain" } else { "" };
    let mut quotients = Section {
        title: format!("What compression costs{in_vain}, {}", values.payload.title()),
        about: format!(
            "The CPU time per operation over that of the same server without compression, within rounds.{}",
            if is_in_vain { " It is one process, told before each window whether to compress." } else { "" }
        ),
        unit: "times the CPU time".to_owned(),
        better: table.better,
        rows: Vec::new(),
    };
    for row in &table.rows {
        let cell = |name: &str| row.cells.iter().find(|cell| cell.server == name);
        let (own, off) = cell(subject).zip(cell(&base))?;
        let samples = own.samples.iter().zip(&off.samples).map(|(own, off)| own / off.max(1e-12)).collect();
        let cell = Cell { windows: own.windows.clone(), ..Cell::new(subject, samples) };
        quotients.rows.push(ResultRow::new(row.title.clone(), vec![cell], subject, quotients.better));
    }
    let target = is_in_vain.then_some(IN_VAIN);
    Some(harness.subject_section(quotients, &[target; WORKS.len()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_have_titles_of_their_own_and_compile() {
        let titles: std::collections::HashSet<String> = WORKS.iter().map(Work::title).collect();
        assert_eq!(titles.len(), WORKS.len());
        assert!(WORKS.iter().all(|work| TestSpec::parse(work.test).is_ok()));
    }
}
