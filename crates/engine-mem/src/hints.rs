//! Prefetching for a batch of keys before their shard is locked.
//!
//! A worker asks for a key's bucket when it has parsed the request, for the entry some requests before that one runs, and
//! then locks and executes: the cache misses of a batch overlap with its work, and with each other. What is read here may be changed at the same time by the shard's owner, so each
//! step is a guess that is checked before it is followed:
//!
//! ```text
//! root word -> directory line -> header line -> bucket line -> address of the entry
//! ```
//!
//! Nothing is read but atomic words of the table region, which is never unmapped while this exists (region invariants R1,
//! R2, R4); numbers of lines are compared with what is committed; entries are prefetched by address, never read. The
//! worst a stale value does is to prefetch the wrong line.

use crate::arena::Pages;
use crate::bucket::{Bucket, tag_of};
use crate::classes::GRANULE_BYTES;
use crate::directory::{self, DEPTH_MAX, Directory};
use crate::extent::{bucket_count, bucket_line, first_bucket_of, second_bucket_of};
use crate::prefetch::prefetch;
use crate::region::{Line, LinesView};
use base::KeyspaceId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Lines of an entry that are asked for at most. What follows, the processor fetches by itself.
const ENTRY_LINES_MAX: usize = 20;

/// Keyspaces that hints know, from 0; others work without.
const HINTED_SPACE_COUNT: usize = 32;

/// Prefetches buckets and entries of one shard, without its lock.
pub struct MemHints {
    lines: Arc<LinesView>,
    /// By keyspace: the directory's first line, and above it its depth plus one; 0 while there is no table.
    roots: [AtomicU64; HINTED_SPACE_COUNT],
    /// Where the entries are.
    entries: Pages,
    /// How long they are in the mean, as far as it is loaded.
    entry_bytes: AtomicUsize,
    /// How long they are together.
    live_bytes: AtomicUsize,
}

impl MemHints {
    pub(crate) fn new(lines: Arc<LinesView>, entries: Pages) -> Self {
        Self {
            lines,
            roots: [const { AtomicU64::new(0) }; HINTED_SPACE_COUNT],
            entries,
            entry_bytes: AtomicUsize::new(1),
            live_bytes: AtomicUsize::new(0),
        }
    }

    /// Tells where a table begins now. Called by the shard's owner, under its lock.
    pub(crate) fn publish(&self, space: KeyspaceId, directory: Option<Directory>) {
        if let Some(root) = self.roots.get(space.index()) {
            let word = directory.map_or(0, |d| u64::from(d.at()) | u64::from(d.depth() + 1) << 32);
            root.store(word, Relaxed);
        }
    }

    /// Tells how many entries there are, and their bytes: the mean is how much of each is loaded.
    pub(crate) fn tell_size(&self, live_bytes: usize, count: usize) {
        self.live_bytes.store(live_bytes, Relaxed);
        let mean = live_bytes / count.max(1);
        self.entry_bytes.store(mean.clamp(1, ENTRY_LINES_MAX * size_of::<Line>()), Relaxed);
    }

    /// Bytes of all entries, as of the last cleaning.
    pub fn live_bytes(&self) -> usize {
        self.live_bytes.load(Relaxed)
    }

    /// Starts loading the bucket that nearly always holds the key with this hash, if it is there, and tells which line that
    /// is; `None` where nothing is known.
    #[inline]
    pub fn prefetch_bucket(&self, space: KeyspaceId, hash: u64) -> Option<u32> {
        let (header, count) = self.header(space, hash)?;
        let first = first_bucket_of(tag_of(hash), count);
        let line = bucket_line(header, first);
        prefetch(std::ptr::from_ref(self.lines.line(line)?).addr());
        Some(line)
    }

    /// Starts loading the bucket of a key that is in its second one, or not there at all, and tells which line that is.
    #[inline(never)]
    pub fn prefetch_second_bucket(&self, space: KeyspaceId, hash: u64) -> Option<u32> {
        let (header, count) = self.header(space, hash)?;
        let line = bucket_line(header, second_bucket_of(tag_of(hash), count));
        prefetch(std::ptr::from_ref(self.lines.line(line)?).addr());
        Some(line)
    }

    /// Starts loading the entry with this hash from the line of a bucket, best a while after that was asked for. False when the
    /// bucket seems not to have it.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64, line: u32) -> bool {
        let Some(line) = self.lines.line(line) else { return false };
        let bucket = Bucket::new(line);
        let matches = bucket.matches(tag_of(hash));
        if matches == 0 {
            return false;
        }
        let handle = bucket.handle(matches.trailing_zeros());
        let address = self.entries.at(handle as usize * GRANULE_BYTES).addr();
        let (mut line, end) =
            (address & !(size_of::<Line>() - 1), address.wrapping_add(self.entry_bytes.load(Relaxed)));
        while line < end {
            prefetch(line);
            line = line.wrapping_add(size_of::<Line>());
        }
        true
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

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<MemHints>();
};

#[cfg(test)]
mod tests {
    use crate::{MemEngine, MemoryUse};
    use base::hash::KeyHasher;
    use base::{KeyspaceId, Rng};
    use engine::{Encoding, Engine, Key, NewEntry, Type, Value};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Hints read while the table grows, splits, shrinks and is cleared, and after the engine is gone. What they prefetch
    /// cannot be seen; that they touch nothing but atomic words of mapped memory, Miri and a fault would show.
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
                    for line in [hints.prefetch_bucket(space, hash), hints.prefetch_second_bucket(space, hash)] {
                        hints.prefetch_entry(hash, line.unwrap_or(rng.next_u64() as u32));
                    }
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
                let new = NewEntry { kind: Type::String, encoding: Encoding::PLAIN, value, expire_at: None };
                engine.write(&key, &new);
                let lines = [hints.prefetch_bucket(space, key.hash), hints.prefetch_second_bucket(space, key.hash)];
                assert!(
                    lines.iter().flatten().any(|line| hints.prefetch_entry(key.hash, *line)),
                    "nothing else changes it"
                );
            }
            for number in 0..if round == 0 { count } else { 0 } {
                let bytes = number.to_le_bytes();
                assert!(engine.remove(&Key::new(&hasher, space, &bytes)));
            }
        }
        engine.clear(space);
        while engine.clean(100) {}
        drop(engine);
        assert_eq!(hints.prefetch_bucket(space, 1), None, "a cleared database has no table");
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    }
}
