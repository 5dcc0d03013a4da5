//! What sticky entries take: those that are never evicted.
//!
//! Z1. An entry is counted from the end of the change that stored it. Before it changes again it is taken out of the
//!     count, and it comes back with what it takes then, when the next change begins or the counts are asked for. So at
//!     most one entry of a shard is missing in what other threads read.
//! Z2. Without sticky entries nothing is noted: changes ask what they ask for checkpoints anyway
//!     ([`MemEngine::hand_over`]).

pub mod counts;

use crate::mem_engine::MemEngine;
use base::KeyspaceId;
use counts::Sticky;
use engine::Key;

impl MemEngine {
    /// How many sticky entries a keyspace has.
    pub(crate) fn sticky_items(&self, space: KeyspaceId) -> u64 {
        let counts = self.sticky.as_ref().and_then(|sticky| sticky.by_space.get(space.index()));
        counts.map_or(0, |count| count.items)
    }

    /// A sticky entry was stored, perhaps the first one.
    #[cold]
    pub(crate) fn count_sticky(&mut self, key: &Key<'_>) {
        if self.sticky.is_none() {
            self.sticky = Some(Box::new(Sticky { by_space: Vec::new(), open: Some((key.space, key.bytes.to_vec())) }));
            self.look_who_watches();
        }
    }

    /// Before a change of what is under the key, if anything is (Z1).
    #[cold]
    pub(crate) fn open_sticky(&mut self, space: KeyspaceId, key: &[u8]) {
        let Some(mut sticky) = self.sticky.take() else { return };
        self.close_open(&mut sticky);
        if let Some(bytes) = self.sticky_bytes_of(space, key) {
            let count = sticky.of(space);
            count.items -= 1;
            count.bytes -= bytes;
            self.memory.sub_sticky(1, bytes);
        }
        sticky.open = Some((space, key.to_vec()));
        self.sticky = Some(sticky);
    }

    /// Counts the entry that was changed last.
    pub(crate) fn close_sticky(&mut self) {
        if let Some(mut sticky) = self.sticky.take() {
            self.close_open(&mut sticky);
            self.sticky = Some(sticky);
        }
    }

    fn close_open(&mut self, sticky: &mut Sticky) {
        let Some((space, key)) = sticky.open.take() else { return };
        if let Some(bytes) = self.sticky_bytes_of(space, &key) {
            let count = sticky.of(space);
            count.items += 1;
            count.bytes += bytes;
            self.memory.add_sticky(1, bytes);
        }
    }

    /// What the entry under the key takes; `None` unless it is sticky. No entry of a backed keyspace is evicted, so
    /// none is counted there.
    fn sticky_bytes_of(&self, space: KeyspaceId, key: &[u8]) -> Option<u64> {
        let space = self.space(space).filter(|space| space.backed.is_none())?;
        let found = space.table.find(&self.heap, &self.entries, self.hasher.hash(key), key)?;
        self.entries.entry(found.handle).is_sticky().then(|| self.cost_of(found.handle))
    }

    /// All entries of a keyspace go.
    pub(crate) fn clear_sticky(&mut self, space: KeyspaceId) {
        self.close_sticky();
        if let Some(sticky) = &mut self.sticky {
            let count = std::mem::take(sticky.of(space));
            self.memory.sub_sticky(count.items, count.bytes);
        }
    }

    /// A keyspace gets the entries of another, and has had none.
    pub(crate) fn move_sticky(&mut self, to: KeyspaceId, from: KeyspaceId) {
        self.close_sticky();
        if let Some(sticky) = &mut self.sticky {
            *sticky.of(to) = std::mem::take(sticky.of(from));
        }
    }
}
