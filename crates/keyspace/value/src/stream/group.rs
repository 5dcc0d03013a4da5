//! Consumer groups: entries that were delivered to a consumer and are not acknowledged yet.
//!
//! A pending entry is stored twice: in the group by id, with everything about it, and in its consumer as a bare id. So
//! both "all pending entries" and "pending entries of this consumer" are ranges.

use super::rows::{Row, Rows};
use super::{Claim, Claims, Id, Ids};
use crate::tree::allocated;
use base::UnixMs;
use std::sync::Arc;

/// A consumer group.
#[derive(Clone, Debug)]
pub struct Group {
    name: Arc<[u8]>,
    pub(super) last: Id,
    pub(super) read: Option<u64>,
    pending: Rows<Pending>,
    consumers: Rows<Consumer>,
    /// Bytes that consumers own.
    consumer_bytes: usize,
}

/// An entry that was delivered and is not acknowledged.
#[derive(Clone, Debug)]
pub struct Pending {
    claim: Claim,
    owner: Arc<[u8]>,
}

/// A consumer of a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Arc<[u8]>,
    seen: UnixMs,
    active: Option<UnixMs>,
    pending: Rows<Id>,
}

impl Row for Arc<Group> {
    type Key = [u8];
    type Bound = Arc<[u8]>;
    /// The group, its name, a leaf and a node for its pending entries and its consumers.
    const CHUNKS: usize = 8;

    fn key(&self) -> &[u8] {
        &self.name
    }

    fn bound(&self) -> Arc<[u8]> {
        self.name.clone()
    }
}

impl Row for Pending {
    type Key = Id;
    type Bound = Id;

    fn key(&self) -> &Id {
        &self.claim.id
    }

    fn bound(&self) -> Id {
        self.claim.id
    }
}

impl Row for Consumer {
    type Key = [u8];
    type Bound = Arc<[u8]>;
    /// Its name, a leaf and a node for its pending entries.
    const CHUNKS: usize = 4;

    fn key(&self) -> &[u8] {
        &self.name
    }

    fn bound(&self) -> Arc<[u8]> {
        self.name.clone()
    }
}

impl Row for Id {
    type Key = Self;
    type Bound = Self;

    fn key(&self) -> &Self {
        self
    }

    fn bound(&self) -> Self {
        *self
    }
}

impl Pending {
    /// Which entry; it may have been removed from the stream.
    pub fn id(&self) -> Id {
        self.claim.id
    }

    /// The consumer it is pending for.
    pub fn owner(&self) -> &[u8] {
        &self.owner
    }

    /// When it was delivered, and how often.
    pub fn claim(&self) -> Claim {
        self.claim
    }
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// When it last asked for something.
    pub fn seen(&self) -> UnixMs {
        self.seen
    }

    /// When it last was given an entry; `None` when it never was.
    pub fn active(&self) -> Option<UnixMs> {
        self.active
    }

    /// How many entries are pending for it.
    pub fn pending_count(&self) -> u64 {
        self.pending.len()
    }

    /// The ids pending for it, from `start` on.
    pub fn pending_ids(&self, start: Id) -> impl Iterator<Item = Id> {
        self.pending.from(&start).copied()
    }
}

impl Group {
    pub(super) fn new(name: &[u8]) -> Self {
        Self {
            name: name.into(),
            last: Id::MIN,
            read: None,
            pending: Rows::default(),
            consumers: Rows::default(),
            consumer_bytes: 0,
        }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The last id it delivered.
    pub fn last_delivered(&self) -> Id {
        self.last
    }

    /// How many entries up to there were ever added to the stream; `None` when that is not known.
    pub fn entries_read(&self) -> Option<u64> {
        self.read
    }

    /// How many entries are pending.
    pub fn pending_count(&self) -> u64 {
        self.pending.len()
    }

    /// What is pending, from the id `start` on.
    pub fn pending(&self, start: Id) -> impl Iterator<Item = &Pending> {
        self.pending.from(&start)
    }

    /// What is pending with the highest id.
    pub fn last_pending(&self) -> Option<&Pending> {
        self.pending.last()
    }

    /// What is pending under this id.
    pub fn pending_entry(&self, id: Id) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// How many consumers it has.
    pub fn consumer_count(&self) -> u64 {
        self.consumers.len()
    }

    /// Its consumers by name.
    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.consumers.iter()
    }

    /// The consumer of this name.
    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.consumers.get(name)
    }

    /// Bytes of its allocations.
    pub(super) fn heap_bytes(&self) -> usize {
        allocated_arc(size_of::<Self>())
            + allocated_arc(self.name.len())
            + self.pending.heap_bytes()
            + self.consumers.heap_bytes()
            + self.consumer_bytes
    }

    /// What is pending, in the order of ids, without the first `count`.
    pub(super) fn pending_skipping(&self, count: u64) -> impl Iterator<Item = &Pending> {
        self.pending.skipping(count)
    }

    /// The consumers, in the order of names, without the first `count`.
    pub(super) fn consumers_skipping(&self, count: u64) -> impl Iterator<Item = &Consumer> {
        self.consumers.skipping(count)
    }

    pub(super) fn set_consumer(&mut self, name: &[u8], seen: UnixMs, active: Option<UnixMs>) {
        let known = self.consumers.edit(name, |consumer| (consumer.seen, consumer.active) = (seen, active));
        if known.is_none() {
            let consumer = Consumer { name: name.into(), seen, active, pending: Rows::default() };
            self.consumer_bytes += consumer.heap_bytes();
            self.consumers.insert(consumer);
        }
    }

    pub(super) fn delete_consumer(&mut self, name: &[u8]) {
        let Some(consumer) = self.consumers.remove(name) else { return };
        self.consumer_bytes -= consumer.heap_bytes();
        for id in consumer.pending.iter() {
            self.pending.remove(id);
        }
    }

    pub(super) fn deliver(&mut self, name: &[u8], claims: &Claims<'_>) {
        let Some(consumer) = self.consumers.get(name) else { return };
        let owner = consumer.name.clone();
        for claim in claims.iter() {
            let old = self.pending.insert(Pending { claim, owner: owner.clone() });
            if let Some(old) = old.filter(|old| old.owner != owner) {
                self.edit_pending_of(&old.owner, |ids| _ = ids.remove(&claim.id));
            }
        }
        self.edit_pending_of(name, |ids| claims.iter().for_each(|claim| _ = ids.insert(claim.id)));
    }

    pub(super) fn acknowledge(&mut self, ids: &Ids<'_>) {
        for id in ids.iter() {
            if let Some(pending) = self.pending.remove(&id) {
                self.edit_pending_of(&pending.owner, |ids| _ = ids.remove(&id));
            }
        }
    }

    fn edit_pending_of(&mut self, name: &[u8], edit: impl FnOnce(&mut Rows<Id>)) {
        let bytes = &mut self.consumer_bytes;
        self.consumers.edit(name, |consumer| {
            *bytes -= consumer.heap_bytes();
            edit(&mut consumer.pending);
            *bytes += consumer.heap_bytes();
        });
    }
}

impl Consumer {
    /// Bytes of its allocations.
    fn heap_bytes(&self) -> usize {
        allocated_arc(self.name.len()) + self.pending.heap_bytes()
    }
}

/// What an allocation takes that is shared by an Arc, which has two counters before its value.
fn allocated_arc(bytes: usize) -> usize {
    allocated(bytes + 16)
}
