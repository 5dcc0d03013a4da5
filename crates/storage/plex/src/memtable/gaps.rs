//! Stretches of keys of which none has a value, as scans have found them: the head of a queue, of which the deleted
//! keys lie in memory and in tables, and what was deleted key by key.
//!
//! ```text
//!   d d d d d d d d d d d d d | p p p ...     d: deleted, p: put
//!   start                     end             the next scan from the start begins at the end
//! ```
//!
//! L1. A gap with view v in the memtable that is written to says: no key in it has a value that a view from v on sees,
//!     but for what a later memtable has.
//! L2. A scan *claims* a stretch before it walks over it. From then on, a value that is put into the stretch ends it
//!     before that key, whether it is still a claim or a gap. What was there before, the scan sees; a change that is
//!     newer than its view ends the claim as well.
//! L3. The next memtable takes the gaps over, while no writer writes, and no claims.
//! L4. Files that are taken in have values that no memtable ever had. The version that has them comes with a memtable
//!     that knows no gaps.
//!
//! So a scan pays once for each deleted key that it walks over, and no writer waits for scans.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;

use super::Memtable;
use crate::key::Seqno;

/// Gaps of a memtable, and claims, at most: each write looks at all.
const LEN_MAX: usize = 4;

#[derive(Clone, Debug)]
struct Gap {
    key_space: u32,
    /// Included.
    start: Vec<u8>,
    /// Excluded; `None` for all keys that follow.
    end: Option<Vec<u8>>,
    view: Seqno,
    /// The number of the claim that it still is.
    claim: Option<u64>,
}

impl Gap {
    fn has(&self, key_space: u32, key: &[u8]) -> bool {
        self.key_space == key_space && *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct Gaps {
    /// Whether there may be any.
    is_used: AtomicBool,
    list: RwLock<Vec<Gap>>,
    next_claim: AtomicU64,
}

impl Gaps {
    /// A value was put. The caller has added it to the memtable.
    #[inline]
    pub fn note_put(&self, key_space: u32, key: &[u8]) {
        if self.is_used.load(Ordering::Relaxed) {
            self.end_before(key_space, key);
        }
    }

    #[cold]
    fn end_before(&self, key_space: u32, key: &[u8]) {
        if self.list.read().iter().any(|gap| gap.has(key_space, key)) {
            let mut list = self.list.write();
            list.iter_mut().filter(|gap| gap.has(key_space, key)).for_each(|gap| gap.end = Some(key.to_vec()));
            list.retain(|gap| gap.claim.is_some() || gap.end.as_ref() != Some(&gap.start));
        }
    }

    /// Those of the memtable before (L3).
    pub fn take_over(&self, before: &Gaps) {
        let mut list = self.list.write();
        list.extend(before.list.read().iter().filter(|gap| gap.claim.is_none()).cloned());
        self.is_used.store(!list.is_empty(), Ordering::Relaxed);
    }

    /// Where the gap ends that the key is in, for this view.
    pub fn end(&self, key_space: u32, key: &[u8], view: Seqno) -> Option<Option<Vec<u8>>> {
        if !self.is_used.load(Ordering::Relaxed) {
            return None;
        }
        let list = self.list.read();
        let mut gaps = list.iter().filter(|gap| gap.claim.is_none() && gap.view <= view);
        gaps.find(|gap| gap.has(key_space, key)).map(|gap| gap.end.clone())
    }
}

/// A stretch that a scan is about to walk over. It is given up when dropped.
pub(crate) struct Claim {
    memtable: Arc<Memtable>,
    number: u64,
}

impl Claim {
    /// From this key on; `None` if there are too many.
    pub fn begin(memtable: &Arc<Memtable>, key_space: u32, start: &[u8], view: Seqno) -> Option<Self> {
        let gaps = &memtable.gaps;
        let number = gaps.next_claim.fetch_add(1, Ordering::Relaxed);
        // An insertion ends before this, and its entry shows; or it begins after this, and finds the claim.
        memtable.tree.between_insertions(|| {
            let mut list = gaps.list.write();
            if list.iter().filter(|gap| gap.claim.is_some()).count() == LEN_MAX {
                return None;
            }
            list.push(Gap { key_space, start: start.to_vec(), end: None, view, claim: Some(number) });
            gaps.is_used.store(true, Ordering::Relaxed);
            Some(Self { memtable: memtable.clone(), number })
        })
    }

    /// The scan found no value before this key; `None` for the end of all keys.
    pub fn keep(self, end: Option<&[u8]>) {
        let mut list = self.memtable.gaps.list.write();
        let Some(at) = list.iter().position(|gap| gap.claim == Some(self.number)) else { return };
        let mut gap = list.remove(at);
        if let Some(end) = end
            && gap.end.as_ref().is_none_or(|before| *end < **before)
        {
            gap.end = Some(end.to_vec());
        }
        if gap.end.as_ref().is_some_and(|end| *end <= gap.start) {
            return;
        }
        gap.claim = None;
        // One that reaches to the start of this, or over it, becomes part of it.
        list.retain(|other| {
            let is_part = other.claim.is_none() && other.key_space == gap.key_space && {
                other.has(gap.key_space, &gap.start)
                    || other.end.as_ref() == Some(&gap.start)
                    || gap.has(gap.key_space, &other.start)
            };
            if is_part {
                gap.start = std::mem::take(&mut gap.start).min(other.start.clone());
                gap.end = gap.end.take().zip(other.end.clone()).map(|(end, other)| end.max(other));
                gap.view = gap.view.max(other.view);
            }
            !is_part
        });
        if list.iter().filter(|gap| gap.claim.is_none()).count() == LEN_MAX
            && let Some(oldest) = list.iter().position(|gap| gap.claim.is_none())
        {
            list.remove(oldest);
        }
        list.push(gap);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.memtable.gaps.list.write().retain(|gap| gap.claim != Some(self.number));
    }
}
