//! What both memory suites need: servers started afresh for a figure, and tables of counts.

use super::Harness;
use crate::error::Result;
use crate::keys::Distribution;
use crate::measure::{LOAD_PIPELINE, LoadPlan};
use crate::payload::Size;
use crate::results::{Better, Cell, ResultRow, Section};
use crate::server::{Server, ServerSpec};

/// A fresh server whose connections and buffers have been used, so that later growth is due to the keys; and its
/// resident memory at that point.
pub(super) fn start_warm(harness: &mut Harness<'_>, spec: &ServerSpec) -> Result<(Server, u64)> {
    let server = harness.start(spec, &harness.options())?;
    let warm = plan("PING", 20_000, 0, Size::exactly(1), Distribution::Sequential);
    crate::measure::load(&server.target, &harness.plan.settings, &warm, &mut |_| {})?;
    let resident = harness.settled_resident(&server)?;
    Ok((server, resident))
}

/// A load of one round.
pub(super) fn plan(
    command: &str,
    keys: u64,
    first_key: u64,
    value_size: Size,
    distribution: Distribution,
) -> LoadPlan<'_> {
    LoadPlan { command, keys, rounds: 1, value_size, distribution, pipeline: LOAD_PIPELINE, first_key }
}

/// A table of a count, of which less is better.
pub(super) fn section(title: &str, about: String, unit: &str) -> Section {
    Section { title: title.to_owned(), about, unit: unit.to_owned(), better: Better::Lower, rows: Vec::new() }
}

/// Adds a row that compares the servers' cells.
pub(super) fn push(harness: &Harness<'_>, section: &mut Section, title: String, cells: Vec<Cell>) {
    section.rows.push(ResultRow::new(title, cells, &harness.plan.subject, section.better));
}
