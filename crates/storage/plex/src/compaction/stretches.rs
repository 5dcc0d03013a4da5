//! A merge whose output counts stretch by stretch, so that old and new data never take space in full at the same time.
//!
//! ```text
//!   inputs   [---a---][---b---][---c---]       the first stretch is merged: d goes, and a; e and b reach over its end
//!            [---d---][-----e-----]
//!   output   [...........|                     a run in front of them all, until the last stretch is merged
//! ```
//!
//! S1. For all keys merged so far the output, in front, is what counts. An input that reaches over the end of its
//!     stretch stays after it with obsolete versions; for a key that it may know, what hides them stays in the output
//!     ([`Below`](super::stretch::Below)).
//! S2. Nothing comes between or in front: the inputs are all runs of a level that is not flushed to.
//! S3. A merge that breaks off leaves a tree that reads the same, and from which the policy chooses again.

use std::collections::{BTreeSet, VecDeque};

use super::Task;
use super::execute::{Outcome, OutputSettings, Visibility, run};
use super::stretch::Stretch;
use crate::error::Result;
use crate::sstable::TableInfo;
use crate::version::TablePlace;

/// First keys of stretches that have at least about `bytes` of input: each is one of a table.
fn borders(task: &Task, bytes: u64) -> Vec<Vec<u8>> {
    let mut tables: Vec<&TableInfo> = task.inputs.iter().map(|(_, _, table)| &table.info).collect();
    tables.sort_by(|a, b| a.smallest.cmp(&b.smallest));
    let (mut borders, mut before) = (Vec::new(), 0);
    for pair in tables.windows(2) {
        before += pair[0].bytes;
        if before >= bytes && pair[0].smallest < pair[1].smallest {
            borders.push(pair[1].smallest.clone());
            before = 0;
        }
    }
    borders
}

/// A task under way.
pub(crate) struct Merge<'a> {
    key_space: u32,
    /// What is done leaves its inputs.
    task: &'a mut Task,
    is_bottom: bool,
    new_run: u64,
    stretches: VecDeque<Stretch>,
    /// Where the output goes at last, if it waits elsewhere.
    output_level: Option<usize>,
    waiting: Vec<(TablePlace, TableInfo)>,
}

impl<'a> Merge<'a> {
    /// Begins a task that [`check`](super::check) has passed. `new_run` is used if the task wants one.
    pub fn new(key_space: u32, task: &'a mut Task, is_bottom: bool, new_run: u64) -> Self {
        let borders = task.stretch_bytes.map_or_else(Vec::new, |bytes| borders(task, bytes));
        let mut output_level = None;
        if let (Some((level, ..)), false) = (task.inputs.first(), borders.is_empty()) {
            output_level = Some(std::mem::replace(&mut task.output_level, *level));
        }
        let starts = std::iter::once(None).chain(borders.iter().cloned().map(Some));
        let ends = borders.iter().cloned().map(Some).chain([None]);
        let stretches = starts.zip(ends).map(|(from, to)| Stretch { from, to }).collect();
        Self { key_space, task, is_bottom, new_run, stretches, output_level, waiting: Vec::new() }
    }

    pub fn is_over(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Does the next stretch.
    pub fn step(&mut self, settings: &OutputSettings<'_>, visibility: &Visibility) -> Result<Outcome> {
        let Some(stretch) = self.stretches.pop_front() else { return Ok(Outcome::default()) };
        let mut outcome = run(settings, visibility, self.key_space, self.task, &stretch, self.is_bottom, self.new_run)?;
        let gone: BTreeSet<u64> = outcome.edit.removed.iter().map(|place| place.number).collect();
        self.task.inputs.retain(|(_, _, table)| !gone.contains(&table.number));
        let Some(level) = self.output_level else { return Ok(outcome) };
        if self.is_over() {
            let waited = self.waiting.drain(..).map(|(place, info)| {
                outcome.edit.removed.push(place);
                (place, info)
            });
            let added: Vec<_> = waited.chain(outcome.edit.added.drain(..)).collect();
            outcome.edit.added = added.into_iter().map(|(place, info)| (TablePlace { level, ..place }, info)).collect();
        } else {
            self.waiting.extend(outcome.edit.added.iter().cloned());
        }
        Ok(outcome)
    }
}
