//! Merges that run side by side.
//!
//! M1. There are never more than [`Options::merges_max`](crate::Options::merges_max).
//! M2. No table is in two of them, and what one writes overlaps nothing that another one reads or writes: policies
//!     choose with those that run in view ([`Now::others`](crate::compaction::Now::others)). What a merge has written
//!     so far is its own until it is
//!     over.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::{Condvar, Mutex};

use crate::compaction::Task;
use crate::error::Result;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Merging {
    running: Mutex<Running>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Running {
    merges: usize,
    /// Numbers and first keys of the tables that are in one of them.
    tables: BTreeMap<u64, Vec<u8>>,
}

/// A merge that was chosen.
pub(super) struct Chosen {
    pub space: u32,
    pub task: Task,
    /// Nothing older overlaps it.
    pub is_bottom: bool,
}

/// A merge that runs; dropped, it is over.
pub(super) struct Turn<'a> {
    merging: &'a Merging,
    tables: BTreeSet<u64>,
}

impl Merging {
    /// Waits until fewer than `max` run, and has one more chosen: `pick` gets the tables of the others.
    pub fn begin(
        &self,
        max: usize,
        pick: impl FnOnce(&BTreeMap<u64, Vec<u8>>) -> Result<Option<Chosen>>,
    ) -> Result<Option<(Turn<'_>, Chosen)>> {
        let mut running = self.running.lock();
        while running.merges >= max {
            self.ended.wait(&mut running);
        }
        let Some(chosen) = pick(&running.tables)? else { return Ok(None) };
        let tables = chosen.task.numbers();
        running.merges += 1;
        let inputs = chosen.task.inputs.iter();
        running.tables.extend(inputs.map(|(_, _, table)| (table.number, table.info.smallest.clone())));
        Ok(Some((Turn { merging: self, tables }, chosen)))
    }

    /// Runs this while no merge does.
    pub fn alone<T>(&self, run: impl FnOnce() -> T) -> T {
        let mut running = self.running.lock();
        while running.merges > 0 {
            self.ended.wait(&mut running);
        }
        run()
    }

    /// Waits until one of those that run now is over; `false` at once if none runs.
    pub fn await_one(&self) -> bool {
        let mut running = self.running.lock();
        let runs = running.merges > 0;
        if runs {
            self.ended.wait(&mut running);
        }
        runs
    }
}

impl Turn<'_> {
    /// Takes these tables too: what the merge has written, before anybody can see it.
    pub fn take(&mut self, tables: impl Iterator<Item = (u64, Vec<u8>)> + Clone) {
        self.merging.running.lock().tables.extend(tables.clone());
        self.tables.extend(tables.map(|(number, _)| number));
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut running = self.merging.running.lock();
        running.merges -= 1;
        running.tables.retain(|table, _| !self.tables.contains(table));
        self.merging.ended.notify_all();
    }
}
