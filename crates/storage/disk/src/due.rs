//! Rows by the time at which they expire, so that they go when they are due, read or not.
//!
//! ```text
//! flush --> key space t: time, key       a thread: Disk::gather_due --> a queue for each shard --> Rows::due (upkeep)
//! ```
//!
//! docs/formats/rows.md describes the bytes.
//!
//! X1. Each row with a time has one entry, which a flush changes together with the row.
//! X2. What a queue gives may have changed since: the engine deletes only what no change has touched.
//! X3. A key that was given and not deleted is given again: a walk begins anew after each flush, and after a while.

use crate::{Disk, DiskError, RowSpaces};
use base::checksum::Crc64Rdb;
use base::{KeyspaceId, ShardId, UnixMs};
use parking_lot::Mutex;
use plex::{Db, IterOptions, KeySpaceId, WriteBatch};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Entries that one step of a walk reads.
const STEP_ENTRIES: usize = 4096;

/// Keys in all queues of a keyspace, at most by a step.
const WAITING_MAX: usize = 1 << 16;

/// Time after which a walk begins anew (X3).
const ANEW: Duration = Duration::from_secs(10);

const TIME_BYTES: usize = 8;
const CRC_BYTES: usize = 8;

/// Bytes of a key that an entry has, if the key does not fit.
const PART_BYTES: usize = plex::KEY_LEN_MAX - TIME_BYTES - CRC_BYTES;

/// The times in the order of their bytes.
fn time_bytes(at: UnixMs) -> [u8; TIME_BYTES] {
    (at as u64 ^ 1 << 63).to_be_bytes()
}

/// An entry: its key, and its value. Of a key that does not fit, the value is the key.
fn entry(at: UnixMs, key: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut stored = time_bytes(at).to_vec();
    if TIME_BYTES + key.len() <= plex::KEY_LEN_MAX {
        stored.extend_from_slice(key);
        return (stored, b"");
    }
    stored.extend_from_slice(key.get(..PART_BYTES).unwrap_or(key));
    stored.extend(Crc64Rdb::new().update(key).finish().to_be_bytes());
    (stored, key)
}

/// Has a batch change the entry of a row with the row.
pub fn change(batch: &mut WriteBatch, space: KeySpaceId, key: &[u8], before: Option<UnixMs>, after: Option<UnixMs>) {
    if before == after {
        return;
    }
    if let Some(before) = before {
        batch.delete_in(space, &entry(before, key).0);
    }
    if let Some(after) = after {
        let (stored, value) = entry(after, key);
        batch.put_in(space, &stored, value);
    }
}

/// Keys of a keyspace that are due, by shard.
pub struct Due {
    queues: Vec<Mutex<VecDeque<Box<[u8]>>>>,
    waiting: AtomicUsize,
}

impl Due {
    pub fn new(shards: u16) -> Self {
        Self { queues: (0..shards).map(|_| Mutex::default()).collect(), waiting: AtomicUsize::new(0) }
    }

    /// Takes keys of a shard until `visit` says false.
    pub fn take(&self, shard: ShardId, visit: &mut dyn FnMut(&[u8]) -> bool) {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        let Some(queue) = self.queues.get(shard.index()) else { return };
        let mut queue = queue.lock();
        while let Some(key) = queue.pop_front() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            if !visit(&key) {
                return;
            }
        }
    }

    fn add(&self, shard: ShardId, key: &[u8]) {
        if let Some(queue) = self.queues.get(shard.index()) {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            queue.lock().push_back(key.into());
        }
    }
}

/// Where walks are, by keyspace; those that are missing begin at the begin.
#[derive(Default)]
pub struct Walks(Mutex<BTreeMap<KeyspaceId, (Vec<u8>, Instant)>>);

impl Walks {
    /// All begin anew.
    pub fn begin_anew(&self) {
        self.0.lock().clear();
    }
}

impl Disk {
    /// Looks for rows that have expired by `now`, and queues their keys for the shards. True when there may be more to
    /// queue at once. Waits for the device.
    ///
    /// # Errors
    /// [`DiskError::Tree`]
    pub fn gather_due(&self, now: UnixMs) -> Result<bool, DiskError> {
        let all: Vec<(KeyspaceId, RowSpaces)> =
            self.spaces.read().iter().map(|(id, rows)| (*id, rows.clone())).collect();
        let mut has_more = false;
        for (id, rows) in all {
            has_more |= self.gather_due_of(id, &rows, now)?;
        }
        Ok(has_more)
    }

    fn gather_due_of(&self, id: KeyspaceId, rows: &RowSpaces, now: UnixMs) -> Result<bool, DiskError> {
        let Some(times) = rows.times.filter(|_| rows.due.waiting.load(Ordering::Relaxed) < WAITING_MAX) else {
            return Ok(false);
        };
        let (from, begun) = {
            let mut walks = self.walks.0.lock();
            walks.entry(id).or_insert_with(|| (Vec::new(), Instant::now())).clone()
        };
        let (last, has_more) = self.queue_some(&self.db, times, rows, (&from, now))?;
        let mut walks = self.walks.0.lock();
        // One that begins anew meanwhile stays at its begin.
        if let Some(walk) = walks.get_mut(&id).filter(|walk| walk.1 == begun) {
            walk.0 = last;
            if !has_more && begun.elapsed() > ANEW {
                walks.remove(&id);
            }
        }
        Ok(has_more)
    }

    /// Queues some keys. Gives where to continue, and whether there are more.
    fn queue_some(
        &self,
        db: &Db,
        times: KeySpaceId,
        rows: &RowSpaces,
        (from, now): (&[u8], UnixMs),
    ) -> Result<(Vec<u8>, bool), DiskError> {
        let end = time_bytes(now.saturating_add(1));
        let mut last = from.to_vec();
        if from >= &end[..] {
            return Ok((last, false));
        }
        for (looked, pair) in db.iter_in(times, IterOptions::range(from..&end[..]))?.enumerate() {
            let (stored, value) = pair?;
            if looked == STEP_ENTRIES {
                return Ok((last, true));
            }
            let key = if value.is_empty() { stored.get(TIME_BYTES..).unwrap_or_default() } else { &value[..] };
            rows.due.add((self.shards.of)(key), key);
            // The next one after it.
            last.clear();
            last.extend_from_slice(&stored);
            last.push(0);
        }
        Ok((last, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries are in the order of their times, and those of long keys fit.
    #[test]
    fn entries_are_ordered_by_time() {
        let at = |at, key| entry(at, key).0;
        assert!(at(-5, b"z") < at(0, b"a") && at(0, b"a") < at(1, b"a") && at(255, b"") < at(256, b""));
        assert_eq!(at(258, b"k"), [0x80, 0, 0, 0, 0, 0, 1, 2, b'k']);
        let long = vec![b'k'; plex::KEY_LEN_MAX];
        let (stored, value) = entry(1, &long);
        assert_eq!((stored.len(), value), (plex::KEY_LEN_MAX, &long[..]));
        assert_eq!(entry(1, &long[..plex::KEY_LEN_MAX - TIME_BYTES]).1, b"");
    }
}
