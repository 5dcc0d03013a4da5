//! Giving memory back, in small steps: databases that were cleared, expiration indexes that were replaced or have
//! become stale, sparse pages of entries, sparse pages of tables.
//!
//! Sparse pages are what is left when values shrink or keys go (an allocator that cannot move keeps three times the
//! payload then). Entries move freely, since one cell points to each (M2); it is found by hashing the entry's key.
//! Units of table memory move too: a walk over the directories meets each one's only reference.

pub(crate) mod calm;

use crate::entries::Compacted;
use crate::extent::{Extent, UNIT_CLASS};
use crate::mem_engine::MemEngine;
use crate::pages::{Backing, Pages};
use crate::table::Table;
use calm::TableCleaning;

/// What pages of entries may keep free. With 64 shards that is 1.6 % and 16 MiB. A small shard keeps less, an empty one
/// nothing.
const USUAL: Allowance = Allowance { share: 64, bytes: 256 << 10 };

/// The same while memory is short: free memory in pages that no entry can use counts against the budget, so it must be
/// small. It is not zero, since in fuller pages more entries are moved for each byte that comes back.
const SHORT: Allowance = Allowance { share: 64, bytes: 8 << 10 };

/// What pages may keep free while nothing is written, since no client waits for the moves, and while a write waits for
/// the memory.
const CALM: Allowance = Allowance { share: 1024, bytes: 1 << 10 };

/// Free slots that table memory may keep.
const TABLE_FREE_SHARE: usize = 16;
const TABLE_FREE_BYTES: usize = 128 << 10;

/// Pages of table memory emptied by one walk over the directories, at most.
const TABLE_PAGES_PER_WALK: usize = 16;

/// Chunks of an old index given back for the price of one entry moved.
const CHUNKS_PER_UNIT: usize = 2;

/// Free slots that pages of entries may keep: one part in `share` of what is live, and `bytes`, which half of what is
/// live bounds.
#[derive(Clone, Copy)]
struct Allowance {
    share: usize,
    bytes: usize,
}

impl Allowance {
    fn of<B: Backing>(self, pages: &Pages<B>) -> usize {
        let live = pages.live_bytes();
        live / self.share + self.bytes.min(live / 2)
    }
}

impl MemEngine {
    /// See [`engine::Engine::clean`].
    pub(crate) fn clean_some(&mut self, budget: usize) -> bool {
        let is_calm = self.calm.is_calm(self.entries.pages());
        if !is_calm {
            self.entries.squeeze_anew();
        }
        let mut goes_on = self.clean_down_to(if is_calm { CALM } else { USUAL }, budget);
        goes_on = goes_on || is_calm && self.squeeze(budget);
        self.calm.note(self.entries.pages(), goes_on);
        goes_on
    }

    /// The same while memory is short: pages keep next to no free slots.
    pub fn clean_closely(&mut self, budget: usize) -> bool {
        self.tell_size();
        self.clean_down_to(SHORT, budget)
    }

    /// The same while a write waits for it: pages keep hardly any free slots.
    pub fn clean_thoroughly(&mut self, budget: usize) -> bool {
        self.tell_size();
        // Asked by every write that is refused, so that it is cheap while nothing is freed.
        self.may_clean(CALM) && self.clean_down_to(CALM, budget)
    }

    /// Whether there is something to clean, as far as is known without a look at the pages.
    fn may_clean(&self, allowance: Allowance) -> bool {
        let pages = self.entries.pages();
        let has_free_slots = pages.is_emptying() || pages.free_bytes() > allowance.of(pages);
        let has_old_parts = !self.detached.is_empty() || !self.retired.is_empty();
        has_free_slots
            || has_old_parts
            || self.table_cleaning.is_some()
            || self.heap.free_bytes() > self.table_allowance()
    }

    /// What table memory may keep free.
    fn table_allowance(&self) -> usize {
        let live = self.heap.live_bytes();
        live / TABLE_FREE_SHARE + TABLE_FREE_BYTES.min(live / 2)
    }

    fn clean_down_to(&mut self, allowance: Allowance, budget: usize) -> bool {
        self.handles_change();
        let mut left = budget;
        while left > 0 {
            let done = self
                .clean_detached()
                .or_else(|| self.clean_retired(left))
                .or_else(|| self.rebuild_indexes())
                .or_else(|| self.clean_entries(allowance, left))
                .or_else(|| self.clean_table())
                .or_else(|| if self.has_backed { self.settle_some(left) } else { None });
            match done {
                Some(done) => left = left.saturating_sub(done.max(1)),
                None => return false,
            }
        }
        true
    }

