//! Entries and elements that are due, by the index of expirations.

use crate::mem_engine::MemEngine;
use crate::wheel::{Item, Looking};
use base::slot::slot_of;
use base::{KeyspaceId, UnixMs};
use engine::{Due, Key};

impl MemEngine {
    /// Looks at items of the expiration index that have come up in one database, at most `looks` of them; gives up to
    /// `limit` keys that are due. Returns how many it gave.
    pub(crate) fn due_in(
        &mut self,
        id: KeyspaceId,
        limit: usize,
        looks: &mut usize,
        visit: &mut dyn FnMut(Key<'_>, Due),
    ) -> usize {
        let Some(space) = self.spaces[id.index()].as_mut() else { return 0 };
        let Looking { items, given, again, .. } = &mut self.looking;
        given.clear();
        while given.len() < limit && *looks > 0 {
            space.pop_items(self.now, (limit - given.len()).min(*looks), items);
            if items.is_empty() {
                break;
            }
            *looks -= items.len();
            let known = given.len();
            for &item in items.iter() {
                if given[..known].binary_search(&item).is_ok() {
                    continue;
                }
                let (mut is_due, mut later) = (false, None);
                space.table.find_item(&self.heap, item, |handle| {
                    let Some(at) = self.entries.due_at(handle) else { return };
                    let bytes = self.entries.key(handle);
                    let hash = self.hasher.hash(bytes);
                    if Item::of(hash) != item {
                        // An extent covers more than one value of the item's upper bits.
                        return;
                    }
                    let mut is_gone = false;
                    if at <= self.now {
                        is_gone = self.entries.expiration(handle).is_some_and(|at| at <= self.now);
                        let due = if is_gone { Due::Entry } else { Due::Elements };
                        visit(Key { bytes, hash, slot: slot_of(bytes), space: id }, due);
                        is_due = true;
                    }
                    // The caller may remove only some of the due elements, and the others may be due later.
                    if !is_gone {
                        later = Some(later.map_or(at, |later: UnixMs| later.min(at)));
                    }
                });
                if let Some(at) = later {
                    again.push((item, at));
                }
                if is_due {
                    given.push(item);
                }
            }
            given.sort_unstable();
        }
        for (item, at) in again.drain(..) {
            match at <= self.now {
                true => space.put_back(item),
                false => space.requeue(item, at),
            }
        }
        given.len()
    }
}
