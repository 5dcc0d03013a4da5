//! Prefetching for a batch of keys before their shard is locked.
//!
//! A worker prefetches a key's bucket when it has parsed the request, and the entry some requests before that one runs;
//! then it locks and executes. So the cache misses of a batch overlap with its work, and with each other. The shard's
//! owner may change what is read here at the same time, so each step is a guess that is checked before it is followed:
//!
//! ```text
//! root word -> directory line -> header line -> bucket line -> address of the entry
//! ```
//!
//! Nothing is read but atomic words of the table region, which is never unmapped while this exists (region invariants
//! R1, R2, R4); numbers of lines are compared with what is committed; entries are prefetched by address, never read.
//! The worst a stale value does is to prefetch the wrong line.
//!
//! The cell found this way need not be looked up again under the lock, if nothing has changed meanwhile:
//!
//! W1. The owner raises `changes` in each period that it holds the lock and moves cells or entries, at any moment of
//!     it. A way reads `changes` first, and then the lock, which must be open. If `changes` is the same when the lock
//!     is taken later, nothing has moved since the way began. An earlier change happened-before the observed unlock,
//!     and a later holder has raised nothing. So the cell is still in the table, and its entry lives.

use crate::arena::Pages;
use crate::bucket::{Bucket, tag_of};
use crate::classes::GRANULE_BYTES;
use crate::directory::{self, DEPTH_MAX, Directory};
use crate::extent::{bucket_count, bucket_line, first_bucket_of, second_bucket_of};
use crate::prefetch::prefetch;
use crate::region::{Line, LinesView};
use crate::table::Found;
use base::KeyspaceId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Lines of an entry that are prefetched at most. The processor fetches the following ones itself.
const ENTRY_LINES_MAX: usize = 20;

/// Keyspaces that hints know, from 0; others work without.
const HINTED_SPACE_COUNT: usize = 32;

/// The way to the entry of a key, as far as it was gone without the lock.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The line of a bucket.
    line: u32,
    /// What `changes` was before the first step.
    changes: u32,
    /// The cell that seems to be the key's.
    found: Option<Found>,
    /// W1: whether the lock was open when the way began.
    is_sure: bool,
}

impl Way {
    /// It leads nowhere.
    pub const NONE: Self = Self { line: 0, changes: 0, found: None, is_sure: false };
}

/// Prefetches buckets and entries of one shard, without its lock. What that needs for the first keyspace is its first
/// line of memory.
#[repr(C, align(64))]
pub struct MemHints {
    lines: Arc<LinesView>,
    /// Where the entries are.
    entries: Pages,
    /// How long they are in the mean, as far as it is loaded.
    entry_bytes: AtomicUsize,
    /// W1.
    changes: AtomicU32,
    /// By keyspace: the directory's first line, and above it its depth plus one; 0 while there is no table.
    roots: [AtomicU64; HINTED_SPACE_COUNT],
    /// How long they are together.
    live_bytes: AtomicUsize,
}

impl MemHints {
    pub(crate) fn new(lines: Arc<LinesView>, entries: Pages) -> Self {
        Self {
            lines,
            changes: AtomicU32::new(0),
            roots: [const { AtomicU64::new(0) }; HINTED_SPACE_COUNT],
            entries,
            entry_bytes: AtomicUsize::new(1),
            live_bytes: AtomicUsize::new(0),
        }
    }

    /// Publishes where a table begins now. Called by the shard's owner, under its lock.
    pub(crate) fn publish(&self, space: KeyspaceId, directory: Option<Directory>) {
        if let Some(root) = self.roots.get(space.index()) {
            let word = directory.map_or(0, |d| u64::from(d.at()) | u64::from(d.depth() + 1) << 32);
            root.store(word, Relaxed);
        }
    }

    /// Publishes how many entries there are, and their bytes: the mean is how much of each is prefetched.
    pub(crate) fn tell_size(&self, live_bytes: usize, count: usize) {
        self.live_bytes.store(live_bytes, Relaxed);
        let mean = live_bytes / count.max(1);
        self.entry_bytes.store(mean.clamp(1, ENTRY_LINES_MAX * size_of::<Line>()), Relaxed);
    }

    /// Bytes of all entries, as of the last cleaning.
    pub fn live_bytes(&self) -> usize {
        self.live_bytes.load(Relaxed)
    }

    /// Cells or entries move. Called by the shard's owner, under its lock.
    #[inline]
    pub(crate) fn change(&self) {
        self.changes.store(self.changes.load(Relaxed).wrapping_add(1), Release);
    }

    /// Begins the way to the key with this hash: starts loading the bucket that nearly always holds it. `is_open`
    /// returns whether the shard's lock is open, and reads it with [`Acquire`].
    #[inline]
    pub fn prefetch_bucket(&self, space: KeyspaceId, hash: u64, is_open: impl FnOnce() -> bool) -> Way {
        let changes = self.changes.load(Acquire);
        let is_sure = is_open();
        let Some((header, count)) = self.header(space, hash) else { return Way::NONE };
        let line = bucket_line(header, first_bucket_of(tag_of(hash), count));
        self.prefetch_line(line);
        Way { line, changes, found: None, is_sure }
    }

