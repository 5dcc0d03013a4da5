//! Parts `log` and `mixes`: every server in three modes, with its log off, async and sync, all in the same rounds, so
//! that modes are compared as servers are.
//!
//! One process goes through all modes, and is switched between windows. Processes of one program differ permanently by
//! some percent in the cost of a command, depending on where their memory lies: more than some modes do. A server that
//! takes its mode only at its start (ARCUS) has a process for each mode.

use super::{Data, Directives, KIB, LOG_ASYNC, LOG_OFF, LOG_SYNC, checkpoint, section, settle_disk, start};
use loadgen::catalogue::TestSpec;
use loadgen::client::Client;
use loadgen::compare::Harness;
use loadgen::compare::rounds::{Effort, Figure, Moment};
use loadgen::error::Result;
use loadgen::generator::Pace;
use loadgen::measure::{Row, Settings};
use loadgen::results::{Better, Cell, ResultRow, Section};
use loadgen::server::{Server, ServerSpec};
use loadgen::targets::{SMALL_MARGIN_ROUNDS, SMALL_MARGIN_SECONDS, Target};

const MODES: [(&str, &Directives); 3] = [("off", LOG_OFF), ("async", LOG_ASYNC), ("sync", LOG_SYNC)];
const OFF: usize = 0;
const ASYNC: usize = 1;
const SYNC: usize = 2;

const USUAL: Effort = Effort { rounds: 7, seconds: 3.0 };
const PRECISE: Effort = Effort { rounds: SMALL_MARGIN_ROUNDS, seconds: SMALL_MARGIN_SECONDS };

/// One load and its targets.
struct Work {
    title: &'static str,
    test: &'static str,
    pipeline: usize,
    effort: Effort,
    in_log: bool,
    in_mixes: bool,
    /// On CPU per operation with the log on, over the peer in the same mode.
    over_valkey: Option<Target>,
    /// On async and sync over off, and sync over async.
    over_off: [Option<Target>; 2],
    over_async: Option<Target>,
}

const WORKS: &[Work] = &[
    Work {
        title: "SET, pipeline 1",
        test: "set",
        pipeline: 1,
        effort: USUAL,
        in_log: true,
        in_mixes: true,
        over_valkey: Some(Target::over_valkey(1.0 / 0.75, None)),
        over_off: [None, None],
        over_async: None,
    },
    Work {
        title: "SET, pipeline 16",
        test: "set",
        pipeline: 16,
        effort: USUAL,
        in_log: true,
        in_mixes: false,
        over_valkey: Some(Target::over_valkey(2.0, None)),
        over_off: [None, None],
        over_async: Some(Target::factor_at_most(1.15)),
    },
    Work {
        title: "change:read 1:9, pipeline 1",
        test: "set:1+get:9",
        pipeline: 1,
        effort: PRECISE,
        in_log: false,
        in_mixes: true,
        over_valkey: None,
        over_off: [Some(Target::factor_at_most(1.05)), Some(Target::factor_at_most(1.10))],
        over_async: None,
    },
    Work {
        title: "change:read 3:7, pipeline 1",
        test: "set:3+get:7",
        pipeline: 1,
        effort: USUAL,
        in_log: false,
        in_mixes: true,
        over_valkey: None,
        over_off: [None, None],
        over_async: None,
    },
];

pub(super) fn run(harness: &mut Harness<'_>, specs: &[ServerSpec], log: bool, mixes: bool) -> Result<Vec<Section>> {
    let works: Vec<&Work> = WORKS.iter().filter(|work| (log && work.in_log) || (mixes && work.in_mixes)).collect();
    let data = Data::new(harness.plan.settings.keys, KIB, harness.plan.settings.content.clone());
    let windows: usize = works.iter().map(|work| harness.effort(work.effort).rounds).sum();
    harness.steps.expect((windows + 1) * specs.len() * MODES.len());
    let mut entrants = Entrants::start(harness, specs)?;
    for process in &entrants.processes {
        data.load(harness, &process.server)?;
    }
    settle_disk(harness);
    let mut measured = Vec::new();
    for work in &works {
        let row =
            Row { test: TestSpec::parse(work.test)?, pipeline: work.pipeline, value_size: KIB, pace: Pace::Closed };
        let effort = harness.effort(work.effort);
        let in_order = entrants.interleave(harness, &data.settings(harness), &row, effort)?;
        measured.push(in_order.chunks(specs.len()).map(<[Cell]>::to_vec).collect::<Vec<_>>());
    }
    let mut sections = vec![cpu_section(harness, &works, &measured), cost_section(harness, &works, &measured)];
    sections.push(throughput_section(harness, &works, &measured));
    Ok(sections)
}

/// A process and its mode.
struct Process {
    server: Server,
    mode: usize,
}

/// Switches a server to another mode, and waits until its log is complete and no checkpoint runs.
fn switch(harness: &Harness<'_>, server: &Server, mode: &mut usize, to: usize) -> Result<()> {
    let from = std::mem::replace(mode, to);
    if from == to {
        return Ok(());
    }
    let mut client = Client::connect(&server.target.address, &server.target.login)?;
    for (name, value) in MODES[to].1 {
        client.must(&["CONFIG", "SET", name, value])?;
    }
    if from == OFF || to == OFF {
        harness.steps.wait(&format!("{}: the log goes {}", server.record.name, MODES[to].0));
        checkpoint::wait_for_log(&mut client, to != OFF)?;
        settle_disk(harness);
    }
    Ok(())
}

