//! Streams: entries by id, and the groups that consume them.
//!
//! ```text
//! Big     length, last id, ...   groups ------------------------> Group   last delivered, entries read
//!           |         |                                             |          |
//!         full ----- tail                                        pending    consumers
//!        /    \        |                                    by id, in a tree   by name, in a tree,
//!     Node    Node    Node   entries in one buffer each                        each with its pending ids
//! ```
//!
//! A stream is always a tree, however small: most changes append, and its last node is at hand.
//!
//! S1. Ids ascend. `last` is not below the id of any entry, and falls only by [`Change::SetId`].
//! S2. An empty stream stays, with its groups and its `last`.
//! S3. A pending entry may be gone from the stream; its owner is a consumer of the group.
//!
//! Settings at the time decide how entries are distributed over nodes, and so how much approximate trimming would
//! remove. Changes say how many entries go, so that they mean the same whatever the nodes are.

mod change;
mod cold;
mod group;
mod id;
mod node;
mod nodes;
mod operands;
mod rows;
mod save;
#[cfg(test)]
mod tests;
mod trim;

pub use change::{Change, are_about_entries};
pub use cold::{Found, FullNode};
pub use group::{Consumer, Group, Pending};
pub use id::Id;
pub use node::Entry;
pub use operands::{Claim, Claims, Fields, Ids};
pub use trim::{Added, Trim};

use crate::{Left, Limits, Slot, Stored};
use node::NodeLimits;
use nodes::Nodes;
use rows::Rows;
use std::sync::Arc;

/// See [`crate::apply`].
pub fn apply(slot: &mut Slot<'_>, changes: &[u8]) -> Left {
    let limits = slot.limits;
    if slot.big().is_none() {
        slot.grow(crate::Big::Stream(Big::default()));
    }
    let Some(crate::Big::Stream(big)) = slot.big() else { unreachable!("changes of a stream for another type") };
    big.apply_all(changes, limits);
    Left::Some
}

/// The tree.
#[derive(Clone, Debug, Default)]
pub struct Big {
    nodes: Nodes,
    length: u64,
    last: Id,
    /// The id of the first entry; `0-0` when there is none.
    first: Id,
    /// The highest id deleted, other than by trimming; `0-0` when none was.
    deleted: Id,
    /// How many entries were ever added.
    added: u64,
    groups: Rows<Arc<Group>>,
    /// Bytes of all groups.
    group_bytes: usize,
    /// Whether nodes are rows, or were.
    may_have_rows: bool,
}

impl Big {
    /// The stream that is stored.
    ///
    /// # Panics
    /// When it is another type.
    pub fn of(stored: Stored<'_>) -> &Self {
        match stored {
            Stored::Big(crate::Big::Stream(big)) => big,
            Stored::Big(_) | Stored::Packed(_) => unreachable!("no stream"),
        }
    }

    /// See [`crate::Big::memory_bytes`].
    pub fn memory_bytes(&self) -> usize {
        self.nodes.heap_bytes() + self.groups.heap_bytes() + self.group_bytes
    }

    /// See [`crate::Big::content_bytes`]. What groups have read is no content.
    pub fn content_bytes(&self) -> usize {
        self.nodes.content_bytes()
    }

    /// How many entries.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether it holds no entry.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The id that new ones are above.
    pub fn last_id(&self) -> Id {
        self.last
    }

    /// The id of the first entry; `0-0` when there is none.
    pub fn first_id(&self) -> Id {
        self.first
    }

    /// The highest id deleted, other than by trimming; `0-0` when none was.
    pub fn max_deleted_id(&self) -> Id {
        self.deleted
    }

    /// How many entries were ever added.
    pub fn entries_added(&self) -> u64 {
        self.added
    }

    /// How many nodes hold the entries.
    pub fn node_count(&self) -> u64 {
        self.nodes.len()
    }

