//! Suite `strings`: CPU time per GET and SET, and the user's own rows measured in the same way.

use super::Harness;
use super::rounds::{Effort, Figure};
use crate::catalogue::TestSpec;
use crate::error::Result;
use crate::generator::Pace;
use crate::measure::Row;
use crate::payload::Size;
use crate::results::{ResultRow, Section};
use crate::targets::{SMALL_MARGIN_ROUNDS, SMALL_MARGIN_SECONDS, Target};

struct Goal {
    test: &'static str,
    pipeline: usize,
    bytes: usize,
    target: Target,
    effort: Effort,
}

/// At pipeline 1 nearly all of the time is the kernel's: a bare echo server reaches 1.16 times Valkey. So the margin is
/// small and the rounds are many.
const PRECISE: Effort = Effort { rounds: SMALL_MARGIN_ROUNDS, seconds: SMALL_MARGIN_SECONDS };
const USUAL: Effort = Effort { rounds: 7, seconds: 3.0 };

const fn goal(test: &'static str, pipeline: usize, bytes: usize, must: f64, moonshot: f64, effort: Effort) -> Goal {
    Goal { test, pipeline, bytes, target: Target::over_valkey(must, Some(moonshot)), effort }
}

const GOALS: &[Goal] = &[
    goal("get", 1, 64, 1.05, 1.15, PRECISE),
    goal("set", 1, 64, 1.05, 1.15, PRECISE),
    goal("get", 16, 64, 1.3, 1.8, USUAL),
    goal("set", 16, 64, 1.4, 2.0, USUAL),
    goal("get", 64, 64, 1.8, 2.5, USUAL),
    goal("set", 64, 64, 2.0, 3.0, USUAL),
    goal("get", 16, 1024, 1.3, 1.5, USUAL),
];

pub(super) fn run(harness: &mut Harness<'_>) -> Result<Vec<Section>> {
    let rows: Vec<(Row, Effort)> = GOALS
        .iter()
        .map(|goal| {
            let test = TestSpec::parse(goal.test)?;
            let value_size = Size::exactly(goal.bytes);
            Ok((Row { test, pipeline: goal.pipeline, value_size, pace: Pace::Closed }, goal.effort))
        })
        .collect::<Result<_>>()?;
    let section = cpu_section(harness, &rows)?;
    let targets: Vec<_> = GOALS.iter().map(|goal| Some(goal.target)).collect();
    Ok(vec![harness.subject_section(section, &targets)])
}

pub(super) fn run_custom(harness: &mut Harness<'_>, rows: &[Row]) -> Result<Vec<Section>> {
    let rows: Vec<_> = rows.iter().map(|row| (row.clone(), USUAL)).collect();
    Ok(vec![cpu_section(harness, &rows)?])
}

fn cpu_section(harness: &mut Harness<'_>, rows: &[(Row, Effort)]) -> Result<Section> {
    let servers = harness.start_all(&harness.options())?;
    let windows: usize = rows.iter().map(|(_, effort)| harness.effort(*effort).rounds * servers.len()).sum();
    let changes = |at: usize| {
        at == 0
            || rows[at].0.value_size != rows[at - 1].0.value_size
            || rows[at].0.test.loads != rows[at - 1].0.test.loads
    };
    harness.steps.expect(windows + (0..rows.len()).filter(|&at| changes(at)).count() * servers.len());
    let mut section = Section {
        title: "CPU time per operation".to_owned(),
        about:
            "User and system time of the server's process over the operations it answered. Only one server is under \
                load at a time; all hold the same data."
                .to_owned(),
        unit: Figure::CpuPerOperation.unit().to_owned(),
        better: Figure::CpuPerOperation.better(),
        rows: Vec::new(),
    };
    for (at, (row, effort)) in rows.iter().enumerate() {
        if changes(at) {
            for server in &servers {
                harness.load_for(server, row, at == 0)?;
            }
        }
        let cells = harness.interleave(&servers, row, harness.effort(*effort), Figure::CpuPerOperation)?;
        section.rows.push(ResultRow::new(row.title(), cells, &harness.plan.subject, section.better));
    }
    Ok(section)
}
