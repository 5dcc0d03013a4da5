//! A walk of a checkpoint, and the handing over of single entries.

use crate::bucket::Mark;
use crate::entries::Entries;
use crate::extent::Heap;
use crate::table::{Found, Stretch, Table};
use base::KeyspaceId;
use engine::EntrySink;

/// A checkpoint in progress.
pub struct Checkpoint {
    pub(super) sink: Box<dyn EntrySink>,
    /// The database being walked and the hash it has come to.
    pub(super) space: usize,
    pub(super) from: u64,
}

impl Checkpoint {
    /// Hands an entry over unless that has been done.
    #[inline]
    pub fn hand_over(
        &mut self,
        space: KeyspaceId,
        table: &Table,
        heap: &Heap,
        entries: &Entries,
        found: Found,
        mark: Mark,
    ) {
        if !table.is_saved(heap, found, mark) {
            self.sink.save(space, &entries.entry(found.handle));
            table.set_saved(heap, found, mark);
        }
    }

    /// Hands all entries of a stretch over. Returns how many were looked at.
    pub fn hand_over_stretch(
        &mut self,
        space: KeyspaceId,
        table: &Table,
        heap: &Heap,
        entries: &Entries,
        stretch: Stretch,
        mark: Mark,
    ) -> usize {
        let mut seen = 0;
        for found in table.entries_of(heap, stretch) {
            self.hand_over(space, table, heap, entries, found, mark);
            seen += 1;
        }
        seen
    }
}
