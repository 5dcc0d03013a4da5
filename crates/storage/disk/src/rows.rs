//! The rows of one keyspace in one shard, read from the tree.
//!
//! A position of a scan is 22 bits of its next key's first bytes, and the number of a place in a table that has the
//! whole key, with how often the table has been gone through (8 bits). When the place was given to another scan
//! meanwhile, the scan continues at the first key that begins with those bits: it may repeat rows and leaves none out.

use crate::{DiskError, RowSpaces, ShardOf, long_keys, names, parts};
use base::{Rng, ShardId, UnixMs};
use engine::{Got, Key, Names, Row, RowName, Rows};
use parking_lot::Mutex;
use plex::{Db, IterOptions};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Rows of the shard that one step of a scan visits.
const STEP_ROWS: usize = 64;

/// Rows of any shard that it looks at.
const STEP_LOOKS: usize = 4096;

/// Places for the keys of scans.
const PLACE_COUNT: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 14;

/// Bits of how often all places were given.
const ROUND_BITS: u32 = 8;

/// Bits of a key in its position.
const KEY_BITS: u32 = 22;

/// The bit of a position that is among the rows of long keys.
const LONG: u64 = 1 << (PLACE_BITS + ROUND_BITS + KEY_BITS);

/// Rows that a random one is drawn from.
const RANDOM_LOOKS: u64 = 1024;

/// Rows that were read, and for how long, in microseconds, and those that could not be read.
#[derive(Debug, Default)]
pub struct RowReads {
    pub count: AtomicU64,
    pub failed: AtomicU64,
    pub us: AtomicU64,
}

type KeyAndRow = (Vec<u8>, Vec<u8>);

pub struct DiskRows {
    db: Db,
    spaces: RowSpaces,
    shard: ShardId,
    shard_of: ShardOf,
    reads: Arc<RowReads>,
    places: Mutex<Places>,
}

/// Keys at which scans continue.
#[derive(Default)]
pub struct Places {
    keys: Vec<(u8, Vec<u8>)>,
    next: usize,
    round: u8,
}

impl Places {
    /// Keeps a key, and gives its position.
    fn keep(&mut self, key: &[u8]) -> u64 {
        let (place, round) = (self.next, self.round);
        self.next = (place + 1) % PLACE_COUNT;
        self.round = round.wrapping_add(u8::from(self.next == 0));
        let entry = (round, key.to_vec());
        match self.keys.get_mut(place) {
            Some(kept) => *kept = entry,
            None => self.keys.push(entry),
        }
        (first_bits(key) << ROUND_BITS | u64::from(round)) << PLACE_BITS | place as u64
    }

    /// The key at a position, or one before it.
    fn key_at(&self, position: u64) -> Vec<u8> {
        let (bits, place) = (position >> (ROUND_BITS + PLACE_BITS), position as usize % PLACE_COUNT);
        let round = (position >> PLACE_BITS) as u8;
        match self.keys.get(place).filter(|(kept, key)| *kept == round && first_bits(key) == bits) {
            Some((_, key)) => key.clone(),
            None => {
                let mut key = ((bits << (u32::BITS - KEY_BITS)) as u32).to_be_bytes().to_vec();
                // Zeros stand for bytes that a short key does not have.
                key.truncate(key.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
                key
            }
        }
    }
}

/// The first bits of a key, padded with zeros. A key with fewer comes before all with more.
fn first_bits(key: &[u8]) -> u64 {
    let bytes = [0, 1, 2, 3].map(|at| key.get(at).copied().unwrap_or(0));
    u64::from(u32::from_be_bytes(bytes) >> (u32::BITS - KEY_BITS))
}

impl DiskRows {
    pub fn new(db: Db, spaces: RowSpaces, shard: ShardId, shard_of: ShardOf, reads: Arc<RowReads>) -> Self {
        Self { db, spaces, shard, shard_of, reads, places: Mutex::default() }
    }

    fn read(&self, key: &[u8], row: &mut Vec<u8>) -> io::Result<bool> {
        let Some(found) = self.spaces.get(&self.db, key).map_err(io::Error::other)? else { return Ok(false) };
        Row::read(&found).map_err(io::Error::other)?;
        row.extend_from_slice(&found);
        Ok(true)
    }