    /// The entries from `start` to `end`.
    pub fn range(&self, start: Id, end: Id) -> impl Iterator<Item = Entry<'_>> {
        self.nodes.from(start).take_while(move |entry| entry.id <= end)
    }

    /// The entries from `end` down to `start`.
    pub fn range_back(&self, start: Id, end: Id) -> impl Iterator<Item = Entry<'_>> {
        self.nodes.up_to(end).take_while(move |entry| entry.id >= start)
    }

    /// Counts the entries from `start` to `end` in at most `nodes` nodes, and returns the id to continue from; `None`
    /// when there are no more. Counting all of a long stream takes milliseconds.
    pub fn count_some(&self, start: Id, end: Id, nodes_max: usize) -> (u64, Option<Id>) {
        self.nodes.count(start, end, nodes_max)
    }

    /// The entry with this id.
    pub fn entry(&self, id: Id) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }

    /// The last entry.
    pub fn last_entry(&self) -> Option<Entry<'_>> {
        self.nodes.up_to(Id::MAX).next()
    }

    /// How many groups.
    pub fn group_count(&self) -> u64 {
        self.groups.len()
    }

    /// The groups by name.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().map(|group| &**group)
    }

    /// The group of this name.
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name).map(|group| &**group)
    }

    /// Applies encoded changes, in order.
    ///
    /// # Panics
    /// When the bytes are no changes of a stream.
    pub fn apply_all(&mut self, mut changes: &[u8], limits: &Limits) {
        let limits = NodeLimits::of(limits);
        while !changes.is_empty() {
            let Some(change) = Change::take(&mut changes) else {
                unreachable!("these bytes are no changes of a stream")
            };
            self.apply(&change, limits);
        }
    }

    fn apply(&mut self, change: &Change<'_>, limits: NodeLimits) {
        match *change {
            Change::Add { id, ref fields } => self.add(id, fields, limits),
            Change::Delete { ref ids } => ids.iter().for_each(|id| self.delete(id)),
            Change::Trim { count } => self.trim(count),
            Change::SetId { last, added, deleted } => (self.last, self.added, self.deleted) = (last, added, deleted),
            Change::SetGroup { group, last, read } => self.set_group(group, last, read),
            Change::DestroyGroup { group } => self.destroy_group(group),
            Change::SetConsumer { group, consumer, seen, active } => {
                self.edit_group(group, |group| group.set_consumer(consumer, seen, active));
            }
            Change::DeleteConsumer { group, consumer } => {
                self.edit_group(group, |group| group.delete_consumer(consumer));
            }
            Change::Deliver { group, consumer, ref claims } => {
                self.edit_group(group, |group| group.deliver(consumer, claims));
            }
            Change::Acknowledge { group, ref ids } => self.edit_group(group, |group| group.acknowledge(ids)),
        }
    }

    fn add(&mut self, id: Id, fields: &Fields<'_>, limits: NodeLimits) {
        self.nodes.append(id, fields, limits);
        if self.length == 0 {
            self.first = id;
        }
        self.length += 1;
        self.last = id;
        self.added = self.added.wrapping_add(1);
    }

    fn delete(&mut self, id: Id) {
        if self.nodes.remove(id) {
            self.length -= 1;
            self.deleted = self.deleted.max(id);
            if id == self.first {
                self.find_first();
            }
        }
    }

    fn trim(&mut self, count: u64) {
        self.nodes.trim(count);
        self.length = self.length.saturating_sub(count);
        self.find_first();
    }

    fn find_first(&mut self) {
        self.first = self.nodes.from(Id::MIN).next().map_or(Id::MIN, |entry| entry.id);
    }

    fn set_group(&mut self, name: &[u8], last: Id, read: Option<u64>) {
        if self.groups.get(name).is_none() {
            let group = Group::new(name);
            self.group_bytes += group.heap_bytes();
            self.groups.insert(Arc::new(group));
        }
        self.edit_group(name, |group| (group.last, group.read) = (last, read));
    }

    fn destroy_group(&mut self, name: &[u8]) {
        if let Some(group) = self.groups.remove(name) {
            self.group_bytes -= group.heap_bytes();
        }
    }

    fn edit_group(&mut self, name: &[u8], edit: impl FnOnce(&mut Group)) {
        let bytes = &mut self.group_bytes;
        self.groups.edit(name, |group| {
            *bytes -= group.heap_bytes();
            let group = Arc::make_mut(group);
            edit(group);
            *bytes += group.heap_bytes();
        });
    }
}
