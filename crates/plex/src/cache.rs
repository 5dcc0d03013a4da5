//! The block cache: blocks by file and offset, bounded in bytes, shared by all tables of a database.
//!
//! Eviction is SIEVE (Y. Zhang et al., NSDI 2024): a queue in order of arrival, a *visited* bit that a hit sets, and a
//! hand that walks from old to new, clears bits and evicts the first block without one. A hit moves nothing, and one pass
//! of a scan does not push out what is read again and again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::sstable::Block;

/// Independent parts, each with its own lock.
const PART_COUNT: usize = 16;

/// What a cached block costs beyond its bytes, roughly.
const ENTRY_OVERHEAD: usize = 128;

/// Whether blocks that a look-up did not find are kept, once they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// For reads of users, which may come back.
    Keep,
    /// For what is read once, to be merged or verified: it would push out what users read.
    Pass,
}

/// A block's name: identity of the file, offset in it.
type BlockId = (u64, u64);

/// See the module.
pub(crate) struct BlockCache {
    parts: Vec<Mutex<Part>>,
    part_bytes_max: usize,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl BlockCache {
    /// A cache of at most so many bytes; 0 keeps nothing.
    pub fn new(bytes_max: usize) -> Self {
        let parts = (0..PART_COUNT).map(|_| Mutex::default()).collect();
        Self { parts, part_bytes_max: bytes_max / PART_COUNT, hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    fn part(&self, id: BlockId) -> &Mutex<Part> {
        &self.parts[(mix(id) >> 32) as usize % PART_COUNT]
    }

    pub fn get(&self, id: BlockId) -> Option<Block> {
        let found = self.part(id).lock().get(id);
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    pub fn insert(&self, id: BlockId, block: &Block) {
        if block.len() + ENTRY_OVERHEAD <= self.part_bytes_max {
            self.part(id).lock().insert(id, block, self.part_bytes_max);
        }
    }

    /// Look-ups that found their block, and those that did not.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.lock().bytes).sum()
    }
}

fn mix((identity, offset): BlockId) -> u64 {
    (identity ^ offset.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// Ids are hashed already: identities are random, and [`mix`] spreads the offsets.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("ids are two 64-bit words");
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = mix((self.0, word));
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

#[derive(Default)]
struct Part {
    map: HashMap<BlockId, usize, BuildHasherDefault<IdHasher>>,
    /// Cells of the queue; free ones are listed in `free`.
    cells: Vec<Cell>,
    free: Vec<usize>,
    newest: Option<usize>,
    oldest: Option<usize>,
    hand: Option<usize>,
    bytes: usize,
}

struct Cell {
    id: BlockId,
    block: Option<Block>,
    visited: AtomicBool,
    newer: Option<usize>,
    older: Option<usize>,
}

impl Part {
    fn get(&self, id: BlockId) -> Option<Block> {
        let cell = &self.cells[*self.map.get(&id)?];
        cell.visited.store(true, Ordering::Relaxed);
        cell.block.clone()
    }

    fn insert(&mut self, id: BlockId, block: &Block, bytes_max: usize) {
        if self.map.contains_key(&id) {
            return;
        }
        self.bytes += block.len() + ENTRY_OVERHEAD;
        while self.bytes > bytes_max && self.oldest.is_some() {
            self.evict_one();
        }
        let cell =
            Cell { id, block: Some(block.clone()), visited: AtomicBool::new(false), newer: None, older: self.newest };
        let at = match self.free.pop() {
            Some(at) => {
                self.cells[at] = cell;
                at
            }
            None => {
                self.cells.push(cell);
                self.cells.len() - 1
            }
        };
        match self.newest {
            Some(newest) => self.cells[newest].newer = Some(at),
            None => self.oldest = Some(at),
        }
        self.newest = Some(at);
        self.map.insert(id, at);
    }

    fn evict_one(&mut self) {
        let Some(mut at) = self.hand.or(self.oldest) else { return };
        // Ends: a second round finds all bits cleared.
        while std::mem::take(self.cells[at].visited.get_mut()) {
            let Some(next) = self.cells[at].newer.or(self.oldest) else { return };
            at = next;
        }
        self.hand = self.cells[at].newer;
        self.unlink(at);
    }

    fn unlink(&mut self, at: usize) {
        let (newer, older) = (self.cells[at].newer, self.cells[at].older);
        match newer {
            Some(newer) => self.cells[newer].older = older,
            None => self.newest = older,
        }
        match older {
            Some(older) => self.cells[older].newer = newer,
            None => self.oldest = newer,
        }
        let cell = &mut self.cells[at];
        self.map.remove(&cell.id);
        if let Some(block) = cell.block.take() {
            self.bytes -= block.len() + ENTRY_OVERHEAD;
        }
        self.free.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn block(len: usize) -> Block {
        Block::new(&vec![0; len]).expect("zeroes end in a count of zero restarts")
    }

    /// The bound holds, what is read again stays under a scan, and the books balance.
    #[test]
    fn bounded_and_scan_resistant() {
        let cache = BlockCache::new(16 * 10_000);
        let mut rng = Rng::new(2);
        for offset in 0..8 {
            cache.insert((1, offset), &block(4));
        }
        for offset in 0..5000u64 {
            for hot in 0..8 {
                assert!(cache.get((1, hot)).is_some());
            }
            cache.insert((2, offset), &block(4));
            let _ = cache.get((2, rng.below(5000)));
            assert!(cache.bytes() <= 16 * 10_000);
        }
        for part in &cache.parts {
            let part = part.lock();
            let alive: usize =
                part.cells.iter().filter_map(|c| c.block.as_ref()).map(|b| b.len() + ENTRY_OVERHEAD).sum();
            assert_eq!((alive, part.map.len()), (part.bytes, part.cells.len() - part.free.len()));
        }
    }

    #[test]
    fn a_cache_of_nothing_keeps_nothing() {
        let cache = BlockCache::new(0);
        cache.insert((1, 1), &block(4));
        assert!(cache.get((1, 1)).is_none());
    }
}
