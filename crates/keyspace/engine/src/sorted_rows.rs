//! Rows in a sorted map: the store of a backed keyspace in tests.

use crate::{Counts, Entry, Got, Key, Names, Row, RowName, RowSink, Rows, write_row};
use base::hash::KeyHasher;
use base::{Rng, ShardId, UnixMs};
use std::collections::BTreeMap;
use std::io;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows visited by one step of a scan, at least.
const SCAN_STEP: usize = 8;

/// One key in this many counts as possibly present although it is absent, as with a filter.
const FALSE_POSITIVE: u64 = 8;

/// By position and key.
type Map = BTreeMap<(u64, Vec<u8>), Vec<u8>>;

/// The rows of one keyspace of one shard.
pub struct SortedRows {
    /// Gives each key its position.
    hasher: KeyHasher,
    installed: Mutex<Map>,
    /// What the running flush has written.
    pending: Mutex<Vec<Change>>,
    /// Reads without I/O find nothing out.
    is_cold: AtomicBool,
    /// Reads fail.
    fails: AtomicBool,
}

enum Change {
    Clear,
    Store(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
}

impl SortedRows {
    /// No rows.
    pub fn new() -> Arc<Self> {
        let hasher = KeyHasher::new(&mut Rng::new(1));
        let (installed, pending) = (Mutex::default(), Mutex::default());
        Arc::new(Self { hasher, installed, pending, is_cold: true.into(), fails: false.into() })
    }

    /// From now on reads of rows need I/O, or none do.
    pub fn set_cold(&self, is_cold: bool) {
        self.is_cold.store(is_cold, Ordering::Relaxed);
    }

    /// From now on reads of rows fail, or none do.
    pub fn set_failing(&self, fails: bool) {
        self.fails.store(fails, Ordering::Relaxed);
    }

    /// A sink for one flush, of which nothing is seen before it is installed.
    pub fn begin_flush(self: &Arc<Self>) -> Box<dyn RowSink> {
        lock(&self.pending).clear();
        Box::new(Sink(self.clone()))
    }

    /// Installs what the flush has written, all at once, and counts the rows there are then.
    pub fn install(&self) -> Counts {
        let mut rows = lock(&self.installed);
        for change in lock(&self.pending).drain(..) {
            match change {
                Change::Clear => rows.clear(),
                Change::Store(key, row) => _ = rows.insert(self.place(key), row),
                Change::Remove(key) => _ = rows.remove(&self.place(key)),
            }
        }
        let counts = rows.values().map(|row| Row::read(row).expect("what was written is a row").counts());
        counts.fold(Counts::default(), Counts::plus)
    }

    fn place(&self, key: impl Into<Vec<u8>>) -> (u64, Vec<u8>) {
        let key = key.into();
        (self.hasher.hash(&key) >> 17, key)
    }
}

impl Rows for SortedRows {
    fn may_have(&self, key: &Key<'_>) -> bool {
        key.hash.is_multiple_of(FALSE_POSITIVE) || lock(&self.installed).contains_key(&self.place(key.bytes))
    }

    fn try_get(&self, key: &[u8], row: &mut Vec<u8>) -> Got {
        match self.is_cold.load(Ordering::Relaxed) {
            true => Got::NeedsIo,
            false => self.get(key, row).map_or(Got::NeedsIo, |found| if found { Got::Row } else { Got::Absent }),
        }
    }

    fn get(&self, key: &[u8], row: &mut Vec<u8>) -> io::Result<bool> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(io::Error::other("the test has reads fail"));
        }
        let found = lock(&self.installed).get(&self.place(key)).map(|found| row.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn scan(&self, from: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Option<u64> {
        let (mut step, mut next) = (Vec::new(), None);
        for ((position, key), row) in lock(&self.installed).range((from, Vec::new())..) {
            if step.len() >= SCAN_STEP && next != Some(*position) {
                next = Some(*position);
                break;
            }
            next = Some(*position);
            step.push((*position, key.clone(), row.clone()));
        }
        step.iter().for_each(|(_, key, row)| visit(key, row));
        next.filter(|next| step.last().is_some_and(|(last, ..)| last != next))
    }

    fn random(&self, rng: &mut Rng, key: &mut Vec<u8>, row: &mut Vec<u8>) -> bool {
        let rows = lock(&self.installed);
        let from = (rng.next_u64() >> 17, Vec::new());
        let found = rows.range((Excluded(&from), Unbounded)).next().or_else(|| rows.iter().next());
        let Some(((_, found_key), found_row)) = found else { return false };
        key.extend_from_slice(found_key);
        row.extend_from_slice(found_row);
        true
    }

    fn names(&self, range: &Names, visit: &mut dyn FnMut(RowName<'_>) -> bool) -> io::Result<()> {
        let rows = lock(&self.installed);
        let mut found: Vec<(&[u8], &[u8])> =
            rows.iter().map(|((_, key), row)| (&key[..], &row[..])).filter(|(key, _)| range.contains(key)).collect();
        found.sort_unstable();
        if range.is_reversed() {
            found.reverse();
        }
        for (name, row) in found {
            let Row { kind, expire_at, .. } = Row::read(row).map_err(io::Error::other)?;
            if !visit(RowName { shard: ShardId(0), name, kind, expire_at }) {
                break;
            }
        }
        Ok(())
    }

    fn due(&self, now: UnixMs, visit: &mut dyn FnMut(&[u8]) -> bool) {
        let rows = lock(&self.installed);
        let is_due = |row: &[u8]| Row::read(row).is_ok_and(|row| row.expire_at.is_some_and(|at| at <= now));
        let _ = rows.iter().filter(|(_, row)| is_due(row)).all(|((_, key), _)| visit(key));
    }
}

struct Sink(Arc<SortedRows>);

impl RowSink for Sink {
    fn clear(&mut self) {
        lock(&self.0.pending).push(Change::Clear);
    }

    fn store(&mut self, entry: &Entry<'_>) {
        let mut row = Vec::new();
        write_row(entry, &mut row);
        lock(&self.0.pending).push(Change::Store(entry.key.to_vec(), row));
    }

    fn remove(&mut self, key: &[u8]) {
        lock(&self.0.pending).push(Change::Remove(key.to_vec()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
