//! One flush: collected from the shards, written at once.

use crate::counts::{self, Counted, figures_of};
use crate::{Disk, DiskError, KEY_BYTES_MAX, RowSpaces, due, leaves, long_keys, parts};
use base::{KeyspaceId, Lsn, ShardId};
use engine::{Counts, Entry, LeafStore as _, RowSink, SharedBig, Value};
use parking_lot::Mutex;
use plex::{KeySpaceId, WriteBatch};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a batch, about.
const BATCH_BYTES: usize = 1 << 20;

/// A key that has changed.
struct Change {
    key: Vec<u8>,
    /// `None` when it is gone.
    row: Option<Vec<u8>>,
    /// The tree of the row: its leaves may be rows to which nothing else refers any more.
    _tree: Option<SharedBig>,
}

/// What a shard has of a keyspace since the flush before.
#[derive(Default)]
struct Part {
    is_cleared: bool,
    changes: Vec<Change>,
}

/// What is to be written at once.
#[derive(Default)]
struct Pending {
    batch: WriteBatch,
    counts: Counts,
    leaves: leaves::Changes,
}

type Parts = BTreeMap<(KeyspaceId, ShardId), Part>;

/// A flush that collects rows.
pub struct Flush {
    disk: Arc<Disk>,
    parts: Arc<Mutex<Parts>>,
    /// Bytes of keys and rows in `parts`.
    bytes: Arc<AtomicUsize>,
    /// The keyspaces and shards that it is of.
    places: BTreeSet<(KeyspaceId, ShardId)>,
    /// Keyspaces whose rows of before are deleted already.
    cleared: BTreeSet<KeyspaceId>,
    /// Some of what was collected did not get into the tree's memory.
    has_lost: bool,
    /// The tree's memory has all rows, and the position.
    is_sealed: bool,
}

impl Flush {
    pub(crate) fn new(disk: Arc<Disk>) -> Self {
        let (parts, bytes, places, cleared) = Default::default();
        Self { disk, parts, bytes, places, cleared, has_lost: false, is_sealed: false }
    }

    /// Whether a call of [`Flush::install`] that failed can be repeated: all rows are in the tree's memory.
    pub fn is_whole(&self) -> bool {
        !self.has_lost
    }

    /// What takes the rows of a keyspace in a shard.
    pub fn sink(&mut self, shard: ShardId, space: KeyspaceId) -> Box<dyn RowSink> {
        self.places.insert((space, shard));
        self.parts.lock().insert((space, shard), Part::default());
        Box::new(Sink { parts: self.parts.clone(), bytes: self.bytes.clone(), place: (space, shard) })
    }

    /// Bytes that were collected and not drained.
    pub fn collected_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Writes what was collected so far into memory of the tree, where it is not durable yet: so that a long flush does
    /// not collect everything. Not before all sinks are made. May wait for the device.
    ///
    /// # Errors
    /// [`DiskError`]; the flush is to be given up.
    pub fn drain(&mut self) -> Result<(), DiskError> {
        let drained = self.drain_all();
        self.has_lost |= drained.is_err();
        drained
    }

    fn drain_all(&mut self) -> Result<(), DiskError> {
        let disk = &self.disk;
        *disk.has_part.lock() = true;
        let parts: Vec<_> = {
            let mut parts = self.parts.lock();
            self.bytes.store(0, Ordering::Relaxed);
            parts.iter_mut().map(|(place, part)| (*place, part.is_cleared, std::mem::take(&mut part.changes))).collect()
        };
        for ((space, _), is_cleared, _) in &parts {
            // All shards were cleared at once.
            if *is_cleared && self.cleared.insert(*space) {
                disk.clear(*space)?;
            }
        }
        parts.iter().try_for_each(|((space, shard), _, changes)| disk.write_part(*space, *shard, changes))
    }

    /// Writes all rows that were collected, which hold all changes up to `lsn`. Durable when this returns, with the
    /// counts of each keyspace and shard then. May wait for the device.
    ///
    /// # Errors
    /// [`DiskError`]: it is called again, if [`Flush::is_whole`]. Otherwise the next flush has to bring the same keys
    /// (D2).
    pub fn install(&mut self, lsn: Lsn) -> Result<BTreeMap<(KeyspaceId, ShardId), Counts>, DiskError> {
        self.drain()?;
        let disk = &self.disk;
        let counted = disk.counted.lock();
        if !self.is_sealed {
            let mut batch = WriteBatch::new();
            for (space, counted) in &*counted {
                batch.put_in(disk.counts_space, &counts::key_of(*space), &counted.to_bytes());
            }
            let sealed: Vec<_> =
                disk.leaves().map(|(id, leaves)| (leaves.seal(&mut batch, disk.counts_space, id), leaves)).collect();
            batch.set_lsn(lsn.0);
            disk.db.write(&batch)?;
            sealed.iter().for_each(|(dead, leaves)| leaves.sealed(*dead));
            self.is_sealed = true;
        }
        let mut has_part = disk.has_part.lock();
        disk.flush_memory()?;
        *has_part = false;
        drop(has_part);
        disk.walks.begin_anew();
        let of = |place: &(KeyspaceId, ShardId)| counted.get(&place.0).map(|counted| counted.of(place.1));
        Ok(self.places.iter().map(|place| (*place, of(place).unwrap_or_default())).collect())
    }
}

impl Disk {
    /// Moves leaves that were stored since the last flush into tables, so that memory of the tree does not have all of
    /// them (L3). Nothing is done while a flush collects, or after one that failed. May wait for the device.
    ///
    /// # Errors
    /// [`DiskError::Tree`]
    pub fn flush_leaves(&self) -> Result<(), DiskError> {
        let has_part = self.has_part.lock();
        if *has_part { Ok(()) } else { self.flush_memory() }
    }

