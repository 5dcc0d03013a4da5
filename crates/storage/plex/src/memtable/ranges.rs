//! Deleted ranges of a memtable, indexed for readers that see all of them.
//!
//! R1. `newest` says for every key the newest tombstone of all; a new one is newer than all before it, so it replaces
//!     what lies between its ends.
//! R2. A view that does not see the newest tombstone asks the list, newest first.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::key::Seqno;
use crate::range_tombstone::{Cover, RangeTombstone};

/// Of all key spaces.
#[derive(Default)]
pub(super) struct Ranges {
    is_used: AtomicBool,
    spaces: RwLock<HashMap<u32, OfSpace>>,
}

/// See the module.
#[derive(Default)]
struct OfSpace {
    /// In the order of their sequence numbers.
    list: Vec<RangeTombstone>,
    /// Where a piece begins, and the newest tombstone from there to the next piece; 0 for none.
    newest: BTreeMap<Vec<u8>, Seqno>,
    /// The same for iterators, until the next tombstone.
    cover: Mutex<Option<Arc<Cover>>>,
}

impl Ranges {
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// The tombstone is at least as new as all before it.
    pub fn add(&self, key_space: u32, tombstone: RangeTombstone) {
        self.spaces.write().entry(key_space).or_default().add(tombstone);
        self.is_used.store(true, Ordering::Release);
    }

    /// The newest tombstone over the key at or before `view`; 0 if there is none.
    #[cold]
    pub fn covering(&self, key_space: u32, key: &[u8], view: Seqno) -> Seqno {
        self.spaces.read().get(&key_space).map_or(0, |space| space.covering(key, view))
    }

    /// All that the view sees.
    #[cold]
    pub fn cover(&self, key_space: u32, view: Seqno) -> Option<Arc<Cover>> {
        self.spaces.read().get(&key_space).map(|space| space.cover(view))
    }

    /// In the order of their sequence numbers.
    #[cold]
    pub fn list(&self, key_space: u32) -> Vec<RangeTombstone> {
        self.spaces.read().get(&key_space).map_or_else(Vec::new, |space| space.list.clone())
    }

    /// The key spaces that have any.
    pub fn key_spaces(&self) -> Vec<u32> {
        self.spaces.read().keys().copied().collect()
    }
}

impl OfSpace {
    fn add(&mut self, tombstone: RangeTombstone) {
        let RangeTombstone { start, end, seqno } = &tombstone;
        if start < end {
            let before = self.newest.range::<[u8], _>((Bound::Unbounded, Bound::Included(&end[..]))).next_back();
            let behind = before.map_or(0, |(_, seqno)| *seqno);
            let replaced = self.newest.range::<[u8], _>((Bound::Included(&start[..]), Bound::Included(&end[..])));
            let replaced: Vec<Vec<u8>> = replaced.map(|(start, _)| start.clone()).collect();
            for start in replaced {
                self.newest.remove(&start);
            }
            self.newest.insert(start.clone(), *seqno);
            self.newest.insert(end.clone(), behind);
        }
        self.list.push(tombstone);
        *self.cover.get_mut() = None;
    }

    fn sees_all(&self, view: Seqno) -> bool {
        self.list.last().is_none_or(|last| last.seqno <= view)
    }

    fn covering(&self, key: &[u8], view: Seqno) -> Seqno {
        if self.sees_all(view) {
            let piece = self.newest.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back();
            return piece.map_or(0, |(_, seqno)| *seqno);
        }
        let seen = self.list.partition_point(|t| t.seqno <= view);
        self.list[..seen].iter().rfind(|t| t.covers(key)).map_or(0, |t| t.seqno)
    }

    fn cover(&self, view: Seqno) -> Arc<Cover> {
        if !self.sees_all(view) {
            return Arc::new(Cover::new(&self.list, view));
        }
        let pieces = || self.newest.iter().map(|(start, seqno)| (start.clone(), *seqno));
        self.cover.lock().get_or_insert_with(|| Arc::new(Cover::of_pieces(pieces()))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// The index agrees with asking every tombstone, for every view, after each of many.
    #[test]
    fn the_index_agrees_with_the_list() {
        let mut rng = Rng::new(4);
        for _ in 0..100 {
            let ranges = Ranges::default();
            let mut all: Vec<RangeTombstone> = Vec::new();
            let mut seqno = 0;
            for _ in 0..rng.below(14) {
                // Changes of one batch may share a number.
                seqno += rng.below(3);
                let start = rng.below(30) as u8;
                let end = start + rng.below(9) as u8;
                let tombstone = RangeTombstone { start: vec![start], end: vec![end], seqno };
                all.push(tombstone.clone());
                ranges.add(7, tombstone);
                for view in seqno.saturating_sub(4)..=seqno + 1 {
                    let cover = ranges.cover(7, view).unwrap();
                    for key in 0..40u8 {
                        let over = all.iter().filter(|t| t.seqno <= view && t.covers(&[key]));
                        let newest = over.map(|t| t.seqno).max().unwrap_or(0);
                        assert_eq!(ranges.covering(7, &[key], view), newest, "{all:?}");
                        assert_eq!(cover.at(&[key]), newest, "{all:?}");
                    }
                }
            }
            assert_eq!(ranges.list(7), all);
            assert_eq!((ranges.covering(8, &[3], 99), ranges.list(8).len()), (0, 0));
        }
    }
}
