//! One database of a shard: its table and its expiration index.

use crate::backed::state::Backed;
use crate::entries::Entries;
use crate::extent::Heap;
use crate::memory::MemoryUse;
use crate::table::{Found, Table};
use crate::wheel::{Item, Wheel};
use base::{Rng, UnixMs};
use std::sync::Arc;

/// Stale items that an index may hold, in excess of the number of live ones, before it is rebuilt.
const STALE_ITEMS_MAX: usize = 4096;

/// A database that has been used.
pub struct Space {
    /// Where its entries are found.
    pub table: Table,
    /// Entries that expire.
    pub expiring: u64,
    /// Entries with elements that have a time.
    pub timed: u64,
    /// The rows that back it; `None` when all entries are in the table.
    pub backed: Option<Box<Backed>>,
    index: Option<Box<Index>>,
}

/// The expiration index while it is rebuilt, and when not.
struct Index {
    wheel: Wheel,
    /// The index to come: it knows all entries with hashes below the bound.
    rebuilding: Option<(Wheel, u64)>,
}

impl Space {
    /// An empty database.
    pub fn new(heap: &mut Heap) -> Self {
        Self { table: Table::new(heap), expiring: 0, timed: 0, backed: None, index: None }
    }

    /// Keeps the index true when the expiration of the entry under `hash` changes. An entry that is created had none,
    /// one that is removed will have none.
    #[inline]
    pub fn expiration_changed(
        &mut self,
        hash: u64,
        before: Option<UnixMs>,
        after: Option<UnixMs>,
        now: UnixMs,
        memory: &Arc<MemoryUse>,
    ) {
        self.expiring = self.expiring + u64::from(after.is_some()) - u64::from(before.is_some());
        self.index_earlier(hash, before, after, now, memory);
    }

    /// The same for the earliest time of an element of the entry.
    pub fn first_due_changed(
        &mut self,
        hash: u64,
        before: Option<UnixMs>,
        after: Option<UnixMs>,
        now: UnixMs,
        memory: &Arc<MemoryUse>,
    ) {
        self.timed = self.timed + u64::from(after.is_some()) - u64::from(before.is_some());
        self.index_earlier(hash, before, after, now, memory);
    }

    /// A later time leaves its item: the item finds out when it comes up.
    fn index_earlier(
        &mut self,
        hash: u64,
        before: Option<UnixMs>,
        after: Option<UnixMs>,
        now: UnixMs,
        memory: &Arc<MemoryUse>,
    ) {
        if let Some(after) = after
            && before.is_none_or(|before| after < before)
        {
            self.index_item(Item::of(hash), after, now, memory);
        }
    }

    fn index_item(&mut self, item: Item, at: UnixMs, now: UnixMs, memory: &Arc<MemoryUse>) {
        let index = self
            .index
            .get_or_insert_with(|| Box::new(Index { wheel: Wheel::new(now, Arc::clone(memory)), rebuilding: None }));
        match &mut index.rebuilding {
            Some((new, bound)) if item.hash() < *bound => new.add(at, item),
            _ => index.wheel.add(at, item),
        }
    }

    /// Takes items that have come up by `now`, at most `limit`, sorted and without repetition.
    pub fn pop_items(&mut self, now: UnixMs, limit: usize, items: &mut Vec<Item>) {
        items.clear();
        let Some(index) = &mut self.index else { return };
        let new = index.rebuilding.as_mut().map(|(new, _)| new);
        for wheel in std::iter::once(&mut index.wheel).chain(new) {
            while items.len() < limit
                && let Some(item) = wheel.pop(now)
            {
                items.push(item);
            }
        }
        items.sort_unstable();
        items.dedup();
    }

    /// Queues the item again for an entry that expires later than thought.
    pub fn requeue(&mut self, item: Item, at: UnixMs) {
        let index = self.index.as_mut().expect("the item came from it");
        match &mut index.rebuilding {
            // It may have come from there.
            Some((new, bound)) if item.hash() < *bound => new.add(at, item),
            _ => index.wheel.add(at, item),
        }
    }

    /// Lets an item come up again whose entry still has something due.
    pub fn put_back(&mut self, item: Item) {
        self.index.as_mut().expect("the item came from it").wheel.put_back(item);
    }

    /// Whether any item has come up by `now`.
    pub fn is_due(&self, now: UnixMs) -> bool {
        self.index.as_ref().is_some_and(|index| {
            index.wheel.is_due(now) || index.rebuilding.as_ref().is_some_and(|(new, _)| new.is_due(now))
        })
    }

    /// The expiration index, if there ever was an expiration.
    pub fn wheel(&self) -> Option<&Wheel> {
        self.index.as_ref().map(|index| &index.wheel)
    }

    /// Takes a random item of those that come up first. To be queued again if its entry is there.
    pub fn take_soonest(&mut self, rng: &mut Rng) -> Option<Item> {
        self.index.as_mut()?.wheel.take_soonest(rng)
    }

    /// Takes the index for dismantling.
    pub fn take_wheels(&mut self) -> Vec<Wheel> {
        let index = self.index.take().map(|index| *index);
        index
            .into_iter()
            .flat_map(|index| std::iter::once(index.wheel).chain(index.rebuilding.map(|(new, _)| new)))
            .collect()
    }

    /// One step of replacing an index that has become stale: indexes the entries of one extent. `None` when there is
    /// nothing to do; the number of entries looked at, and the old index when it is replaced.
    pub fn rebuild_index(
        &mut self,
        heap: &Heap,
        entries: &Entries,
        hash_of: impl Fn(&[u8]) -> u64,
        now: UnixMs,
        memory: &Arc<MemoryUse>,
    ) -> Option<(usize, Option<Wheel>)> {
        let index = self.index.as_mut()?;
        if index.rebuilding.is_none()
            && index.wheel.len() <= 2 * (self.expiring + self.timed) as usize + STALE_ITEMS_MAX
        {
            return None;
        }
        let (new, bound) = index.rebuilding.get_or_insert_with(|| (Wheel::new(now, Arc::clone(memory)), 0));
        let stretch = self.table.stretch(heap, *bound);
        let mut seen = 1;
        for Found { handle, .. } in self.table.entries_of(heap, stretch) {
            seen += 1;
            if let Some(at) = entries.due_at(handle) {
                new.add(at, Item::of(hash_of(entries.key(handle))));
            }
        }
        match stretch.next {
            Some(next) => {
                *bound = next;
                Some((seen, None))
            }
            None => {
                let (new, _) = index.rebuilding.take().expect("it is being rebuilt");
                Some((seen, Some(std::mem::replace(&mut index.wheel, new))))
            }
        }
    }
}