    /// The way went to a bucket that seems not to have the key: starts loading its second one.
    #[inline(never)]
    pub fn prefetch_second_bucket(&self, way: &mut Way, space: KeyspaceId, hash: u64) {
        let Some((header, count)) = self.header(space, hash) else { return };
        way.line = bucket_line(header, second_bucket_of(tag_of(hash), count));
        self.prefetch_line(way.line);
    }

    /// Starts loading the entry with this hash, best a while after its bucket was asked for. False when the bucket
    /// seems not to have it.
    #[inline]
    pub fn prefetch_entry(&self, way: &mut Way, hash: u64) -> bool {
        let Some(line) = self.lines.line(way.line) else { return false };
        way.found = Found::first(Bucket::new(line), way.line, tag_of(hash));
        let Some(found) = way.found else { return false };
        let address = self.entries.at(found.handle as usize * GRANULE_BYTES).addr();
        let (mut line, end) =
            (address & !(size_of::<Line>() - 1), address.wrapping_add(self.entry_bytes.load(Relaxed)));
        while line < end {
            prefetch(line);
            line = line.wrapping_add(size_of::<Line>());
        }
        true
    }

    /// The cell that a way has led to, of a live entry, though not certainly that of its key. Called by the shard's
    /// owner, under its lock.
    #[inline]
    pub(crate) fn end_of(&self, way: &Way) -> Option<Found> {
        // W1
        way.found.filter(|_| way.is_sure && way.changes == self.changes.load(Relaxed))
    }

    #[inline]
    fn prefetch_line(&self, line: u32) {
        if let Some(line) = self.lines.line(line) {
            prefetch(std::ptr::from_ref(line).addr());
        }
    }

    /// The header line for the hash, and a bucket count that is safe to divide by.
    #[inline]
    fn header(&self, space: KeyspaceId, hash: u64) -> Option<(&Line, u32)> {
        let root = self.roots.get(space.index())?.load(Relaxed);
        let depth = ((root >> 32) as u32).checked_sub(1).filter(|&depth| depth <= DEPTH_MAX)?;
        let (line, place) = directory::place_of(root as u32, directory::cell_of(hash, depth));
        let header = self.lines.line(directory::read(self.lines.line(line)?, place))?;
        let count = bucket_count(header);
        (count > 0).then_some((header, count))
    }
}

const _: () = assert!(std::mem::offset_of!(MemHints, roots) + size_of::<AtomicU64>() <= size_of::<Line>());

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<MemHints>();
};

#[cfg(test)]
mod tests {
    use crate::hints::Way;
    use crate::{MemEngine, MemoryUse};
    use base::hash::KeyHasher;
    use base::{KeyspaceId, Rng};
    use engine::{Encoding, Engine, ExtFields, Key, NewEntry, Type, Value};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Hints read while the table grows, splits, shrinks and is cleared, and after the engine is gone. What they
    /// prefetch cannot be seen; that they touch nothing but atomic words of mapped memory, Miri and a fault would show.
    #[test]
    fn hints_read_what_changes() {
        let mut rng = Rng::new(1);
        let hasher = KeyHasher::new(&mut rng);
        let mut engine = MemEngine::new(hasher.clone(), rng, Arc::new(MemoryUse::default()));
        let hints = engine.hints();
        let stop = Arc::new(AtomicBool::new(false));
        let reader = {
            let (hints, stop) = (Arc::clone(&hints), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut rng = Rng::new(2);
                while !stop.load(Ordering::Relaxed) {
                    let (space, hash) = (KeyspaceId(rng.below(40) as u32), rng.next_u64());
                    let mut way = hints.prefetch_bucket(space, hash, || true);
                    hints.prefetch_entry(&mut way, hash);
                    hints.prefetch_second_bucket(&mut way, space, hash);
                    hints.prefetch_entry(&mut way, hash);
                    hints.prefetch_entry(&mut Way { line: rng.next_u64() as u32, ..way }, hash);
                }
            })
        };
        let space = KeyspaceId(0);
        let count = if cfg!(miri) { 300 } else { 20_000u32 };
        for round in 0..2 {
            for number in 0..count {
                let bytes = number.to_le_bytes();
                let key = Key::new(&hasher, space, &bytes);
                let value = Value::Bytes(b"value");
                let new = NewEntry {
                    kind: Type::String,
                    encoding: Encoding::PLAIN,
                    value,
                    expire_at: None,
                    fields: ExtFields::NONE,
                };
                engine.write(&key, &new);
                let mut way = hints.prefetch_bucket(space, key.hash, || true);
                if !hints.prefetch_entry(&mut way, key.hash) {
                    hints.prefetch_second_bucket(&mut way, space, key.hash);
                    assert!(hints.prefetch_entry(&mut way, key.hash), "nothing else changes it");
                }
                assert!(hints.end_of(&way).is_some());
            }
            for number in 0..if round == 0 { count } else { 0 } {
                let bytes = number.to_le_bytes();
                assert!(engine.remove(&Key::new(&hasher, space, &bytes)));
            }
        }
        engine.clear(space);
        while engine.clean(100) {}
        drop(engine);
        let mut way = hints.prefetch_bucket(space, 1, || true);
        assert!(!hints.prefetch_entry(&mut way, 1) && hints.end_of(&way).is_none(), "a cleared database has no table");
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    }
}
