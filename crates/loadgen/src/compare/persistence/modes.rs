//! Parts `log` and `mixes`: every server three times, with its log off, async and sync, all under the same rounds, so
//! that modes are compared as servers are.

use super::{Data, Directives, KIB, LOG_ASYNC, LOG_OFF, LOG_SYNC, checkpoint, section, settle_disk, start};
use crate::catalogue::TestSpec;
use crate::compare::Harness;
use crate::compare::rounds::{Effort, Figure, Moment};
use crate::error::Result;
use crate::generator::Pace;
use crate::measure::Row;
use crate::results::{Better, Cell, ResultRow, Section};
use crate::server::{Server, ServerSpec};
use crate::targets::{SMALL_MARGIN_ROUNDS, SMALL_MARGIN_SECONDS, Target};
use crate::template::Protocol;
use std::collections::HashMap;

const MODES: [(&str, &Directives); 3] = [("off", LOG_OFF), ("async", LOG_ASYNC), ("sync", LOG_SYNC)];
const OFF: usize = 0;
const ASYNC: usize = 1;
const SYNC: usize = 2;

const USUAL: Effort = Effort { rounds: 7, seconds: 3.0 };
const PRECISE: Effort = Effort { rounds: SMALL_MARGIN_ROUNDS, seconds: SMALL_MARGIN_SECONDS };

/// One load, and what must come of it.
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
    // In the order of modes, within each in the order of servers.
    let mut servers = Vec::new();
    for (_, directives) in MODES {
        for spec in specs {
            let server = start(harness, spec, directives, true)?;
            data.load(harness, &server)?;
            servers.push(server);
        }
    }
    let mut log_trim = LogTrim::new(harness, &servers)?;
    let mut measured = Vec::new();
    for work in &works {
        let row =
            Row { test: TestSpec::parse(work.test)?, pipeline: work.pipeline, value_size: KIB, pace: Pace::Closed };
        let effort = harness.effort(work.effort);
        let after = &mut |server: &Server| log_trim.after(harness, server);
        let in_order = interleave(harness, &data, &servers, &row, effort, after)?;
        measured.push(in_order.chunks(specs.len()).map(<[Cell]>::to_vec).collect::<Vec<_>>());
    }
    let mut sections = vec![cpu_section(harness, &works, &measured), cost_section(harness, &works, &measured)];
    sections.push(throughput_section(harness, &works, &measured));
    Ok(sections)
}

/// The rounds, with this part's own number of keys.
fn interleave(
    harness: &Harness<'_>,
    data: &Data,
    servers: &[Server],
    row: &Row,
    effort: Effort,
    after: &mut dyn FnMut(&Server) -> Result<()>,
) -> Result<Vec<Cell>> {
    let around = &mut |server: &Server, moment| match moment {
        Moment::Before => Ok(()),
        Moment::Behind => after(server),
    };
    harness.interleave_around(&data.settings(harness), servers, row, effort, Figure::CpuPerOperation, around)
}

/// Cells of one work: by mode, then by server.
type ByMode = Vec<Vec<Cell>>;

fn cpu_section(harness: &Harness<'_>, works: &[&Work], measured: &[ByMode]) -> Section {
    let about = "User and system time of the server's process over the operations it answered, 1 KB values. Every server \
                 runs in all three modes, one under load at a time: off, async (synced every second) and sync (answered \
                 when durable).";
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

/// Keeps logs from filling the disk: between windows, a log that has grown by much is made short.
struct LogTrim {
    /// Size of each server's directory when its log was short, by process.
    short: HashMap<u32, u64>,
}

const GROWTH_MAX: u64 = 1 << 30;

impl LogTrim {
    fn new(harness: &Harness<'_>, servers: &[Server]) -> Result<Self> {
        let mut trim = Self { short: HashMap::new() };
        for server in servers {
            trim.note(server);
        }
        settle_disk(harness);
        Ok(trim)
    }

    fn size(server: &Server) -> u64 {
        server.directory().map_or(0, super::bytes_below)
    }

    fn note(&mut self, server: &Server) {
        if let Some(pid) = server.target.pid {
            self.short.insert(pid, Self::size(server));
        }
    }

    fn after(&mut self, harness: &Harness<'_>, server: &Server) -> Result<()> {
        // ARCUS makes its log short by itself.
        if server.target.protocol == Protocol::Memcached {
            return Ok(());
        }
        let short = server.target.pid.and_then(|pid| self.short.get(&pid)).copied().unwrap_or(0);
        if Self::size(server) > short + GROWTH_MAX {
            harness.steps.wait(&format!("{}: the log is made short", server.record.name));
            checkpoint::shorten_log(server)?;
            settle_disk(harness);
            self.note(server);
        }
        Ok(())
    }
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
