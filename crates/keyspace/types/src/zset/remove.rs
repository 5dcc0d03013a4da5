//! Removing members: by name, by range, from an end.

use super::{Entry, Range, View, change, read_to_edit};
use crate::TypeError;
use crate::kept::is_same_tree;
use engine::{Effect, Key, Keyspace, NotifyClass, SharedBig, SharedBytes};
use std::collections::HashSet;
use std::ops;
use value::zset::{Change, Removal};
use value::{Big, Stored};

/// An end of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The lowest scores.
    Min,
    /// The highest scores.
    Max,
}

/// Removes members and gives how many were there.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn remove<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    members: impl Iterator<Item = &'a [u8]> + Clone,
) -> Result<u64, TypeError> {
    let Some(view) = read_to_edit(ks, key)? else { return Ok(0) };
    let are_several = members.clone().nth(1).is_some();
    let mut seen = HashSet::new();
    let is_first_time = |member: &&'a [u8]| !are_several || seen.insert(*member);
    let removed: Vec<&[u8]> = members.filter(is_first_time).filter(|member| view.score(member).is_some()).collect();
    let (count, len) = (removed.len() as u64, view.len());
    if count > 0 {
        change(ks, key, "zrem", count == len, |changes| {
            removed.iter().for_each(|member| Change::Remove { member }.put(changes));
        });
    }
    Ok(count)
}

/// Removes a range and gives how many members it had.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn remove_range(ks: &mut dyn Keyspace, key: &Key<'_>, range: &Range<'_>) -> Result<u64, TypeError> {
    let Some(view) = read_to_edit(ks, key)? else { return Ok(0) };
    let ranks = range.ranks(&view, false);
    let (start, count) = (ranks.start, ranks.end.saturating_sub(ranks.start));
    if count > 0 {
        let is_last = count == view.len();
        change(ks, key, range.event(), is_last, |changes| Change::RemoveRange { start, count }.put(changes));
    }
    Ok(count)
}

/// Removes these ranks, by putting in the place of the set what was made of it beforehand.
pub fn remove_ranks_made(ks: &mut dyn Keyspace, key: &Key<'_>, made: Removing, event: &'static str) {
    let Removing { ranks, removal, .. } = made;
    let mut changes = Vec::new();
    Change::RemoveRange { start: ranks.start, count: ranks.end.saturating_sub(ranks.start) }.put(&mut changes);
    let (tree, changes) = (SharedBig::new(Big::Zset(removal.take())), SharedBytes::new(changes));
    ks.apply(&Effect::Replace { key: *key, tree: &tree, changes: &changes });
    ks.notify(NotifyClass::ZSET, event, key);
}

/// Removes the key, a big set, as the taking of its last members does.
pub fn remove_all(ks: &mut dyn Keyspace, key: &Key<'_>, event: &'static str) {
    ks.apply(&Effect::Delete { key: *key });
    ks.notify(NotifyClass::ZSET, event, key);
    ks.notify(NotifyClass::GENERIC, "del", key);
}

/// Fewer members than this are removed at once.
const REMOVED_MIN: u64 = 64;

/// Members gone through in a step.
const STEP: u64 = 2;

/// A long range on its way out of a set.
pub struct Removing {
    from: SharedBig,
    ranks: ops::Range<u64>,
    removal: Removal,
}

impl Removing {
    /// Begins, unless there is so little to do that it is better done at once: few members go, or all of them.
    pub fn begin(tree: &SharedBig, ranks: ops::Range<u64>) -> Option<Self> {
        let View::Big(big) = View::of(Stored::Big(tree)) else { return None };
        let count = ranks.end.saturating_sub(ranks.start);
        let is_worth_it = count >= REMOVED_MIN && count < View::Big(big).len();
        is_worth_it.then(|| Self { from: tree.clone(), removal: Removal::begin(big, ranks.start, count), ranks })
    }

    /// Whether it is made of this version of the set, without these ranks.
    pub fn is_of(&self, tree: &SharedBig, ranks: &ops::Range<u64>) -> bool {
        is_same_tree(&self.from, tree) && self.ranks == *ranks
    }

    /// Runs for at most a tenth of a millisecond or so. True while there is more to do.
    pub fn step(&mut self) -> bool {
        self.removal.step(STEP)
    }

    /// Bytes that it may keep.
    pub fn held_bytes(&self) -> usize {
        self.removal.memory_bytes()
    }
}

/// Removes up to `count` members from an end and shows them before, the outermost first, after their number. False,
/// with nothing shown, when the key is absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn pop(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    end: End,
    count: u64,
    show: impl FnOnce(u64, &mut dyn Iterator<Item = Entry<'_>>),
) -> Result<bool, TypeError> {
    let Some(view) = read_to_edit(ks, key)? else { return Ok(false) };
    let len = view.len();
    let count = count.min(len);
    let (start, event) = match end {
        End::Min => (0, "zpopmin"),
        End::Max => (len.saturating_sub(count), "zpopmax"),
    };
    match end {
        End::Min => show(count, &mut view.forward(0).take(count as usize)),
        End::Max => show(count, &mut view.backward(u64::MAX).take(count as usize)),
    }
    if count > 0 {
        change(ks, key, event, count == len, |changes| Change::RemoveRange { start, count }.put(changes));
    }
    Ok(true)
}
