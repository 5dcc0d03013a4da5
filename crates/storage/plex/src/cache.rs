//! The block cache: bounded in bytes, shared by all tables of a database. Parts of indexes and of filters are kept in
//! it like blocks of data. Whole filters and indexes and sketches stay with their tables and are charged to it: blocks
//! get what these leave, and a quarter of the cache in any case.
//!
//! ```text
//!   table: place of block 0, 1, 2 ... --> cell: name, block, visited      part 0: cells 0 .. n, hand
//!                                                                         part 1: cells n .. 2n, hand
//! ```
//!
//! A reader of a block keeps its [`Place`], so a hit needs no search: it locks one cell, for reading, and moves
//! nothing. A place may be out of date, and the cell then has another name.
//!
//! Eviction is by CLOCK: a hit sets the cell's *visited* bit, and a hand that circles over the cells of a part clears
//! bits and takes the first cell without one. Blocks enter without the bit, so one pass of a scan does not evict blocks
//! that are read again and again. Once there is no room, only one in a few of the missing blocks is admitted. To copy a
//! block into memory that was not touched for long costs more than to read it from the page cache, and a block that is
//! read often is still admitted soon. Where a quarter of the blocks fits and all are read alike, a get takes a sixth
//! longer if each is admitted, and no less time if fewer than one in four are. (With q-LRU, as this is called for
//! lists, a smaller share keeps more of what is popular: Garetto, Leonardi and Martina, "A Unified Approach to the
//! Performance Analysis of Caching Systems", 2016.)

mod place;

pub(crate) use place::Place;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

use crate::open_files::OpenFiles;
use crate::prefetch::prefetch_item;
use crate::sstable::{Block, Blocks};

/// Independent parts, each with its own hand.
const PART_COUNT: usize = 16;

/// Cells that are made together, when the hand first comes to them.
const CHUNK_CELLS: usize = 64;

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

/// Memory that tables keep reduces the room for blocks, but leaves them this share: one byte in this many.
const BLOCKS_SHARE: usize = 4;

/// Which of the blocks that were missing are kept where there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admit {
    /// Each: it is expensive to read again.
    All,
    /// One in [`ADMIT_ONE_IN`].
    Some,
}

/// See [`Admit`].
const ADMIT_ONE_IN: u64 = 4;

/// A block's name: number of the table, number in it.
type BlockId = (u64, u64);

/// See the module.
pub(crate) struct BlockCache {
    /// Descriptors that tables have, which are a cache as well.
    pub open_files: OpenFiles,
    /// How often tables had scans for which a merge may pay.
    pub scan_signals: AtomicU64,
    /// Tables whose ends could not be read.
    pub damaged_tables: AtomicU64,
    chunks: Box<[OnceLock<Box<[Cell]>>]>,
    /// Cells of a part.
    part_cells: usize,
    parts: Vec<Mutex<Part>>,
    bytes_max: usize,
    /// What open tables keep in memory for good: whole filters and indexes, sketches.
    charged: AtomicUsize,
    /// Something had to go for what came last, and nothing was forgotten since.
    is_full: AtomicBool,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// What is kept. A clone shares it.
#[derive(Clone, Debug)]
pub(crate) enum Cached {
    /// A block of data, or a partition of a filter.
    Block(Block),
    /// A part of an index.
    Index(Arc<Blocks>),
}

impl Cached {
    pub fn block(self) -> Option<Block> {
        match self {
            Self::Block(block) => Some(block),
            Self::Index(_) => None,
        }
    }

    pub fn as_block(&self) -> Option<&Block> {
        match self {
            Self::Block(block) => Some(block),
            Self::Index(_) => None,
        }
    }

    pub fn index(self) -> Option<Arc<Blocks>> {
        match self {
            Self::Index(blocks) => Some(blocks),
            Self::Block(_) => None,
        }
    }

    /// Bytes it takes.
    fn bytes(&self) -> usize {
        ENTRY_OVERHEAD
            + match self {
                Self::Block(block) => block.len(),
                Self::Index(blocks) => blocks.bytes(),
            }
    }
}

/// A hit touches one cache line in addition to the block.
#[derive(Default)]
#[repr(align(64))]
struct Cell {
    content: RwLock<Option<(BlockId, Cached)>>,
    visited: AtomicBool,
}

const _: () = assert!(size_of::<Cell>() == 64);

/// Cells are counted from the part's first on.
#[derive(Default)]
struct Part {
    /// The cell that is looked at next, when something has to go.
    hand: usize,
    bytes: usize,
    /// How many cells ever had a block, and which of them have none.
    used: usize,
    free: Vec<usize>,
}

impl Part {
    fn take_free(&mut self, cells: usize) -> Option<usize> {
        if let Some(free) = self.free.pop() {
            return Some(free);
        }
        let is_left = self.used < cells;
        self.used += usize::from(is_left);
        is_left.then(|| self.used - 1)
    }

    fn give_free(&mut self, cell: usize, bytes: usize) {
        self.free.push(cell);
        self.bytes -= bytes;
    }
}

impl BlockCache {
    /// The same with at most this many files of tables open.
    pub fn with_open_files(self, max: usize) -> Self {
        Self { open_files: OpenFiles::new(max), ..self }
    }