/// Every server in every mode.
struct Entrants {
    processes: Vec<Process>,
    /// The process of each, in the order of modes, within each in the order of servers.
    places: Vec<usize>,
}

impl Entrants {
    fn start(harness: &mut Harness<'_>, specs: &[ServerSpec]) -> Result<Self> {
        let (mut processes, mut places) = (Vec::new(), Vec::new());
        for (mode, (_, directives)) in MODES.iter().enumerate() {
            for (number, spec) in specs.iter().enumerate() {
                let is_switched = mode != OFF && !spec.speaks_memcached();
                let place = if is_switched { places[number] } else { processes.len() };
                if !is_switched {
                    processes.push(Process { server: start(harness, spec, directives, true)?, mode });
                }
                places.push(place);
            }
        }
        Ok(Self { processes, places })
    }

    /// The rounds, with this part's own number of keys.
    fn interleave(
        &mut self,
        harness: &Harness<'_>,
        settings: &Settings,
        row: &Row,
        effort: Effort,
    ) -> Result<Vec<Cell>> {
        let (mut modes, servers): (Vec<_>, Vec<_>) =
            self.processes.iter_mut().map(|Process { server, mode }| (mode, &*server)).unzip();
        let servers_by_place: Vec<&Server> = self.places.iter().map(|place| servers[*place]).collect();
        let count = self.places.len() / MODES.len();
        let around = &mut |at: usize, moment| match moment {
            Moment::Before => switch(harness, servers_by_place[at], &mut *modes[self.places[at]], at / count),
            Moment::Behind => Ok(()),
        };
        harness.interleave_around(settings, &servers_by_place, row, effort, Figure::CpuPerOperation, around)
    }
}

/// Cells of one work: by mode, then by server.
type ByMode = Vec<Vec<Cell>>;

fn cpu_section(harness: &Harness<'_>, works: &[&Work], measured: &[ByMode]) -> Section {
    let about = "User and system time of the server's process over the operations it answered, 1 KB values. Every \
                 server runs in all three modes, one under load at a time: off, async (synced every second) and sync \
                 (answered when durable). One process is told its mode before each window, where a server can be told.";
    let figure = Figure::CpuPerOperation;
    let mut cpu =
        section("CPU time per operation, by mode of the log", about.to_owned(), figure.unit(), figure.better());
    let mut targets = Vec::new();
    for (work, by_mode) in works.iter().zip(measured) {
        for (mode, cells) in by_mode.iter().enumerate() {
            let title = format!("{}, log {}", work.title, MODES[mode].0);
            cpu.rows.push(ResultRow::new(title, cells.clone(), &harness.plan.subject, cpu.better));
            targets.push(work.over_valkey.filter(|_| mode != OFF));
        }
    }
    harness.subject_section(cpu, &targets)
}

fn cost_section(harness: &Harness<'_>, works: &[&Work], measured: &[ByMode]) -> Section {
    let about = "The CPU time per operation of one mode over that of another mode of the same server, within rounds.";
    let mut cost = section("What the log costs", about.to_owned(), "times the CPU time", Better::Lower);
    let mut targets = Vec::new();
    for (work, by_mode) in works.iter().zip(measured) {
        let pairs = [(ASYNC, OFF, work.over_off[0]), (SYNC, OFF, work.over_off[1]), (SYNC, ASYNC, work.over_async)];
        for (mode, base, target) in pairs {
            let cells = by_mode[mode].iter().zip(&by_mode[base]).map(|(cell, base)| quotient(cell, base)).collect();
            let title = format!("{}, {} over {}", work.title, MODES[mode].0, MODES[base].0);
            cost.rows.push(ResultRow::new(title, cells, &harness.plan.subject, cost.better));
            targets.push(target);
        }
    }
    harness.subject_section(cost, &targets)
}

fn throughput_section(harness: &Harness<'_>, works: &[&Work], measured: &[ByMode]) -> Section {
    let about = "The same windows. Server and generator share the machine: a figure for orientation.";
    let figure = Figure::OperationsPerSecond;
    let mut rates =
        section("Operations per second, by mode of the log", about.to_owned(), figure.unit(), figure.better());
    for (work, by_mode) in works.iter().zip(measured) {
        for (mode, cells) in by_mode.iter().enumerate() {
            let rate = |cell: &Cell| {
                let samples = cell.windows.iter().map(|window| window.operations_per_second).collect();
                Cell::new(&cell.server, samples)
            };
            let title = format!("{}, log {}", work.title, MODES[mode].0);
            let cells = cells.iter().map(rate).collect();
            rates.rows.push(ResultRow::new(title, cells, &harness.plan.subject, rates.better));
        }
    }
    rates
}

/// One cell over another, round by round; it keeps the windows of the first, by which rounds and seconds are judged.
fn quotient(cell: &Cell, base: &Cell) -> Cell {
    let samples = cell.samples.iter().zip(&base.samples).map(|(cell, base)| cell / base.max(1e-12)).collect();
    Cell { windows: cell.windows.clone(), ..Cell::new(&cell.server, samples) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_taken_within_rounds() {
        let cell = quotient(&Cell::new("a", vec![2.0, 6.0]), &Cell::new("a", vec![1.0, 2.0]));
        assert_eq!((cell.server.as_str(), cell.samples.as_slice()), ("a", &[2.0, 3.0][..]));
    }

    #[test]
    fn every_work_belongs_to_a_part_and_compiles() {
        for work in WORKS {
            assert!(work.in_log || work.in_mixes, "{}", work.title);
            assert!(TestSpec::parse(work.test).is_ok(), "{}", work.title);
        }
    }
}
