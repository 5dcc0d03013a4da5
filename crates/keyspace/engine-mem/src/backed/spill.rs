//! Leaves of large collections leave memory alone: a collection may be larger than memory, and is not dropped as a
//! whole while it is in use.
//!
//! Those that have changed become rows just before the cut of a flush, which moves the memory of rows into tables. They
//! do not at any other time: until then, memory would only change its place, and a leaf that changes again would be
//! written twice.

use super::state::Backed;
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

/// Leaves that are rows lose their copies.
const SHED: Plan<'static> = Plan { only_sheds: true, ..STORE };

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
    /// the bytes.
    pub(super) fn shed_leaves(&mut self, key: &Key<'_>, wanted_bytes: usize) -> usize {
        if !self.is_large_tree(key, value::Big::may_have_rows) {
            return 0;
        }
        let Some(backed) = self.backed_mut(key.space) else { return 0 };
        let Some(leaves) = backed.leaves.clone() else { return 0 };
        let last = backed.shed.take_if(|(last, _)| **last == *key.bytes);
        let (mut next, mut bytes) = (Some(last.map_or(0, |(_, from)| from)), 0);
        for _ in 0..LOOKS {
            let Some(here) = next.filter(|_| bytes < wanted_bytes) else { break };
            let Ok(Some(Entry { value: Value::Big(tree), .. })) = self.read(key, false) else { return bytes };
            let (found, after) = tree.look_for_cold(here, &SHED, LOOKS);
            next = after;
            if let Some(Find::Thawed(rank)) = found {
                let before = leaves.kept_bytes();
                self.reform(key, &mut |tree| tree.shed(rank));
                bytes += before.saturating_sub(leaves.kept_bytes());
            }
        }
        if let (Some(Backed { shed, .. }), Some(next)) = (self.backed_mut(key.space), next) {
            *shed = Some((key.bytes.into(), next));
        }
        bytes
    }
}
