//! Whether entries of backed keyspaces can be dropped for their memory, now or after a flush.

use super::state::Backed;
use crate::mem_engine::MemEngine;
use base::KeyspaceId;
use engine::Counts;

/// Changed keys that are looked at for one that a flush makes droppable. Where there are more, one of them is taken to
/// be such a key: a flush will tell.
const CHANGED_LOOKED_AT: usize = 1000;

/// What can be dropped for its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Droppable {
    /// [`MemEngine::drop_clean_anywhere`] drops something, with the next call or a later one. Where a flush makes more
    /// droppable, this may be unset although there is a little.
    pub now: bool,
    /// It drops something after a flush.
    pub after_flush: bool,
}

impl MemEngine {
    /// What of the backed keyspaces can be dropped. Entries that stay, flushed or not, are left out: no flush of them
    /// helps a writer that waits for memory.
    pub fn droppable(&self) -> Droppable {
        let mut found = Droppable::default();
        for id in (0..self.spaces.len()).map(|id| KeyspaceId(id as u32)).filter(|_| self.has_backed) {
            if let Some(backed) = self.backed(id) {
                let of_space = self.droppable_of(id, backed);
                found.now |= of_space.now;
                found.after_flush |= of_space.after_flush;
            }
        }
        found
    }

    fn droppable_of(&self, id: KeyspaceId, backed: &Backed) -> Droppable {
        // Leaves of large collections lie in the memory of the rows until they are flushed.
        let has_leaves = backed.leaves.as_ref().is_some_and(|leaves| leaves.unflushed_bytes() > 0);
        let untimed = self.space(id).map_or(0, |space| space.table.len() - space.timed);
        if untimed == 0 {
            return Droppable { after_flush: has_leaves, ..Droppable::default() };
        }
        let counts_of = |key: &[u8]| {
            let found = self.find_apart(&self.key_of(id, key))?;
            Some(Counts::of(&self.entries.entry(found.handle)))
        };
        let changed = backed.changed_len();
        let stays = |key: &[u8]| counts_of(key).is_none_or(|counts| backed.state(key).stays(counts));
        let after_flush = has_leaves || changed > CHANGED_LOOKED_AT || !backed.changed_keys().all(stays);
        // Otherwise all that are changed stay, so they are timed or held.
        let is_here = |key: &&[u8]| counts_of(key).is_some_and(|counts| counts.timed == 0);
        let now = untimed > (backed.held + changed) as u64
            || !after_flush && untimed > backed.held_keys().filter(is_here).count() as u64;
        Droppable { now, after_flush }
    }
}
