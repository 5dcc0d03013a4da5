//! What a backed keyspace keeps in addition to its table.

use base::UnixMs;
use engine::{Counts, Key, LeafStore, PackedFields, RowSink, Rows, SharedBig, Ticket};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use value::absent;
use value::cold::Keeper;

/// Changed keys in order (O1 of [`super::order`]).
pub type Order = BTreeSet<Box<[u8]>>;

/// How far a tree was looked at for copies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// The element where that continues.
    pub(super) from: u64,
    /// Ends of the tree that were reached since a copy went.
    pub(super) in_vain: u8,
}

/// What a backed keyspace keeps in addition to its table.
pub struct Backed {
    pub(super) rows: Arc<dyn Rows>,
    /// Reads compressed leaves of trees.
    pub(super) keeper: Arc<dyn Keeper>,
    /// Where leaves of trees go that leave memory, if they may.
    pub(super) leaves: Option<Arc<dyn LeafStore>>,
    /// How far large collections were looked at for copies of leaves.
    pub(super) rounds_of_trees: HashMap<Box<[u8]>, Round>,
    /// Keys that are not simply clean or unknown.
    pub(super) keys: HashMap<Box<[u8]>, State>,
    /// The changed ones in order, where the keyspace keeps an order.
    pub(super) order: Option<Order>,
    /// How many of them a command wants.
    pub(super) held: usize,
    pub(super) away: Counts,
    /// The epoch of what changes now; the first is 1.
    pub(super) epoch: u32,
    /// The last epoch whose changes are stored as rows.
    pub(super) installed: u32,
    /// The epoch in which the keyspace was last cleared: until that is installed, what the rows hold is void.
    pub(super) cleared: u32,
    /// The epoch of the last write to an unknown key that the rows may have: until that is installed, counts are
    /// guessed.
    pub(super) guessed: u32,
    /// Keys changed since the last cut, and again after a flush that failed.
    pub(super) dirty: Vec<Box<[u8]>>,
    pub(super) flush: Option<Flush>,
    /// Keys of installed flushes, whose states may go.
    pub(super) settling: Vec<Box<[u8]>>,
    /// Counts entries that came into the table, from 1 on: as long as none comes, a walk over rows need not visit
    /// those in the table.
    pub(super) loads: u64,
    /// Where dropping continues.
    pub(super) hand: u64,
    /// When the hand began its round, and the one before.
    pub(super) rounds: [UnixMs; 2],
}

/// What is known of a key.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct State {
    /// How many commands want the row.
    pub(super) wanted: u32,
    /// The read that is under way.
    pub(super) ticket: Option<Ticket>,
    /// There is no such row. Known while it is wanted.
    pub(super) is_absent: bool,
    /// The epoch of the last change; 0 for none.
    pub(super) changed: u32,
    /// The epoch of the last flush that was given the key.
    pub(super) given: u32,
}

/// A flush between its cut and its end.
pub(super) struct Flush {
    pub(super) sink: Box<dyn RowSink>,
    pub(super) epoch: u32,
    pub(super) keys: Vec<Box<[u8]>>,
    /// How many of them were walked.
    pub(super) walked: usize,
    /// The entries at the cut.
    pub(super) counts: Counts,
    /// The keyspace was cleared since the cut.
    pub(super) is_cleared: bool,
    /// That was before all keys were walked, so the sink lacks some.
    pub(super) is_void: bool,
}

/// An entry that is shown from its row.
#[derive(Default)]
pub struct Shown {
    pub(super) key: Vec<u8>,
    pub(super) row: Vec<u8>,
    pub(super) tree: Option<SharedBig>,
    pub(super) fields: PackedFields,
}

impl State {
    /// Whether an entry stays in memory, changed or not: a command wants it, or it is a hash with times of fields.
    /// These are known only in memory.
    pub(super) fn stays(&self, entry: Counts) -> bool {
        self.wanted > 0 || entry.timed > 0
    }
}

impl Backed {
    pub(super) fn new(rows: Arc<dyn Rows>, away: Counts, keeper: Arc<dyn Keeper>) -> Self {
        let leaves = rows.leaves();
        let keeper = match &leaves {
            Some(leaves) => absent::both(keeper, leaves.keeper()),
            None => keeper,
        };
        Self {
            rows,
            keeper,
            leaves,
            rounds_of_trees: HashMap::new(),
            keys: HashMap::new(),
            order: None,
            held: 0,
            away,
            epoch: 1,
            installed: 0,
            cleared: 0,
            guessed: 0,
            dirty: Vec::new(),
            flush: None,
            settling: Vec::new(),
            loads: 1,
            hand: 0,
            rounds: [UnixMs::MIN; 2],
        }
    }

    pub(super) fn state(&self, key: &[u8]) -> State {
        self.keys.get(key).copied().unwrap_or_default()
    }

    pub(super) fn is_changed(&self, state: State) -> bool {
        state.changed > self.installed
    }

    /// Whether rows may hold the key, which is not in the table.
    pub(super) fn may_be_stored(&self, key: &Key<'_>) -> bool {
        let state = self.state(key.bytes);
        let is_known = self.is_changed(state) || state.is_absent || self.cleared > self.installed;
        !is_known && self.rows.may_have(key)
    }

    /// How many keys a flush has to write, those of one that runs among them.
    pub(super) fn changed_len(&self) -> usize {
        self.dirty.len() + self.flush.as_ref().map_or(0, |flush| flush.keys.len())
    }

    /// These keys.
    pub(super) fn changed_keys(&self) -> impl Iterator<Item = &[u8]> {
        let flushing = self.flush.iter().flat_map(|flush| &flush.keys);
        self.dirty.iter().chain(flushing).map(|key| &**key)
    }

    /// The keys that a command wants.
    pub(super) fn held_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().filter(|(_, state)| state.wanted > 0).map(|(key, _)| &**key)
    }

    /// Forgets the state of a key of which nothing is known any more.
    pub(super) fn tidy(&mut self, key: &[u8]) {
        if let Some(state) = self.keys.get_mut(key) {
            if state.changed <= self.installed {
                if let Some(order) = self.order.as_mut().filter(|_| state.changed > 0) {
                    order.remove(key);
                }
                (state.changed, state.given) = (0, 0);
            }
            state.is_absent &= state.wanted > 0;
            if *state == State::default() {
                self.keys.remove(key);
            }
        }
    }
}
