//! Leaves of large collections leave memory alone: a collection may be larger than memory, and is not dropped as a
//! whole while it is in use.

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

/// Leaves looked at in one step.
const LOOKS: usize = 1024;

const PLAN: Plan<'static> = Plan {
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

impl MemEngine {
    /// Has leaves of a large collection leave memory, about `wanted_bytes` bytes: those that have changed since a flush
    /// become rows, and others lose their copies. Returns the bytes that left.
    pub(super) fn spill(&mut self, key: &Key<'_>, wanted_bytes: usize) -> usize {
        self.spill_leaves(key, wanted_bytes, true)
    }

    /// Before the running flush is given its next keys: changed leaves of large collections become rows, so that the
    /// rows of the keys have no elements. If memory is not `short`, only of those of which some are rows already.
    pub fn spill_before_walk(&mut self, id: KeyspaceId, budget: usize, is_short: bool) {
        let Some(Backed { flush: Some(flush), .. }) = self.backed(id).filter(|_| is_short || self.has_leaf_rows) else {
            return;
        };
        let end = flush.keys.len().min(flush.walked.saturating_add(budget));
        let keys = flush.keys[flush.walked..end].to_vec();
        for key in &keys {
            let key = self.key_of(id, key);
            if let Ok(Some(Entry { value: Value::Big(tree), .. })) = self.read(&key, false)
                && (is_short || tree.may_have_rows())
            {
                self.spill_leaves(&key, usize::MAX, false);
            }
        }
    }

    fn spill_leaves(&mut self, key: &Key<'_>, wanted_bytes: usize, sheds: bool) -> usize {
        let Some(backed) = self.backed_mut(key.space) else { return 0 };
        let Some(leaves) = backed.leaves.clone() else { return 0 };
        let is_changed = backed.is_changed(backed.state(key.bytes));
        let last = backed.spilled.take_if(|(last, _)| sheds && **last == *key.bytes);
        let from = last.map_or(0, |(_, from)| from);
        let (mut next, mut bytes, mut row) = (Some(from), 0, Vec::new());
        for _ in 0..LOOKS {
            let Some(here) = next.filter(|_| bytes < wanted_bytes) else { break };
            let Ok(Some(Entry { value: Value::Big(tree), kind, .. })) = self.read(key, false) else { return bytes };
            // A clean one that is whole leaves as a whole.
            if tree.content_bytes() < FROM_BYTES || !is_changed && !tree.may_have_rows() || kind == Type::Stream {
                return bytes;
            }
            let (found, after) = tree.look_for_cold(here, &PLAN, LOOKS);
            next = after;
            match found {
                Some(Find::Run(run, _)) if is_changed => {
                    let Some(count) = run.bytes(&mut row) else { continue };
                    let Some(cold) = leaves.put(&row) else { return bytes };
                    let mut is_stored = false;
                    self.reform(key, &mut |tree| is_stored = tree.store_cold(&run, cold.clone(), count));
                    bytes += if is_stored { row.len() } else { 0 };
                }
                Some(Find::Thawed(rank)) if sheds => {
                    let before = leaves.kept_bytes();
                    self.reform(key, &mut |tree| tree.shed(rank));
                    bytes += before.saturating_sub(leaves.kept_bytes());
                }
                Some(_) | None => {}
            }
        }
        if let (Some(backed), Some(next)) = (self.backed_mut(key.space), next) {
            backed.spilled = Some((key.bytes.into(), next));
        }
        bytes
    }
}
