//! One flush: collected from the shards, written at once.

use crate::counts::{self, Counted, counts_of};
use crate::{Disk, DiskError, KEY_BYTES_MAX};
use base::{KeyspaceId, Lsn, ShardId};
use engine::{Counts, Entry, RowSink, write_row};
use parking_lot::Mutex;
use plex::WriteBatch;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of a batch, about.
const BATCH_BYTES: usize = 1 << 20;

/// What a shard has of a keyspace since the flush before.
#[derive(Default)]
struct Part {
    is_cleared: bool,
    /// Rows, or `None` for keys that are gone.
    changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

type Parts = BTreeMap<(KeyspaceId, ShardId), Part>;

/// A flush that collects rows.
pub struct Flush {
    disk: Arc<Disk>,
    parts: Arc<Mutex<Parts>>,
    /// The keyspaces and shards that it is of.
    places: BTreeSet<(KeyspaceId, ShardId)>,
    /// Keyspaces whose rows of before are deleted already.
    cleared: BTreeSet<KeyspaceId>,
}

impl Flush {
    pub(crate) fn new(disk: Arc<Disk>) -> Self {
        Self { disk, parts: Arc::default(), places: BTreeSet::new(), cleared: BTreeSet::new() }
    }

    /// What takes the rows of a keyspace in a shard.
    pub fn sink(&mut self, shard: ShardId, space: KeyspaceId) -> Box<dyn RowSink> {
        self.places.insert((space, shard));
        self.parts.lock().insert((space, shard), Part::default());
        Box::new(Sink { parts: self.parts.clone(), place: (space, shard) })
    }

    /// Writes what was collected so far into memory of the tree, where it is not durable yet: so that a long flush does
    /// not collect everything. Not before all sinks are made. May wait for the device.
    ///
    /// # Errors
    /// [`DiskError`]; the flush is to be given up.
    pub fn drain(&mut self) -> Result<(), DiskError> {
        let disk = &self.disk;
        *disk.has_part.lock() = true;
        let parts: Vec<_> = {
            let mut parts = self.parts.lock();
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
    /// [`DiskError`]; the next flush has to bring the same keys (D2).
    pub fn install(mut self, lsn: Lsn) -> Result<BTreeMap<(KeyspaceId, ShardId), Counts>, DiskError> {
        self.drain()?;
        let disk = &self.disk;
        let counted = disk.counted.lock();
        let mut batch = WriteBatch::new();
        for (space, counted) in &*counted {
            batch.put_in(disk.counts_space, &counts::key_of(*space), &counted.to_bytes());
        }
        batch.set_lsn(lsn.0);
        disk.db.write(&batch)?;
        let mut has_part = disk.has_part.lock();
        disk.db.flush()?;
        *has_part = false;
        drop(has_part);
        let of = |place: &(KeyspaceId, ShardId)| counted.get(&place.0).map(|counted| counted.of(place.1));
        Ok(self.places.iter().map(|place| (*place, of(place).unwrap_or_default())).collect())
    }
}

impl Disk {
    /// Writes changes of a shard in batches, and counts by what was stored before.
    fn write_part(
        &self,
        space: KeyspaceId,
        shard: ShardId,
        changes: &[(Vec<u8>, Option<Vec<u8>>)],
    ) -> Result<(), DiskError> {
        let Some(rows) = self.space(space) else { return Ok(()) };
        let mut batch = WriteBatch::new();
        let (mut bytes, mut counts) = (0, Counts::default());
        for (key, row) in changes {
            if key.len() > KEY_BYTES_MAX {
                return Err(DiskError::LongKey(key.len()));
            }
            let before = self.db.get_in(rows, key)?;
            let before = before.map(|row| counts_of(key, &row)).transpose()?.unwrap_or_default();
            let after = row.as_ref().map(|row| counts_of(key, row)).transpose()?.unwrap_or_default();
            counts = counts.plus(after.minus(before));
            match row {
                Some(row) => batch.put_in(rows, key, row),
                None => batch.delete_in(rows, key),
            };
            bytes += key.len() + row.as_ref().map_or(0, Vec::len);
            if bytes > BATCH_BYTES {
                self.write(space, shard, &mut batch, std::mem::take(&mut counts))?;
                bytes = 0;
            }
        }
        self.write(space, shard, &mut batch, counts)
    }

    /// Writes a batch, and counts it (D4).
    fn write(
        &self,
        space: KeyspaceId,
        shard: ShardId,
        batch: &mut WriteBatch,
        counts: Counts,
    ) -> Result<(), DiskError> {
        self.db.write(batch)?;
        batch.clear();
        if let Some(counted) = self.counted.lock().get_mut(&space) {
            counted.add(shard, counts);
        }
        Ok(())
    }

    /// Deletes all rows of a keyspace.
    fn clear(&self, space: KeyspaceId) -> Result<(), DiskError> {
        let Some(rows) = self.space(space) else { return Ok(()) };
        let (mut batch, last) = (WriteBatch::new(), [u8::MAX; KEY_BYTES_MAX]);
        batch.delete_range_in(rows, &[]..&last);
        batch.delete_in(rows, &last);
        self.db.write(&batch)?;
        self.counted.lock().insert(space, Counted::none(self.shards.count));
        Ok(())
    }
}

struct Sink {
    parts: Arc<Mutex<Parts>>,
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
        write_row(entry, &mut row);
        self.change(|part| part.changes.push((entry.key.to_vec(), Some(row))));
    }

    fn remove(&mut self, key: &[u8]) {
        self.change(|part| part.changes.push((key.to_vec(), None)));
    }
}