    fn clean_detached(&mut self) -> Option<usize> {
        (!self.detached.is_empty()).then(|| self.dismantle_some())
    }

    fn clean_retired(&mut self, budget: usize) -> Option<usize> {
        let wheel = self.retired.last_mut()?;
        if !wheel.dismantle(budget * CHUNKS_PER_UNIT) {
            self.retired.pop();
        }
        Some(budget)
    }

    fn rebuild_indexes(&mut self) -> Option<usize> {
        let Self { spaces, heap, entries, hasher, now, memory, retired, .. } = self;
        spaces.iter_mut().flatten().find_map(|space| {
            let (seen, old) = space.rebuild_index(heap, entries, |key| hasher.hash(key), *now, memory)?;
            retired.extend(old);
            Some(seen)
        })
    }

    /// Moves entries out of sparse pages while more is free in pages than they may keep.
    fn clean_entries(&mut self, allowance: Allowance, budget: usize) -> Option<usize> {
        let pages = self.entries.pages();
        let is_begun = pages.is_emptying() && !pages.is_squeezing();
        if !is_begun && pages.free_bytes() <= allowance.of(pages) {
            return None;
        }
        let mut done = 0;
        while done < budget {
            // Stopping below where it starts, cleaning comes in runs.
            let pages = self.entries.pages();
            if pages.free_bytes() <= allowance.of(pages) / 8 * 7 {
                self.entries.stop_compacting();
                break;
            }
            let moved = self.move_entry(Compacted::SparsePages);
            if !moved {
                return (done > 0).then_some(done);
            }
            done += 1;
        }
        Some(done)
    }

    /// Moves entries out of the last lines of classes that have few; true when the budget is used up.
    fn squeeze(&mut self, budget: usize) -> bool {
        (0..budget).all(|_| self.move_entry(Compacted::LastLines))
    }

    /// Moves one entry, or ends a page; false when there is none to be moved.
    fn move_entry(&mut self, what: Compacted) -> bool {
        let Self { entries, heap, hasher, spaces, detached, .. } = self;
        entries.compact_one(what, |entries, from, to| {
            let hash = hasher.hash(entries.key(to));
            let tables = || {
                let detached = detached.iter().map(|detached| &detached.table);
                spaces.iter().flatten().map(|space| &space.table).chain(detached)
            };
            let found = tables().find_map(|table: &Table| {
                table.find_handle(heap, hash, from).map(|found| table.set_handle(heap, found, to))
            });
            assert!(found.is_some(), "a live entry that no cell points to");
        })
    }

    /// Moves units of one extent out of sparse pages, starting a walk over the directories if too much is free in its
    /// pages.
    fn clean_table(&mut self) -> Option<usize> {
        let mut cleaning = match self.table_cleaning.take() {
            Some(cleaning) => cleaning,
            None => self.start_cleaning_table()?,
        };
        if cleaning.space == self.spaces.len() {
            self.heap.settle_all();
            return Some(1);
        }
        let mut done = 1;
        match &self.spaces[cleaning.space] {
            None => cleaning = TableCleaning { space: cleaning.space + 1, from: 0 },
            Some(space) => {
                let stretch = space.table.stretch(&self.heap, cleaning.from);
                let count = space.table.extent_of(&self.heap, stretch).unit_count();
                for unit in 0..count {
                    let from = space.table.extent_of(&self.heap, stretch).unit(unit);
                    if self.heap.is_in_emptied_page(from) {
                        let to = self.heap.allocate(UNIT_CLASS);
                        let extent: Extent<'_> = space.table.extent_of(&self.heap, stretch);
                        extent.move_unit(unit, to);
                        self.heap.free(from);
                        done += 1;
                    }
                }
                cleaning = match stretch.next {
                    Some(next) => TableCleaning { from: next, ..cleaning },
                    None => TableCleaning { space: cleaning.space + 1, from: 0 },
                };
            }
        }
        self.table_cleaning = Some(cleaning);
        Some(done)
    }

    fn start_cleaning_table(&mut self) -> Option<TableCleaning> {
        if self.heap.free_bytes() <= self.table_allowance()
            || !self.heap.start_emptying_all(UNIT_CLASS, TABLE_PAGES_PER_WALK)
        {
            return None;
        }
        Some(TableCleaning::default())
    }
}