    fn scan_step(&self, from: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<Option<u64>, DiskError> {
        if from & LONG != 0 {
            return self.scan_long(from & !LONG, visit);
        }
        let first = if from == 0 { Vec::new() } else { self.places.lock().key_at(from) };
        let (mut visited, mut looked) = (0, 0);
        for pair in self.db.iter_in(self.spaces.short, IterOptions::range(&first[..]..))? {
            let (key, row) = pair?;
            if visited == STEP_ROWS || looked == STEP_LOOKS {
                return Ok(Some(self.places.lock().keep(&key)));
            }
            looked += 1;
            if (self.shard_of)(&key) == self.shard {
                visited += 1;
                match parts::is_parted(&row) {
                    false => visit(&key, &row),
                    // It is gone since, or as it is now.
                    true => _ = self.spaces.get(&self.db, &key)?.map(|row| visit(&key, &row)),
                }
            }
        }
        let has_long = self.db.iter_in(self.spaces.long, IterOptions::default())?.next().is_some();
        Ok(has_long.then_some(LONG))
    }

    /// The same for the rows of long keys, which come last.
    fn scan_long(&self, from: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<Option<u64>, DiskError> {
        let first = if from == 0 { Vec::new() } else { self.places.lock().key_at(from) };
        for (looked, pair) in self.db.iter_in(self.spaces.long, IterOptions::range(&first[..]..))?.enumerate() {
            let (stored, entry) = pair?;
            if looked == STEP_ROWS {
                return Ok(Some(LONG | self.places.lock().keep(&stored)));
            }
            let pairs = long_keys::pairs(&entry).ok_or(DiskError::LongKeys)?;
            let of_shard = pairs.into_iter().filter(|(key, _)| (self.shard_of)(key) == self.shard);
            of_shard.for_each(|(key, row)| visit(key, row));
        }
        Ok(None)
    }

    fn random_row(&self, rng: &mut Rng) -> Result<Option<KeyAndRow>, DiskError> {
        let (mut chosen, mut seen) = (None, 0);
        for pair in self.db.iter_in(self.spaces.short, IterOptions::range::<'static>(..))? {
            let (key, row) = pair?;
            if (self.shard_of)(&key) != self.shard {
                continue;
            }
            seen += 1;
            if rng.one_in(seen) {
                chosen = Some((key.to_vec(), row.to_vec()));
            }
            if seen == RANDOM_LOOKS {
                break;
            }
        }
        match chosen {
            Some((key, row)) if parts::is_parted(&row) => Ok(self.spaces.get(&self.db, &key)?.map(|row| (key, row))),
            chosen => Ok(chosen),
        }
    }
}

impl Rows for DiskRows {
    fn may_have(&self, key: &Key<'_>) -> bool {
        self.spaces.may_have(&self.db, key.bytes)
    }

    /// The tree has no read that does no I/O yet.
    fn try_get(&self, _key: &[u8], _row: &mut Vec<u8>) -> Got {
        Got::NeedsIo
    }

    fn get(&self, key: &[u8], row: &mut Vec<u8>) -> io::Result<bool> {
        let begin = Instant::now();
        let result = self.read(key, row);
        let count = if result.is_ok() { &self.reads.count } else { &self.reads.failed };
        count.fetch_add(1, Ordering::Relaxed);
        if result.is_ok() {
            self.reads.us.fetch_add(begin.elapsed().as_micros() as u64, Ordering::Relaxed);
        }
        result
    }

    fn scan(&self, from: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Option<u64> {
        self.scan_step(from, visit).unwrap_or_else(|error| {
            tracing::error!("a walk over rows ends early: {error}");
            None
        })
    }

    fn random(&self, rng: &mut Rng, key: &mut Vec<u8>, row: &mut Vec<u8>) -> bool {
        let found = self.random_row(rng).unwrap_or_else(|error| {
            tracing::error!("no random row can be read: {error}");
            None
        });
        let Some((found_key, found_row)) = found else { return false };
        key.extend_from_slice(&found_key);
        row.extend_from_slice(&found_row);
        true
    }

    fn names(&self, range: &Names, visit: &mut dyn FnMut(RowName<'_>) -> bool) -> io::Result<()> {
        names::visit(&self.db, &self.spaces, &self.shard_of, range, visit).map_err(io::Error::other)
    }

    fn position_of(&self, name: &[u8]) -> u64 {
        self.spaces.names.lock().keep(name)
    }

    fn name_at(&self, position: u64) -> Vec<u8> {
        self.spaces.names.lock().key_at(position)
    }

    fn leaves(&self) -> Option<Arc<dyn engine::LeafStore>> {
        self.spaces.leaves.clone().map(|leaves| leaves as Arc<dyn engine::LeafStore>)
    }

    /// Those that were gathered by now ([`crate::Disk::gather_due`]).
    fn due(&self, _now: UnixMs, visit: &mut dyn FnMut(&[u8]) -> bool) {
        self.spaces.due.take(self.shard, visit);
    }
}

const _: () = assert!(2 * LONG <= engine::rows::POSITION_END);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_was_lost_repeats_and_leaves_nothing_out() {
        let mut places = Places::default();
        let position = places.keep(b"user:1234");
        assert_eq!(places.key_at(position), b"user:1234");
        (0..PLACE_COUNT).for_each(|_| _ = places.keep(b"user:9"));
        assert_eq!(places.key_at(position), b"usd", "it comes before all keys of these first bits");
        let short = places.keep(b"a");
        (0..PLACE_COUNT).for_each(|_| _ = places.keep(b"other"));
        assert_eq!(places.key_at(short), b"a");
        for key in [&b""[..], b"\0", b"a", b"ab", b"\xff\xff\xff\xff\xff"] {
            let position = places.keep(key);
            assert_eq!(places.key_at(position), key);
            assert!(position < engine::rows::POSITION_END);
        }
    }
}
