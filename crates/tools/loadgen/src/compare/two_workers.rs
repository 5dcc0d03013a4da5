//! Suite `two-workers`: operations per second of two workers on two cores that they share with the generator, compared
//! with Valkey with one I/O thread, and with the echo server as the lower bound.

use super::Harness;
use super::rounds::{Effort, Figure};
use crate::catalogue::TestSpec;
use crate::error::Result;
use crate::generator::Pace;
use crate::measure::Row;
use crate::payload::Size;
use crate::results::{ResultRow, Section};
use crate::server::StartOptions;
use crate::targets::Target;

const EFFORT: Effort = Effort { rounds: 7, seconds: 5.0 };
const PIPELINE: usize = 16;
const VALUE_BYTES: usize = 64;
const TARGET: Target = Target::over_valkey(1.5, None);

pub(super) fn run(harness: &mut Harness<'_>) -> Result<Vec<Section>> {
    let options = StartOptions { workers: 2, ..harness.options() };
    let servers = harness.start_all(&options)?;
    let effort = harness.effort(EFFORT);
    harness.steps.expect(servers.len() * (1 + 2 * effort.rounds));
    let mut section = Section {
        title: "Operations per second, two workers".to_owned(),
        about: "Onggi and the echo server with two threads, Valkey and Redis with their one; server and generator \
                share the machine's cores."
            .to_owned(),
        unit: Figure::OperationsPerSecond.unit().to_owned(),
        better: Figure::OperationsPerSecond.better(),
        rows: Vec::new(),
    };
    for (at, test) in ["get", "set"].into_iter().enumerate() {
        let test = TestSpec::parse(test)?;
        let row = Row { test, pipeline: PIPELINE, value_size: Size::exactly(VALUE_BYTES), pace: Pace::Closed };
        if at == 0 {
            for server in &servers {
                harness.load_for(server, &row, true)?;
            }
        }
        let cells = harness.interleave(&servers, &row, effort, Figure::OperationsPerSecond)?;
        section.rows.push(ResultRow::new(row.title(), cells, &harness.plan.subject, section.better));
    }
    let targets = [Some(TARGET), Some(TARGET)];
    Ok(vec![harness.subject_section(section, &targets)])
}