    fn flush_memory(&self) -> Result<(), DiskError> {
        let unflushed: Vec<_> = self.leaves().map(|(_, leaves)| (leaves.unflushed_bytes(), leaves)).collect();
        self.db.flush()?;
        unflushed.iter().for_each(|(bytes, leaves)| leaves.flushed(*bytes));
        Ok(())
    }

    /// Writes changes of a shard in batches, and counts by what was stored before.
    fn write_part(&self, space: KeyspaceId, shard: ShardId, changes: &[Change]) -> Result<(), DiskError> {
        let Some(rows) = self.space(space) else { return Ok(()) };
        let (mut pending, mut bytes, mut next) = (Pending::default(), 0, None);
        let mut number = |batch: &mut WriteBatch| {
            let number = next.map_or_else(|| parts::next_number(&self.db, self.counts_space, space), Ok)?;
            next = Some(number + 1);
            batch.put_in(self.counts_space, &parts::next_key(space), &(number + 1).to_le_bytes());
            Ok(number)
        };
        for Change { key, row, .. } in changes {
            let stored = rows.stored(&self.db, key)?;
            let (before, before_at) = stored.as_ref().map(|row| figures_of(key, row)).transpose()?.unwrap_or_default();
            let (after, after_at) = row.as_ref().map(|row| figures_of(key, row)).transpose()?.unwrap_or_default();
            pending.counts = pending.counts.plus(after.minus(before));
            if rows.leaves.is_some() {
                let before = rows.leaves_of(&self.db, key, stored.as_deref())?;
                pending.leaves.add(&before, &rows.leaves_of(&self.db, key, row.as_deref())?);
            }
            if let Some(times) = rows.times {
                due::change(&mut pending.batch, times, key, before_at, after_at);
            }
            if key.len() > KEY_BYTES_MAX {
                // The next one may be of the same entry, so this one is written at once.
                self.put_long(rows.long, key, row.as_deref(), &mut pending.batch)?;
                self.write(space, shard, &rows, &mut pending)?;
                bytes = 0;
                continue;
            }
            let change = (stored.as_deref(), row.as_deref());
            let done = parts::change(&mut pending.batch, &rows, key, change, self.cuts, &mut number)?;
            self.parts_written.fetch_add(done.written, Ordering::Relaxed);
            self.parts_kept.fetch_add(done.kept, Ordering::Relaxed);
            bytes += done.bytes;
            if bytes > BATCH_BYTES {
                self.write(space, shard, &rows, &mut pending)?;
                bytes = 0;
            }
        }
        self.write(space, shard, &rows, &mut pending)
    }

    /// Changes the row of a long key.
    fn put_long(
        &self,
        long: KeySpaceId,
        key: &[u8],
        row: Option<&[u8]>,
        batch: &mut WriteBatch,
    ) -> Result<(), DiskError> {
        let stored = long_keys::stored_key(key);
        let entry = self.db.get_in(long, &stored)?.unwrap_or_default();
        let entry = long_keys::changed(&entry, key, row).ok_or(DiskError::LongKeys)?;
        match entry.is_empty() {
            true => batch.delete_in(long, &stored),
            false => batch.put_in(long, &stored, &entry),
        };
        Ok(())
    }

    /// Writes a batch, and counts it (D4). What is not written changes no count: the next flush brings it again.
    fn write(
        &self,
        space: KeyspaceId,
        shard: ShardId,
        rows: &RowSpaces,
        pending: &mut Pending,
    ) -> Result<(), DiskError> {
        self.db.write(&pending.batch)?;
        pending.batch.clear();
        if let Some(counted) = self.counted.lock().get_mut(&space) {
            counted.add(shard, std::mem::take(&mut pending.counts));
        }
        if let Some(leaves) = &rows.leaves {
            leaves.change(std::mem::take(&mut pending.leaves));
        }
        Ok(())
    }

    /// Deletes all rows of a keyspace.
    fn clear(&self, space: KeyspaceId) -> Result<(), DiskError> {
        let Some(rows) = self.space(space) else { return Ok(()) };
        let mut batch = WriteBatch::new();
        for space in [rows.short, rows.long].into_iter().chain(rows.times).chain(rows.parts) {
            batch.delete_range_in(space, ..);
        }
        if let Some(leaves) = &rows.leaves {
            leaves.clear(&mut batch);
        }
        self.db.write(&batch)?;
        self.counted.lock().insert(space, Counted::none(self.shards.count));
        Ok(())
    }
}

struct Sink {
    parts: Arc<Mutex<Parts>>,
    bytes: Arc<AtomicUsize>,
    place: (KeyspaceId, ShardId),
}

impl Sink {
    fn change(&self, change: impl FnOnce(&mut Part)) {
        if let Some(part) = self.parts.lock().get_mut(&self.place) {
            change(part);
        }
    }
}

impl RowSink for Sink {
    fn clear(&mut self) {
        self.change(|part| part.is_cleared = true);
    }

    fn store(&mut self, entry: &Entry<'_>) {
        let mut row = Vec::new();
        leaves::write_row_for(self.place.0, entry, &mut row);
        self.bytes.fetch_add(entry.key.len() + row.len(), Ordering::Relaxed);
        let tree = match entry.value {
            Value::Big(tree) if tree.may_have_rows() => Some(tree.clone()),
            _ => None,
        };
        let change = Change { key: entry.key.to_vec(), row: Some(row), _tree: tree };
        self.change(|part| part.changes.push(change));
    }

    fn remove(&mut self, key: &[u8]) {
        self.bytes.fetch_add(key.len(), Ordering::Relaxed);
        self.change(|part| part.changes.push(Change { key: key.to_vec(), row: None, _tree: None }));
    }
}