    /// A cache of at most `bytes_max`, for blocks of about `block_bytes`; 0 keeps nothing.
    pub fn new(bytes_max: usize, block_bytes: usize) -> Self {
        let part_cells = bytes_max / PART_COUNT / block_bytes.saturating_add(ENTRY_OVERHEAD);
        let chunk_count = (PART_COUNT * part_cells).div_ceil(CHUNK_CELLS);
        Self {
            open_files: OpenFiles::new(usize::MAX),
            scan_signals: AtomicU64::new(0),
            damaged_tables: AtomicU64::new(0),
            chunks: (0..chunk_count).map(|_| OnceLock::new()).collect(),
            part_cells,
            parts: (0..PART_COUNT).map(|_| Mutex::default()).collect(),
            bytes_max,
            charged: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Asks memory for the cell at this place, which [`get`](Self::get) looks at first.
    pub fn prefetch(&self, place: &Place) {
        let at = place.cell();
        if let Some(chunk) = self.chunks.get(at / CHUNK_CELLS).and_then(OnceLock::get) {
            prefetch_item(chunk, at % CHUNK_CELLS);
        }
    }

    /// The block of this name, if its place is right.
    pub fn get(&self, place: &Place, id: BlockId) -> Option<Cached> {
        self.with(place, id, Cached::clone)
    }

    /// What `look` says of it: without a hold on it, which is memory of its own. What is looked at stays, so it should
    /// be short.
    pub fn with<T>(&self, place: &Place, id: BlockId, look: impl FnOnce(&Cached) -> T) -> Option<T> {
        let at = place.cell();
        let chunk = self.chunks.get(at / CHUNK_CELLS).and_then(OnceLock::get);
        let found = chunk.and_then(|chunk| {
            let cell = &chunk[at % CHUNK_CELLS];
            let content = cell.content.read();
            let (_, cached) = content.as_ref().filter(|(name, _)| *name == id)?;
            if !cell.visited.load(Ordering::Relaxed) {
                cell.visited.store(true, Ordering::Relaxed);
            }
            Some(look(cached))
        });
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Keeps a block that was not found, if it is admitted. Two readers that missed it at once may both keep it; one of
    /// the cells ages.
    pub fn insert(&self, place: &Place, id: BlockId, cached: &Cached, admit: Admit) {
        let bytes = cached.bytes();
        let part_bytes_max = self.part_bytes_max();
        if bytes > part_bytes_max || self.part_cells == 0 || !self.admits(id, admit) {
            return;
        }
        let number = (mix(id) >> 32) as usize % PART_COUNT;
        // The block evicted last is dropped after the unlock.
        let (mut gone, mut is_full) = (None, false);
        let mut part = self.parts[number].lock();
        // Ends: a second round finds all bits cleared, and an empty part has room.
        let cell = loop {
            if part.bytes + bytes <= part_bytes_max
                && let Some(free) = part.take_free(self.part_cells)
            {
                break number * self.part_cells + free;
            }
            is_full = true;
            let at = part.hand;
            part.hand = (part.hand + 1) % part.used.max(1);
            let cell = self.cell(number * self.part_cells + at);
            // Do not wait for a block that a reader holds.
            if !cell.visited.swap(false, Ordering::Relaxed)
                && let Some((_, old)) = cell.content.try_write().and_then(|mut content| content.take())
            {
                part.give_free(at, old.bytes());
                gone = Some(old);
            }
        };
        part.bytes += bytes;
        *self.cell(cell).content.write() = Some((id, cached.clone()));
        place.set(cell);
        self.is_full.store(is_full, Ordering::Relaxed);
        drop(part);
        drop(gone);
    }

    /// Most bytes of blocks in a part, after what is charged.
    fn part_bytes_max(&self) -> usize {
        let left = self.bytes_max.saturating_sub(self.charged.load(Ordering::Relaxed));
        left.max(self.bytes_max / BLOCKS_SHARE) / PART_COUNT
    }

    /// Takes room for what a table keeps in memory. Blocks that are too many by now go when the next ones come.
    pub fn charge(&self, bytes: u64) {
        self.charged.fetch_add(bytes as usize, Ordering::Relaxed);
    }

    /// Gives back the room of a table that closes.
    pub fn discharge(&self, bytes: u64) {
        self.charged.fetch_sub(bytes as usize, Ordering::Relaxed);
    }

    fn admits(&self, id: BlockId, admit: Admit) -> bool {
        // By the number of misses so far, stirred so that no rhythm of reads meets that of admissions.
        let draw = || mix((id.0, self.misses.load(Ordering::Relaxed))) >> 32;
        admit == Admit::All || !self.is_full.load(Ordering::Relaxed) || draw().is_multiple_of(ADMIT_ONE_IN)
    }

    /// Drops a block that no reader will ask for again, if its place is right.
    pub fn forget(&self, place: &Place, id: BlockId) {
        let at = place.cell();
        let Some(chunk) = self.chunks.get(at / CHUNK_CELLS).and_then(OnceLock::get) else { return };
        let cell = &chunk[at % CHUNK_CELLS];
        let mut part = self.parts[at / self.part_cells].lock();
        let gone = cell.content.write().take_if(|(name, _)| *name == id);
        if let Some((_, gone)) = &gone {
            cell.visited.store(false, Ordering::Relaxed);
            part.give_free(at % self.part_cells, gone.bytes());
            self.is_full.store(false, Ordering::Relaxed);
        }
        drop(part);
    }

    fn cell(&self, at: usize) -> &Cell {
        let chunk = &self.chunks[at / CHUNK_CELLS];
        &chunk.get_or_init(|| (0..CHUNK_CELLS).map(|_| Cell::default()).collect())[at % CHUNK_CELLS]
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

fn mix((table, number): BlockId) -> u64 {
    (table ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// One restart point at 0, after `len` zeroes.
    fn block(len: usize) -> Cached {
        let mut bytes = vec![0; len + 8];
        bytes[len + 4] = 1;
        Cached::Block(Block::new(&bytes).expect("it has a restart point, and bytes for it to lead to"))
    }

    /// The bound holds, what is read again stays under a scan, and the books balance.
    #[test]
    fn bounded_and_scan_resistant() {
        let cache = BlockCache::new(16 * 10_000, 4);
        let places: Vec<Place> = (0..5008).map(|_| Place::new()).collect();
        let mut rng = Rng::new(2);
        for hot in 0..8 {
            cache.insert(&places[hot as usize], (1, hot), &block(4), Admit::All);
        }
        for number in 8..5008 {
            for hot in 0..8 {
                assert!(cache.get(&places[hot as usize], (1, hot)).is_some());
            }
            cache.insert(&places[number as usize], (2, number), &block(4 + rng.below(120) as usize), Admit::All);
            let other = rng.below(5000) + 8;
            let _ = cache.get(&places[other as usize], (2, other));
            assert!(cache.bytes() <= 16 * 10_000);
        }
        let cells = cache.chunks.iter().filter_map(OnceLock::get).flatten();
        let blocks = cells.filter_map(|cell| cell.content.read().as_ref().map(|(_, cached)| cached.bytes()));
        assert_eq!(blocks.sum::<usize>(), cache.bytes());
    }

    /// Another block's place, or one that was taken since, gives nothing.
    #[test]
    fn places_may_be_out_of_date() {
        let cache = BlockCache::new(16 * 1000, 100);
        let place = Place::new();
        cache.insert(&place, (1, 1), &block(4), Admit::All);
        assert!(cache.get(&place, (1, 1)).is_some() && cache.get(&place, (1, 2)).is_none());
        for number in 2..500 {
            cache.insert(&Place::new(), (1, number), &block(4), Admit::All);
        }
        assert!(cache.get(&place, (1, 1)).is_none());
    }

    /// A full cache takes in one block in a few, also one that is missed again and again, and what was forgotten makes
    /// room for all.
    #[test]
    fn admission_and_oblivion() {
        let cache = BlockCache::new(16 * 10_000, 4);
        let places: Vec<Place> = (0..6000).map(|_| Place::new()).collect();
        let read = |number: u64| {
            let place = &places[number as usize];
            let is_there = cache.get(place, (1, number)).is_some();
            if !is_there {
                cache.insert(place, (1, number), &block(4), Admit::Some);
            }
            is_there
        };
        (0..3000).for_each(|number| assert!(!read(number)));
        let full = cache.bytes();
        assert!(full > 16 * 9_000);
        let kept = |from: u64| (from..from + 700).filter(|number| read(*number)).count();
        (3000..3700).for_each(|number| assert!(!read(number)));
        assert!((100..260).contains(&kept(3000)));
        assert!((0..100).any(|_| read(5000)));
        (0..6000).for_each(|number| cache.forget(&places[number as usize], (1, number)));
        assert_eq!(cache.bytes(), 0);
        assert_eq!(kept(4000), 0);
        assert!(kept(4000) > 690);
    }

    /// What tables keep in memory comes out of the same bytes, but for a quarter; given back, blocks have it again.
    #[test]
    fn what_is_charged_leaves_less_to_blocks() {
        let cache = BlockCache::new(16 * 10_000, 4);
        let fill = |table: u64| {
            (0..6000).for_each(|number| cache.insert(&Place::new(), (table, number), &block(4), Admit::All));
            cache.bytes()
        };
        assert!(fill(1) > 16 * 9_000);
        cache.charge(16 * 5_000);
        assert!((16 * 4_500..=16 * 5_000).contains(&fill(2)));
        cache.charge(16 * 20_000);
        assert!((16 * 2_000..=16 * 2_500).contains(&fill(3)));
        cache.discharge(16 * 25_000);
        assert!(fill(4) > 16 * 9_000);
    }

    #[test]
    fn a_cache_of_nothing_keeps_nothing() {
        let (cache, place) = (BlockCache::new(0, 4096), Place::new());
        cache.insert(&place, (1, 1), &block(4), Admit::All);
        assert!(cache.get(&place, (1, 1)).is_none());
    }
}
