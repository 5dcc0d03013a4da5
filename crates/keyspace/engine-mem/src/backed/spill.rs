//! Leaves of large collections leave memory alone: a collection may be larger than memory, and is not dropped as a
//! whole while it is in use.
//!
//! Those that have changed become rows just before the cut of a flush, which moves the memory of rows into tables. They
//! do not at any other time: until then, memory would only change its place, and a leaf that changes again would be
//! written twice.

use super::state::Round;
use crate::mem_engine::MemEngine;
use base::KeyspaceId;
use engine::{Engine, Entry, Key, Type, Value};
use value::Find;
use value::tree::Plan;

/// Collections of fewer bytes leave memory whole.
const FROM_BYTES: usize = 256 << 10;

/// Neighbouring leaves become one row up to this many bytes.
const ROW_BYTES: usize = 8 << 10;

/// Leaves and keys looked at in one step.
const LOOKS: usize = 256;

/// Leaves become rows.
const STORE: Plan<'static> = Plan {
    age: 0,
    bytes: ROW_BYTES,
    bytes_max: usize::MAX,
    retries: true,
    compresses: true,
    // Times of fields are known only in memory.
    takes_all: false,
    only_sheds: false,
    is_other: &|_| false,
};

/// Leaves that are rows lose their copies, those first that were not used since the last look at them.
const SHED: Plan<'static> = Plan { age: 2, compresses: false, ..STORE };

/// Leaves between two looks at how many were found.
const LEAVES_AT_ONCE: usize = 32;

/// Rounds over a tree that find no copy before it leaves memory whole: the first may begin in the middle, and the next
/// may spare all.
const ROUNDS_IN_VAIN: u8 = 3;

/// Trees whose rounds are remembered.
const ROUNDS_MAX: usize = 1024;

/// How far a pass over changed keys has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillPlace {
    /// Keys that are done.
    keys: usize,
    /// Elements that are done of the next one.
    elements: u64,
}

impl MemEngine {
    /// Before the cut of a flush: has changed leaves of large collections become rows, so that what the flush is given
    /// has addresses in their place. If memory is not short, only of collections of which some are rows already. Does
    /// a step, and returns where to continue; `None` at the end.
    pub fn spill_changed(&mut self, id: KeyspaceId, mut place: SpillPlace, is_short: bool) -> Option<SpillPlace> {
        if !is_short && !self.has_leaf_rows {
            return None;
        }
        let mut looks = LOOKS;
        while looks > 0 {
            let key = self.backed(id)?.dirty.get(place.keys)?;
            let is_large = |tree: &value::Big| is_short || tree.may_have_rows();
            if !self.is_large_tree(&self.key_of(id, key), is_large) {
                looks -= 1;
                place = SpillPlace { keys: place.keys + 1, elements: 0 };
                continue;
            }
            let key = key.clone();
            place = match self.store_leaves(&self.key_of(id, &key), place.elements, &mut looks) {
                Some(elements) => SpillPlace { elements, ..place },
                None => SpillPlace { keys: place.keys + 1, elements: 0 },
            };
        }
        Some(place)
    }

    /// Whether a key has a collection whose leaves leave memory alone, for which `is_wanted` says so too.
    fn is_large_tree(&self, key: &Key<'_>, is_wanted: impl Fn(&value::Big) -> bool) -> bool {
        let Some(found) = self.find_apart(key) else { return false };
        let Entry { value: Value::Big(tree), kind, .. } = self.entries.entry(found.handle) else { return false };
        kind != Type::Stream && tree.content_bytes() >= FROM_BYTES && is_wanted(tree)
    }

    /// Has leaves of a changed tree become rows, from this element on. Returns the element where to continue.
    fn store_leaves(&mut self, key: &Key<'_>, from: u64, looks: &mut usize) -> Option<u64> {
        let backed = self.backed(key.space)?;
        let leaves = backed.leaves.clone()?;
        if !backed.is_changed(backed.state(key.bytes)) {
            return None;
        }
        let (mut next, mut row) = (Some(from), Vec::new());
        while *looks > 0 {
            let here = next?;
            let Ok(Some(Entry { value: Value::Big(tree), .. })) = self.read(key, false) else { return None };
            let (found, after) = tree.look_for_cold(here, &STORE, LOOKS);
            *looks -= 1;
            next = after;
            if let Some(Find::Run(run, _)) = found
                && let Some(count) = run.bytes(&mut row)
            {
                let cold = leaves.put(&row)?;
                self.reform(key, &mut |tree| _ = tree.store_cold(&run, cold.clone(), count));
            }
        }
        next
    }

    /// Has leaves of a large collection that are rows lose their copies in memory, about `wanted_bytes` bytes. Returns
    /// the bytes; `None` when there are none, and for all other keys: such leave memory whole.
    pub(super) fn shed_leaves(&mut self, key: &Key<'_>, wanted_bytes: usize) -> Option<usize> {
        if !self.is_large_tree(key, value::Big::may_have_rows) {
            return None;
        }
        let backed = self.backed_mut(key.space)?;
        let leaves = backed.leaves.clone()?;
        let (mut round, mut bytes) = (backed.rounds_of_trees.remove(key.bytes).unwrap_or_default(), 0);
        for _ in 0..LOOKS {
            if bytes >= wanted_bytes || round.in_vain >= ROUNDS_IN_VAIN {
                break;
            }
            let Ok(Some(Entry { value: Value::Big(tree), .. })) = self.read(key, false) else { return None };
            let (found, next) = tree.look_for_cold(round.from, &SHED, LEAVES_AT_ONCE);
            round = Round { from: next.unwrap_or(0), in_vain: round.in_vain + u8::from(next.is_none()) };
            if let Some(Find::Thawed(rank)) = found {
                let before = leaves.kept_bytes();
                self.reform(key, &mut |tree| tree.shed(rank));
                let shed = before.saturating_sub(leaves.kept_bytes());
                if shed > 0 {
                    (bytes, round.in_vain) = (bytes + shed, 0);
                }
            }
        }
        if round.in_vain >= ROUNDS_IN_VAIN {
            return None;
        }
        if let Some(backed) = self.backed_mut(key.space) {
            if backed.rounds_of_trees.len() >= ROUNDS_MAX {
                backed.rounds_of_trees.clear();
            }
            backed.rounds_of_trees.insert(key.bytes.into(), round);
        }
        Some(bytes)
    }
}
